"""Which rows are worth a look: a run has thousands of rows for each judged one."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Final

import numpy as np

from ragforge.files.scan.arrays import Flags, Positions, Words
from ragforge.files.scan.irregular import Irregular
from ragforge.files.scan.tokens import hash_texts

_FILTER_BITS: Final = 16
_TWIN_BITS: Final = 32
_QUERY_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)


class Lookup:
    """Finds rows by the hashes of their chunk ids; it keeps one table for all parts of a run."""

    def __init__(self) -> None:
        """Make the table."""
        self._table: Flags = np.zeros(1 << _FILTER_BITS, bool)

    def find(
        self, hashes: Words, firsts: Positions, chunk_ids: Sequence[Collection[str]]
    ) -> Positions:
        """Return the numbers of the rows that may hold one of the chunks looked for, ascending.

        Hardly one of them holds another chunk of the same hash.

        Args:
            hashes: Of the chunk ids of the rows.
            firsts: The first row of each query.
            chunk_ids: What is looked for in each query.
        """
        wanted = hash_texts(list(chain.from_iterable(chunk_ids)))
        queries = np.repeat(np.arange(len(firsts)), np.fromiter(map(len, chunk_ids), np.int64))
        slots = _slots(wanted)
        self._table[slots] = True
        rows = np.flatnonzero(self._table.take(_slots(hashes), mode="clip"))
        self._table[slots] = False
        if not len(rows):
            return rows
        keys = np.sort(_keys(wanted, queries))
        found = _keys(hashes[rows], firsts.searchsorted(rows, side="right") - 1)
        alike: Flags = keys.take(keys.searchsorted(found), mode="clip") == found
        return rows[alike]


def refuse_twins(hashes: Words, firsts: Positions) -> None:
    """Refuse queries in which two rows have the same hash, as those of one chunk have.

    Half of each hash is compared first: sorting 32 bits takes half the time of sorting 64.

    Raises:
        Irregular: There are such rows.
    """
    bits = (len(firsts) - 1).bit_length()
    if bits >= _TWIN_BITS:
        raise Irregular
    queries = np.arange(len(firsts), dtype=np.uint32) << np.uint32(_TWIN_BITS - bits)
    counts = np.diff(firsts, append=len(hashes))
    keys = (hashes >> np.uint64(_TWIN_BITS + bits)).astype(np.uint32)
    keys |= np.repeat(queries, counts)
    ordered = np.sort(keys)
    twins = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twins):
        rows = np.flatnonzero(np.isin(keys, twins))
        whole = hashes[rows]
        order = np.lexsort((whole, keys[rows]))
        alike = (np.diff(whole[order]) == 0) & (np.diff(keys[rows][order]) == 0)
        if alike.any():
            raise Irregular


def _slots(hashes: Words) -> Positions:
    return (hashes >> np.uint64(64 - _FILTER_BITS)).view(np.int64)


def _keys(hashes: Words, queries: Positions) -> Words:
    return hashes + queries.view(np.uint64) * _QUERY_MULTIPLIER
