"""Retrievers on local models and on other retrievers: by vectors, by fusion, by ranking anew."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.deferred import numpy as np
from ragforge.records import Chunk, Hit
from ragforge.retrieval import Buildable, Embedding, Retriever
from ragforge.retrieval.local_models import Vectors
from ragforge.retrieval.local_vectors import LocalVectors, Progress, ignore_progress
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.tokens import in_tie_order, searched_text, top_hits

RRF_K: Final = 60
"""Rank from which on a retriever's opinion fades; Cormack, Clarke and Büttcher 2009, SIGIR."""
LEAST_DEPTH: Final = 100
"""Ranks that are read of each retriever, or ranked anew, where fewer are wanted."""
_DIGITS: Final = 6


class LocalRetriever:
    """Finds the chunks whose vectors of a local model point the way of the query's.

    Args:
        chunks: What is searched, headings included; those without words are never found.
        vectors: The model.

    Raises:
        DataError: Two chunks have one id.
    """

    def __init__(self, chunks: Iterable[Chunk], vectors: LocalVectors) -> None:
        listed = in_tie_order(chunks)
        self._ids = [chunk.chunk_id for chunk in listed]
        self._texts = [searched_text(chunk) for chunk in listed]
        self._model = vectors
        self._matrix: Vectors | None = None
        self._lock = asyncio.Lock()

    @property
    def n_to_embed(self) -> int:
        """Chunks whose vectors are not there yet."""
        return len(self._texts)

    async def embed_chunks(self, progress: Progress) -> None:
        """Compute the vectors of the chunks; a second call does nothing.

        Raises:
            ConfigError: The model is not installed.
        """
        async with self._lock:
            if self._matrix is None:
                self._matrix = await self._model.vectors_of_many(self._texts, progress)
                self._texts = []

    async def build(self) -> None:
        """Compute the vectors of the chunks now rather than in the first query.

        Raises:
            ConfigError: The model is not installed.
        """
        await self.embed_chunks(ignore_progress)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks; the score is the cosine, in [-1, 1]. A blank query finds nothing.

        Raises:
            ConfigError: The model is not installed.
        """
        if not query.strip() or not self._ids:
            return []
        await self.build()
        assert self._matrix is not None
        [vector] = await asyncio.to_thread(self._model.vectors, [query])
        if not vector.any():
            return []
        # BLAS adds up equal rows in different orders; rounding makes their scores equal again.
        cosines = np.round(self._matrix @ vector, _DIGITS)
        cosines[~self._matrix.any(axis=1)] = -np.inf
        return top_hits(self._ids, cosines, k, above=-np.inf)


class FusedRetriever:
    """Ranks chunks by reciprocal rank fusion: the sum of 1 / (60 + rank) over some retrievers.

    Args:
        retrievers: Two or more, one that fails fails the query.
        depth: Ranks that are read of each at least.
    """

    def __init__(self, retrievers: Sequence[Retriever], *, depth: int = LEAST_DEPTH) -> None:
        self._retrievers = list(retrievers)
        self._depth = depth

    @property
    def n_to_embed(self) -> int:
        """Chunks whose vectors its parts lack."""
        return sum(each.n_to_embed for each in self._retrievers if isinstance(each, Embedding))

    async def embed_chunks(self, progress: Progress) -> None:
        """Let its parts compute the vectors that they lack.

        Raises:
            ConfigError: A model is not installed.
        """
        for each in self._retrievers:
            if isinstance(each, Embedding):
                await each.embed_chunks(progress)

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
        texts: What the first retriever gave that is no chunk; None where it gives chunks alone.
    """

    def __init__(
        self,
        first: Retriever,
        vectors: LocalVectors,
        chunks: Iterable[Chunk],
        *,
        depth: int = LEAST_DEPTH,
        texts: RetrievedTexts | None = None,
    ) -> None:
        self._first = first
        self._others = texts
        self._vectors = vectors
        self._texts = {chunk.chunk_id: searched_text(chunk) for chunk in chunks}
        self._depth = depth

    @property
    def n_to_embed(self) -> int:
        """Chunks whose vectors the first retriever lacks."""
        return self._first.n_to_embed if isinstance(self._first, Embedding) else 0

    async def embed_chunks(self, progress: Progress) -> None:
        """Let the first retriever compute the vectors that it lacks.

        Raises:
            ConfigError: The model is not installed.
        """
        if isinstance(self._first, Embedding):
            await self._first.embed_chunks(progress)

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
        found = {hit.chunk_id: self._text(hit.chunk_id) for hit in hits}
        ids = [chunk_id for chunk_id, text in found.items() if text]
        if not ids:
            return []
        texts = [found[chunk_id] for chunk_id in ids]
        vectors = await asyncio.to_thread(self._vectors.vectors, [query, *texts])
        cosines = np.round(vectors[1:] @ vectors[0], _DIGITS)
        return _best(zip(ids, cosines.tolist(), strict=True), k)

    def _text(self, chunk_id: str) -> str:
        """Return what is ranked for an id; "" where nothing is known of it."""
        if chunk_id in self._texts or self._others is None:
            return self._texts.get(chunk_id, "")
        return self._others.text(chunk_id)


def _best(scores: Iterable[tuple[str, float]], k: int) -> list[Hit]:
    """Return the k best, best first, ties by id, descending."""
    by_id = sorted(scores, key=lambda scored: scored[0], reverse=True)
    best = sorted(by_id, key=lambda scored: -scored[1])[:k]
    return [Hit(chunk_id=chunk_id, score=score) for chunk_id, score in best]
