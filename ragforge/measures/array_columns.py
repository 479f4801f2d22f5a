"""Columns as numpy arrays; see `ragforge.measures.columns`."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragforge.measures.columns import Column
from ragforge.measures.hit_table import Table


class ArrayHits:
    """Hits as arrays."""

    __slots__ = ("at", "counts", "grades", "indices", "lowest", "ranks")

    def __init__(self, columns: "ArrayColumns", lowest: int) -> None:
        self.lowest = lowest
        self.indices: NDArray[np.int64] = np.flatnonzero(columns.grades >= lowest)
        self.at: NDArray[np.int64] = columns.at[self.indices]
        self.ranks: NDArray[np.int64] = columns.all_ranks[self.indices]
        self.grades: NDArray[np.int64] = columns.grades[self.indices]
        self.counts: dict[int | None, NDArray[np.int64]] = {}
        """What `ArrayColumns.count` found, by cutoff: P@k, R@k and Success@k share it."""


class _Judged(NamedTuple):
    """All judged chunks as the best ranking has them."""

    at: NDArray[np.int64]
    """For each the index of its query."""
    ranks: NDArray[np.int64]
    grades: NDArray[np.int64]


class ArrayColumns:
    """Columns as arrays."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.n_queries = len(table.query_ids)
        self.n_retrieved: Column = np.frombuffer(table.n_retrieved, np.int64)
        self.at = np.frombuffer(table.at, np.int64)
        self.all_ranks = np.frombuffer(table.ranks, np.int64)
        self.grades = np.frombuffer(table.grades, np.int64)
        self._hits: dict[int, ArrayHits] = {}
        self._n_judged: dict[int, NDArray[np.int64]] = {}

    def hits(self, lowest: int) -> ArrayHits:
        """See `Columns`."""
        if lowest not in self._hits:
            self._hits[lowest] = ArrayHits(self, lowest)
        return self._hits[lowest]

    def each(self, function: Callable[..., Any], *columns: Column) -> Column:
        """See `Columns`."""
        return function(*columns)

    def least(self, column: Column, other: Column | int) -> Column:
        """See `Columns`."""
        return np.minimum(column, other)

    def ratio(self, part: Column, whole: Column) -> Column:
        """See `Columns`."""
        return np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0)

    def n_judged(self, lowest: int) -> Column:
        """See `Columns`."""
        if lowest not in self._n_judged:
            at = self._judged.at[self._judged.grades >= lowest]
            self._n_judged[lowest] = np.bincount(at, minlength=self.n_queries)
        return self._n_judged[lowest]

    def ideal(
        self, gain: Callable[[int], float], discount: Callable[[int], float], cutoff: int | None
    ) -> Column:
        """See `Columns`."""
        judged = self._judged
        counted = judged.grades > 0
        if cutoff is not None:
            counted &= judged.ranks <= cutoff
        gains = _looked_up(gain, judged.grades[counted])
        terms = gains / _looked_up(discount, judged.ranks[counted])
        return _totals(judged.at[counted], terms, self.n_queries)

    def of_query(self, column: Column, hits: ArrayHits) -> Column:
        """See `Columns`."""
        return column[hits.at]

    def count(self, hits: ArrayHits, cutoff: Column | int | None) -> Column:
        """See `Columns`."""
        if cutoff is not None and not isinstance(cutoff, int):
            return np.bincount(hits.at[hits.ranks <= cutoff[hits.at]], minlength=self.n_queries)
        if cutoff not in hits.counts:
            at = hits.at if cutoff is None else hits.at[hits.ranks <= cutoff]
            hits.counts[cutoff] = np.bincount(at, minlength=self.n_queries)
        return hits.counts[cutoff]

    def total(self, hits: ArrayHits, terms: Column, cutoff: int | None) -> Column:
        """See `Columns`."""
        if cutoff is None:
            return _totals(hits.at, terms, self.n_queries)
        near = hits.ranks <= cutoff
        return _totals(hits.at[near], terms[near], self.n_queries)

    def first(self, hits: ArrayHits) -> Column:
        """See `Columns`."""
        found = np.zeros(self.n_queries, np.int64)
        found[hits.at[::-1]] = hits.ranks[::-1]  # The last one written is the first of a query.
        return found

    def ranks(self, hits: ArrayHits) -> Column:
        """See `Columns`."""
        return hits.ranks

    def at_rank(self, function: Callable[[int], float], hits: ArrayHits) -> Column:
        """See `Columns`."""
        return _looked_up(function, hits.ranks)

    def at_grade(self, function: Callable[[int], float], hits: ArrayHits) -> Column:
        """See `Columns`."""
        return _looked_up(function, hits.grades)

    def seen(self, hits: ArrayHits, lowest: int | None) -> Column:
        """See `Columns`."""
        if lowest == hits.lowest:
            places = np.arange(1, len(hits.at) + 1)
            return places - np.searchsorted(hits.at, hits.at)
        if lowest is None:
            return hits.indices + 1 - self._starts[hits.at]
        above = np.concatenate([[0], np.cumsum(self.grades >= lowest)])
        return above[hits.indices + 1] - above[self._starts[hits.at]]

    def product_above(self, hits: ArrayHits, factors: Column) -> Column:
        """See `Columns`."""
        places = self.seen(hits, hits.lowest)
        products = np.ones(len(factors))
        for place in range(2, int(places.max(initial=1)) + 1):
            here = np.flatnonzero(places == place)
            products[here] = products[here - 1] * factors[here - 1]
        return products

    def listed(self, column: Column) -> list[Any]:
        """See `Columns`."""
        found: list[Any] = column.tolist()
        return found

    @cached_property
    def _judged(self) -> "_Judged":
        starts = np.frombuffer(self.table.judged_starts, np.int64)
        lengths = np.diff(starts)
        at = np.repeat(np.arange(self.n_queries), lengths)
        grades = np.frombuffer(self.table.judged, np.int64)
        return _Judged(at, np.arange(1, len(at) + 1) - starts[at], grades)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.frombuffer(self.table.starts, np.int64)


def _totals(
    at: NDArray[np.int64], terms: NDArray[np.float64], n_queries: int
) -> NDArray[np.float64]:
    """Add terms one after the other, the order that `Columns` promises."""
    # Of no terms at all, bincount makes whole numbers.
    return np.bincount(at, terms, n_queries).astype(np.float64)


def _looked_up(function: Callable[[int], float], keys: NDArray[np.int64]) -> NDArray[np.float64]:
    if len(keys) == 0:
        return np.zeros(0)
    low, high = int(keys.min()), int(keys.max())
    if high - low > 4 * len(keys):
        distinct, inverse = np.unique(keys, return_inverse=True)
        return np.array(list(map(function, distinct.tolist())), np.float64)[inverse]
    return np.array(list(map(function, range(low, high + 1))), np.float64)[keys - low]
