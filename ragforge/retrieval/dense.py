"""Ranking by meaning: cosine of embedding vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ragforge.deferred import numpy as np
from ragforge.errors import CallError, EndpointError
from ragforge.records import Chunk, Hit
from ragforge.retrieval import Embedder
from ragforge.retrieval.tokens import in_tie_order, searched_text, top_hits

if TYPE_CHECKING:
    import numpy.typing as npt

_Vectors: TypeAlias = "npt.NDArray[np.float32]"

BATCH = 64
"""Texts in one call of the embedder; a whole batch is what a failed call costs."""


class DenseRetriever:
    """Finds the chunks whose vectors point the way of the query's.

    The chunks are embedded by the first call, or by `build`, one batch after the other. A batch
    that is there is kept when a later one fails, so the next attempt goes on from it.

    Args:
        chunks: What is searched, headings included.
        embedder: Gives the vectors, of chunks and queries alike.

    Raises:
        DataError: Two chunks have one id.
    """

    def __init__(self, chunks: Iterable[Chunk], embedder: Embedder) -> None:
        self._chunks = in_tie_order(chunks)
        self._ids = [chunk.chunk_id for chunk in self._chunks]
        self._embedder = embedder
        self._batches: list[_Vectors] = []
        self._matrix: _Vectors | None = None
        self._lock = asyncio.Lock()

    async def build(self) -> None:
        """Embed the chunks now rather than in the first query, whose latency would hold it.

        Raises:
            CallError: The embedder failed for the moment.
            EndpointError: A reply does not have one usable vector a chunk.
        """
        async with self._lock:
            if self._matrix is not None:
                return
            for start in range(len(self._batches) * BATCH, len(self._chunks), BATCH):
                self._batches.append(await self._embed_chunks(self._chunks[start : start + BATCH]))
            self._matrix = np.concatenate(self._batches)
            self._batches = []
            self._chunks = []

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks; the score is the cosine, in [-1, 1]. A blank query finds nothing.

        Raises:
            CallError: The embedder failed for the moment, or gave this query an unusable vector.
            EndpointError: A reply does not have one usable vector a text.
        """
        if not query.strip() or not self._ids:
            return []
        if self._matrix is None:
            await self.build()
        assert self._matrix is not None
        [vector] = await self._embed([query], self._matrix.shape[1])
        length = np.linalg.norm(vector)
        if not np.isfinite(length) or length == 0:
            raise CallError("invalid", f"embeddings: the query's vector has the length {length}")
        # BLAS adds up equal rows in different orders; rounding makes their scores equal again.
        cosines = np.round(self._matrix @ (vector / length), 6)
        return top_hits(self._ids, cosines, k, above=-np.inf)

    async def _embed_chunks(self, chunks: Sequence[Chunk]) -> _Vectors:
        width = self._batches[0].shape[1] if self._batches else None
        vectors = await self._embed([searched_text(chunk) for chunk in chunks], width)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        for chunk, length in zip(chunks, lengths[:, 0], strict=True):
            if not np.isfinite(length) or length == 0:
                raise EndpointError(
                    f"embeddings: the vector of chunk {chunk.chunk_id!r} has the length {length}; "
                    "expected a finite one above 0"
                )
        normalised: _Vectors = vectors / lengths
        return normalised

    async def _embed(self, texts: Sequence[str], width: int | None) -> _Vectors:
        """Return one vector a text, as they come from the embedder, checked for their shape."""
        vectors = await self._embedder.embed(texts)
        if len(vectors) != len(texts):
            raise EndpointError(
                f"embeddings: got {len(vectors)} vectors for {len(texts)} texts; expected as many"
            )
        widths = {len(vector) for vector in vectors} | ({width} if width is not None else set())
        if len(widths) > 1:
            raise EndpointError(
                f"embeddings: vectors have {_listed(widths)} dimensions; expected one number of "
                "them for all chunks and queries"
            )
        return np.array(vectors, dtype=np.float32)


def _listed(numbers: set[int]) -> str:
    return " and ".join(str(number) for number in sorted(numbers))
