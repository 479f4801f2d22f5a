"""Deciding between two runs by their first hits, reading both down only as far as these.

Reciprocal rank and success depend on the first relevant text alone, so that nothing below it is
judged. No sample is drawn and nothing is estimated: the difference is that of the whole pool, and
is tested once, when all is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Final

from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers
from ragforge.measures.distributions import normal_cdf, normal_quantile, student_quantile
from ragforge.measures.intervals import Ends
from ragforge.measures.left_out import LeftOut, difference_ends, worst_interval
from ragforge.measures.sequential import (
    LEAST_QUERIES,
    DecidedDifference,
    Look,
    Outcome,
    weaker_score,
)
from ragforge.measures.unseen_values import difference_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVEL_P: Final = 0.05


def interval_of_hits(
    diffs: Floats, critical: float, *, same_rankings: bool = False
) -> tuple[float, float]:
    """Return an interval of a mean difference, of zero width only for the same rankings.

    Args:
        diffs: Of the queries, two or more.
        critical: Normal score that is to be passed.
        same_rankings: Whether all are 0 by that.
    """
    is_bounded = float(np.abs(diffs).max()) <= 1
    level = 2 * normal_cdf(critical) - 1
    ends = difference_interval(diffs, level, bounded=is_bounded, same_rankings=same_rankings)
    if ends is not None:
        return ends.low, ends.high
    reach = student_quantile(normal_cdf(critical), len(diffs) - 1)
    half = reach * float(diffs.std(ddof=1)) / sqrt(len(diffs))
    return float(diffs.mean()) - half, float(diffs.mean()) + half


@dataclass
class FirstHits:
    """Two runs that are read down; used as a `SequentialDecision`."""

    lists: Sequence[Sequence[Sequence[int]]]
    """By query the pairs of A and of B in their order, as places in the values."""
    values: Floats
    """Of the pairs: 1 for a hit, 0 for none, NaN where that is not known yet."""
    by_rank: bool
    """Whether a hit is worth 1 / rank; else 1."""
    query_weights: Floats | None = None
    """What each query stands for, 1 in the mean; None where all stand for as many."""
    left_out: LeftOut | None = None
    """Queries on which a retriever failed; None where none did."""
    n_looks: int = 0
    n_judged: int = 0
    _asked: NDArray[np.bool_] = field(init=False)
    _known: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        """Start from what is known.

        Raises:
            UsageError: There are fewer than ten queries.
        """
        if len(self.lists) < LEAST_QUERIES:
            raise UsageError(f"{len(self.lists)} queries: expected at least {LEAST_QUERIES}")
        self._known = ~np.isnan(self.values)
        self._asked = self._known.copy()

    def wanted(self) -> Integers:
        """Return the pairs that are read next, ascending indexes; none is asked for twice."""
        found = {at for query in range(len(self.lists)) for at in self._next(query)}
        new = sorted(at for at in found if not self._asked[at])
        self._asked[new] = True
        return np.array(new, dtype=np.intp)

    def look(self, values: Floats) -> DecidedDifference | None:
        """Return what is decided, or None where there is more to be read.

        Args:
            values: Of the pairs, NaN for those that were not asked for, or failed.
        """
        self.values = values
        self.n_looks += 1
        self.n_judged = int((self._asked & ~self._known & ~np.isnan(values)).sum())
        open_pairs = (at for query in range(len(self.lists)) for at in self._next(query))
        if any(not self._asked[at] for at in open_pairs):
            return None
        return self._decided()

    @property
    def probabilities(self) -> Floats:
        """With which probability each pair that was asked for was: 1, as none is drawn."""
        return np.ones(len(self.values))

    @property
    def _weights(self) -> Floats:
        return np.ones(len(self.lists)) if self.query_weights is None else self.query_weights

    @property
    def failed(self) -> list[int]:
        """The queries that cannot be told, as a pair of theirs could not be judged."""
        return [query for query in range(len(self.lists)) if self._next(query)]

    def bounds(self, values: Floats, highest: float) -> tuple[float, float] | None:
        """Return the difference, had all that failed come out worst and best for B.

        Args:
            values: As at the last look.
            highest: Of a value; a hit.

        Returns:
            None where nothing failed.
        """
        self.values = values
        if self.left_out is None and not self.failed:
            return None
        difference = float(self._told_differences().mean())
        return difference_ends(difference, *self._extremes(highest), self.left_out)

    def worst(self, values: Floats, highest: float, seen: Ends) -> tuple[float, float]:
        """Return the interval that decides a rule on B, with failures as in `worst_interval`.

        Args:
            values: As at the last look.
            highest: Of a value; a hit.
            seen: The interval without them.
        """
        self.values = values
        if self.left_out is None and not self.failed:
            return seen.low, seen.high

        def ends_of(differences: Floats) -> tuple[float, float]:
            return interval_of_hits(differences, -normal_quantile(LEVEL_P / 2))

        return worst_interval(seen, *self._extremes(highest), self.left_out, ends_of)

    def _extremes(self, highest: float) -> tuple[Floats, Floats]:
        """Return the differences, had judgments that failed come out worst and best for B."""
        low = self._differences()
        high = low.copy()
        for query in self.failed:
            a, b = self.lists[query]
            low[query] = self._worth(b) - self._worth(a, highest)
            high[query] = self._worth(b, highest) - self._worth(a)
        return low * self._weights, high * self._weights

    def _next(self, query: int) -> list[int]:
        """Return the pairs that the difference of a query hangs on next; [] where it is told."""
        a, b = self.lists[query]
        at_a, at_b = self._read(a), self._read(b)
        open_a, open_b = self._is_open(a, at_a), self._is_open(b, at_b)
        if open_a and open_b and self._are_alike(a[at_a:], b[at_b:], at_a == at_b):
            return []
        sides = [(a, at_a)] * open_a + [(b, at_b)] * open_b
        return [ranked[at] for ranked, at in sides]

    def _are_alike(self, a: Sequence[int], b: Sequence[int], same_rank: bool) -> bool:
        if self.by_rank:
            return same_rank and list(a) == list(b)
        rest = [{at for at in side if self.values[at] != 0} for side in (a, b)]
        return rest[0] == rest[1]

    def _read(self, ranked: Sequence[int]) -> int:
        """Return how many pairs are read before the first hit, or the first one not known."""
        return next((i for i, at in enumerate(ranked) if self.values[at] != 0), len(ranked))

    def _is_open(self, ranked: Sequence[int], at: int) -> bool:
        return at < len(ranked) and bool(np.isnan(self.values[ranked[at]]))

    def _worth(self, ranked: Sequence[int], unknown: float = 0.0) -> float:
        """Return the worth of a list, with what is not known taken for a hit, or for none."""
        values = self.values[list(ranked)]
        values = np.where(np.isnan(values), unknown, values)
        at = next((i for i, value in enumerate(values) if value != 0), len(ranked))
        if at == len(ranked):
            return 0.0
        return 1 / (at + 1) if self.by_rank else 1.0

    def _differences(self) -> Floats:
        """Return B minus A of each query, with what is not known taken for no hit."""
        return np.array([self._worth(b) - self._worth(a) for a, b in self.lists])

    def _told_differences(self) -> Floats:
        """Return those of the queries that are told, times what they stand for."""
        told = np.ones(len(self.lists), dtype=bool)
        told[self.failed] = False
        found: Floats = (self._differences() * self._weights)[told]
        return found / self._weights[told].mean() if told.any() else found

    def _decided(self) -> DecidedDifference:
        diffs = self._told_differences()
        n = len(diffs)
        if n < LEAST_QUERIES:
            raise DataError(
                f"judging failed on the way in {len(self.lists) - n} of {len(self.lists)} queries: "
                f"expected at least {LEAST_QUERIES} that can be told"
            )
        difference = float(diffs.mean())
        error = float(diffs.std(ddof=1)) / sqrt(n)
        z = weaker_score(diffs)
        critical = -normal_quantile(LEVEL_P / 2)
        are_alike = all(list(a) == list(b) for a, b in self.lists)
        low, high = interval_of_hits(diffs, critical, same_rankings=are_alike)
        outcome: Outcome = "tie"
        if abs(z) > critical and not low <= 0 <= high:
            outcome = "b" if difference > 0 else "a"
        look = Look(1.0, self.n_judged, difference, error, z, 1.0, None)
        return DecidedDifference(outcome, look, low, high)
