"""Intervals of means of bounded values that allow for values which nobody saw.

Thirty values of 1 show no spread, yet one query in twenty may still have a 0. The bootstrap knows
only what was seen; so do Student's t and BCa. Here the values get a companion, one more at the
worst that is possible, and the interval ends where their mean ends under random weights. Of values
that are all 0 or 1 that is the interval of Clopper and Pearson; of n equal values it is what n of n
allow.

With an ordinary spread that end is needlessly far away, and the usual one holds. So each end goes
from the usual one to the guarded one as it comes to matter: by how far one worst value would move
the mean, in half widths of Student's interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats, Values, is_constant, mean, sample
from ragforge.measures.distributions import root
from ragforge.measures.formulas import FORMULAS
from ragforge.measures.intervals import ConfidenceInterval, Ends, mean_interval
from ragforge.measures.measure_names import parse_measure

_MOST_DISTINCT: Final = 1024
"""Beyond so many, values are rounded to the worse side, by at most one in so many."""
_NOTHING: Final = 1e-12
"""A mean below it is 0 as far as its lower end goes."""
_FEW: Final = 5
"""Values with fewer of which the resamples are far too much alike: a worse one of two would lift
the lower end, as it alone would have a spread."""
_LOG_LOW: Final = -36.0
_LOG_HIGH: Final = 12.0
_STEP: Final = 0.05
_FINEST_STEP: Final = 0.001
_ALIVE: Final = 8.0
"""Standard deviations within which the characteristic function has not vanished."""


def have_same_rankings(a: Mapping[str, Sequence[str]], b: Mapping[str, Sequence[str]]) -> bool:
    """Whether two runs rank the same chunks in the same order, for the same queries.

    Args:
        a: Chunk ids by query, best first, to their end.
        b: The other's.
    """
    return a.keys() == b.keys() and all(list(a[query_id]) == list(b[query_id]) for query_id in a)


def is_identity(diffs: Floats, *, same_rankings: bool) -> bool:
    """Whether differences are 0 because nothing differs; of fewer than two nothing can be told.

    Equal values are not enough. Two rankings that differ may do alike on these queries and not on
    others, so that their difference has an interval. Nor is the same top k enough for a measure
    that looks no deeper: the rankings differ below it, so the systems differ, and on other queries
    they may above it. Only the same chunks in the same order, in every query, are one system as far
    as can be told: the difference is 0, and so are the ends of its interval.

    Args:
        diffs: Differences per query, shape (n,).
        same_rankings: Whether the rankings are the same, as `have_same_rankings`.
    """
    return same_rankings and len(diffs) > 1 and not diffs.any()


@dataclass(frozen=True, slots=True)
class _Fade:
    """Moves of the mean by one worst value, in half widths of Student's interval at 95 %.

    At one level for all, so that an interval at a higher one never ends inside another.
    """

    start: float
    """Up to here the usual end holds."""
    full: float
    """From here on the guarded one does."""


_MEAN: Final = _Fade(0.3, 0.5)
_DIFFERENCE: Final = _Fade(3.0, 6.0)
"""Later than for means, as a query that goes from 1 to 0 is far rarer than one that has a 0."""


def is_bounded(measure: str) -> bool:
    """Whether the values of a measure lie in [0, 1], as far as its name tells."""
    try:
        return not FORMULAS[parse_measure(measure).name].unbounded
    except UsageError:
        return True


def bounded_interval(values: Values, level: float = 0.95) -> ConfidenceInterval:
    """Return an interval of the mean of values in [0, 1], never of zero width.

    Args:
        values: One per query, shape (n,).
        level: From above 0 to 0.999999.

    Returns:
        BCa of the ideal bootstrap, as far as the values show enough spread; that of Clopper and
        Pearson where all are 0 or 1, and the like with fewer than five values. None for low and
        high where n is below 2.

    Raises:
        UsageError: A value lies outside of [0, 1], or the level cannot be taken.
        DataError: As `checked_samples.sample`.

    Source: Learned-Miller and Thomas 2019, arXiv 1905.06208, for the guarded ends; Clopper and
    Pearson 1934, Biometrika 26(4).
    """
    array = sample(values)
    if len(array) and not (array.min() >= 0 and array.max() <= 1):
        raise UsageError(f"expected values in [0, 1], got {array.min():g} to {array.max():g}")
    usual = mean_interval(array, level)
    ends = _ends(usual)
    if ends is None or usual.mean is None:
        return usual
    is_binary = bool(np.isin(array, (0.0, 1.0)).all())
    if is_binary or len(array) < _FEW:
        guarded = Ends(_low_end(array, level), 1 - _low_end(1 - array, level))
        method = "Clopper and Pearson" if is_binary else "allowing for unseen values"
    else:
        guarded = _guarded(array, level, ends, _MEAN)
        method = f"{usual.method}, allowing for unseen values"
    return ConfidenceInterval(usual.mean, guarded.low, guarded.high, level, len(array), method)


def interval_by_measure(measure: str, values: Values, level: float = 0.95) -> ConfidenceInterval:
    """Return the `bounded_interval` of a measure in [0, 1], and the `mean_interval` of another.

    Where all values of the other are the same it has no ends: nothing tells how far others lie.
    """
    if is_bounded(measure):
        return bounded_interval(values, level)
    found = mean_interval(values, level)
    return replace(found, low=None, high=None) if found.low == found.high else found


def ends_by_measure(measure: str, values: Values, level: float = 0.95) -> Ends | None:
    """Return the ends of the `interval_by_measure`; None where it has none."""
    return _ends(interval_by_measure(measure, values, level))


def difference_interval(
    diffs: Floats, level: float, *, bounded: bool, same_rankings: bool = False
) -> Ends | None:
    """Return an interval of a mean of paired differences, of zero width only where nothing differs.

    It reaches as far as that of the ideal bootstrap (BCa) or that of Student's t, whichever goes
    further; and further still where the differences of bounded values hardly spread, as one query
    that nobody saw could then outweigh them all.

    Args:
        diffs: Differences, shape (n,).
        level: From above 0 to 0.999999.
        bounded: Whether they are of values in [0, 1].
        same_rankings: Whether the rankings that they are of are the same; see `is_identity`.

    Returns:
        The interval, from 0 to 0 for an identity; None with fewer than two differences, and for
        equal ones of values without bounds, which tell nothing about others.
    """
    if is_identity(diffs, same_rankings=same_rankings):
        return Ends(0.0, 0.0)
    bootstrap = _ends(mean_interval(diffs, level))
    student = _ends(mean_interval(diffs, level, "student"))
    if bootstrap is None or student is None or (is_constant(diffs) and not bounded):
        return None
    wider = Ends(min(bootstrap.low, student.low), max(bootstrap.high, student.high))
    if not bounded:
        return wider
    scaled = _guarded(
        (diffs + 1) / 2, level, Ends((wider.low + 1) / 2, (wider.high + 1) / 2), _DIFFERENCE
    )
    return Ends(min(2 * scaled.low - 1, wider.low), max(2 * scaled.high - 1, wider.high))


def allowing_for_unseen(values: Floats, usual: Ends, within: Ends, level: float) -> Ends:
    """Return the ends of an interval of a mean, further out where one unseen value outweighs it.

    Args:
        values: One per query, shape (n,), n at least 2. Estimates may lie beyond `within`.
        usual: Ends that go by the spread of the values.
        within: The least and the highest that a value can be; differences have a least below 0.
        level: From above 0 to 0.999999.
    """
    span = within.high - within.low

    def scaled(value: float) -> float:
        return (value - within.low) / span

    array = np.clip((values - within.low) / span, 0.0, 1.0)
    fade = _DIFFERENCE if within.low < 0 else _MEAN
    found = _guarded(array, level, Ends(scaled(usual.low), scaled(usual.high)), fade)
    low, high = within.low + span * found.low, within.low + span * found.high
    return Ends(min(low, usual.low), max(high, usual.high))


def _ends(found: ConfidenceInterval) -> Ends | None:
    if found.low is None or found.high is None:
        return None
    return Ends(found.low, found.high)


def _guarded(array: Floats, level: float, usual: Ends, fade: _Fade) -> Ends:
    """Return the usual ends of values in [0, 1], moved outwards where one unseen value matters."""
    student = _ends(mean_interval(array, 0.95, "student"))
    assert student is not None
    half, n, middle = (student.high - student.low) / 2, len(array), mean(array)

    def moved(end: float, distance: float, guarded: Callable[[], float]) -> float:
        move = distance / n
        if is_constant(array) or move >= fade.full * half:
            return guarded()
        if move <= fade.start * half:
            return end
        weight = (move / half - fade.start) / (fade.full - fade.start)
        return end + weight * (guarded() - end)

    low = moved(usual.low, middle, lambda: _low_end(array, level))
    high = moved(usual.high, 1 - middle, lambda: 1 - _low_end(1 - array, level))
    return Ends(min(low, usual.low), max(high, usual.high))


def _low_end(array: Floats, level: float) -> float:
    """Return the lower end of the mean of values in [0, 1], were one more of them 0.

    It is the quantile of the mean of the n values and the 0 under weights that are uniform on the
    simplex: shares of exponential variates.

    Args:
        array: Shape (n,), n at least 2.
        level: Of the interval of which this is one end.
    """
    n, tail = len(array), (1 - level) / 2
    if mean(array) < _NOTHING:
        return 0.0
    if is_constant(array):
        return float(array[0] * tail ** (1 / n))
    values = array
    if len(np.unique(array)) > _MOST_DISTINCT:
        values = np.floor(array * _MOST_DISTINCT) / _MOST_DISTINCT
    distinct, occurrences = np.unique(np.append(values, 0.0), return_counts=True)
    counts = occurrences.astype(np.float64)
    middle = mean(values)

    def beyond(end: float) -> float:
        return _share_below(distinct - end, counts) - tail

    reach = middle / n
    while reach < middle and beyond(middle - reach) > 0:
        reach *= 2
    return root(beyond, max(middle - reach, 0.0), middle)


def _share_below(terms: Floats, counts: Floats) -> float:
    """Return the probability that a weighted sum of standard exponential variates is below 0.

    By the trapezoid rule in the logarithm, which converges exponentially.

    Args:
        terms: Distinct weights, shape (m,), not all 0.
        counts: How many variates have each, aligned.

    Source: Gil-Pelaez 1951, Biometrika 38(3-4).
    """
    scaled = terms / np.abs(terms).max()
    shift = float(np.sum(counts * scaled)) / sqrt(float(np.sum(counts * scaled**2)))
    step = max(min(_STEP, 0.3 / (_ALIVE * max(abs(shift), 1.0))), _FINEST_STEP)
    points = np.exp(np.arange(_LOG_LOW, _LOG_HIGH, step))
    angles, decay = np.zeros(len(points)), np.zeros(len(points))
    for term, count in zip(scaled.tolist(), counts.tolist(), strict=True):
        turned = points * term
        angles += count * np.arctan(turned)
        decay += count * np.log1p(turned * turned)
    return 0.5 - float(np.sum(np.sin(angles) * np.exp(-decay / 2))) * step / np.pi
