"""Sorted judgments of two origins as one, without holding either in memory."""

import heapq
import json
from collections.abc import Iterator
from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.jsonl import read_records
from ragforge.records import DormantGrade, ItemChange, Judgment, PoolEntry, Query, Rejected

Key = tuple[str, str]


def query_and_chunk(entry: PoolEntry) -> tuple[str, str]:
    """Return the ids of a query and a chunk in its pool."""
    return entry.query_id, entry.chunk_id


def pair_and_judge(judgment: Judgment) -> tuple[str, ...]:
    """Return what a judgment is about and who made it: of a pair there is one a judge."""
    by = judgment.provenance
    judge = (by.model, by.prompt_sha256, by.protocol) if by else ()
    return (judgment.query_id, judgment.chunk_id, *judge)


def slot_and_place(rejected: Rejected) -> tuple[str, str]:
    """Return the slot of a candidate and its place there, as a text that sorts like the number."""
    return rejected.slot_id, f"{rejected.place:06d}"


def id_and_revision(query: Query) -> tuple[str, str]:
    """Return the id of a query and its revision, as a text that sorts like the number."""
    return query.query_id, f"{query.revision:06d}"


def change_key(change: ItemChange) -> tuple[str, str, str]:
    """Return when a query changed, which, and how: a version does nothing twice to a query."""
    return f"{change.version:06d}", change.query_id, change.action


def pair_of(grade: DormantGrade) -> tuple[str, str]:
    """Return the ids of the query and the chunk that a person graded."""
    return grade.judgment.query_id, grade.judgment.chunk_id


def key_of(judgment: Judgment) -> Key:
    """Return what a judgment is about, and sorted by."""
    return judgment.query_id, judgment.chunk_id


def each_judgment(path: Path) -> Iterator[Judgment]:
    """Yield the judgments of a file, sorted by query and chunk; none where it does not exist.

    Files that ragforge wrote are sorted and read as a stream; one that was edited out of order is
    sorted in memory.

    Raises:
        DataError: A line is no judgment, or a pair comes twice.
    """
    if not path.exists():
        return
    found = read_records(path, Judgment)
    if not _is_sorted(path):
        found = iter(sorted(read_records(path, Judgment), key=key_of))
    last: Key | None = None
    for judgment in found:
        if key_of(judgment) == last:
            raise DataError(f"{path}: {last} comes twice")
        last = key_of(judgment)
        yield judgment


def merged(old: Iterator[Judgment], new: Iterator[Judgment]) -> Iterator[Judgment]:
    """Yield old and new judgments in order: new ones replace old ones of the same pair.

    What a query's own evidence says is not given up for a judgment that failed.

    Args:
        old: Sorted by query and chunk.
        new: Sorted likewise.
    """
    kept: Judgment | None = None
    # Of equal keys, those of the first come first.
    for judgment in heapq.merge(old, new, key=key_of):
        if kept is not None and key_of(kept) != key_of(judgment):
            yield kept
        elif kept is not None and judgment.is_failed and _says_more(kept):
            continue
        kept = judgment
    if kept is not None:
        yield kept


def _says_more(kept: Judgment) -> bool:
    """Whether what stands is worth more than another failure: evidence, or votes that were cast."""
    return kept.source == "evidence" or (kept.grade is None and bool(kept.votes))


def _is_sorted(path: Path) -> bool:
    last: Key = ("", "")
    # The reader says what is wrong with a file that is not UTF-8.
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as stream:
        for line in stream:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                key = (row["query_id"], row["chunk_id"])
                if key < last:
                    return False
            except (ValueError, KeyError, TypeError):
                return True  # The reader says what is wrong with it.
            last = key
    return True
