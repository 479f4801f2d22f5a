import asyncio

from ragforge.testing import FixedRetriever


def test_the_fixed_retriever_returns_what_it_was_given():
    """Users test their own gates with it; it must be exactly predictable."""
    retriever = FixedRetriever({"q": ["b", "a", "c"]})

    hits = asyncio.run(retriever.retrieve("q", 2))

    assert [(hit.chunk_id, hit.score) for hit in hits] == [("b", 1.0), ("a", 0.5)]
    assert asyncio.run(retriever.retrieve("other", 2)) == []
