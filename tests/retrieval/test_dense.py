import asyncio
import math

import pytest

from ragforge.errors import CallError, EndpointError
from ragforge.retrieval.dense import BATCH, DenseRetriever

VECTORS = {"red": [2.0, 0.0], "pink": [1.0, 1.0], "blue": [0.0, 3.0], "grey": [-1.0, 0.0]}


class Embedder:
    """Gives vectors by text and remembers the texts of each call."""

    def __init__(self, vectors=VECTORS, failures=()):
        self.vectors = vectors
        self.failures = list(failures)
        self.calls = []

    async def embed(self, texts):
        self.calls.append(list(texts))
        await asyncio.sleep(0)
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return [self.vectors[text] for text in texts]


@pytest.fixture
def corpus(chunks):
    return chunks(r="red", p="pink", b="blue")


def test_hits_are_ordered_by_cosine(corpus, ask):
    """The length of a vector says nothing about what its text means."""
    hits = ask(DenseRetriever(corpus, Embedder()), "red", k=2)

    assert [hit.chunk_id for hit in hits] == ["r", "p"]
    assert [hit.score for hit in hits] == pytest.approx([1, math.sqrt(0.5)], abs=1e-6)


def test_ties_are_broken_by_id_descending(chunks, ids):
    """The order must be the one in which the evaluation reads equal scores."""
    retriever = DenseRetriever(chunks(b="red", c="red", a="red"), Embedder())

    assert ids(retriever, "pink", k=2) == ["c", "b"]


def test_far_chunks_are_still_ranked(chunks, ids):
    """A negative cosine is a low score, not the absence of one."""
    assert ids(DenseRetriever(chunks(g="grey", b="blue"), Embedder()), "red") == ["b", "g"]


def test_queries_that_start_together_embed_the_chunks_once(corpus):
    """Twenty queries in flight must not pay for the corpus twenty times."""
    embedder = Embedder()
    retriever = DenseRetriever(corpus, embedder)

    async def together():
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(retriever.retrieve("blue", 1))

    asyncio.run(together())

    assert embedder.calls == [["red", "pink", "blue"]] + [["blue"]] * 20


def test_chunks_are_embedded_in_batches(chunks):
    """Endpoints limit how many texts one call may have."""
    embedder = Embedder()
    retriever = DenseRetriever(chunks(**{f"c{n}": "red" for n in range(BATCH + 1)}), embedder)

    asyncio.run(retriever.build())

    assert [len(call) for call in embedder.calls] == [BATCH, 1]


def test_a_failed_batch_keeps_the_batches_before_it(chunks, ids):
    """No paid call is bought twice."""
    embedder = Embedder(failures=[None, CallError("error", "busy")])
    retriever = DenseRetriever(chunks(**{f"c{n}": "red" for n in range(BATCH + 1)}), embedder)
    with pytest.raises(CallError, match="busy"):
        asyncio.run(retriever.retrieve("red", 1))

    assert ids(retriever, "red", k=1) == ["c9"]
    assert [len(call) for call in embedder.calls] == [BATCH, 1, 1, 1]


def test_the_index_is_built_in_advance_on_request(corpus, ids):
    """The first query's latency must not hold the embedding of the corpus."""
    embedder = Embedder()
    retriever = DenseRetriever(corpus, embedder)
    asyncio.run(retriever.build())

    assert ids(retriever, "red", k=1) == ["r"]
    assert embedder.calls[1:] == [["red"]]


@pytest.mark.parametrize("vector", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_an_unusable_chunk_vector_stops_the_run(corpus, ask, vector):
    """A chunk that can never be found would lower every score without a word."""
    embedder = Embedder({**VECTORS, "pink": vector})

    with pytest.raises(EndpointError, match="vector of chunk 'p' has the length"):
        ask(DenseRetriever(corpus, embedder), "red")


@pytest.mark.parametrize("vector", [[0.0, 0.0], [math.nan, 1.0]])
def test_an_unusable_query_vector_fails_that_query(corpus, ask, vector):
    """Other queries can still be answered."""
    embedder = Embedder({**VECTORS, "odd": vector})

    with pytest.raises(CallError, match="query's vector has the length") as caught:
        ask(DenseRetriever(corpus, embedder), "odd")

    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("text", ["pink", "query"])
def test_vectors_of_another_length_stop_the_run(corpus, ask, text):
    """A model changed behind its name makes all cosines meaningless."""
    embedder = Embedder({**VECTORS, "query": [1.0, 0.0], text: [1.0, 0.0, 0.0]})

    with pytest.raises(EndpointError, match="vectors have 2 and 3 dimensions"):
        ask(DenseRetriever(corpus, embedder), "query")


def test_a_missing_vector_stops_the_run(corpus, ask):
    """With fewer vectors than texts nobody knows which belongs to which."""

    class Short(Embedder):
        async def embed(self, texts):
            return (await super().embed(texts))[1:]

    with pytest.raises(EndpointError, match="got 2 vectors for 3 texts"):
        ask(DenseRetriever(corpus, Short()), "red")


@pytest.mark.parametrize(("texts", "query"), [({}, "red"), ({"r": "red"}, "  ")])
def test_nothing_to_search_costs_no_call(chunks, ask, texts, query):
    """Endpoints refuse empty texts, and an empty corpus has no answer to pay for."""
    embedder = Embedder()

    assert ask(DenseRetriever(chunks(**texts), embedder), query) == []
    assert embedder.calls == []
