"""Graders beside people: every figure of agreement of several of them, on the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures import agreement as coefficients
from ragforge.measures.agreement import N_GRADES, Grades, OfCounts
from ragforge.measures.checked_samples import Floats
from ragforge.measures.intervals import (
    N_RESAMPLES,
    ClusteredInterval,
    Clusters,
    Ends,
    clusters,
    percentile_interval,
    resampled_times,
)

Figures: TypeAlias = Mapping[str, ClusteredInterval]

AUC_OF_SCORE: Final = "AUC of the score"
_COEFFICIENT: Final = Ends(-1.0, 1.0)
_DIFFERENCE: Final = Ends(-2.0, 2.0)
_SHARE: Final = Ends(0.0, 1.0)
_FARTHEST: Final = N_GRADES - 1.0
_RANGES: Final = {
    **dict.fromkeys(
        ("sensitivity", "specificity", "precision", "judge rate", "human rate"), _SHARE
    ),
    **dict.fromkeys(("AUC of the grade", AUC_OF_SCORE), _SHARE),
    "MAE": Ends(0.0, _FARTHEST),
    "bias": Ends(-_FARTHEST, _FARTHEST),
}
"""What a figure can be, where that is not a coefficient of agreement, from -1 to 1."""
_FEW_QUERIES: Final = 100
"""Up to which the AUC of the score is computed without each query in turn; a pass over all pairs
for each costs more than it mends beyond."""
_OF_CHANCE: Final = {
    **dict.fromkeys(("kappa", "quadratic kappa", "kappa at threshold"), 0.0),
    **dict.fromkeys(("AUC of the grade", AUC_OF_SCORE), 0.5),
}
"""What figures are by definition where the grader, or the people, said one thing of all pairs."""
_ROUNDING: Final = 1e-12
KAPPAS: Final = ("kappa", "quadratic kappa", "kappa at threshold")
"""Figures whose differences between graders are given too."""


@dataclass(frozen=True, slots=True)
class Grader:
    """What one grader gave to the pairs that people graded."""

    name: str
    grades: Grades
    """Aligned with the pairs."""
    scores: Sequence[float] | None = None
    """Finer than grades, one per pair, such as a mean of votes; None where there are none."""


@dataclass(frozen=True, slots=True)
class GraderAgreement:
    """How one grader agrees with people."""

    name: str
    counts: tuple[tuple[float, ...], ...]
    """Pairs by the person's grade (outer) and this grader's (inner); parts of one where several
    people graded it."""
    figures: Figures
    """By name, in the order in which they are shown."""
    beyond_first: Figures
    """Of `KAPPAS`: the first grader's minus this one's, on the same draws; empty for itself."""

    @property
    def only_grade(self) -> int | None:
        """The grade that it gave to all pairs; None where it gave several, or none."""
        given = [
            grade for grade, column in enumerate(zip(*self.counts, strict=True)) if any(column)
        ]
        return given[0] if len(given) == 1 else None


@dataclass(frozen=True, slots=True)
class FailureBounds:
    """What a figure would be if the pairs that the first grader failed on had a grade."""

    low: float | None
    """Each as far from the person's grade as the scale goes."""
    high: float | None
    """Each graded as the person did."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How graders agree with people, all on the same pairs."""

    n_pairs: int
    n_queries: int
    threshold: int
    """Lowest grade that counts as relevant."""
    human_counts: tuple[float, ...]
    """Pairs of each grade, by the people."""
    graders: tuple[GraderAgreement, ...]
    n_failed: int
    """Further pairs that people graded and the first grader failed on; in no figure."""
    failure_bounds: Mapping[str, FailureBounds]
    """Of `KAPPAS` of the first grader; empty where it failed on no pair."""


def figures_at(threshold: int) -> dict[str, OfCounts]:
    """Return the figures of agreement by name, as functions of counts.

    Args:
        threshold: Lowest grade that counts as relevant.
    """

    def binary(of_counts: OfCounts) -> OfCounts:
        return lambda counts: of_counts(coefficients.at_least(counts, threshold))

    return {
        "kappa": coefficients.kappa,
        "quadratic kappa": coefficients.quadratic_kappa,
        "ordinal alpha": coefficients.alpha,
        "AC2": coefficients.ac2,
        "kappa at threshold": binary(coefficients.kappa),
        "sensitivity": binary(coefficients.sensitivity),
        "specificity": binary(coefficients.specificity),
        "precision": binary(coefficients.precision),
        "AUC of the grade": lambda counts: coefficients.auc_of_grades(counts, threshold),
        "judge rate": binary(coefficients.judge_rate),
        "human rate": binary(coefficients.human_rate),
        "MAE": coefficients.mean_error,
        "bias": coefficients.bias,
    }


def agree(
    query_ids: Sequence[str],
    human: Grades,
    graders: Sequence[Grader],
    *,
    failed: Grades = (),
    weights: Sequence[float] | None = None,
    threshold: int = 2,
    seed: int = 0,
    n_resamples: int = N_RESAMPLES,
) -> Agreement:
    """Compare graders with people, with intervals that resample queries.

    Args:
        query_ids: Of each pair, shape (n,).
        human: The people's grades, shape (n,).
        graders: At least one; each graded every pair. The first is compared with the others.
        failed: The people's grades of further pairs, on which the first grader failed.
        weights: What each counts, shape (n,); 1 where None. A pair that m people graded is there m
            times, each time with 1 / m: then agreement is that with one of them drawn at random,
            and bias is off their mean. Graders have no scores then.
        threshold: Lowest grade that counts as relevant.
        seed: At least 0.
        n_resamples: At least 1.

    Raises:
        UsageError: Lengths differ, or the threshold, the seed or the resamples cannot be taken.
        DataError: A grade is outside of 0 to 3.
    """
    groups = clusters(query_ids)
    times = resampled_times(len(groups.query_ids), seed, n_resamples)
    measured = [
        _ResampledGrader.resample(grader, human, groups, times, threshold, weights)
        for grader in graders
    ]
    people = np.bincount(np.asarray(human, dtype=np.intp), weights, minlength=N_GRADES)
    return Agreement(
        n_pairs=len(human) if weights is None else round(sum(weights)),
        n_queries=len(groups.query_ids),
        threshold=threshold,
        human_counts=tuple(map(_whole, people.tolist())),
        graders=tuple(each.beside(measured[0], len(groups.query_ids)) for each in measured),
        n_failed=len(failed),
        failure_bounds=_failure_bounds(measured[0].counts, failed, threshold),
    )


def _failure_bounds(counts: Floats, failed: Grades, threshold: int) -> dict[str, FailureBounds]:
    if not len(failed):
        return {}
    people = np.asarray(failed, dtype=np.intp)
    farthest = np.where(people > (N_GRADES - 1) / 2, 0, N_GRADES - 1)
    worst = counts + coefficients.confusion(people, farthest)
    best = counts + coefficients.confusion(people, people)
    figures = figures_at(threshold)
    return {
        name: FailureBounds(_known(figures[name](worst)), _known(figures[name](best)))
        for name in KAPPAS
    }


def _whole(count: float) -> float:
    """Return a count without what sums of parts leave behind the point: thirds make a whole."""
    found = round(count, 9)
    return int(found) if found == int(found) else found


def _known(value: Floats) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True, slots=True)
class _ResampledGrader:
    """The figures of a grader on all queries, on each resample, and without each query."""

    name: str
    counts: Floats
    values: Mapping[str, Floats]
    without_one: Mapping[str, Floats]

    @classmethod
    def resample(
        cls,
        grader: Grader,
        human: Grades,
        groups: Clusters,
        times: Floats,
        threshold: int,
        weights: Sequence[float] | None,
    ) -> _ResampledGrader:
        if not len(grader.grades) == len(human) == len(groups.of_pair):
            raise UsageError(
                f"{grader.name}: expected {len(human)} grades, got {len(grader.grades)}"
            )
        n_queries = len(groups.query_ids)
        by_query = coefficients.confusions(
            groups.of_pair, human, grader.grades, n_groups=n_queries, weights=weights
        ).reshape(n_queries, N_GRADES**2)
        counts = (times @ by_query).reshape(-1, N_GRADES, N_GRADES)
        others = counts[0] - by_query.reshape(-1, N_GRADES, N_GRADES)
        figures = figures_at(threshold)
        values = {name: figure(counts) for name, figure in figures.items()}
        without_one = {name: figure(others) for name, figure in figures.items()}
        if grader.scores is not None:
            is_relevant = np.asarray(human) >= threshold
            values[AUC_OF_SCORE] = coefficients.auc(
                grader.scores, is_relevant, times, groups.of_pair
            )
            if n_queries <= _FEW_QUERIES:
                without_one[AUC_OF_SCORE] = coefficients.auc(
                    grader.scores, is_relevant, 1 - np.eye(n_queries), groups.of_pair
                )
        return cls(grader.name, counts[0], values, without_one)

    def beside(self, first: _ResampledGrader, n_queries: int) -> GraderAgreement:
        rows = [tuple(map(_whole, row)) for row in self.counts.tolist()]
        differences = {} if self is first else {n: first.values[n] - self.values[n] for n in KAPPAS}
        return GraderAgreement(
            name=self.name,
            counts=tuple(rows),
            figures=self.intervals(n_queries),
            beyond_first={
                name: percentile_interval(found, n_queries, within=_DIFFERENCE)
                for name, found in differences.items()
            },
        )

    def intervals(self, n_queries: int) -> Figures:
        return {
            name: _by_definition(found)
            if _is_of_chance(name, found)
            else percentile_interval(
                found,
                n_queries,
                within=_RANGES.get(name, _COEFFICIENT),
                without_one=self.without_one.get(name),
            )
            for name, found in self.values.items()
        }


def _is_of_chance(name: str, values: Floats) -> bool:
    """Whether a figure is that of chance on whatever queries are drawn."""
    if name not in _OF_CHANCE or np.isnan(values[0]):
        return False
    return bool(np.all(np.isnan(values) | (np.abs(values - _OF_CHANCE[name]) <= _ROUNDING)))


def _by_definition(values: Floats) -> ClusteredInterval:
    return ClusteredInterval(float(values[0]), None, None, int(np.isnan(values[1:]).sum()))
