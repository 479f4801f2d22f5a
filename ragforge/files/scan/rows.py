"""Rows of a part of a run: which chunk, which score, and where queries begin."""

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from ragforge.deferred import dataclass

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
"""Offsets into an array of bytes, lengths, or numbers of rows."""
Words = NDArray[np.uint64]
"""Eight bytes each; the first is the lowest, as in the memory of little-endian machines."""


class Irregular(Exception):
    """A file is not of the plain shape that a scanner understands; read it line by line.

    It never leaves `ragforge.files`: the line readers give the values, or the error with its line.
    """


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
