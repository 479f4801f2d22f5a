"""Intervals of a mean over queries: how far another sample of such queries could move it.

The interval of a paired difference is that of the differences: `mean_interval(differences(a, b))`.

Pairs of one query are judged alike, and are no sample of n: intervals of other statistics resample
queries. A statistic takes how often each query is drawn and returns a value for each draw, so that
all resamples are one product of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, exp, floor, fsum, inf, log, log2, sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_numbers import check_share, checked_seed
from ragforge.measures.checked_samples import (
    Floats,
    Values,
    is_constant,
    lattice_cells,
    mean,
    sample,
)
from ragforge.measures.distributions import normal_cdf, normal_quantile, student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GRID: Final = 2**15
"""Cells for values on no lattice: some 2,000 to a standard deviation of the mean."""
_LARGEST_GRID: Final = 2**18
_CELLS_TO_DEVIATION: Final = 16
"""Cells to the mean absolute deviation, at least, so that one far value does not blur the rest."""
_OUTSIDE: Final = log(2e12)
"""Of a probability of 1e-12 on two sides."""
_VANISHED: Final = -42.0
"""Logarithm of a share of the characteristic function that rounding hides anyway."""
_ROUNDING: Final = 1e-10
"""Probabilities closer than this are taken as equal; the transforms leave less."""
Method: TypeAlias = Literal["bca", "percentile", "student"]
HIGHEST_LEVEL: Final = 0.999999
"""Beyond it the quantiles lie in tails that rounding blurs."""
_LEAST_SHARE: Final = 1e-9
_LARGEST_SHIFT: Final = 300.0
"""Of a logit; beyond it the exponential overflows."""
Statistic: TypeAlias = Callable[[Floats], Floats]
"""From times, shape (b, m), to values, shape (b,): times[i, j] is how often query j is drawn."""
N_RESAMPLES: Final = 2000
MOST_UNDEFINED: Final = 0.05
"""Share of resamples without a value from which on there is no interval."""


@dataclass(frozen=True, slots=True)
class MeanDistribution:
    """How the mean of a resample is distributed."""

    points: Floats
    """Means, ascending and evenly spaced, shape (m,)."""
    mass: Floats
    """Their probabilities, shape (m,), which sum to 1."""
    exact: bool
    """Whether `points` are the means themselves; if not, each stands for the cell around it."""

    def quantile(self, p: float) -> float:
        """Return the least mean that is not exceeded with a probability of at least `p`."""
        return self._quantile(self.points, self.mass, p)

    def upper_quantile(self, p: float) -> float:
        """Return the greatest mean that is reached with a probability of at least `p`."""
        return self._quantile(self.points[::-1], self.mass[::-1], p)

    def share_below(self, mean: float) -> float:
        """Return the probability of less than `mean`, with half of that of `mean` itself."""
        width = float(self.points[1] - self.points[0]) if len(self.points) > 1 else 0.0
        if not width:  # Also of values so near 0 that floats end between them.
            return 0.5
        cell = min(max(round((mean - float(self.points[0])) / width), 0), len(self.points) - 1)
        part = 0.5 if self.exact else 0.5 + (mean - float(self.points[cell])) / width
        return float(self.mass[:cell].sum() + part * self.mass[cell])

    def _quantile(self, points: Floats, mass: Floats, p: float) -> float:
        reached = np.cumsum(mass)
        cell = int(np.searchsorted(reached, p - _ROUNDING))
        cell = min(cell, len(points) - 1)
        if self.exact or len(points) == 1:
            return float(points[cell])
        # The mass of a cell is spread evenly over it.
        width = float(points[1] - points[0])
        missing = (float(reached[cell]) - p) / float(mass[cell]) if mass[cell] > 0 else 0.0
        return float(points[cell]) + width * (0.5 - min(max(missing, 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class _Window:
    """Where the sum of n draws from offsets in [0, 1] stays."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def mean_distribution(values: Floats) -> MeanDistribution:
    """Return the bootstrap distribution of the mean of the values.

    Args:
        values: Finite, shape (n,), n at least 1; their order makes no difference.

    Source: Efron 1979, Annals of Statistics 7(1), section 2: the bootstrap distribution itself,
    of which his Monte Carlo is the approximation.
    """
    n = len(values)
    distinct, occurrences = np.unique(values, return_counts=True)
    counts = occurrences.astype(np.float64)
    if is_constant(distinct):
        return MeanDistribution(np.array([mean(values)]), np.ones(1), True)
    span = float(distinct[-1] - distinct[0])
    offsets = (distinct - distinct[0]) / span
    window = _window(offsets, counts)
    n_cells = lattice_cells(offsets)
    exact = n_cells is not None and window.width * n_cells <= _LARGEST_GRID // 2
    if not exact or n_cells is None:
        n_cells = _grid_cells(offsets, counts, window)
    positions = np.rint(offsets * n_cells) if exact else offsets * n_cells
    first = floor(window.low * n_cells)
    length = _fast_length(ceil(window.high * n_cells) - first + 1)
    mass = _convolved(positions, counts, first, length)
    sums = np.arange(first, first + length, dtype=np.float64)
    if not exact:
        centre = _sum(positions, counts)
        sums = centre + (sums - centre) * _shrinkage(positions, counts)
    points = float(distinct[0]) + sums / (n_cells * n) * span
    return MeanDistribution(points, mass, exact)


def _grid_cells(offsets: Floats, counts: Floats, window: _Window) -> int:
    """Return into how many cells the range of the values is cut."""
    n = int(counts.sum())
    deviation = _sum(np.abs(offsets - _sum(offsets, counts) / n), counts)
    fine = _CELLS_TO_DEVIATION * n / deviation
    most = (_LARGEST_GRID - 2) / window.width
    return max(int(min(max((_GRID - 2) / window.width, fine), most)), 1)


def _window(offsets: Floats, counts: Floats) -> _Window:
    """Bound the sum of n draws by its support, or by Bernstein's inequality where that is less."""
    n = int(counts.sum())
    total = _sum(offsets, counts)
    deviations = offsets - total / n
    variance = _sum(deviations**2, counts)
    largest = float(np.abs(deviations).max()) * _OUTSIDE / 3
    reach = largest + sqrt(largest * largest + 2 * variance * _OUTSIDE)
    return _Window(max(0.0, total - reach), min(float(n), total + reach))


def _convolved(positions: Floats, counts: Floats, first: int, length: int) -> Floats:
    """Return the probabilities of the sums `first` to `first + length - 1` of n draws.

    Args:
        positions: Of the distinct values, in cells from 0.
        counts: How often each occurs, aligned.
        first: Where the window begins.
        length: Cells of the window; what lies outside wraps around.
    """
    n = int(counts.sum())
    shares = counts / n
    # Near the mean's cell the angles are small, and n times their rounding is too.
    centre = round(_sum(positions, shares))
    below = np.floor(positions)
    part = positions - below
    cells = below.astype(np.int64) - centre
    histogram = np.bincount(cells % length, shares * (1 - part), length)
    histogram += np.bincount((cells + 1) % length, shares * part, length)
    transformed = np.fft.rfft(histogram)
    size = np.abs(transformed)
    alive = size > exp(_VANISHED / n)
    transformed[~alive] = 0
    transformed[alive] = np.exp(n * np.log(transformed[alive]))
    mass = np.maximum(np.fft.irfft(transformed, length), 0.0)
    mass = np.roll(mass, (n * centre - first) % length)
    return np.asarray(mass / mass.sum())


def _shrinkage(positions: Floats, counts: Floats) -> float:
    """Return the ratio of the standard deviations without and with the splitting."""
    n = int(counts.sum())
    part = positions - np.floor(positions)
    variance = _sum((positions - _sum(positions, counts) / n) ** 2, counts)
    return sqrt(variance / (variance + _sum(part * (1 - part), counts)))


def _sum(terms: Floats, counts: Floats) -> float:
    """Return the weighted sum; a BLAS product depends on its build and the number of threads."""
    return float(np.sum(terms * counts))


def _fast_length(least: int) -> int:
    return int(2 ** ceil(log2(max(least, 2))))


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A mean and the range that holds the mean of all such queries with the given confidence."""

    mean: float | None
    """None where there are no queries."""
    low: float | None
    """None with fewer than two queries, which tell nothing of others; see `unseen_values`."""
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
        DataError: As `checked_samples.sample`.

    Source: Efron 1987, JASA 82(397), sections 2 and 7; acceleration by the jackknife.
    """
    _check(level, method, ("bca", "percentile", "student"))
    array = sample(values)
    if method == "student":
        return _interval(array, level, "Student t", lambda: _student(array, level))
    name = "ideal bootstrap, " + ("BCa" if method == "bca" else "percentile")
    return _interval(array, level, name, lambda: _ideal(array, level, method))


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


@dataclass(frozen=True, slots=True)
class Clusters:
    """Which pairs belong to one query."""

    query_ids: tuple[str, ...]
    """In order of their first pair."""
    of_pair: NDArray[np.intp]
    """Place of each pair's query in `query_ids`, shape (n,)."""


@dataclass(frozen=True, slots=True)
class ClusteredInterval:
    """A statistic of all queries, and the range in which another sample of queries may put it."""

    value: float | None
    """None where it is not defined."""
    low: float | None
    """None where the value is, with fewer than two queries, or too many undefined resamples."""
    high: float | None
    """None where `low` is."""
    n_undefined: int = 0
    """Resamples in which the statistic is not defined; the interval is of the others."""


def clusters(query_ids: Sequence[str]) -> Clusters:
    """Group pairs by query; the queries are sorted, so that resamples do not hang on the order.

    Args:
        query_ids: Of each pair, shape (n,).
    """
    places = {query_id: place for place, query_id in enumerate(sorted(set(query_ids)))}
    of_pair = [places[query_id] for query_id in query_ids]
    return Clusters(tuple(places), np.array(of_pair, dtype=np.intp))


def resampled_times(n_queries: int, seed: int, n_resamples: int = N_RESAMPLES) -> Floats:
    """Return how often each query is drawn: once each in row 0, with replacement in the others.

    Args:
        n_queries: m; may be 0.
        seed: At least 0, for numpy's `default_rng`.
        n_resamples: b, at least 1.

    Returns:
        Shape (b + 1, m); each row sums to m.

    Raises:
        UsageError: The seed or the number of resamples cannot be taken.
    """
    if n_resamples < 1:
        raise UsageError(f"expected at least 1 resample, got {n_resamples}")
    generator = np.random.default_rng(checked_seed(seed))
    times = np.ones((n_resamples + 1, n_queries))
    if n_queries:
        shares = np.full(n_queries, 1 / n_queries)
        times[1:] = generator.multinomial(n_queries, shares, n_resamples)
    return times


def percentile_interval(
    values: Floats,
    n_queries: int,
    level: float = 0.95,
    within: Ends | None = None,
    without_one: Floats | None = None,
) -> ClusteredInterval:
    """Return the interval of a statistic from its values on resamples.

    Resamples of few queries spread too little: percentiles of 10 queries hold the statistic in 87
    to 90 % where they say 95. They are moved outwards by m / (m - 1) and by the ratio of Student's
    quantile to the normal one, which holds it in 92 to 95 % from 10 queries on. Of what is the same
    in every query resamples tell nothing: the interval then reaches to where it would be if as many
    others as can well go unseen (1 less 0.025 to the power of 1 / m) were at either end.

    Near an end of what it can be, a statistic is skewed, and its percentiles stop short of the
    other end. With `without_one` and `within` the interval spans that of the jackknife too: t times
    its standard error, wider by the root of m / (m - 1), to either side of the logit of where the
    value lies between the two ends (of a coefficient from -1 to 1 this is Fisher's z).

    Args:
        values: Shape (b + 1,), that of all queries first; NaN where it is not defined.
        n_queries: m, how many were drawn from.
        level: From above 0 to below 1.
        within: The least and the highest value that the statistic can have; where it is None the
            interval of what is the same in every query has no width.
        without_one: The value without each of the queries, shape (m,); NaN where not defined.

    Raises:
        UsageError: The level cannot be taken.

    Source: Efron 1979, Annals of Statistics 7(1); of clusters: Field & Welsh 2007, JRSS B 69(3);
    moved outwards: Hesterberg 2015, The American Statistician 69(4), section 3.3;
    jackknife: Miller 1974, Biometrika 61(1), which advises such scales.
    """
    check_share(level, "level")
    value, resampled = float(values[0]), values[1:]
    defined = resampled[~np.isnan(resampled)]
    n_undefined = len(resampled) - len(defined)
    if np.isnan(value):
        return ClusteredInterval(None, None, None, n_undefined)
    if n_queries < 2 or n_undefined > MOST_UNDEFINED * len(resampled):
        return ClusteredInterval(value, None, None, n_undefined)
    upper = (1 + level) / 2
    if within is not None and float(np.abs(defined - value).max()) <= _ROUNDING:
        unseen = 1 - (1 - upper) ** (1 / n_queries)
        low, high = (value + unseen * (end - value) for end in (within.low, within.high))
        return ClusteredInterval(value, low, high, n_undefined)
    outwards = student_quantile(upper, n_queries - 1) / normal_quantile(upper)
    outwards *= n_queries / (n_queries - 1)
    ends = np.quantile(defined, [1 - upper, upper])
    low, high = (value + outwards * (float(end) - value) for end in ends)
    if within is not None:
        low, high = max(low, within.low), min(high, within.high)
        if without_one is not None and within.low < value < within.high:
            other = _jackknife_ends(value, without_one, level, within)
            low, high = min(low, other.low), max(high, other.high)
    return ClusteredInterval(value, low, high, n_undefined)


def _jackknife_ends(value: float, without_one: Floats, level: float, within: Ends) -> Ends:
    """Return the ends of a jackknife interval on the logit scale, within what there can be."""
    left = without_one[~np.isnan(without_one)]
    if len(left) < 2:
        return Ends(value, value)
    span = within.high - within.low
    share = (value - within.low) / span
    # (m - 1) / m of the jackknife and m / (m - 1) of few queries cancel.
    error = sqrt(fsum(((left - left.mean()) ** 2).tolist())) / span
    # By the slope: the logit itself is infinite where the value without a query is at an end.
    reach = -student_quantile((1 - level) / 2, len(left) - 1) * error / (share * (1 - share))

    def moved(by: float) -> float:
        odds = share / (1 - share) * exp(min(by, _LARGEST_SHIFT))
        return within.low + span * odds / (1 + odds)

    return Ends(moved(-reach), moved(reach))


def clustered_interval(
    statistic: Statistic,
    n_queries: int,
    *,
    seed: int,
    n_resamples: int = N_RESAMPLES,
    level: float = 0.95,
) -> ClusteredInterval:
    """Return a statistic with its interval from resampled queries.

    Args:
        statistic: Of how often each query is drawn, in the order of `Clusters.query_ids`.
        n_queries: m.
        seed: As for `resampled_times`; the same one draws the same queries for every statistic, so
            that differences can be taken within a draw.
        n_resamples: As for `resampled_times`.
        level: As for `percentile_interval`.

    Raises:
        UsageError: The seed, the number of resamples or the level cannot be taken.
    """
    times = resampled_times(n_queries, seed, n_resamples)
    return percentile_interval(statistic(times), n_queries, level)
