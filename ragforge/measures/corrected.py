"""Measures by a judge's grades, corrected by people's labels on a random sample of the pairs.

A linear measure (P@k, DCG@k, or the difference of two runs in one of them) is a sum over pairs of
a weight, which the rankings give, times a value, which a person's label would give. The judge's
grade stands in for the labels that are missing: all pairs count by what people gave, on average,
to pairs of that grade, and the drawn pairs add what this misses.

    estimate = (sum over all of w mu[j] + sum over drawn of w (y - mu[j]) / p) / queries

mu is fitted on the drawn pairs themselves, in ten parts: a pair's own label, and those of its
part, do not enter the mean that is taken for it. So a wrong judge costs width and moves nothing.
Queries differ: what the labels of a query lie above or below mu is added for its other pairs,
shrunk as far as so few labels say little, and fitted in the same parts.

Labels that show few errors of a judge, or none, may have missed some. So the variance holds two
errors more than were seen, as the interval of Agresti and Coull for a share: without them that of a
judge who errs in one pair of a hundred had no width, beside the truth.

Two things can be asked: what people would find on *these queries*, and on *queries like these*.

Source: Cassel, Särndal and Wretman 1976, Biometrika 63(3), for the estimator (a generalised
difference); Chernozhukov et al. 2018, The Econometrics Journal 21(1), for fitting in parts;
Battese, Harter and Fuller 1988, Journal of the American Statistical Association 83(401), for
shrunken means of queries; Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453, for PPI++;
Särndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, section 4.3, for clusters of
pairs by query; Agresti and Coull 1998, The American Statistician 52(2), for errors not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, fsum, sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.distributions import student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.intp]"
Method: TypeAlias = Literal["grade means", "ppi++", "no judge", "people only"]
Target: TypeAlias = Literal["these queries", "queries like these"]

N_PARTS: Final = 10
"""Of the drawn pairs; a mean is fitted on nine of them and used on the tenth."""
LEAST_LABELS: Final = 15
"""Below, the spread of what the judge misses is not known well enough for an interval."""
LEAST_OTHERS: Final = 5
"""Labels that must not say what most say: where nearly all are alike, their spread tells nothing
of the pairs that nobody labelled, and an interval of no width would be certainty from luck."""
MOST_DRAWN: Final = 0.9
"""Share of the pairs above which the few others decide the interval: it is too short then."""
UNSEEN_ERRORS: Final = 2.0
"""Labels that would have differed from what is expected, beside those that do."""
_PRIOR_LABELS: Final = 4.0
_N_FITTED: Final = 4
"""Degrees of freedom that the fitted means take."""
_LEAST_SHRINKING: Final = 1.0
"""Labels that the mean of a query is shrunk by at the least: few labels tell how queries differ."""


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """The pairs that a linear measure depends on, N of them, with labels on those drawn.

    All arrays have the shape (N,) and are aligned.
    """

    queries: Integers
    """Of each pair, from 0 to n_queries - 1."""
    weights: Floats
    """What a value of 1 adds to the sum of the measure over queries; none is 0."""
    judged: Integers
    """The judge's grade, from 0; `n_grades` where it gave none."""
    values: Floats
    """What the person's label gives, NaN where the pair has none."""
    strata: Integers
    """Within one, each pair was as likely to be drawn. Neighbours are merged where few are."""
    parts: Integers
    """From 0 to N_PARTS - 1, by a digest of the pair."""
    n_queries: int
    """Of the measure, with those that have no pair here."""
    priors: Floats
    """Values expected at each of the judge's grades and at none, shape (n_grades + 1,)."""


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """What people would find, as far as their labels tell."""

    method: Method
    value: float
    error: float
    """Standard error over these queries."""
    degrees: float
    wide_error: float
    """Standard error over queries like these."""
    wide_degrees: float
    by_query: Floats
    """What each query adds: its pairs by what is expected of them, and what its labels add to that.
    The mean is `value`; shape (queries,)."""
    tuning: float | None = None
    """Of PPI++: the share of the judge's value that is used, in [0, 1)."""

    def interval(
        self, target: Target = "these queries", level: float = 0.95
    ) -> tuple[float, float]:
        """Return the two ends of the interval of a target."""
        is_wide = target == "queries like these"
        error = self.wide_error if is_wide else self.error
        degrees = self.wide_degrees if is_wide else self.degrees
        half = student_quantile((1 + level) / 2, degrees) * error if error else 0.0
        return self.value - half, self.value + half


def corrected_mean(pairs: LabelledPairs, method: Method = "grade means") -> CorrectedMean:
    """Return the mean of a linear measure over queries, corrected by the labels.

    Args:
        pairs: With at least `LEAST_LABELS`, or with all; on at most 90 % of the pairs, or on all.
        method: "grade means" is the usual one; "ppi++" takes the judge's grade itself, tuned;
            "no judge" is "grade means" of a judge that gives all pairs one grade, which tells
            what the judge is worth; "people only" weights the labels and does nothing else.

    Raises:
        UsageError: There are too few labels, nearly all are alike, or nearly all pairs have one.
        DataError: The arrays do not fit.
    """
    _check(pairs)
    if not len(pairs.weights):
        m = pairs.n_queries
        return CorrectedMean(method, 0.0, 0.0, 1.0, 0.0, float(max(m - 1, 1)), np.zeros(m))
    drawn = ~np.isnan(pairs.values)
    refuse_sample(int(drawn.sum()), len(drawn))
    _refuse_alike(pairs.values, drawn)
    tuning = _tuning(pairs, drawn) if method == "ppi++" else None
    expected = _expected(pairs, drawn, method, tuning)
    of_queries = np.zeros(len(pairs.weights))
    if method in ("grade means", "no judge"):
        of_queries = _query_effects(pairs, drawn, expected)
    return _estimate(pairs, drawn, expected, of_queries, method, tuning)


def refuse_sample(n_labels: int, n_pairs: int) -> None:
    """Refuse samples that no honest interval follows from.

    Raises:
        UsageError: Below `LEAST_LABELS`, or above 90 % of the pairs; all pairs are taken.
    """
    if n_labels == n_pairs:
        return
    if n_labels < LEAST_LABELS:
        raise UsageError(
            f"{n_labels} labels on the {n_pairs} pairs that decide: expected at least "
            f"{LEAST_LABELS}"
        )
    if n_labels > MOST_DRAWN * n_pairs:
        raise UsageError(
            f"labels on {n_labels} of the {n_pairs} pairs that decide: the others are too few to "
            f"be estimated; label the {n_pairs - n_labels} that are left"
        )


def _refuse_alike(values: Floats, drawn: NDArray[np.bool_]) -> None:
    """Refuse labels of which nearly all are alike; those of all pairs are taken.

    Raises:
        UsageError: They are.
    """
    n = int(drawn.sum())
    _, counts = np.unique(values[drawn], return_counts=True)
    most = int(counts.max())
    if n < len(drawn) and n - most < LEAST_OTHERS:
        raise UsageError(
            f"{most} of {n} labels say the same: how the other {len(drawn) - n} pairs spread is "
            f"not known with fewer than {LEAST_OTHERS} that differ; label more{_enough(n, most)}"
        )


def _enough(n: int, n_alike: int) -> str:
    """Return how many labels may do if the next ones differ as often; "" where none does."""
    others = n - n_alike
    return f": about {ceil(n * LEAST_OTHERS / others):,} in all may do" if others else ""


def _check(pairs: LabelledPairs) -> None:
    n = len(pairs.weights)
    arrays: Sequence[NDArray[np.generic]] = (
        pairs.queries,
        pairs.judged,
        pairs.values,
        pairs.strata,
        pairs.parts,
    )
    if any(len(array) != n for array in arrays) or not np.all(pairs.weights):
        raise DataError("expected aligned arrays, and weights that are not 0")
    if n and not 0 <= pairs.judged.min() <= pairs.judged.max() < len(pairs.priors):
        raise DataError("a judge's grade is outside of its scale")


def _expected(
    pairs: LabelledPairs, drawn: NDArray[np.bool_], method: Method, tuning: float | None
) -> Floats:
    """Return what stands in for each pair's value before its label is seen."""
    if method == "people only":
        return np.zeros(len(pairs.weights))
    if method == "ppi++":
        return (tuning or 0.0) * pairs.priors[pairs.judged]
    if method == "no judge":
        shares = np.bincount(pairs.judged, minlength=len(pairs.priors)) / len(pairs.judged)
        prior = np.array([float(shares @ pairs.priors)])
        return _fitted(np.zeros(len(pairs.judged), dtype=np.intp), prior, pairs, drawn)
    return _fitted(pairs.judged, pairs.priors, pairs, drawn)


def _fitted(
    judged: Integers, priors: Floats, pairs: LabelledPairs, drawn: NDArray[np.bool_]
) -> Floats:
    """Return the mean value at each pair's grade, by the labels outside of its part."""
    n_grades = len(priors)
    cells = pairs.parts[drawn] * n_grades + judged[drawn]
    size = N_PARTS * n_grades
    counts = np.bincount(cells, minlength=size).reshape(N_PARTS, n_grades)
    sums = np.bincount(cells, weights=pairs.values[drawn], minlength=size).reshape(
        N_PARTS, n_grades
    )
    others = counts.sum(axis=0) - counts
    means = (sums.sum(axis=0) - sums + _PRIOR_LABELS * priors) / (others + _PRIOR_LABELS)
    found: Floats = means[pairs.parts, judged]
    return found


def _query_effects(pairs: LabelledPairs, drawn: NDArray[np.bool_], expected: Floats) -> Floats:
    """Return how far each pair's query lies from what is expected, by labels outside of its part.

    The mean of a query is shrunk by the ratio of the variance within queries to that between them,
    which products of two labels of one query tell.
    """
    queries, parts = pairs.queries[drawn], pairs.parts[drawn]
    missed = pairs.values[drawn] - expected[drawn]
    shape, size = (N_PARTS, pairs.n_queries), N_PARTS * pairs.n_queries
    cells = parts * pairs.n_queries + queries
    counts = np.bincount(cells, minlength=size).reshape(shape)
    sums = np.bincount(cells, weights=missed, minlength=size).reshape(shape)
    all_counts, all_sums = counts.sum(axis=0), sums.sum(axis=0)
    n_products = float((all_counts * (all_counts - 1)).sum())
    squares = float(missed @ missed)
    between = (float(all_sums @ all_sums) - squares) / n_products if n_products else 0.0
    if between <= 0:
        return np.zeros(len(expected))
    shrinking = max(squares / len(missed) / between - 1, _LEAST_SHRINKING)
    effects = (all_sums - sums) / (all_counts - counts + shrinking)
    found: Floats = effects[pairs.parts, pairs.queries]
    return found


def _by_all(pairs: LabelledPairs, drawn: NDArray[np.bool_]) -> Floats:
    """Return the mean value at each pair's grade, by all labels."""
    size = len(pairs.priors)
    counts = np.bincount(pairs.judged[drawn], minlength=size)
    sums = np.bincount(pairs.judged[drawn], weights=pairs.values[drawn], minlength=size)
    means = (sums + _PRIOR_LABELS * pairs.priors) / (counts + _PRIOR_LABELS)
    found: Floats = means[pairs.judged]
    return found


def _tuning(pairs: LabelledPairs, drawn: NDArray[np.bool_]) -> float:
    """Return how much of the judge PPI++ uses: never all of it, which is wider than no judge."""
    times = pairs.weights * pairs.priors[pairs.judged]
    values = pairs.weights[drawn] * pairs.values[drawn]
    spread = float(np.var(times))
    if not spread:
        return 0.0
    covariance = float(np.mean((values - values.mean()) * (times[drawn] - times[drawn].mean())))
    share = covariance / ((1 + len(values) / len(times)) * spread)
    return min(max(share, 0.0), 0.99)


def _estimate(
    pairs: LabelledPairs,
    drawn: NDArray[np.bool_],
    by_grade: Floats,
    of_queries: Floats,
    method: Method,
    tuning: float | None,
) -> CorrectedMean:
    expected = by_grade + of_queries
    n, m = int(drawn.sum()), pairs.n_queries
    strata = merged(pairs.strata, drawn)
    sizes, counts = np.bincount(strata), np.bincount(strata[drawn], minlength=strata.max() + 1)
    missed = pairs.weights[drawn] * (pairs.values[drawn] - expected[drawn])
    weighted = missed * (sizes / counts)[strata[drawn]]
    known = pairs.weights * expected
    value = (fsum(known.tolist()) + fsum(weighted.tolist())) / m
    # A mean without a pair's own part lies farther from it than the mean of all, by chance alone.
    spread = (_by_all(pairs, drawn) if method == "grade means" else by_grade) + of_queries
    around = pairs.weights[drawn] * (pairs.values[drawn] - spread[drawn])
    degrees = float(n - 1 - _N_FITTED if method == "grade means" else n - 1)
    # What was fitted lies nearer to these labels than to others; of all pairs it does not matter.
    fitted = (n - 1) / degrees if n < len(drawn) else 1.0
    variance = fitted * _variance(around, strata[drawn], sizes, counts) / m**2
    unseen = _unseen_variance(pairs, drawn, strata) / m**2
    by_query: Floats = np.bincount(pairs.queries, weights=known, minlength=m).astype(np.float64)
    by_query += np.bincount(pairs.queries[drawn], weights=weighted, minlength=m)
    wide = fitted * float(np.var(by_query, ddof=1)) / m if m > 1 else float("inf")
    return CorrectedMean(
        method,
        value,
        sqrt(variance + unseen),
        degrees,
        sqrt(wide + unseen),
        float(max(m - 1, 1)),
        by_query,
        tuning,
    )


def _variance(missed: Floats, strata: Integers, sizes: Integers, counts: Integers) -> float:
    """Return the variance of the weighted sum of what is missed, with the finite population."""
    n_strata = len(sizes)
    sums = np.bincount(strata, weights=missed, minlength=n_strata)
    centred = missed - (sums / counts)[strata]
    squares = np.bincount(strata, weights=centred**2, minlength=n_strata)
    # Few values of a stratum are often alike: the variance of all counts as one more of each.
    overall = float((sizes / sizes.sum()) @ (squares / counts)) * len(missed)
    overall /= max(len(missed) - n_strata, 1)
    spread = (squares + overall) / counts
    return float((sizes**2 * (1 - counts / sizes) * spread / counts).sum())


def _unseen_variance(pairs: LabelledPairs, drawn: NDArray[np.bool_], strata: Integers) -> float:
    """Return what errors that no label shows add to the variance of the weighted sum.

    They are `UNSEEN_ERRORS` more, spread over all labels, each by as much as two labels that differ
    do; 0 where every pair has a label.
    """
    sizes, counts = np.bincount(strata), np.bincount(strata[drawn], minlength=strata.max() + 1)
    weights = np.bincount(strata[drawn], weights=pairs.weights[drawn] ** 2) / counts
    extra = UNSEEN_ERRORS / len(pairs.values[drawn]) * _squared_error(pairs.values[drawn]) * weights
    return float((sizes**2 * (1 - counts / sizes) * extra / counts).sum())


def _squared_error(values: Floats) -> float:
    """Return the mean square by which two labels differ that do; 0 where all are alike."""
    _, counts = np.unique(values, return_counts=True)
    n = len(values)
    unlike = n * n - float((counts.astype(np.float64) ** 2).sum())
    return 2 * float(np.var(values)) * n * n / unlike if unlike else 0.0


def merged(strata: Integers, drawn: NDArray[np.bool_], least: int = 2) -> Integers:
    """Return strata of which each has labels, numbered from 0: those with fewer join the next.

    Args:
        strata: Of each pair; neighbours in number are alike.
        drawn: Which pairs have labels, aligned.
        least: Labels of a stratum; one that is labelled as a whole stays alone.
    """
    names, places = np.unique(strata, return_inverse=True)
    sizes = np.bincount(places)
    counts = np.bincount(places[drawn], minlength=len(names))
    group = np.zeros(len(names), dtype=np.intp)
    current, labels, pairs = 0, 0, 0
    for i in range(len(names)):
        group[i] = current
        labels, pairs = labels + int(counts[i]), pairs + int(sizes[i])
        if labels >= least or labels == pairs:
            current, labels, pairs = current + 1, 0, 0
    if labels < pairs and labels < least and current:
        group[group == current] = current - 1
    found: Integers = np.unique(group, return_inverse=True)[1][places].astype(np.intp)
    return found
