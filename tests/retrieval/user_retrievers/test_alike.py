"""Tests of hits whose chunks are alike: an id of another one, and a text that is nearly its own."""

from itertools import pairwise

import pytest

from ragforge.corpus.file_text_locator import FileTextLocator
from ragforge.corpus.file_texts import file_texts
from ragforge.records import Chunk, Ranking, text_id
from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.user_retrievers import ResultReader

NAMES = ("Amber", "Basil", "Cedar", "Delta", "Ember")
LAMPS = tuple(
    f"The lamp named {name} has a battery of {20 + 3 * at} hours, weighs {310 + 7 * at} grams with "
    f"its charger & the leather case, and is sold in all shops for {40 + 11 * at}.5 crowns."
    for at, name in enumerate(NAMES)
)
STORY = (
    "A ferry crosses the sound each morning at six, but for Sundays, when the crew of the night "
    "boat sleeps and the harbour master keeps the barrier down until the bells have rung. Whoever "
    "wants to cross before that rows, as the fishers of the northern shore have done since the "
    "first lighthouse burned and nobody knew the way between the rocks in the dark of the winter."
)
SIZE, STEP = 200, 80
WINDOWS = tuple(STORY[at : at + SIZE] for at in range(0, len(STORY) - SIZE + 1, STEP))
FORMS = {
    "heading": lambda text: f"Lamps\n\n{text}",
    "lower case": str.lower,
    "bold": lambda text: text.replace("named", "**named**").replace("the", "**the**"),
    "highlights": lambda text: text.replace(" the ", " <em>the</em> ").replace("&", "&amp;"),
    "blanks": lambda text: text.replace(" ", "\n  "),
    "all of these": lambda text: f"## Lamps\n{text.upper().replace(' THE ', ' <em>THE</em> ')}\n…",
}
OTHER_MARKS = {
    "marks": lambda text: text.replace(" the ", " {{hl}}the{{/hl}} ").replace(" ", "  "),
    "a title": lambda text: f"Shop > Lamps of all kinds: {text[:-20].lower()}",
}


def chunks_of(texts, doc_id):
    return [
        Chunk(chunk_id=f"c{at}", doc_id=doc_id(at), text=text.strip())
        for at, text in enumerate(texts)
    ]


@pytest.fixture(params=["pages", "one document", "windows"])
def alike(request):
    if request.param == "windows":
        return chunks_of(WINDOWS, lambda _: "story.md")
    one = request.param == "one document"
    return chunks_of(LAMPS, lambda at: "lamps.md" if one else f"{NAMES[at]}.md")


@pytest.fixture
def taken(alike):
    return RetrievedTexts(CorpusDocuments(alike, file_texts, FileTextLocator))


@pytest.fixture
def ids(alike, taken):
    reader = ResultReader("it", alike, texts=taken)
    return lambda *hits: [hit.chunk_id for hit in reader.read([*hits], "q", 10)]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_id_of_another_chunk_does_not_count_for_a_text_of_this_one(alike, taken, ids, form):
    """An index that counts from 1 has each text under the id of the one before."""
    hits = [{"id": other.chunk_id, "text": form(chunk.text)} for chunk, other in pairwise(alike)]

    assert ids(*hits) == [chunk.chunk_id for chunk in alike[:-1]]
    assert taken.n_misnamed == len(hits)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_text_without_an_id_is_the_same_chunk(alike, ids, form):
    """Whether or not an index has ids that are of no use, it has found the same."""
    assert ids(*({"text": form(chunk.text)} for chunk in alike)) == [
        chunk.chunk_id for chunk in alike
    ]


@pytest.mark.parametrize(
    "form",
    [
        *(FORMS | OTHER_MARKS).values(),
        lambda text: text[: len(text) // 2],
        lambda text: f"{text[: len(text) // 2].lower()}…",
        lambda text: f"… {text[20:70]} […] **{text[-60:-20]}** …",
    ],
    ids=[*FORMS, *OTHER_MARKS, "half", "half in lower case", "pieces"],
)
def test_the_id_of_a_chunk_counts_where_others_are_like_it(alike, taken, ids, form):
    """Services cut, mark and re-space what they found, also where pages are alike."""
    hits = [{"id": chunk.chunk_id, "text": form(chunk.text)} for chunk in alike]

    assert ids(*hits) == [chunk.chunk_id for chunk in alike]
    assert not taken.n_misnamed


@pytest.mark.parametrize("form", OTHER_MARKS.values(), ids=OTHER_MARKS)
def test_a_text_that_is_likelier_another_chunk_counts_as_a_text(alike, taken, ids, form):
    """What came of the words of one chunk is no grade of another."""
    texts = [form(chunk.text) for chunk in alike[:-1]]
    hits = [
        {"id": other.chunk_id, "text": text} for other, text in zip(alike[1:], texts, strict=True)
    ]

    assert ids(*hits) == [text_id(text) for text in texts]
    assert taken.n_misnamed == len(hits)


def test_a_number_that_reads_otherwise_is_another_chunk():
    """Letters alone would take 1.5 for 15."""
    chunks = chunks_of(
        [f"A bag of flour weighs {n} kilos in all shops." for n in ("15", "1.5")], str
    )
    taken = RetrievedTexts(CorpusDocuments(chunks, file_texts, FileTextLocator))
    reader = ResultReader("it", chunks, texts=taken)
    text = "A bag of flour weighs **1.5** kilos in **all** shops."
    read = reader.read([{"id": "c0", "text": text}, {"text": text.replace("1.5", "15")}], "q", 10)

    assert [hit.chunk_id for hit in read] == ["c1", "c0"]


def test_a_heading_that_the_document_has_makes_another_piece_of_it():
    """Where the documents hold it as it is, its place and its quotes are known."""
    text = f"Lamps {LAMPS[0]}"
    at = len("Lamps ")
    chunks = [
        Chunk(chunk_id="h", doc_id="lamps.md", text="Lamps", start=0, end=5),
        Chunk(chunk_id="c", doc_id="lamps.md", text=LAMPS[0], start=at, end=at + len(LAMPS[0])),
    ]
    reader = ResultReader(
        "it", chunks, texts=RetrievedTexts(CorpusDocuments(chunks, file_texts, FileTextLocator))
    )

    assert [hit.chunk_id for hit in reader.read([{"text": text}], "q", 10)] == [text_id(text)]
    assert [hit.chunk_id for hit in reader.read([{"text": text.upper()}], "q", 10)] == ["c"]


@pytest.mark.parametrize(
    "form",
    [str, *(FORMS | OTHER_MARKS).values(), lambda text: text[:100], lambda text: text[60:].upper()],
    ids=["plain", *FORMS, *OTHER_MARKS, "cut", "end"],
)
def test_the_name_of_another_document_does_not_count_for_a_text_of_this_one(form):
    """Where labels name documents, pages that are alike are told apart as well."""
    pages = chunks_of(LAMPS, lambda at: f"{NAMES[at]}.md")
    documents = CorpusDocuments(pages, file_texts, FileTextLocator, names_documents=True)
    taken = RetrievedTexts(documents)
    reader = ResultReader("it", pages, texts=taken)
    texts = [form(text) for text in LAMPS]
    own = [{"id": f"{name}.md", "text": text} for name, text in zip(NAMES, texts, strict=True)]
    of_next = [
        {"id": f"{name}.md", "text": text} for name, text in zip(NAMES[1:], texts[:-1], strict=True)
    ]
    [ranking] = taken.settle([Ranking(query_id="q", ranking=reader.read(of_next, "q", 10))])
    placed = {
        text.chunk_id: [place.doc_id for place in text.places]
        for text in taken.located({hit.chunk_id for hit in ranking.ranking})
    } | {chunk.chunk_id: [chunk.doc_id] for chunk in pages}

    assert [hit.chunk_id for hit in reader.read(own, "q", 10)] == [each["id"] for each in own]
    assert [placed[hit.chunk_id] for hit in ranking.ranking] == [
        [f"{name}.md"] for name in NAMES[:-1]
    ]
    assert taken.n_misnamed == len(of_next)
