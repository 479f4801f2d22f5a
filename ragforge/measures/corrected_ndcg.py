"""nDCG by a judge's grades, corrected by people's labels on a random sample of the pairs.

DCG is linear, and corrected as such. Its ideal is not: it needs the grades of the whole pool. Here
a model draws them, and supplies the divisor alone, H = mean DCG / mean nDCG:

    difference = dD / h + dA (1 / hA - 1 / h) - dB (1 / hB - 1 / h)

with dA, dB and dD the corrected DCG of both runs and of their difference. Its variance is that of
dD over h², that of the divisors over the draws, (2 % of the value)² for what the model gets wrong,
and the square of how far another way to divide lies off: by the ideal that the draws give each
query. Over queries like these the spread of queries comes in the place of that of dD, by whichever
way shows more of it.

A common divisor is wrong where the runs differ in other queries than those of the usual ideal: one
that finds more where much is relevant, and less where one text is, is ahead in DCG and behind in
nDCG. The labels show it: on the labelled pairs alone nDCG is known, and is held against what the
model, which is told nothing of a query, makes of their DCG (a predictive check).

Levels take the model at its word: on TREC DL 2019, where grades differ much from query to query,
its divisors came out 9 % too large with 200 labels and 7 % with 400. A difference hardly feels it.
A level comes out as much too low, which is why 5 % of it is allowed for.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import CorrectedMean, Integers
from ragforge.measures.grade_model import GradedPool, GradeModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_DRAWS: Final = 80
LEAST_LABELS: Final = 100
LEAST_OF_TOP: Final = 40
"""Labels on pairs that one of the runs retrieved in its top k."""
LEAST_QUERIES: Final = 30
MOST_MISFIT: Final = 2.5
"""Standard deviations that nDCG of the labelled pairs may lie off: 1 to 3 % do of sets of the
model and of TREC DL 2019."""
_ALLOWANCE: Final = 0.02
_LEVEL_ALLOWANCE: Final = 0.05


@dataclass(frozen=True, slots=True)
class ModelledNDCG:
    """nDCG@k of a run, or the difference of two, and its error over these queries."""

    value: float
    error: float
    degrees: float
    wide_error: float | None = None
    """Over queries like these, of a difference."""
    wide_degrees: float = 1.0


@dataclass(frozen=True, slots=True)
class RunDiscounts:
    """What each pair of the pool adds to the DCG of a query, by run; shape (N,), 0 outside."""

    a: Floats
    b: Floats


@dataclass(frozen=True, slots=True)
class Divisors:
    """Mean DCG over mean nDCG, by draw of the grades, shape (draws,)."""

    a: Floats
    b: Floats
    both: float
    by_query: Floats
    """The mean of 1 / ideal of each query over the draws, shape (queries,)."""
    beyond: Floats
    """What nDCG of the first run less that of the second has beyond their DCG times `by_query`, as
    ideals and DCG go together; by draw."""

    @property
    def mean_a(self) -> float:
        """Of the first run."""
        return float(self.a.mean())

    @property
    def mean_b(self) -> float:
        """Of the second run."""
        return float(self.b.mean())


def refuse_labels(pool: GradedPool, in_top: NDArray[np.bool_]) -> None:
    """Refuse samples for which the coverage of the intervals is not known to hold.

    Raises:
        UsageError: Below 100 labels, 40 on retrieved pairs, or 30 queries.
    """
    is_labelled = pool.grades >= 0
    for n, least, what in (
        (int(is_labelled.sum()), LEAST_LABELS, "labels"),
        (int((is_labelled & in_top).sum()), LEAST_OF_TOP, "labels on retrieved pairs"),
        (pool.n_queries, LEAST_QUERIES, "queries"),
    ):
        if n < least:
            raise UsageError(f"nDCG from a sample: expected at least {least} {what}, got {n}")


def divisors(
    model: GradeModel,
    runs: RunDiscounts,
    k: int,
    generator: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> Divisors:
    """Return the divisors of both runs over draws of the grades.

    Args:
        model: Of the pool.
        runs: Aligned with the pool.
        k: The cutoff of nDCG, at least 1.
        generator: Of the draws.
        n_draws: At least 2.
    """
    pool = model.pool
    found = np.empty((n_draws, 2))
    means = np.empty((n_draws, 2, 2))
    apart, inverses = np.empty((n_draws, pool.n_queries)), np.empty((n_draws, pool.n_queries))
    for draw in range(n_draws):
        of = _dcg(pool, pool.queries, model.draw(generator), runs, k)
        for at, dcg in enumerate((of.a, of.b)):
            ndcg = dcg * of.inverse
            means[draw, at] = dcg.mean(), ndcg.mean()
            found[draw, at] = dcg.mean() / ndcg.mean() if ndcg.mean() else np.nan
        apart[draw], inverses[draw] = of.a - of.b, of.inverse
    found = np.where(np.isnan(found), np.nanmean(found, axis=0), found)
    total = means.sum(axis=(0, 1))
    by_query: Floats = inverses.mean(axis=0)
    beyond: Floats = (apart * (inverses - by_query)).mean(axis=1)
    return Divisors(found[:, 0], found[:, 1], float(total[0] / total[1]), by_query, beyond)


def refuse_misfit(
    model: GradeModel,
    runs: RunDiscounts,
    k: int,
    generator: np.random.Generator,
    n_draws: int = N_DRAWS,
) -> None:
    """Refuse labels that the model of the divisors could hardly have made.

    Args:
        model: Of the pool.
        runs: Aligned with the pool.
        k: The cutoff of nDCG.
        generator: Of the draws.
        n_draws: At least 2.

    Raises:
        UsageError: nDCG of the labelled pairs alone lies further off what their DCG lets expect
            than it does in draws.
    """
    pool = model.pool
    known = np.flatnonzero(pool.grades >= 0)
    queries, of_known = pool.queries[known], RunDiscounts(runs.a[known], runs.b[known])
    drawn = np.array(
        [_dcg(pool, queries, model.draw_anew(generator), of_known, k).means for _ in range(n_draws)]
    )
    dcg, ndcg = drawn[:, :2].mean(axis=0), drawn[:, 2:].mean(axis=0)
    if not ndcg.all():
        return

    def off(means: Floats) -> Floats:
        by_dcg = means[..., :2] * ndcg / dcg
        found: Floats = (means[..., 2:] - by_dcg) @ np.array([1.0, -1.0])
        return found

    expected = off(drawn)
    spread = float(expected.std(ddof=1))
    seen = _dcg(pool, queries, pool.grades[known], of_known, k).means
    far = float(off(np.array(seen)) - expected.mean())
    if spread and abs(far) > MOST_MISFIT * spread:
        raise UsageError(
            "the model of its divisor does not hold: on the labelled pairs nDCG of the two runs "
            f"differs by {abs(far):.3f} from what their DCG lets expect, {abs(far) / spread:.1f} "
            "standard deviations, as they differ in queries with more and with less relevant text; "
            f"compare by DCG@{k} or P@{k}, which need no ideal"
        )


class _DCG(NamedTuple):
    """DCG of two runs by query, and 1 over its ideal."""

    a: Floats
    b: Floats
    inverse: Floats

    @property
    def means(self) -> list[float]:
        """Of DCG of both, then of nDCG of both."""
        values = (self.a, self.b, self.a * self.inverse, self.b * self.inverse)
        return [float(value.mean()) for value in values]


def _dcg(pool: GradedPool, queries: Integers, grades: Integers, runs: RunDiscounts, k: int) -> _DCG:
    n = pool.n_queries
    ideal = ideal_dcg(queries, grades, n, pool.n_grades, k)
    inverse = np.divide(1.0, ideal, out=np.zeros(n), where=ideal > 0)
    of_a: Floats = np.bincount(queries, weights=runs.a * grades, minlength=n).astype(np.float64)
    of_b: Floats = np.bincount(queries, weights=runs.b * grades, minlength=n).astype(np.float64)
    return _DCG(of_a, of_b, inverse)


def ideal_dcg(queries: Integers, grades: Integers, n_queries: int, n_grades: int, k: int) -> Floats:
    """Return the DCG@k of the best ranking of each query, shape (n_queries,), linear gain."""
    cells = np.bincount(queries * n_grades + grades, minlength=n_queries * n_grades)
    falling = cells.reshape(n_queries, n_grades)[:, :0:-1]
    ends = np.minimum(np.cumsum(falling, axis=1), k)
    sums = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    reached = sums[ends]
    of_grade = np.diff(reached, axis=1, prepend=0.0)
    found: Floats = of_grade @ np.arange(n_grades - 1, 0, -1, dtype=np.float64)
    return found


def ndcg_difference(
    a: CorrectedMean,
    b: CorrectedMean,
    difference: CorrectedMean,
    by: Divisors,
    divided: CorrectedMean,
) -> ModelledNDCG:
    """Return nDCG of run A minus that of run B.

    Args:
        a: Corrected DCG of A.
        b: Of B.
        difference: Of A minus B, from its own pairs.
        by: The divisors of both.
        divided: The difference, each query's pairs times `by.by_query`.
    """
    h = by.both
    value = difference.value / h + a.value * (1 / by.mean_a - 1 / h)
    value -= b.value * (1 / by.mean_b - 1 / h)
    spread = float(np.var(a.value / by.a - b.value / by.b, ddof=1))
    other = divided.value + float(by.beyond.mean())
    modelled = spread + (_ALLOWANCE * value) ** 2 + (value - other) ** 2
    error = sqrt((difference.error / h) ** 2 + modelled)
    of_queries = max(difference.wide_error / h, divided.wide_error)
    wide = max(sqrt(of_queries**2 + modelled), error)
    return ModelledNDCG(value, error, difference.degrees, wide, difference.wide_degrees)


def ndcg_level(a: CorrectedMean, by: Floats) -> ModelledNDCG:
    """Return nDCG of one run.

    Args:
        a: Its corrected DCG.
        by: Its divisors over the draws.
    """
    h = float(by.mean())
    value = a.value / h
    spread = value**2 * float(np.var(by, ddof=1)) / h**2
    variance = (a.error / h) ** 2 + spread + (_LEVEL_ALLOWANCE * value) ** 2
    return ModelledNDCG(value, sqrt(variance), a.degrees)
