"""The few operations on whole columns that the formulas are made of, and two ways to do them.

A column has one number for each query, or one for each of some hits. `ListColumns` keeps them as
lists and needs nothing but the standard library: a process that scores a small file is done before
numpy is imported. `arrays` keeps them as numpy arrays. Both add in the order of the ranks
and take logarithms and powers from `math`, so their results are equal to the last bit.
"""

import operator
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate, chain, compress, repeat
from typing import Any, Final, Protocol, TypeAlias

from ragforge.measures.hit_table import Table

Column: TypeAlias = Any
"""A list of numbers or a numpy array, whichever the columns at hand are made of."""
Hits: TypeAlias = Any
"""The judged hits of at least some grade, by query and rank, as `Columns.hits` returned them."""
ARRAYS_PAY: Final = 64
"""Queries from which on arrays are faster than lists."""
_IMPORT_PAYS: Final = 10_000
"""Queries from which on they are faster even where numpy has to be imported first."""


class Columns(Protocol):
    """What the formulas are written in. Functions given to `each` must suit arrays, too."""

    n_retrieved: Column
    """For each query."""

    def hits(self, lowest: int) -> Hits:
        """Return the hits of at least this grade."""

    def each(self, function: Callable[..., Any], *columns: Column) -> Column:
        """Apply arithmetic to columns of one kind, element by element."""

    def least(self, column: Column, other: Column | int) -> Column:
        """Return the lesser of two, element by element."""

    def ratio(self, part: Column, whole: Column) -> Column:
        """Divide, element by element; 0 where the divisor is 0."""

    def n_judged(self, lowest: int) -> Column:
        """For each query: how many of its judged chunks, retrieved or not, have this grade."""

    def ideal(
        self, gain: Callable[[int], float], discount: Callable[[int], float], cutoff: int | None
    ) -> Column:
        """For each query: the sum of gain(grade) / discount(rank) in the best order possible.

        The sum runs over its judged chunks of grades above 0, down to the cutoff.
        """

    def of_query(self, column: Column, hits: Hits) -> Column:
        """For each hit: the value of its query."""

    def count(self, hits: Hits, cutoff: Column | int | None) -> Column:
        """For each query: how many of the hits are at ranks up to a cutoff (of the query)."""

    def total(self, hits: Hits, terms: Column, cutoff: int | None) -> Column:
        """For each query: the sum of the hits' terms at ranks up to the cutoff, in rank order."""

    def first(self, hits: Hits) -> Column:
        """For each query: the rank of its first hit; 0 where there is none."""

    def ranks(self, hits: Hits) -> Column:
        """For each hit: its rank."""

    def at_rank(self, function: Callable[[int], float], hits: Hits) -> Column:
        """For each hit: what a function makes of its rank."""

    def at_grade(self, function: Callable[[int], float], hits: Hits) -> Column:
        """For each hit: what a function makes of its grade."""

    def seen(self, hits: Hits, lowest: int | None) -> Column:
        """For each hit: how many of its query are at or above it, of at least a grade or any."""

    def product_above(self, hits: Hits, factors: Column) -> Column:
        """For each hit: the product of the factors of the hits above it, in rank order."""

    def listed(self, column: Column) -> Sequence[Any]:
        """Return a column as a sequence of plain numbers."""


def arrays_pay(n_queries: int) -> bool:
    """Whether to use numpy: where it is loaded, or a run takes longer than its import."""
    return n_queries >= (ARRAYS_PAY if "numpy" in sys.modules else _IMPORT_PAYS)


class ListHits:
    """Hits as lists."""

    __slots__ = ("counts", "grades", "highs", "indices", "lowest", "lows", "ranks")

    def __init__(self, table: Table, lowest: int) -> None:
        chosen = [grade >= lowest for grade in table.grades]
        self.lowest = lowest
        self.indices = list(compress(range(len(chosen)), chosen))
        self.ranks = list(compress(table.ranks, chosen))
        self.grades = list(compress(table.grades, chosen))
        borders = list(map(bisect_left, repeat(self.indices), table.starts))
        self.lows = borders[:-1]
        self.highs = borders[1:]
        self.counts: dict[int | None, list[int]] = {}
        """What `ListColumns.count` found, by cutoff: P@k, R@k and Success@k share it."""


class ListColumns:
    """Columns as lists."""

    __slots__ = ("_hits", "_n_judged", "n_retrieved", "table")

    def __init__(self, table: Table) -> None:
        self.table = table
        self.n_retrieved: Column = table.n_retrieved
        self._hits: dict[int, ListHits] = {}
        self._n_judged: dict[int, list[int]] = {}

    def hits(self, lowest: int) -> ListHits:
        """See `Columns`."""
        if lowest not in self._hits:
            self._hits[lowest] = ListHits(self.table, lowest)
        return self._hits[lowest]

    def each(self, function: Callable[..., Any], *columns: Column) -> Column:
        """See `Columns`."""
        return list(map(function, *columns))

    def least(self, column: Column, other: Column | int) -> Column:
        """See `Columns`."""
        return list(map(min, column, repeat(other) if isinstance(other, int) else other))

    def ratio(self, part: Column, whole: Column) -> Column:
        """See `Columns`."""
        try:
            return list(map(operator.truediv, part, whole))
        except ZeroDivisionError:
            return [p / w if w else 0.0 for p, w in zip(part, whole, strict=True)]

    def n_judged(self, lowest: int) -> Column:
        """See `Columns`."""
        if lowest not in self._n_judged:
            # The other way round the grades of a query rise, so that they can be searched.
            rising = self.table.judged[::-1]
            ends = [len(rising) - start for start in self.table.judged_starts]
            firsts = map(bisect_left, repeat(rising), repeat(lowest), ends[1:], ends)
            self._n_judged[lowest] = list(map(operator.sub, ends, firsts))
        return self._n_judged[lowest]

    def ideal(
        self, gain: Callable[[int], float], discount: Callable[[int], float], cutoff: int | None
    ) -> Column:
        """See `Columns`."""
        discounts = list(map(discount, range(1, max(self.n_judged(1), default=0) + 1)))
        judged, starts = self.table.judged.tolist(), self.table.judged_starts
        known: dict[tuple[int, ...], float] = {}
        ideals = []
        counts = self.n_judged(1)
        reached = counts if cutoff is None else self.least(counts, cutoff)
        for start, count in zip(starts, reached, strict=False):
            grades = tuple(judged[start : start + count])
            # Grades are few, so queries share them, and with them their ideal.
            if grades not in known:
                terms = map(operator.truediv, map(gain, grades), discounts)
                known[grades] = reduce(operator.add, terms, 0.0)
            ideals.append(known[grades])
        return ideals

    def of_query(self, column: Column, hits: ListHits) -> Column:
        """See `Columns`."""
        at = self.table.at
        return [column[at[index]] for index in hits.indices]

    def count(self, hits: ListHits, cutoff: Column | int | None) -> Column:
        """See `Columns`."""
        if cutoff is not None and not isinstance(cutoff, int):
            return list(map(operator.sub, self._ends(hits, cutoff), hits.lows))
        if cutoff not in hits.counts:
            ends = self._ends(hits, cutoff)
            hits.counts[cutoff] = list(map(operator.sub, ends, hits.lows))
        return hits.counts[cutoff]

    def total(self, hits: ListHits, terms: Column, cutoff: int | None) -> Column:
        """See `Columns`."""
        add = operator.add
        ends = self._ends(hits, cutoff)
        return [reduce(add, terms[low:end], 0.0) for low, end in zip(hits.lows, ends, strict=True)]

    def first(self, hits: ListHits) -> Column:
        """See `Columns`."""
        ranks = hits.ranks
        return [
            ranks[low] if low < high else 0 for low, high in zip(hits.lows, hits.highs, strict=True)
        ]

    def ranks(self, hits: ListHits) -> Column:
        """See `Columns`."""
        return hits.ranks

    def at_rank(self, function: Callable[[int], float], hits: ListHits) -> Column:
        """See `Columns`."""
        return _looked_up(function, hits.ranks)

    def at_grade(self, function: Callable[[int], float], hits: ListHits) -> Column:
        """See `Columns`."""
        return _looked_up(function, hits.grades)

    def seen(self, hits: ListHits, lowest: int | None) -> Column:
        """See `Columns`."""
        if lowest == hits.lowest:
            counts = self.count(hits, None)
            return list(chain.from_iterable(range(1, count + 1) for count in counts))
        table = self.table
        at, starts = table.at, table.starts
        if lowest is None:
            return [index + 1 - starts[at[index]] for index in hits.indices]
        above = list(accumulate((grade >= lowest for grade in table.grades), initial=0))
        return [above[index + 1] - above[starts[at[index]]] for index in hits.indices]

    def product_above(self, hits: ListHits, factors: Column) -> Column:
        """See `Columns`."""
        return list(
            chain.from_iterable(
                accumulate(factors[low : high - 1], operator.mul, initial=1.0)
                for low, high in zip(hits.lows, hits.highs, strict=True)
                if low < high
            )
        )

    def listed(self, column: Column) -> list[Any]:
        """See `Columns`."""
        return list(column)

    def _ends(self, hits: ListHits, cutoff: Column | int | None) -> Sequence[int]:
        if cutoff is None:
            return hits.highs
        cutoffs = repeat(cutoff) if isinstance(cutoff, int) else cutoff
        return list(map(bisect_right, repeat(hits.ranks), cutoffs, hits.lows, hits.highs))


def _looked_up(function: Callable[[int], float], keys: list[int]) -> list[float]:
    values = {key: function(key) for key in set(keys)}
    return list(map(values.__getitem__, keys))
