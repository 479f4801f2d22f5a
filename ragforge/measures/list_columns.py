"""Columns as lists; see `ragforge.measures.columns`."""

import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate, chain, compress, pairwise, repeat
from typing import Any

from ragforge.measures.columns import Column
from ragforge.measures.hit_table import Table


class ListHits:
    """Hits as lists."""

    __slots__ = ("grades", "highs", "indices", "lowest", "lows", "ranks")

    def __init__(self, table: Table, lowest: int) -> None:
        chosen = [grade >= lowest for grade in table.grades]
        above = list(accumulate(chosen, initial=0))
        borders = [above[start] for start in table.starts]
        self.lowest = lowest
        self.indices = list(compress(range(len(chosen)), chosen))
        self.ranks = list(compress(table.ranks, chosen))
        self.grades = list(compress(table.grades, chosen))
        self.lows = borders[:-1]
        self.highs = borders[1:]


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
        return [p / w if w else 0.0 for p, w in zip(part, whole, strict=True)]

    def n_judged(self, lowest: int) -> Column:
        """See `Columns`."""
        if lowest not in self._n_judged:
            counts = accumulate((grade >= lowest for grade in self.table.judged), initial=0)
            above = list(counts)
            starts = self.table.judged_starts
            self._n_judged[lowest] = [above[end] - above[start] for start, end in pairwise(starts)]
        return self._n_judged[lowest]

    def ideal(
        self, gain: Callable[[int], float], discount: Callable[[int], float], cutoff: int | None
    ) -> Column:
        """See `Columns`."""
        discounts = list(map(discount, range(1, max(self.n_judged(1), default=0) + 1)))
        judged, starts = self.table.judged.tolist(), self.table.judged_starts
        known: dict[tuple[int, ...], float] = {}
        ideals = []
        for start, count in zip(starts, self.n_judged(1), strict=False):
            grades = tuple(judged[start : start + count][:cutoff])
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
        return list(map(operator.sub, self._ends(hits, cutoff), hits.lows))

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
    return [values[key] for key in keys]
