"""Intervals of means that a stratified sample estimates, and tests of two runs on it.

Two things may be asked of a sample of a set. What would the mean of the *set* be? That is settled
once all of its queries are asked: the variance has the finite population correction, and is 0 for
the whole set. And what is the mean over *queries like these*? There the set is itself a sample, and
its own variance is added: for the whole set it is the usual interval, for a part of it a longer
one, so that no sample ever knows more than the set that it was drawn from.

Both intervals have the form of the usual one (BCa of the bootstrap that allows for what nobody saw,
see `unseen_values`), stretched by the ratio of standard errors and moved to the stratified mean.

The variance of all values counts as one more degree of freedom in each stratum: few values of one
are often alike, and one alone tells nothing of its spread.

Source: Cochran 1977, Sampling Techniques, theorem 5.3 and section 5A.12 (strata of one value);
Hartley and Sielken 1975, Biometrics 31(2), for the two variances.
"""

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.measures.checked_samples import Floats, Values, is_constant, mean, sample
from ragforge.measures.distributions import student_quantile, student_sf
from ragforge.measures.intervals import ConfidenceInterval, Ends
from ragforge.measures.strata import Stratified, weighted_mean
from ragforge.measures.unseen_values import difference_interval, interval_by_measure, is_bounded

_METHOD: Final = "stratified"


@dataclass(frozen=True, slots=True)
class StandardError:
    """How far an estimate may be off."""

    error: float
    degrees: float
    """Of freedom, by Satterthwaite's rule; n - 1 at most."""


def set_error(values: Values, drawn: Stratified) -> StandardError:
    """Return how far the stratified mean may be off from that of the whole set.

    Args:
        values: Shape (n,), n at least 2.
        drawn: Their strata, aligned.
    """
    return _combined(_set_terms(sample(values), drawn), len(values) - 1)


def sample_error(values: Values, drawn: Stratified) -> StandardError:
    """Return how far the stratified mean may be off from that over all queries like these.

    Args:
        values: Shape (n,), n at least 2.
        drawn: Their strata, aligned.
    """
    array = sample(values)
    of_set = _total_variance(array, drawn) / sum(drawn.sizes.values())
    terms = [*_set_terms(array, drawn), _Term(of_set, len(array) - 1)]
    return _combined(terms, len(array) - 1)


class _Term(NamedTuple):
    """A part of a variance."""

    variance: float
    degrees: int


def _set_terms(array: Floats, drawn: Stratified) -> list[_Term]:
    size, total = sum(drawn.sizes.values()), _total_variance(array, drawn)
    terms = []
    for name, n_stratum in drawn.sizes.items():
        part = array[[stratum == name for stratum in drawn.strata]]
        n = len(part)
        # Two equal values of a stratum do not show that it has no others.
        variance = ((n - 1) * _variance(part) + total) / n if n > 1 else total
        factor = (n_stratum / size) ** 2 * (1 - n / n_stratum) / n
        terms.append(_Term(factor * variance, n))
    return terms


def _total_variance(array: Floats, drawn: Stratified) -> float:
    """Return the variance of the values of the set, as the sample estimates it."""
    weights, n = drawn.weights, len(array)
    centre = weighted_mean(array.tolist(), weights)
    squares = ((array - centre) ** 2).tolist()
    return fsum(w * x for w, x in zip(weights, squares, strict=True)) * n / (n - 1)


def _combined(terms: Sequence[_Term], most: int) -> StandardError:
    variance = fsum(term.variance for term in terms)
    below = fsum(term.variance**2 / term.degrees for term in terms)
    degrees = variance**2 / below if below else float(most)
    return StandardError(sqrt(variance), min(degrees, most))


def sample_interval(
    measure: str, values: Values, drawn: Stratified, level: float = 0.95
) -> ConfidenceInterval:
    """Return the interval of the mean over queries like these.

    Args:
        measure: Canonical name, which tells whether values are bounded.
        values: Shape (n,).
        drawn: Their strata, aligned.
        level: From above 0 to 0.999999.

    Returns:
        The usual interval where the sample is the whole set.

    Raises:
        UsageError, DataError: As for `unseen.interval_by_measure`.
    """
    usual = interval_by_measure(measure, values, level)
    if is_whole(drawn):
        return usual
    return _stretched(usual, values, drawn, of_set=False, bounded=is_bounded(measure))


def set_interval(
    measure: str, values: Values, drawn: Stratified, level: float = 0.95
) -> ConfidenceInterval:
    """Return the interval of the mean of the whole set; arguments as for `sample_interval`.

    Returns:
        From the mean to the mean where the sample is the whole set.
    """
    usual = interval_by_measure(measure, values, level)
    return _stretched(usual, values, drawn, of_set=True, bounded=is_bounded(measure))


def sample_difference_interval(
    diffs: Floats, drawn: Stratified, level: float, *, bounded: bool, same_rankings: bool = False
) -> Ends | None:
    """Return the interval of a mean of paired differences over queries like these.

    Args:
        diffs: Differences, shape (n,).
        drawn: Their strata, aligned.
        level: From above 0 to 0.999999.
        bounded: As for `unseen.difference_interval`.
        same_rankings: Likewise.
    """
    usual = difference_interval(diffs, level, bounded=bounded, same_rankings=same_rankings)
    if usual is None or is_whole(drawn) or usual.low == usual.high:
        return usual
    return _moved(usual, diffs, drawn, level, of_set=False)


def sample_t_p(diffs: Floats, drawn: Stratified) -> float:
    """Return the two-sided p value of Student's t for a mean of paired differences.

    Args:
        diffs: Differences, shape (n,).
        drawn: Their strata, aligned.

    Source: Satterthwaite 1946, Biometrics Bulletin 2(6), for the degrees of freedom.
    """
    if len(diffs) < 2 or is_constant(diffs):
        return float(len(diffs) < 2 or not diffs.any())
    off = sample_error(diffs, drawn)
    t = abs(weighted_mean(diffs.tolist(), drawn.weights)) / off.error
    return min(1.0, 2 * student_sf(t, off.degrees))


def scaled(values: Values, drawn: Stratified) -> Floats:
    """Return values whose plain mean is the stratified mean: each times n times its weight."""
    array = sample(values)
    return array * len(array) * sample(drawn.weights)


def stretch_of(values: Floats, drawn: Stratified, level: float) -> float:
    """Return how much longer an interval is than that of as many values of no strata.

    Args:
        values: Shape (n,), n at least 2.
        drawn: Their strata, aligned.
        level: Of the interval, which is over queries like these.
    """
    if is_constant(values) or is_whole(drawn):
        return 1.0
    return _stretch(values, sample_error(values, drawn), level)


def is_whole(drawn: Stratified) -> bool:
    """Whether the sample is all that it was drawn from."""
    return len(drawn.strata) == sum(drawn.sizes.values())


def _variance(array: Floats) -> float:
    middle = mean(array)
    return fsum(((array - middle) ** 2).tolist()) / (len(array) - 1)


def _stretched(
    usual: ConfidenceInterval, values: Values, drawn: Stratified, *, of_set: bool, bounded: bool
) -> ConfidenceInterval:
    array = sample(values)
    method = f"{_METHOD}, {'of the set' if of_set else 'of queries like these'}; {usual.method}"
    if usual.mean is None:
        return ConfidenceInterval(None, None, None, usual.level, 0, method)
    middle = weighted_mean(array.tolist(), drawn.weights)
    if of_set and is_whole(drawn):
        return ConfidenceInterval(middle, middle, middle, usual.level, usual.n, method)
    if usual.low is None or usual.high is None:
        return ConfidenceInterval(middle, None, None, usual.level, usual.n, method)
    ends = _moved(Ends(usual.low, usual.high), array, drawn, usual.level, of_set=of_set)
    if bounded:
        ends = Ends(max(ends.low, 0.0), min(ends.high, 1.0))
    return ConfidenceInterval(middle, ends.low, ends.high, usual.level, usual.n, method)


def _moved(usual: Ends, array: Floats, drawn: Stratified, level: float, *, of_set: bool) -> Ends:
    """Return the usual ends about the stratified mean, as far off as its standard error has it."""
    plain, middle = mean(array), weighted_mean(array.tolist(), drawn.weights)
    n, size = len(array), sum(drawn.sizes.values())
    if is_constant(array):
        # There is no spread to take a ratio of; what nobody saw is what was not drawn.
        stretch = sqrt(1 - n / size) if of_set else 1.0
    else:
        stretch = _stretch(array, sample_error(array, drawn), level)
        if of_set:
            stretch = min(stretch, _stretch(array, set_error(array, drawn), level))
    return Ends(middle - stretch * (plain - usual.low), middle + stretch * (usual.high - plain))


def _stretch(array: Floats, off: StandardError, level: float) -> float:
    """Return how much longer an interval is than that of as many values of no strata."""
    n, tail = len(array), (1 - level) / 2
    longer = student_quantile(tail, off.degrees) / student_quantile(tail, n - 1)
    return longer * off.error / sqrt(_variance(array) / n)
