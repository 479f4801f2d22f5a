"""How large a difference is, and how small a one so many queries can show.

Power is that of the two-sided paired t test; with the queries of most evaluation sets the
randomisation test has the same. `sd` is the standard deviation of the differences per query
(divisor n - 1), in the unit of the measure.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, fsum, isfinite, sqrt
from typing import Final, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_numbers import check_share
from ragforge.measures.checked_samples import (
    Floats,
    PairedValues,
    differences,
    is_constant,
    mean,
    standard_deviation,
)
from ragforge.measures.distributions import (
    log_gamma_ratio,
    noncentral_t_sf,
    normal_quantile,
    root,
    student_quantile,
)
from ragforge.measures.intervals import Ends
from ragforge.measures.paired import signed_ranks

IntervalOf: TypeAlias = Callable[[Floats], Ends | None]
"""Gives the interval of the mean of values, of any number; None where so few have none."""

_NEGLIGIBLE: Final = 0.05
"""Of the standard error of the sum: largest differences below it change no power."""
_MOST_TILTED: Final = 60.0
_FINEST_CHANCE: Final = 0.001
_SPREAD_DECIDES: Final = 10_000
"""Queries beyond which an interval goes by the spread alone: one more hardly moves the mean."""
_T_IS_NORMAL: Final = 100_000
"""Queries from which on t differs from the normal distribution by a known few queries."""


@dataclass(frozen=True, slots=True)
class EffectSize:
    """How large differences are beside their own spread; positive where the candidate is better."""

    cohen_dz: float | None
    """Mean over standard deviation. 0 where all are ties; None where another constant makes it
    infinite, and with fewer than two queries."""
    hedges_gz: float | None
    """The same without the bias of small samples; None also with two queries."""
    rank_biserial: float | None
    """In [-1, 1]: the share of the signed ranks that speaks for the candidate less the share
    against it. 0 where all are ties; None without queries."""


def effect_size(baseline: PairedValues, candidate: PairedValues) -> EffectSize:
    """Return the effect sizes of a paired comparison.

    Args:
        baseline: Values of n queries; or by query, of which those count that both have.
        candidate: Values of the same queries in the same order; or by query, too.

    Raises:
        UsageError: The lengths differ, or one is by query alone.
        DataError: As `checked_samples.sample`.

    Source: Cohen 1988, section 2.3.5 (d_z); Hedges 1981, Journal of Educational Statistics 6(2),
    equation 6e with n - 1 degrees of freedom; Kerby 2014, Comprehensive Psychology 3.
    """
    diffs = differences(baseline, candidate)
    n = len(diffs)
    signed = signed_ranks(diffs)
    weight = signed.positive + signed.negative
    lean = (signed.positive - signed.negative) / weight if weight else 0.0
    if n < 2 or is_constant(diffs):
        none = 0.0 if n >= 2 and not diffs.any() else None
        return EffectSize(none, none if n > 2 else None, lean if n else None)
    scaled = diffs / float(np.abs(diffs).max())
    centre = mean(scaled)
    effect = centre / sqrt(fsum(((scaled - centre) ** 2).tolist()) / (n - 1))
    if n == 2:
        return EffectSize(effect, None, lean)
    unbiased = exp(log_gamma_ratio((n - 2) / 2)) / sqrt((n - 1) / 2)
    return EffectSize(effect, effect * unbiased, lean)


def achieved_power(difference: float, sd: float, n: int, alpha: float = 0.05) -> float:
    """Return the probability that n queries show a true mean difference at level alpha.

    Give it the difference that would matter, not the one found: the power for the latter is only
    its p value in other words (Hoenig and Heisey 2001, The American Statistician 55(1)).

    Args:
        difference: In the unit of the measure; its sign makes no difference.
        sd: Of the differences, not negative.
        n: Queries; fewer than two have no power.
        alpha: Significance level, between 0 and 1.

    Returns:
        A value in [0, 1]: alpha where the difference is 0, and with an `sd` of 0 whether it is not.

    Raises:
        UsageError: An argument cannot be taken.

    Source: the noncentral t distribution; Cohen 1988, section 12.2.
    """
    check_share(alpha, "alpha")
    _check_spread(difference, sd)
    if n < 2:
        return 0.0
    if not difference:
        return alpha
    shift = abs(difference) / sd * sqrt(n) if sd else 0.0
    if not sd or not isfinite(shift):
        return 1.0
    return _power(shift, n - 1, -student_quantile(alpha / 2, n - 1))


def detectable_difference(
    sd: float, n: int, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Return the least true mean difference that n queries show with the wished power.

    Args:
        sd: Of the differences, not negative.
        n: Queries.
        alpha: Significance level, between 0 and 1.
        power: Wished probability of a significant result, between 0 and 1.

    Returns:
        A difference in the unit of the measure, 0 where the power is not above alpha; None with
        fewer than two queries, which can show none.

    Raises:
        UsageError: An argument cannot be taken.
    """
    _check_spread(0.0, sd)
    if n < 2:
        check_share(alpha, "alpha")
        check_share(power, "power")
        return None
    return detectable_by_error(sd / sqrt(n), n - 1, alpha, power)


def detectable_by_error(
    error: float, degrees: float, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the least true mean difference that is shown with the wished power.

    Args:
        error: Standard error of the mean difference, not negative.
        degrees: Of freedom, which that has; above 0.
        alpha: As for `detectable_difference`.
        power: Likewise.

    Raises:
        UsageError: An argument cannot be taken.
    """
    check_share(alpha, "alpha")
    check_share(power, "power")
    _check_spread(0.0, error)
    if power <= alpha:
        return 0.0
    critical = -student_quantile(alpha / 2, degrees)
    high = 1.0
    while _power(high, degrees, critical) < power:
        high *= 2
    return error * root(lambda shift: _power(shift, degrees, critical) - power, 0.0, high)


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """What the queries of a comparison show, in the unit of the measure."""

    difference: float
    """The least true mean difference that is shown with the wished power."""
    n_for_half: int
    """Queries that show half of it."""


def shown_difference(diffs: Floats, alpha: float = 0.05, power: float = 0.8) -> ShownDifference:
    """Return the least true mean difference that these queries show with the wished power.

    Where values are bounded and most queries are tied, a larger difference does not shift the
    values: more queries differ, and the spread grows with it. So the differences that were seen are
    weighed by exp(c d), with c such that the test has the wished power, to both sides; the largest
    of these and of `detectable_difference` is returned. For differences that are normally
    distributed all are the same.

    Args:
        diffs: Of n queries, at least two that are not all the same.
        alpha: Significance level, between 0 and 1.
        power: Wished probability of a significant result, between 0 and 1.

    Source: Efron 1981, Canadian Journal of Statistics 9(2), on tilting what was seen.
    """
    n, sd = len(diffs), standard_deviation(diffs)
    shift = detectable_by_error(1.0, n - 1, alpha, power)
    least = shift * sd / sqrt(n)
    sides = [side for side in (diffs, -diffs) if _bends(side, sd)]
    found = max([least, *(_tilted_to_ratio(side, shift / sqrt(n)) for side in sides)])
    return ShownDifference(found, queries_to_show(diffs, found / 2, alpha, power) if found else 2)


def queries_to_show(
    diffs: Floats, difference: float, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the least number of such queries that shows a true mean difference.

    As for `shown_difference`, the spread may grow with the difference: the largest number counts.

    Args:
        diffs: Of queries like those to come, at least two that are not all the same.
        difference: In the unit of the measure, above 0.
        alpha: Significance level, between 0 and 1.
        power: Wished probability of a significant result, between 0 and 1.
    """
    sd = standard_deviation(diffs)
    sides = [side for side in (diffs, -diffs) if _bends(side, sd)]
    spreads = [sd, *(_tilted_spread(side, difference) for side in sides)]
    return max(queries_needed(difference, spread, alpha, power) for spread in spreads)


def _bends(diffs: Floats, sd: float) -> bool:
    """Whether single queries weigh so much that the mean is not as good as normal."""
    top = float(diffs.max())
    return top > 0 and top > _NEGLIGIBLE * sd * sqrt(len(diffs))


def _tilted_to_ratio(diffs: Floats, ratio: float) -> float:
    """Return the mean of the tilted differences that is so many times their spread."""

    def off(c: float) -> float:
        centre, spread = _tilted(diffs, c)
        return centre - ratio * spread

    c = root(off, -_MOST_TILTED, _MOST_TILTED) if off(-_MOST_TILTED) < 0 else -_MOST_TILTED
    return _tilted(diffs, c)[0]


def _tilted_spread(diffs: Floats, wanted: float) -> float:
    """Return the spread of the differences once they are tilted to a mean; 0 where none is."""

    def off(c: float) -> float:
        return _tilted(diffs, c)[0] - wanted

    if off(-_MOST_TILTED) >= 0 or off(_MOST_TILTED) <= 0:
        return 0.0
    return _tilted(diffs, root(off, -_MOST_TILTED, _MOST_TILTED))[1]


def _tilted(diffs: Floats, c: float) -> tuple[float, float]:
    """Return mean and spread of differences that weigh exp(c d), d in units of the largest."""
    weights = _weights(diffs, c)
    centre = float(weights @ diffs)
    n = len(diffs)
    return centre, sqrt(float(weights @ (diffs - centre) ** 2) * n / (n - 1))


def _weights(diffs: Floats, c: float) -> Floats:
    scaled = c * diffs / float(np.abs(diffs).max())
    weights = np.exp(scaled - scaled.max())
    shares: Floats = weights / weights.sum()
    return shares


def queries_needed(difference: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the least number of queries that shows a true mean difference with the wished power.

    Args:
        difference: In the unit of the measure, not 0; its sign makes no difference.
        sd: Of the differences, not negative.
        alpha: Significance level, between 0 and 1.
        power: Wished probability of a significant result, between 0 and 1.

    Returns:
        At least 2.

    Raises:
        UsageError: An argument cannot be taken.
    """
    check_share(alpha, "alpha")
    check_share(power, "power")
    _check_spread(difference, sd)
    effect = abs(difference) / sd if sd else 1.0
    if not difference or not effect:
        raise UsageError(f"expected a difference beside an sd of {sd}, got {difference}")
    if power <= alpha or not sd:
        return 2
    # With the normal distribution for t; the answer lies a few queries further.
    n = max(2, ceil(((normal_quantile(power) - normal_quantile(alpha / 2)) / effect) ** 2))
    if n > _T_IS_NORMAL:
        return n + ceil(normal_quantile(alpha / 2) ** 2 / 2)
    while n > 2 and achieved_power(difference, sd, n - 1, alpha) >= power:
        n -= 1
    while achieved_power(difference, sd, n, alpha) < power:
        n += 1
    return n


def shown_distance(
    values: Floats, n: int, interval: IntervalOf, *, below: bool = False, power: float = 0.8
) -> float | None:
    """Return how far beyond a bound a mean lies that an interval shows to be beyond it.

    An interval of bounded values may reach further than their spread tells, as it allows for
    values that nobody saw. So it is taken of n values like these whose mean is as near to the bound
    as it comes in one sample of `1 - power`; they are weighed by exp(c v), as in
    `shown_difference`, so that a spread which grows towards the bound counts.

    Args:
        values: Of queries like those to come, at least two.
        n: Queries to come, at least two.
        interval: By which it is decided.
        below: Whether the upper end is to lie below the bound, rather than the lower one above it.
        power: Wished probability that it does.

    Returns:
        The distance in the unit of the values; None where n values have no interval.

    Raises:
        UsageError: The power is not between 0 and 1.
    """
    check_share(power, "power")
    return _distance(-values if below else values, n, _turned(interval, below), power)


def shown_chance(values: Floats, distance: float, interval: IntervalOf) -> float:
    """Return the chance that a mean so far above a bound is shown to be, to a thousandth.

    Args:
        values: Of the queries, at least two.
        distance: In the unit of the values.
        interval: As for `shown_distance`, whose inverse it is.
    """
    least, most = 0.0, 1.0
    while most - least > _FINEST_CHANCE:
        middle = (least + most) / 2
        found = _distance(values, len(values), interval, middle)
        is_shown = found is not None and found <= distance
        least, most = (middle, most) if is_shown else (least, middle)
    return least


def queries_for_distance(
    values: Floats, distance: float, interval: IntervalOf, *, below: bool = False
) -> int:
    """Return how many queries have a `shown_distance` that is no larger, with a power of 80 %.

    It is the least number, or up to 1 % more. Beyond 10,000 it goes by the spread alone.

    Args:
        values: Of queries like those to come, at least two.
        distance: In the unit of the values, above 0.
        interval: As for `shown_distance`.
        below: Likewise.

    Raises:
        UsageError: The distance is 0.
    """

    def is_shown(n: int) -> bool:
        found = shown_distance(values, n, interval, below=below)
        return found is not None and found <= distance

    least = 2 if is_constant(values) else queries_needed(distance, standard_deviation(values))
    if least >= _SPREAD_DECIDES or is_shown(least):
        return least
    most = 2 * least
    while most < _SPREAD_DECIDES and not is_shown(most):
        least, most = most, 2 * most
    while most - least > 1 + least // 100:
        middle = (least + most) // 2
        least, most = (least, middle) if is_shown(middle) else (middle, most)
    return most


def _turned(interval: IntervalOf, below: bool) -> IntervalOf:
    """Return the interval for values with the other sign, where the upper end decides."""
    if not below:
        return interval

    def turned(values: Floats) -> Ends | None:
        ends = interval(-values)
        return None if ends is None else Ends(-ends.high, -ends.low)

    return turned


def _distance(values: Floats, n: int, interval: IntervalOf, power: float) -> float | None:
    below = normal_quantile(power) * standard_deviation(values) / sqrt(n)
    unlucky = _lowered(values, n, below)
    ends = interval(unlucky)
    return None if ends is None else below + mean(unlucky) - ends.low


def _lowered(values: Floats, n: int, by: float) -> Floats:
    """Return n values like these, of a mean that is lower by so much, as nearly as n allow."""
    ordered = np.sort(values)
    weights = np.full(len(ordered), 1 / len(ordered))
    if not is_constant(ordered):
        wanted = mean(ordered) - by
        c = root(lambda c: _tilted(ordered, c)[0] - wanted, -_MOST_TILTED, _MOST_TILTED)
        weights = _weights(ordered, c)
    places = np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n)
    picked: Floats = ordered[np.minimum(places, len(ordered) - 1)]
    return picked


def _power(shift: float, degrees: float, critical: float) -> float:
    right = noncentral_t_sf(critical, degrees, shift)
    return min(1.0, right + noncentral_t_sf(critical, degrees, -shift))


def _check_spread(difference: float, sd: float) -> None:
    if not (isfinite(difference) and isfinite(sd) and sd >= 0):
        found = f"a difference of {difference} and an sd of {sd}"
        raise UsageError(f"expected finite numbers and an sd of at least 0, got {found}")
