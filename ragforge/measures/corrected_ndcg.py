"""nDCG by a judge's grades, corrected by people's labels on a random sample of the pairs.

DCG is linear, and corrected as such. Its ideal is not: it needs the grades of the whole pool. Here
a model draws them, and supplies the divisor alone, H = mean DCG / mean nDCG:

    difference = dD / h + dA (1 / hA - 1 / h) - dB (1 / hB - 1 / h)

with dA, dB and dD the corrected DCG of both runs and of their difference. Its variance is that of
dD over h², that of the divisors over the draws, and (2 % of the value)² for what the model gets
wrong. Whether a difference is significant is decided on DCG. Levels take the model at its word: on
TREC DL 2019, where grades differ much from query to query, its divisors came out 9 % too large with
200 labels and 7 % with 400. A difference hardly feels it. A level comes out as much too low, which
is why 5 % of it is allowed for.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

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
_ALLOWANCE: Final = 0.02
_LEVEL_ALLOWANCE: Final = 0.05


@dataclass(frozen=True, slots=True)
class ModelledNDCG:
    """nDCG@k of a run, or the difference of two, and its error over these queries."""

    value: float
    error: float
    degrees: float


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
    for draw in range(n_draws):
        grades = model.draw(generator)
        ideal = ideal_dcg(pool.queries, grades, pool.n_queries, pool.n_grades, k)
        for at, discounts in enumerate((runs.a, runs.b)):
            dcg = np.bincount(pool.queries, weights=discounts * grades, minlength=pool.n_queries)
            ndcg = np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)
            means[draw, at] = dcg.mean(), ndcg.mean()
            found[draw, at] = dcg.mean() / ndcg.mean() if ndcg.mean() else np.nan
    found = np.where(np.isnan(found), np.nanmean(found, axis=0), found)
    total = means.sum(axis=(0, 1))
    return Divisors(found[:, 0], found[:, 1], float(total[0] / total[1]))


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
    a: CorrectedMean, b: CorrectedMean, difference: CorrectedMean, by: Divisors
) -> ModelledNDCG:
    """Return nDCG of run A minus that of run B.

    Args:
        a: Corrected DCG of A.
        b: Of B.
        difference: Of A minus B, from its own pairs.
        by: The divisors of both.
    """
    h = by.both
    value = difference.value / h + a.value * (1 / by.mean_a - 1 / h)
    value -= b.value * (1 / by.mean_b - 1 / h)
    spread = float(np.var(a.value / by.a - b.value / by.b, ddof=1))
    variance = (difference.error / h) ** 2 + spread + (_ALLOWANCE * value) ** 2
    return ModelledNDCG(value, sqrt(variance), difference.degrees)


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
