"""Rows of a part of a run: which chunk, which score, and where queries begin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragforge.files.scan.arrays import Bytes, Floats, Positions


@dataclass(frozen=True, slots=True)
class Rows:
    """Whole queries of a run."""

    array: Bytes
    """The bytes that they were found in; it is written over when the next rows are read."""
    query_ids: list[str]
    """In the order of the file."""
    firsts: Positions
    """Number of the first row of each query, from 0 and ascending."""
    id_starts: Positions
    """Where the chunk id of each row begins."""
    id_ends: Positions
    """Behind the chunk id of each row."""
    scores: Floats
    """Of each row; none is NaN."""
    empty_query_ids: Sequence[str] = ()
    """Further queries, whose rankings are empty."""
    latencies_s: Mapping[str, float] = field(default_factory=dict)
    """By query id, of those for which the file says it."""
