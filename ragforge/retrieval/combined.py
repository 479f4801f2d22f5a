"""Retrievers made of retrievers: the rankings of several fused, and the top of one ranked anew."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from ragforge.records import Chunk, Hit
from ragforge.retrieval import Buildable, Retriever
from ragforge.retrieval.local_vectors import LocalVectors
from ragforge.retrieval.tokens import searched_text

RRF_K: Final = 60
"""Rank from which on a retriever's opinion fades; Cormack, Clarke and Büttcher 2009, SIGIR."""
LEAST_DEPTH: Final = 100
"""Ranks that are read of each retriever, or ranked anew, where fewer are wanted."""
_DIGITS: Final = 6


class FusedRetriever:
    """Ranks chunks by reciprocal rank fusion: the sum of 1 / (60 + rank) over some retrievers.

    Args:
        retrievers: Two or more, one that fails fails the query.
        depth: Ranks that are read of each at least.
    """

    def __init__(self, retrievers: Sequence[Retriever], *, depth: int = LEAST_DEPTH) -> None:
        self._retrievers = list(retrievers)
        self._depth = depth

    async def build(self) -> None:
        """Prepare all of them.

        Raises:
            CallError, EndpointError: One cannot be prepared.
        """
        for retriever in self._retrievers:
            if isinstance(retriever, Buildable):
                await retriever.build()

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the k chunks that the retrievers together rank best.

        Raises:
            CallError, RagforgeError: As one of the retrievers.
        """
        depth = max(k, self._depth)
        # One after the other: queries run at the same time as it is.
        scores: dict[str, float] = {}
        for retriever in self._retrievers:
            for rank, hit in enumerate(await retriever.retrieve(query, depth), start=1):
                scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + 1 / (RRF_K + rank)
        return _best(scores.items(), k)


class RerankedRetriever:
    """Ranks the top of another retriever anew, by the cosine of vectors.

    What stands below the depth is left out, and so is a chunk whose text is not known.

    Args:
        first: Finds the candidates.
        vectors: The model that ranks them.
        chunks: The corpus, for the texts.
        depth: Candidates a query, where no more hits are wanted.
    """

    def __init__(
        self,
        first: Retriever,
        vectors: LocalVectors,
        chunks: Iterable[Chunk],
        *,
        depth: int = LEAST_DEPTH,
    ) -> None:
        self._first = first
        self._vectors = vectors
        self._texts = {chunk.chunk_id: searched_text(chunk) for chunk in chunks}
        self._depth = depth

    async def build(self) -> None:
        """Prepare the first retriever; texts get their vectors as they are found.

        Raises:
            CallError, EndpointError: It cannot be prepared.
        """
        if isinstance(self._first, Buildable):
            await self._first.build()

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the k best of the candidates; the score is the cosine.

        Raises:
            CallError, RagforgeError: As the first retriever.
            ConfigError: The model is not installed.
        """
        hits = await self._first.retrieve(query, max(k, self._depth))
        ids = [hit.chunk_id for hit in hits if hit.chunk_id in self._texts]
        if not ids:
            return []
        texts = [self._texts[chunk_id] for chunk_id in ids]
        vectors = await asyncio.to_thread(self._vectors.vectors, [query, *texts])
        cosines = np.round(vectors[1:] @ vectors[0], _DIGITS)
        return _best(zip(ids, cosines.tolist(), strict=True), k)


def _best(scores: Iterable[tuple[str, float]], k: int) -> list[Hit]:
    """Return the k best, best first, ties by id, descending."""
    by_id = sorted(scores, key=lambda scored: scored[0], reverse=True)
    best = sorted(by_id, key=lambda scored: -scored[1])[:k]
    return [Hit(chunk_id=chunk_id, score=score) for chunk_id, score in best]
