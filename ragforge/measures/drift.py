"""Whether a judge still grades as it did: the same pairs graded twice at first, and once now.

A judge with a temperature differs from itself. As long as it is the same judge, what it says now
and what it said the second time are two draws of one habit, pair by pair, whatever that habit is:
the signs of their differences are a coin's. So the tests below alarm by chance no more often than
they say, and need no model of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import is_constant
from ragforge.measures.intervals import Ends, mean_interval
from ragforge.measures.paired import lattice_p
from ragforge.measures.rates import LEAST_VALUES, interval_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA: Final = 0.05
"""How often a steady judge is taken for a drifting one, by all signs together, at most."""
SIGNS: Final = ("shift", "scatter", "failures")
"""What is tested: all grades lower or higher; grades further off than its own; more failures."""
_HIGHEST: Final = 3


@dataclass(frozen=True, slots=True)
class Drift:
    """How the grades of a judge on a fixed set of pairs differ from its first."""

    n_pairs: int
    """That have a grade then and now."""
    n_queries: int
    same: int
    one_off: int
    more_off: int
    """Pairs whose grade is two or three off."""
    noise: float | None
    """Share of pairs that the judge graded otherwise when it was asked twice at first."""
    shift: float | None
    """Grade now less the first one, mean over queries of their pairs' means; None without pairs."""
    interval: Ends | None
    """Of the shift at 95 %, over queries; None with fewer than five."""
    p: dict[str, float]
    """By sign: chance of so much or more from a judge that did not change."""
    n_failed_first: int
    n_failed_now: int

    @property
    def found(self) -> tuple[str, ...]:
        """The signs of a drift; none where the judge is as steady as it was."""
        return tuple(name for name in SIGNS if self.p[name] <= ALPHA / len(SIGNS))


def drift(
    query_ids: Sequence[str],
    first: Sequence[int | None],
    again: Sequence[int | None],
    now: Sequence[int | None],
) -> Drift:
    """Return how grades differ from the first ones of the same pairs.

    Args:
        query_ids: Of each pair, shape (n,).
        first: Grades from 0 to 3 when the judge was first asked, aligned; None where it failed.
        again: When it was asked a second time right then, for how it differs from itself.
        now: When it was asked now.

    Raises:
        UsageError: The lengths differ.

    Source: exact tests by signs, Fisher 1935, The Design of Experiments, section 21. The three
    share `ALPHA` after Bonferroni.
    """
    if not len(query_ids) == len(first) == len(again) == len(now):
        raise UsageError("expected a first, a second and a present grade for each pair")
    grades = np.array(
        [[-1 if grade is None else grade for grade in row] for row in (first, again, now)],
        dtype=np.int64,
    ).reshape(3, len(query_ids))
    steps = (grades[2] - grades[0])[(grades[0] >= 0) & (grades[2] >= 0)]
    pairs = np.flatnonzero((grades[0] >= 0) & (grades[2] >= 0))
    by_query: dict[str, list[int]] = {}
    for pair in pairs.tolist():
        by_query.setdefault(query_ids[pair], []).append(int(grades[2, pair] - grades[0, pair]))
    means = [fsum(each) / len(each) for each in by_query.values()]
    twice = (grades[0] >= 0) & (grades[1] >= 0)
    off = np.abs(steps)
    return Drift(
        n_pairs=len(pairs),
        n_queries=len(by_query),
        same=int((off == 0).sum()),
        one_off=int((off == 1).sum()),
        more_off=int((off > 1).sum()),
        noise=float((grades[0] != grades[1])[twice].mean()) if twice.any() else None,
        shift=fsum(means) / len(means) if means else None,
        interval=_interval(means),
        p={
            "shift": _p(grades[0][pairs], grades[2][pairs]),
            "scatter": _scatter_p(grades),
            "failures": _one_sided(
                (grades[1] < 0).astype(np.int64), (grades[2] < 0).astype(np.int64)
            ),
        },
        n_failed_first=int((grades[0] < 0).sum()),
        n_failed_now=int((grades[2] < 0).sum()),
    )


def _interval(means: Sequence[float]) -> Ends | None:
    """Return the interval of a mean of values from -3 to 3; of equal ones, by what is unseen."""
    values = np.asarray(means)
    if len(values) < LEAST_VALUES:
        return None
    if not is_constant(values):
        found = mean_interval(values, method="student")
        assert found.low is not None
        assert found.high is not None
        return Ends(max(found.low, -_HIGHEST), min(found.high, _HIGHEST))
    shares = interval_of((values + _HIGHEST) / (2 * _HIGHEST))
    assert shares is not None
    return Ends(*(2 * _HIGHEST * end - _HIGHEST for end in (shares.low, shares.high)))


def _scatter_p(grades: NDArray[np.int64]) -> float:
    """Return how likely grades lie so much further from the first than its second ones did."""
    whole = (grades >= 0).all(axis=0)
    first, again, now = grades[:, whole]
    return _one_sided(np.abs(again - first), np.abs(now - first))


def _one_sided(before: NDArray[np.int64], now: NDArray[np.int64]) -> float:
    """Return the p value of values that are higher now; 1 where they are not."""
    return _p(before, now) / 2 if now.sum() > before.sum() else 1.0


def _p(before: NDArray[np.int64], now: NDArray[np.int64]) -> float:
    """Return the two-sided p value of the signs of differences, counted exactly."""
    steps = now - before
    return lattice_p(np.abs(steps[steps != 0]), int(steps.sum()))
