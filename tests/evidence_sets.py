"""Sets with documents, queries with evidence, and runs of the set's chunks and of other pieces."""

import random

from ragforge.files.manifest import RunOrigin
from ragforge.files.set.integrity import chunks_digest
from ragforge.files.set.opening import create_dataset
from ragforge.records import (
    Chunk,
    Evidence,
    Hit,
    Judgment,
    Query,
    Ranking,
    RetrievedText,
    Span,
    text_id,
)

WORDS = "ab cd efg hij klm nopq rst uvw xyz".split()


def dataset_of(path, documents, size, queries):
    """Make a set with documents in chunks of so many characters."""
    made = create_dataset(path, made_from={"seed": "0"})
    chunks = [
        Chunk(chunk_id=f"{doc_id}-{at:04}", doc_id=doc_id, text=text[at : at + size], start=at)
        for doc_id, text in documents.items()
        for at in range(0, len(text), size)
    ]
    made.write_chunks(
        [item.model_copy(update={"end": item.start + len(item.text)}) for item in chunks]
    )
    made.write_queries(queries)
    made.write_judgments(
        [
            Judgment(query_id=query.query_id, chunk_id=chunks[0].chunk_id, grade=3)
            for query in queries
        ]
    )
    return made


def query(query_id, *evidence):
    return Query(
        query_id=query_id, query=f"what of {query_id}?", evidence=evidence, expected_answer="so"
    )


def quoted(doc_id, text, start, end):
    quote = text[start:end]
    return Evidence(doc_id=doc_id, chunk_id="c", quote=quote, start=start, end=end)


def write_run(dataset, name, **ranked):
    dataset.write_run(
        name,
        [
            Ranking(
                query_id=query_id,
                ranking=[Hit(chunk_id=key, score=-at) for at, key in enumerate(ids)],
            )
            for query_id, ids in ranked.items()
        ],
        RunOrigin(chunks_sha256=chunks_digest(dataset), retriever="by hand"),
    )


def place(start, end, doc_id="fees"):
    return Span(doc_id=doc_id, start=start, end=end)


def stretch(documents, doc_id, start, end):
    """Return a text that a splitter cut out of a document."""
    text = documents[doc_id][start:end]
    return RetrievedText(chunk_id=text_id(text), text=text, places=[place(start, end, doc_id)])


def random_set(path, seed, n_queries=20):
    """Make documents without a repeated sentence, queries, and runs of two chunkings."""
    dice = random.Random(seed)
    documents = {
        f"d{at}": " ".join(f"{dice.choice(WORDS)}{dice.randrange(10**9)}" for _ in range(60))
        for at in range(4)
    }
    queries = []
    for at in range(n_queries):
        borders = sorted(dice.sample(range(0, 500), 4))
        doc_ids = [dice.choice(list(documents)) for _ in range(2)]
        spans = [(borders[0], borders[1]), (borders[2], borders[3])]
        quotes = [
            quoted(doc_id, documents[doc_id], start, end)
            for doc_id, (start, end) in zip(doc_ids, spans, strict=True)
            if any(map(str.isalnum, documents[doc_id][start:end]))
        ]
        queries.append(query(f"q{at:02}", *quotes))
    made = dataset_of(path, documents, 90, queries)
    texts = {}
    for _ in range(60):
        doc_id, start = dice.choice(list(documents)), dice.randrange(400)
        end = start + dice.randrange(1, 200)
        text = documents[doc_id][start:end]
        texts[text_id(text)] = stretch(documents, doc_id, start, start + len(text))
    made.write_retrieved_texts(list(texts.values()))
    own = [chunk.chunk_id for chunk in made.chunks()]
    asked = queries[:-1]
    write_run(made, "own", **{item.query_id: dice.sample(own, 6) for item in asked})
    write_run(made, "cut", **{item.query_id: dice.sample(list(texts), 6) for item in asked})
    return made
