"""Ratios of counts of verdicts, such as correct given attempted, over a resampled denominator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import ceil, floor, log, sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.measures.checked_samples import Floats
from ragforge.measures.intervals import Ends, corrected_shares
from ragforge.measures.rates import LEAST_VALUES, LEVEL, Rate, least_share
from ragforge.measures.strata import Design
from ragforge.measures.stratified import stretch_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_REACH: Final = 8.0
"""Standard deviations around the expected count beyond which nothing is left to speak of."""
_MOST_COUNTS: Final = 512
"""Counts of one kind that are told apart; of more, every second, third, ... stands for those
around it."""
_TIE: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Counts of answers, and of those that have no verdict."""

    correct: int
    wrong: int
    """Attempted, and not wholly correct."""
    not_attempted: int
    n_failed: int = 0
    n_absent: int = 0

    @property
    def n(self) -> int:
        """Answers with a verdict."""
        return self.correct + self.wrong + self.not_attempted


@dataclass(frozen=True, slots=True)
class _Ratio:
    """What each kind of answer (correct, wrong, not attempted) adds above and below the line."""

    above: tuple[int, int, int]
    below: tuple[int, int, int]


Kind: TypeAlias = Literal["correct", "wrong", "not_attempted"]
_PLACES: Final[dict[Kind, int]] = {"correct": 0, "wrong": 1, "not_attempted": 2}
_GIVEN_ATTEMPTED: Final = _Ratio((1, 0, 0), (1, 1, 0))
_HARMONIC: Final = _Ratio((2, 0, 0), (2, 2, 1))


@dataclass(frozen=True, slots=True)
class _Resampled:
    """How a ratio is distributed over resamples."""

    values: Floats
    """Ascending, shape (m,)."""
    mass: Floats
    """Their probabilities, shape (m,), which sum to 1."""


def correct_given_attempted(given: Verdicts) -> Rate:
    """Return the share of attempted answers that are correct.

    Its n counts attempted answers; the bounds take all failures as incorrect, or as correct.

    Source: Wei et al. 2024, arXiv 2411.04368 (SimpleQA), section 2.3.
    """
    attempted = given.correct + given.wrong
    return _rate(given, attempted, _GIVEN_ATTEMPTED)


def correct_harmonic(given: Verdicts) -> Rate:
    """Return the harmonic mean of the share correct and of the share correct given attempted.

    With c correct of a attempted of n answers that is 2 c / (a + n): 0 where nothing was
    attempted. A failure does most harm as an incorrect answer, which counts in a and in n.

    Source: as `correct_given_attempted`, which calls it the F-score.
    """
    return _rate(given, given.n, _HARMONIC)


def of_sample(
    plain: Rate,
    ratio_of: Callable[[Verdicts], Rate],
    kinds: Mapping[str, Kind],
    missing: Collection[str],
    design: Design,
) -> Rate:
    """Return a ratio for the set that a sample was drawn from.

    The interval is the usual one about the ratio of stratified means, stretched by the ratio of
    standard errors of its linear terms.

    Args:
        plain: The ratio with each query weighing alike.
        ratio_of: What gave it: `correct_given_attempted` or `correct_harmonic`.
        kinds: Of the answers with a verdict, by query.
        missing: Queries drawn without one.
        design: Has all of these queries, and those that were not drawn.

    Source: Cochran 1977, Sampling Techniques, section 6.11.
    """
    ratio = _GIVEN_ATTEMPTED if ratio_of is correct_given_attempted else _HARMONIC
    value = _weighted_ratio(kinds, ratio, design)
    worst: dict[str, Kind] = {**kinds, **dict.fromkeys(missing, "wrong")}
    best: dict[str, Kind] = {**kinds, **dict.fromkeys(missing, "correct")}
    low, high = _weighted_ratio(worst, ratio, design), _weighted_ratio(best, ratio, design)
    bounds = None if low is None or high is None else Ends(low, high)
    interval = plain.interval
    if interval is not None and value is not None and plain.mean is not None:
        drawn = design.stratified(kinds)
        below = np.array([_part(kind, ratio.below) for kind in kinds.values()], dtype=np.float64)
        above = np.array([_part(kind, ratio.above) for kind in kinds.values()], dtype=np.float64)
        stretch = stretch_of(above - value * below, drawn, LEVEL)
        interval = Ends(
            max(0.0, value - stretch * (plain.mean - interval.low)),
            min(1.0, value + stretch * (interval.high - plain.mean)),
        )
    return Rate(value, interval, bounds, plain.n, plain.n_failed, plain.n_absent)


def _weighted_ratio(kinds: Mapping[str, Kind], ratio: _Ratio, design: Design) -> float | None:
    above = design.mean({key: _part(kind, ratio.above) for key, kind in kinds.items()})
    below = design.mean({key: _part(kind, ratio.below) for key, kind in kinds.items()})
    return above / below if above is not None and below else None


def _part(kind: Kind, weights: tuple[int, int, int]) -> float:
    return float(weights[_PLACES[kind]])


def _rate(given: Verdicts, n: int, ratio: _Ratio) -> Rate:
    n_missing = given.n_failed + given.n_absent
    counts = (given.correct, given.wrong, given.not_attempted)
    above, below = _weighted(counts, ratio.above), _weighted(counts, ratio.below)
    value = above / below if below else None
    all_below = below + ratio.below[0] * n_missing
    bounds = None
    if all_below:
        bounds = Ends(above / all_below, (above + ratio.above[0] * n_missing) / all_below)
    interval = None if value is None else _ratio_interval(given, value, ratio)
    return Rate(value, interval, bounds, n, given.n_failed, given.n_absent)


def _weighted(counts: tuple[int, int, int], weights: tuple[int, int, int]) -> int:
    return sum(count * weight for count, weight in zip(counts, weights, strict=True))


def _ratio_interval(given: Verdicts, value: float, ratio: _Ratio) -> Ends | None:
    """Return the BCa interval of a ratio of sums over the answers, of the ideal bootstrap.

    The acceleration is that of the infinitesimal jackknife (Efron 1987, section 7).

    Args:
        given: The answers.
        value: The ratio for them.
        ratio: Which one.
    """
    counts = (given.correct, given.wrong, given.not_attempted)
    n = sum(count for count, below in zip(counts, ratio.below, strict=True) if below)
    if n < LEAST_VALUES:
        return None
    if value in (0.0, 1.0):
        return _of_extreme(value, n, given, ratio)
    resampled = _resampled(given, ratio)
    below = float(resampled.mass[resampled.values < value - _TIE].sum())
    same = float(resampled.mass[np.abs(resampled.values - value) <= _TIE].sum())
    influence = [
        above - value * below for above, below in zip(ratio.above, ratio.below, strict=True)
    ]
    shares = corrected_shares(np.repeat(influence, counts), LEVEL, below + same / 2)
    reached = np.cumsum(resampled.mass)
    at = np.searchsorted(reached, [shares.low - _TIE, shares.high - _TIE])
    low, high = resampled.values[np.minimum(at, len(reached) - 1)]
    return Ends(float(low), float(high))


def _of_extreme(value: float, n: int, given: Verdicts, ratio: _Ratio) -> Ends:
    """Return the interval of a ratio that is 0 or 1, where resamples would show no spread.

    As `rates.interval_of` has it: up to a share of the answers may be of the kind that was not
    seen, and the others stay as they are to each other.
    """
    share = least_share(n)
    if value == 1:
        return Ends(share, 1.0)
    seen = (0, given.wrong, given.not_attempted)
    others = [count for count, below in zip(seen, ratio.below, strict=True) if below]
    below_others = _weighted(seen, ratio.below) / sum(others)
    above, below = ratio.above[0] * (1 - share), ratio.below[0] * (1 - share)
    return Ends(0.0, above / (below + below_others * share))


def _resampled(given: Verdicts, ratio: _Ratio) -> _Resampled:
    """Return the ratio in all resamples of the answers; those without an attempt have none.

    A resample is a draw of three counts from a multinomial distribution: it is summed over, and
    nothing is drawn.

    Args:
        given: Has a correct answer.
        ratio: Which one.
    """
    n = given.n
    attempted, wrong = np.meshgrid(
        _counts(given.correct + given.wrong, n), _counts(given.wrong, n), indexing="ij"
    )
    attempted, wrong = attempted[attempted >= wrong], wrong[attempted >= wrong]
    parts = (attempted - wrong, wrong, n - attempted)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    log_mass = np.zeros(len(wrong))
    for part, count in zip(parts, (given.correct, given.wrong, given.not_attempted), strict=True):
        log_mass += (part * log(count / n) if count else 0) - log_factorials[part]
    above = sum(part * weight for part, weight in zip(parts, ratio.above, strict=True))
    below = sum(part * weight for part, weight in zip(parts, ratio.below, strict=True))
    has_value = np.asarray(below) > 0
    values = np.asarray(above)[has_value] / np.asarray(below)[has_value]
    order = np.argsort(values, kind="stable")
    mass = np.exp(log_mass[has_value] - log_mass.max())[order]
    return _Resampled(values[order], mass / mass.sum())


def _counts(count: int, n: int) -> NDArray[np.int64]:
    """Return how often a kind of answer may come in a resample of n that hold it `count` times."""
    if count in (0, n):
        return np.array([count])
    reach = _REACH * sqrt(count * (n - count) / n) + 2 * _REACH
    low, high = max(0, floor(count - reach)), min(n, ceil(count + reach))
    return np.arange(low, high + 1, -(-(high - low) // _MOST_COUNTS))
