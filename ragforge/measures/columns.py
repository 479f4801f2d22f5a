"""The few operations on whole columns that the formulas are made of, and two ways to do them.

A column has one number for each query, or one for each of some hits. `list_columns` keeps them as
lists and needs nothing but the standard library: a process that scores a small file is done before
numpy is imported. `array_columns` keeps them as numpy arrays. Both add in the order of the ranks
and take logarithms and powers from `math`, so their results are equal to the last bit.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

Column: TypeAlias = Any
"""A list of numbers or a numpy array, whichever the columns at hand are made of."""


Hits: TypeAlias = Any
"""The judged hits of at least some grade, by query and rank, as `Columns.hits` returned them."""


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

    def listed(self, column: Column) -> list[Any]:
        """Return a column as a list of plain numbers."""


ARRAYS_PAY: Final = 64
"""Queries from which on arrays are faster than lists."""


def arrays_pay(n_queries: int) -> bool:
    """Whether to use numpy: only where it is loaded, for its import takes longer than a run."""
    return n_queries >= ARRAYS_PAY and "numpy" in sys.modules
