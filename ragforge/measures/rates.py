"""Rates over queries: the mean, how far other queries could move it, and what failures could.

The interval is of the bootstrap over queries, and where the values show little spread, or are all 0
or 1, it allows for what nobody saw: see `unseen_values`.
"""

from collections.abc import Collection, Mapping, Sequence
from math import fsum, hypot, inf, sqrt
from typing import Final

from ragforge.deferred import dataclass, statistics
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Values, is_constant, mean, sample
from ragforge.measures.distributions import student_sf
from ragforge.measures.intervals import Ends
from ragforge.measures.strata import Design

LEVEL: Final = 0.95
LEAST_VALUES: Final = 5
"""Values that an interval takes; resamples of fewer are far too much alike."""


@dataclass(frozen=True, slots=True)
class Slope:
    """How much y rises with x."""

    slope: float | None
    """Per unit of x; None with fewer than three points, or where all x are the same."""
    p: float | None
    """Two-sided, of no slope, by Student's t with n - 2 degrees of freedom; None as `slope`."""
    n: int


def slope(x: Values, y: Values) -> Slope:
    """Return the slope of the least-squares line through some points.

    Args:
        x: Where n points lie, shape (n,).
        y: How high each is, aligned.

    Raises:
        UsageError: The lengths differ.
        DataError: A value is no finite number.
    """
    across, up = sample(x, "x"), sample(y, "y")
    n = len(across)
    if n != len(up):
        raise UsageError(f"expected as many y as x, got {n} x and {len(up)} y")
    if n < 3 or is_constant(across):
        return Slope(None, None, n)
    if is_constant(up):
        return Slope(0.0, 1.0, n)
    dx, dy = across - mean(across), up - mean(up)
    spread = fsum((dx * dx).tolist())
    rise = fsum((dx * dy).tolist()) / spread
    unexplained = fsum(((dy - rise * dx) ** 2).tolist())
    error = sqrt(unexplained / (n - 2) / spread)
    t = abs(rise) / error if error else inf
    return Slope(rise, min(1.0, 2 * student_sf(t, n - 2)), n)


def wilson_interval(k: int, n: int, level: float = 0.95) -> Ends | None:
    """Return the Wilson score interval of a share; None of nothing.

    Args:
        k: How many have it.
        n: Of how many.
        level: Of confidence, in (0, 1).

    Raises:
        ValueError: k is not in [0, n].

    Source: Wilson 1927, JASA 22(158); Brown, Cai and DasGupta 2001, Statistical Science 16(2).
    """
    if not 0 <= k <= n:
        raise ValueError(f"expected 0 to {n}, got {k}")
    if n == 0:
        return None
    z = statistics.NormalDist().inv_cdf(0.5 + level / 2)
    middle = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(k * (n - k) / n + z * z / 4)
    return Ends(0.0 if k == 0 else middle - half, 1.0 if k == n else middle + half)


@dataclass(frozen=True, slots=True)
class Rate:
    """A mean of values in [0, 1], or a ratio of such means."""

    mean: float | None
    """None where there is nothing to take it over."""
    interval: Ends | None
    """At 95 %; None with fewer than five values, which tell next to nothing about others."""
    bounds: Ends | None
    """The mean if all that has no value were at its worst, and at its best; None where there is
    nothing at all."""
    n: int
    """Values the mean is over."""
    n_failed: int = 0
    n_absent: int = 0
    """Values that nobody tried to get; the bounds count them as they count failures."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far apart the means of two groups of queries are."""

    mean: float
    """Of the second group less that of the first."""
    interval: Ends
    """At 95 %."""


def mean_rate(values: Sequence[float], n_failed: int = 0, n_absent: int = 0) -> Rate:
    """Return the mean of values in [0, 1] with its interval and bounds.

    Raises:
        UsageError: A value lies outside of [0, 1].
        DataError: A value is no finite number.
    """
    if not all(0 <= value <= 1 for value in values):
        array = sample(values)
        raise UsageError(f"expected values in [0, 1], got {array.min():g} to {array.max():g}")
    n, n_missing = len(values), n_failed + n_absent
    if not n + n_missing:
        return Rate(None, None, None, 0)
    total = fsum(values)
    bounds = Ends(total / (n + n_missing), (total + n_missing) / (n + n_missing))
    middle = min(max(total / n, min(values)), max(values)) if n else None
    return Rate(middle, interval_of(values), bounds, n, n_failed, n_absent)


def sample_rate(
    values: Mapping[str, float], failed: Collection[str], absent: Collection[str], design: Design
) -> Rate:
    """Return the mean of the set that a sample was drawn from, else as `mean_rate`.

    Args:
        values: In [0, 1], by query.
        failed: Queries drawn that have no value.
        absent: Queries drawn whose value nobody tried to get.
        design: Has all of these queries, and those that were not drawn.
    """
    missing = {*failed, *absent}
    if not values and not missing:
        return Rate(None, None, None, 0)
    low = design.mean({**values, **dict.fromkeys(missing, 0.0)})
    high = design.mean({**values, **dict.fromkeys(missing, 1.0)})
    assert low is not None
    assert high is not None
    interval = None
    if len(values) >= LEAST_VALUES:
        from ragforge.measures.stratified import sample_interval

        found = sample_interval("P", list(values.values()), design.stratified(values), LEVEL)
        assert found.low is not None
        assert found.high is not None
        interval = Ends(found.low, found.high)
    middle = design.mean(values)
    return Rate(middle, interval, Ends(low, high), len(values), len(failed), len(absent))


def difference_of_means(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Return how much higher the second mean is, of values in [0, 1] of different queries.

    The two intervals are joined by square and add, so that the ends stay in [-1, 1].

    Returns:
        The difference; None where a group has fewer than five values.

    Raises:
        DataError: A value is no finite number.

    Source: Newcombe 1998, Statistics in Medicine 17(8), method 10; Zou and Donner 2008, same
    journal 27(10), for intervals of any kind.
    """
    a, b = sample(first), sample(second)
    of_a, of_b = interval_of(a), interval_of(b)
    if of_a is None or of_b is None:
        return None
    at_a, at_b = mean(a), mean(b)
    ends = interval_of_difference(at_a, of_a, at_b, of_b)
    return Difference(at_b - at_a, Ends(max(ends.low, -1.0), min(ends.high, 1.0)))


def interval_of_difference(first: float, of_first: Ends, second: float, of_second: Ends) -> Ends:
    """Return the interval of the second mean less the first, of different queries.

    The two intervals are joined by square and add.

    Args:
        first: A mean.
        of_first: Its interval.
        second: The other mean.
        of_second: Its interval.

    Source: as `difference_of_means`.
    """
    diff = second - first
    return Ends(
        diff - hypot(second - of_second.low, of_first.high - first),
        diff + hypot(of_second.high - second, first - of_first.low),
    )


def interval_of(values: Values) -> Ends | None:
    """Return the 95 % interval of the mean of values in [0, 1]; None with fewer than five.

    Source: `bounded_interval`.
    """
    if len(values) < LEAST_VALUES:
        return None
    from ragforge.measures.unseen_values import bounded_interval

    found = bounded_interval(values, LEVEL)
    assert found.low is not None
    assert found.high is not None
    return Ends(found.low, found.high)


def least_share(n: int) -> float:
    """Return the share of which n of n are seen with a probability of 2.5 %."""
    return float(((1 - LEVEL) / 2) ** (1 / n))
