"""Intervals of a mean over queries: how far another sample of such queries could move it.

The interval of a paired difference is that of the differences: `mean_interval(differences(a, b))`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum, inf, sqrt
from typing import Final, Literal, TypeAlias

import numpy as np

from ragforge.errors import UsageError
from ragforge.measures.bootstrap import mean_distribution
from ragforge.measures.distributions import normal_cdf, normal_quantile, student_quantile
from ragforge.measures.samples import (
    Floats,
    Values,
    check_share,
    checked_seed,
    is_constant,
    mean,
    sample,
)

Method: TypeAlias = Literal["bca", "percentile", "student"]
ResamplingMethod: TypeAlias = Literal["bca", "percentile"]

HIGHEST_LEVEL: Final = 0.999999
"""Beyond it the quantiles lie in tails that rounding blurs."""
_LEAST_SHARE: Final = 1e-9
_BATCH: Final = 2**20
"""Values drawn at once."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A mean and the range that holds the mean of all such queries with the given confidence."""

    mean: float | None
    """None where there are no queries."""
    low: float | None
    """None with fewer than two queries, which tell nothing about others; see also `unseen`."""
    high: float | None
    """None where `low` is."""
    level: float
    """Share of such intervals that hold the mean which they estimate, between 0 and 1."""
    n: int
    """Queries."""
    method: str
    """In words, such as "ideal bootstrap, BCa"."""


def mean_interval(
    values: Values, level: float = 0.95, method: Method = "bca"
) -> ConfidenceInterval:
    """Return an interval of the mean, the same each time for the same values in any order.

    Args:
        values: One per query, shape (n,).
        level: From above 0 to 0.999999.
        method: "bca" and "percentile" take quantiles of the ideal bootstrap distribution (see
            `bootstrap`), BCa after correcting for bias and skewness; these never leave the range
            of the values. "student" is symmetric about the mean, so it can leave [0, 1], and for
            success rates near 0 or 1 it is too short; but for differences that are mostly ties it
            is the one that keeps its level with fewer than 100 queries.

    Returns:
        The interval; low and high are the mean itself where all values are the same, and None
        where n is below 2.

    Raises:
        UsageError: The level or the method cannot be taken.
        DataError: As `samples.sample`.

    Source: Efron 1987, JASA 82(397), sections 2 and 7; acceleration by the jackknife.
    """
    _check(level, method, ("bca", "percentile", "student"))
    array = sample(values)
    if method == "student":
        return _interval(array, level, "Student t", lambda: _student(array, level))
    name = "ideal bootstrap, " + ("BCa" if method == "bca" else "percentile")
    return _interval(array, level, name, lambda: _ideal(array, level, method))


def resampled_interval(
    values: Values,
    seed: int,
    level: float = 0.95,
    method: ResamplingMethod = "bca",
    n_resamples: int = 9_999,
) -> ConfidenceInterval:
    """Return the bootstrap interval of the mean from resamples, as other tools compute it.

    `mean_interval` is faster and has no noise; this one is for comparing with those tools.

    Args:
        values: One per query, shape (n,). With a given seed their order makes a difference.
        seed: At least 0, for numpy's `default_rng`.
        level: From above 0 to 0.999999.
        method: Percentile, or BCa.
        n_resamples: At least 1.

    Raises:
        UsageError: The level, the method, the number of resamples or the seed cannot be taken.
        DataError: As `samples.sample`.

    Source: as `mean_interval`.
    """
    _check(level, method, ("bca", "percentile"))
    if n_resamples < 1:
        raise UsageError(f"expected at least 1 resample, got {n_resamples}")
    array = sample(values)
    name = f"bootstrap, {n_resamples} resamples, " + ("BCa" if method == "bca" else "percentile")
    generator = np.random.default_rng(checked_seed(seed))

    def ends() -> Ends:
        means = _resampled_means(array, n_resamples, generator)
        below = (float(np.mean(means < array.mean())) + float(np.mean(means <= array.mean()))) / 2
        shares = corrected_shares(array, level, below) if method == "bca" else _central(level)
        return Ends(float(np.quantile(means, shares.low)), float(np.quantile(means, shares.high)))

    return _interval(array, level, name, ends)


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends of an interval, or the probabilities below them."""

    low: float
    high: float


def _check(level: float, method: str, methods: tuple[str, ...]) -> None:
    check_share(level, "level")
    if level > HIGHEST_LEVEL:
        raise UsageError(f"level: expected at most {HIGHEST_LEVEL}, got {level}")
    if method not in methods:
        raise UsageError(f"no method {method!r}; there are: {', '.join(methods)}")


def _interval(
    array: Floats, level: float, method: str, ends: Callable[[], Ends]
) -> ConfidenceInterval:
    n = len(array)
    if not n:
        return ConfidenceInterval(None, None, None, level, 0, method)
    middle = mean(array)
    if n == 1:
        return ConfidenceInterval(middle, None, None, level, 1, method)
    found = Ends(middle, middle) if is_constant(array) else ends()
    return ConfidenceInterval(middle, found.low, found.high, level, n, method)


def _student(array: Floats, level: float) -> Ends:
    n = len(array)
    middle = mean(array)
    error = sqrt(fsum(((array - middle) ** 2).tolist()) / (n - 1) / n)
    reach = -student_quantile((1 - level) / 2, n - 1) * error
    return Ends(middle - reach, middle + reach)


def _ideal(array: Floats, level: float, method: Method) -> Ends:
    distribution = mean_distribution(array)
    shares = _central(level)
    if method == "bca":
        shares = corrected_shares(array, level, distribution.share_below(mean(array)))
    low, high = distribution.quantile(shares.low), distribution.upper_quantile(1 - shares.high)
    # The grid may reach a cell beyond the values.
    return Ends(max(low, float(array.min())), min(high, float(array.max())))


def _central(level: float) -> Ends:
    return Ends((1 - level) / 2, (1 + level) / 2)


def corrected_shares(array: Floats, level: float, below: float) -> Ends:
    """Return the probabilities at whose quantiles a BCa interval ends.

    Args:
        array: Of shape (n,), not all the same.
        level: Of the interval.
        below: Bootstrap probability of a mean below that of the values.
    """
    deviations = array - mean(array)
    deviations /= np.abs(deviations).max()
    cubes = fsum((deviations**3).tolist())
    acceleration = cubes / (6 * fsum((deviations**2).tolist()) ** 1.5)
    bias = normal_quantile(min(max(below, _LEAST_SHARE), 1 - _LEAST_SHARE))

    def corrected(share: float) -> float:
        shifted = bias + normal_quantile(share)
        rest = 1 - acceleration * shifted
        x = bias + shifted / rest if rest > 0 else (inf if shifted > 0 else -inf)
        return min(max(normal_cdf(x), _LEAST_SHARE), 1 - _LEAST_SHARE)

    central = _central(level)
    return Ends(corrected(central.low), corrected(central.high))


def _resampled_means(array: Floats, n_resamples: int, generator: np.random.Generator) -> Floats:
    n = len(array)
    means = np.empty(n_resamples)
    batch = max(1, _BATCH // n)
    for start in range(0, n_resamples, batch):
        part = means[start : start + batch]
        part[:] = array[generator.integers(0, n, (len(part), n))].mean(axis=1)
    return means
