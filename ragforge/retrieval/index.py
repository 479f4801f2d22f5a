"""What the retrievers with an index of their own share."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ragforge.errors import DataError
from ragforge.records import Chunk, Hit

Scores = npt.NDArray[np.floating]


def in_tie_order(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks by id, descending: a stable sort by score then breaks ties as trec_eval.

    Raises:
        DataError: Two chunks have one id.
    """
    ordered = sorted(chunks, key=lambda chunk: chunk.chunk_id, reverse=True)
    for one, other in pairwise(ordered):
        if one.chunk_id == other.chunk_id:
            raise DataError(f"chunks: id {one.chunk_id!r} comes twice; ids must be unique")
    return ordered


def searched_text(chunk: Chunk) -> str:
    """Return what is indexed of a chunk: the titles above it, then its text."""
    return "\n".join((*chunk.heading_path, chunk.text))


def top_hits(chunk_ids: Sequence[str], scores: Scores, k: int, above: float) -> list[Hit]:
    """Return the k best hits, best first, ties by id, descending.

    Args:
        chunk_ids: Ids in descending order, as `in_tie_order` gives them.
        scores: Aligned with the ids.
        k: How many hits at most.
        above: Hits must score more than this.
    """
    return [
        Hit(chunk_id=chunk_ids[row], score=float(scores[row]))
        for row in top_rows(scores, k, above).tolist()
    ]


def top_rows(scores: Scores, k: int, above: float) -> npt.NDArray[np.intp]:
    """Return the rows of the k best scores above a bound, best first, ties in their order."""
    rows = np.flatnonzero(scores > above)
    if len(rows) > k:
        least = np.partition(scores[rows], -k)[-k]
        rows = rows[scores[rows] >= least]
    return rows[np.argsort(-scores[rows], kind="stable")][:k]
