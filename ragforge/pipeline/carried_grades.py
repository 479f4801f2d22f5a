"""Grades whose chunk has other ids now: what becomes of them, and of the pools they stand in."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ragforge.records import Judgment, PoolEntry


class ChunkMoves(Protocol):
    """Under which ids chunks are found now."""

    def of(self, chunk_id: str) -> Sequence[str]:
        """Return the ids that a chunk has now: its own alone where it stays, none where it is gone.

        One text may stand several times now, and what stood several times may stand once.
        """


def at_chunks(judgment: Judgment, chunk_ids: Iterable[str]) -> Iterator[Judgment]:
    """Yield a judgment for each id that its chunk has now; a judge's is marked at a new one."""
    for chunk_id in chunk_ids:
        if chunk_id == judgment.chunk_id:
            yield judgment
        else:
            source = "carried" if judgment.source == "judge" else judgment.source
            update = {"chunk_id": chunk_id, "source": source, "copied_from": ""}
            yield judgment.model_copy(update=update)


def by_rank(judgments: Iterable[Judgment]) -> list[Judgment]:
    """Order judgments so that the last of a pair stands: a person's, a judge's, the evidence's."""
    rank = {"evidence": 1, "carried": 2, "judge": 3, "human": 4}
    return sorted(judgments, key=lambda item: (not item.is_failed, rank[item.source]))


def moved_pool(entries: Iterable[PoolEntry], moves: ChunkMoves) -> list[PoolEntry]:
    """Return pools with the ids that their chunks have now; the last of a pair stands."""
    merged: dict[tuple[str, str], PoolEntry] = {}
    for entry in entries:
        for chunk_id in moves.of(entry.chunk_id):
            here = chunk_id == entry.chunk_id
            moved = entry if here else entry.model_copy(update={"chunk_id": chunk_id})
            merged[entry.query_id, chunk_id] = moved
    return list(merged.values())
