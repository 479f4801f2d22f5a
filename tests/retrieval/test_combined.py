"""Fusing rankings and ranking a top anew."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from ragforge.errors import CallError
from ragforge.records import Chunk, Hit
from ragforge.retrieval.combined import FusedRetriever, LocalRetriever, RerankedRetriever
from ragforge.retrieval.local_vectors import Progress


class _Fixed:
    """Finds always the same chunks."""

    def __init__(self, *chunk_ids: str) -> None:
        self._ids = chunk_ids

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the first k, scored downwards."""
        return [Hit(chunk_id=each, score=-at) for at, each in enumerate(self._ids[:k])]


class _Broken:
    """Fails always."""

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Raise."""
        raise CallError("error", "no answer")


class _Lengths:
    """Vectors by the length of texts: the longest is nearest to any query."""

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the query's direction first."""
        rows = [[1.0, 0.0], *([len(text) / 100, 0.0] for text in texts[1:])]
        return np.array(rows, np.float32)

    async def vectors_of_many(self, texts: Sequence[str], progress: Progress) -> np.ndarray:
        """Return the longest nearest; one part."""
        progress(len(texts))
        return self.vectors(["", *texts])[1:]


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.chunk_id for hit in hits]


def test_fusion_by_hand() -> None:
    """a: 1/61 + 1/63, b: 1/62 + 1/61, c: 1/62."""
    fused = FusedRetriever([_Fixed("a", "b"), _Fixed("b", "c", "a")])
    hits = asyncio.run(fused.retrieve("q", 3))

    assert _ids(hits) == ["b", "a", "c"]
    assert hits[0].score == pytest.approx(1 / 62 + 1 / 61)


def test_equal_ranks_go_by_id() -> None:
    """As trec_eval orders ties, so that a run is the same wherever it is read."""
    fused = FusedRetriever([_Fixed("a"), _Fixed("b")])

    assert _ids(asyncio.run(fused.retrieve("q", 2))) == ["b", "a"]


def test_a_part_that_fails_fails_the_query() -> None:
    """Half a hybrid is another retriever."""
    fused = FusedRetriever([_Fixed("a"), _Broken()])

    with pytest.raises(CallError, match="no answer"):
        asyncio.run(fused.retrieve("q", 2))


def test_fusion_looks_deeper_than_it_returns() -> None:
    """A chunk at rank 2 of both beats those at rank 1 of one."""
    fused = FusedRetriever([_Fixed("a", "c"), _Fixed("b", "c")])

    assert _ids(asyncio.run(fused.retrieve("q", 1))) == ["c"]


def test_the_top_is_ranked_anew() -> None:
    """The first retriever finds, the model ranks."""
    lengths = {"a": 1, "b": 9, "c": 5}
    chunks = [Chunk(chunk_id=each, doc_id="d", text=each * n) for each, n in lengths.items()]
    reranked = RerankedRetriever(_Fixed("a", "b", "c", "gone"), _Lengths(), chunks)  # type: ignore[arg-type]

    assert _ids(asyncio.run(reranked.retrieve("q", 2))) == ["b", "c"]


def test_what_stands_below_the_depth_is_left_out() -> None:
    """Else two scales of scores would stand in one ranking."""
    chunks = [Chunk(chunk_id=name, doc_id="d", text=name) for name in "abc"]
    reranked = RerankedRetriever(_Fixed("a", "b", "c"), _Lengths(), chunks, depth=2)  # type: ignore[arg-type]

    assert _ids(asyncio.run(reranked.retrieve("q", 1))) == ["b"]
    assert len(asyncio.run(reranked.retrieve("q", 2))) == 2


def test_vectors_rank_and_chunks_without_words_are_not_found() -> None:
    """A chunk without a direction is like nothing."""
    chunks = [Chunk(chunk_id=each, doc_id="d", text=each * n) for each, n in (("a", 1), ("b", 9))]
    local = LocalRetriever(chunks, _Lengths())  # type: ignore[arg-type]

    assert _ids(asyncio.run(local.retrieve("q", 5))) == ["b", "a"]
    assert asyncio.run(local.retrieve(" ", 5)) == []


def test_all_parts_embed_their_chunks_once() -> None:
    """Progress counts what is computed, and a second build costs nothing."""
    chunks = [Chunk(chunk_id=each, doc_id="d", text=each) for each in "abc"]
    fused = FusedRetriever([_Fixed("a"), LocalRetriever(chunks, _Lengths())])  # type: ignore[arg-type]
    reranked = RerankedRetriever(fused, _Lengths(), chunks)  # type: ignore[arg-type]
    told: list[int] = []
    waiting = reranked.n_to_embed
    asyncio.run(reranked.embed_chunks(told.append))
    asyncio.run(reranked.embed_chunks(told.append))
    asyncio.run(reranked.build())

    assert (waiting, told, reranked.n_to_embed) == (3, [3], 0)
