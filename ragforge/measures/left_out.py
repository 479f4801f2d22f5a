"""What two runs may differ by where queries are left out, as a retriever failed on them.

A query that is left out has no difference, but the least and the greatest that it could have. With
all of them at either end the mean difference is bounded; with the second run's own failures at
their worst a rule on it is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.measures.checked_samples import Floats
from ragforge.measures.intervals import Ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

EndsOf: TypeAlias = Callable[[Floats], tuple[float, float]]
"""Returns the interval of the mean of weighted differences."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The queries of two runs that are left out, M of them, beside N that are kept."""

    low: Floats
    """Shape (M,): the least that B minus A can be."""
    high: Floats
    """Shape (M,): the greatest."""
    failed_in_b_alone: NDArray[np.bool_]
    """Shape (M,): whether B failed and A did not."""
    drops: Floats
    """Shape (M,): the greatest that B minus A can be with B's failures at their worst."""
    weights: Floats
    """Shape (M,): what each stands for, beside the kept ones."""
    kept_weights: Floats
    """Shape (N,): what each kept one stands for beside them."""
    kept_alone: Floats
    """Shape (N,): what each kept one stands for where they are left out."""

    def at_low(self, differences: Floats) -> Floats:
        """Return the differences of all queries, those left out at their least.

        Args:
            differences: Of the kept ones, shape (N,), times what they stand for.
        """
        return self._joined(differences, self.low, np.ones(len(self.low), dtype=bool))

    def at_high(self, differences: Floats) -> Floats:
        """Return the differences of all queries, those left out at their greatest."""
        return self._joined(differences, self.high, np.ones(len(self.high), dtype=bool))

    def with_drops(self, differences: Floats) -> Floats:
        """Return the differences of the kept queries and of those on which B alone failed.

        What A failed on shows no drop.
        """
        return self._joined(differences, self.drops, self.failed_in_b_alone)

    def mean_ends(self, low: float, high: float) -> tuple[float, float]:
        """Return the least and the greatest mean over all queries.

        Args:
            low: The least over the kept ones, or a part that stands for them.
            high: The greatest.
        """
        n_kept, n = float(self.kept_weights.sum()), float(self.weights.sum())
        least, most = float(self.low @ self.weights), float(self.high @ self.weights)
        return (low * n_kept + least) / (n_kept + n), (high * n_kept + most) / (n_kept + n)

    def _joined(self, differences: Floats, ends: Floats, which: NDArray[np.bool_]) -> Floats:
        weights = np.concatenate([self.kept_weights, self.weights[which]])
        values = np.concatenate([differences / self.kept_alone, ends[which]])
        found: Floats = values * weights / weights.mean()
        return found


@dataclass(frozen=True, slots=True)
class CommonQueries:
    """The queries on which two of several runs are held against each other."""

    weights: Floats
    """Shape (n_queries,): what each stands for between these two, over what it stands for between
    all; 0 where one of them failed."""
    left_out: LeftOut
    """Those on which one of them failed."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which queries count."""
        return self.weights > 0


Common: TypeAlias = Mapping[tuple[int, int], CommonQueries]
"""By two runs, the first one first; of those that are not there all queries count."""


def difference_ends(
    difference: float, low: Floats, high: Floats, left_out: LeftOut | None
) -> tuple[float, float]:
    """Return the least and the greatest mean difference; what was seen lies within.

    Args:
        difference: As it was seen.
        low: Of the kept queries, times what they stand for, had failed judgments come out worst.
        high: The same, had they come out best.
        left_out: None where no query is.
    """
    if left_out is not None:
        low, high = left_out.at_low(low), left_out.at_high(high)
    return min(difference, float(low.mean())), max(difference, float(high.mean()))


def worst_interval(
    seen: Ends, low: Floats, high: Floats, left_out: LeftOut | None, ends_of: EndsOf
) -> tuple[float, float]:
    """Return an interval of the difference that holds whatever failed judgments come out as.

    Retrievals that failed count at their worst: those of both runs for the low end, which has to
    rule out a drop, and those of B alone for the high end, which has to show one.

    Args:
        seen: The interval without them.
        low: As for `difference_ends`.
        high: As for `difference_ends`.
        left_out: As for `difference_ends`.
        ends_of: The interval of some differences.
    """
    least, most = min(seen.low, ends_of(low)[0]), max(seen.high, ends_of(high)[1])
    if left_out is None:
        return least, most
    least = min(least, ends_of(left_out.at_low(low))[0])
    return least, min(most, ends_of(left_out.with_drops(high))[1])
