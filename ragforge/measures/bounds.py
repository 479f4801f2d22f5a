"""What a value could have been, had no judgment and no retrieval failed.

A failed judgment may have come out as any grade of the scale. Extremes of the grades do not give
the extremes of every measure: a grade that rises also lifts the ideal that nDCG divides by. So:

* Measures that a rising grade can only lift (P, RR, DCG, ...), or lift within the cutoff and lower
  beyond it (R, F1), take their extremes at known corners: exact.
* AP, infAP, Rprec, bpref and nDCG are computed for every outcome while there are at most
  `ENUMERATED` of them: exact. That is always so with four failures on the scale 0 to 3.
* Beyond that, AP, Rprec and nDCG are bounded by interval arithmetic, the least numerator over the
  greatest denominator and the other way round, and infAP and bpref by [0, 1]: valid, but wider
  than needed.

Bounds always include the value itself, which leaves failed judgments out.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, product
from math import comb
from typing import Final, NamedTuple

from ragforge.measures.formulas import FORMULAS, Value
from ragforge.measures.hit_table import JudgedRanking, Table
from ragforge.measures.list_columns import ListColumns
from ragforge.measures.measure_names import Measure

ENUMERATED: Final = 256
"""Outcomes of one query's failed judgments that are tried one by one; 4 ** 4."""


class Interval(NamedTuple):
    """A closed range."""

    low: float
    high: float


class _Failures(NamedTuple):
    """Failed judgments of one query, seen by a measure that looks as far as its cutoff."""

    ranking: JudgedRanking
    near: list[int]
    """Ranks within the cutoff."""
    n_far: int
    """Chunks beyond the cutoff or not retrieved: any two of them are alike."""

    def outcome(self, near_grades: Sequence[int], far_grades: Sequence[int]) -> JudgedRanking:
        """Return the ranking as if the failed judgments had given these grades."""
        ranking = self.ranking
        known = zip(ranking.ranks, ranking.grades, strict=True)
        hits = sorted([*known, *zip(self.near, near_grades, strict=True)])
        return JudgedRanking(
            ranking.query_id,
            [rank for rank, _ in hits],
            [grade for _, grade in hits],
            tuple(sorted([*ranking.judged, *near_grades, *far_grades], reverse=True)),
            ranking.n_retrieved,
        )

    def corner(self, near: int, far: int) -> JudgedRanking:
        """Return the outcome that has one grade within the cutoff and one beyond it."""
        return self.outcome([near] * len(self.near), [far] * self.n_far)

    def n_outcomes(self, n_grades: int) -> int:
        """Count what `outcomes` yields; ways to fill the far chunks are multisets."""
        return int(n_grades ** len(self.near)) * comb(self.n_far + n_grades - 1, self.n_far)

    def outcomes(self, grades: Sequence[int]) -> Iterator[JudgedRanking]:
        """Yield every outcome in which each failed judgment gives one of `grades`."""
        for near in product(grades, repeat=len(self.near)):
            for far in combinations_with_replacement(grades, self.n_far):
                yield self.outcome(near, far)


def judgment_bounds(ranking: JudgedRanking, measure: Measure, rel: int, top: int) -> Interval:
    """Bound one query's value over every outcome of its failed judgments.

    Args:
        ranking: The query.
        measure: The measure.
        rel: Lowest relevant grade.
        top: Highest grade that a failed judgment could have given.
    """
    failures = _failures(ranking, measure.cutoff)
    if FORMULAS[measure.name].graded:
        return _bounds(failures, measure, rel, range(top + 1))
    # Only relevant or not makes a difference, so two grades stand for the whole scale.
    return _bounds(failures, measure, rel, range(0, min(top, rel) + 1, rel))


def failure_bounds(
    ranking: JudgedRanking, measure: Measure, rel: int, top: int, longest: int
) -> Interval:
    """Bound the value of a query whose retrieval failed.

    That is [0, 1], or for DCG and the counts what an empty ranking and the ideal one would give.

    Args:
        ranking: The query with an empty ranking.
        measure: The measure.
        rel: Lowest relevant grade.
        top: Highest grade that a failed judgment could have given.
        longest: Chunks retrieved where it worked, at most: what NumRet could have been.
    """
    if not FORMULAS[measure.name].unbounded:
        return Interval(0.0, 1.0)
    grades = _failures(ranking, None).corner(top, top).judged
    ranks = list(range(1, len(grades) + 1))
    ideal = JudgedRanking(ranking.query_id, ranks, list(grades), grades, longest)
    lowest = judgment_bounds(ranking, measure, rel, top).low
    return Interval(lowest, judgment_bounds(ideal, measure, rel, top).high)


def _failures(ranking: JudgedRanking, cutoff: int | None) -> _Failures:
    ranks = ranking.failed.ranks
    near = [rank for rank in ranks if cutoff is None or rank <= cutoff]
    return _Failures(ranking, near, len(ranks) - len(near) + ranking.failed.n_unretrieved)


def _bounds(failures: _Failures, measure: Measure, rel: int, grades: Sequence[int]) -> Interval:
    formula = FORMULAS[measure.name]
    worst, best = grades[0], grades[-1]
    outcomes: Iterable[JudgedRanking]
    if formula.response == "recall":
        outcomes = [failures.corner(worst, best), failures.corner(best, worst)]
    elif formula.response in {"constant", "rises"}:
        outcomes = [failures.corner(worst, worst), failures.corner(best, best)]
    elif failures.n_outcomes(len(grades)) <= ENUMERATED:
        outcomes = failures.outcomes(grades)
    elif formula.parts is None:
        return Interval(0.0, 1.0)
    else:
        corners = [failures.corner(worst, worst), failures.corner(best, best)]
        least_part, most_part = _values(formula.parts[0], corners, measure, rel)
        least_whole, most_whole = _values(formula.parts[1], corners, measure, rel)
        low = least_part / most_whole if most_whole else 0.0
        high = min(1.0, most_part / least_whole) if least_whole else float(most_part > 0)
        return Interval(low, high)
    reached = _values(formula.value, [failures.ranking, *outcomes], measure, rel)
    return Interval(min(reached), max(reached))


def _values(
    value: Value, rankings: Iterable[JudgedRanking], measure: Measure, rel: int
) -> list[float]:
    table = Table()
    for ranking in rankings:
        table.add(ranking)
    columns = ListColumns(table)
    return columns.listed(value(columns, measure, rel))
