"""Whether the place of a passage in its batch moved its grade, told from shuffled batches."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt

from ragforge.measures.distributions import student_quantile
from ragforge.measures.paired import randomisation_test
from ragforge.records import Judgment

LEAST_QUERIES = 5
ALPHA = 0.01
LEAST_SHIFT = 0.1
"""Grades between the first and the last place of a batch; less changes no ranking of systems."""
_SEED = 0


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """How grades change with the place in the batch, within the same pair.

    Args:
        shift: Grades from the first place of a batch to the last; below 0 where later passages get
            lower ones.
        low, high: 95 % interval that takes queries as the unit.
        p: Of the hypothesis that places do not matter; signs of queries are flipped.
        n_queries: That have a pair with votes at different places.
    """

    shift: float
    low: float
    high: float
    p: float
    n_queries: int

    @property
    def is_significant(self) -> bool:
        """Whether batches are to be given up for single passages."""
        return self.n_queries >= LEAST_QUERIES and self.p < ALPHA and abs(self.shift) >= LEAST_SHIFT


class PositionSums:
    """What of the votes is needed, query by query, so that judgments need not be kept."""

    def __init__(self) -> None:
        self._covered: dict[str, float] = {}
        self._spread: dict[str, float] = {}
        self._last = 0

    def add(self, judgment: Judgment) -> None:
        """Take a judgment; a copy for another chunk of the same text counts once."""
        if judgment.copied_from:
            return
        by_model: dict[str, list[tuple[int, int]]] = {}
        for vote in judgment.votes:
            if vote.position is not None and vote.grade is not None:
                by_model.setdefault(vote.model, []).append((vote.position, vote.grade))
                self._last = max(self._last, vote.position)
        for votes in by_model.values():
            self._add(judgment.query_id, votes)

    @property
    def n_queries(self) -> int:
        """Queries that have a pair with votes at different places."""
        return len(self._spread)

    def effect(self) -> PositionEffect | None:
        """Return the effect, None where no pair was seen at two places.

        The slope of the grade on the place, with an intercept of its own for each pair, and a
        variance that takes queries as clusters.
        """
        spread = sum(self._spread.values())
        if not spread:
            return None
        queries = sorted(self._spread)
        slope = sum(self._covered.values()) / spread
        m = len(queries)
        residuals = (self._covered[name] - slope * self._spread[name] for name in queries)
        error = sqrt(sum(value * value for value in residuals) * (m / (m - 1) if m > 1 else 1))
        half = student_quantile(0.975, m - 1) * error / spread if m > 1 else inf
        covered = [self._covered[name] for name in queries]
        test = randomisation_test([0.0] * m, covered, seed=_SEED) if m > 1 else None
        return PositionEffect(
            shift=slope * self._last,
            low=(slope - half) * self._last,
            high=(slope + half) * self._last,
            p=test.p if test else 1.0,
            n_queries=m,
        )

    def _add(self, query_id: str, votes: list[tuple[int, int]]) -> None:
        place = sum(at for at, _ in votes) / len(votes)
        grade = sum(given for _, given in votes) / len(votes)
        spread = sum((at - place) ** 2 for at, _ in votes)
        if spread:
            covered = sum((at - place) * (given - grade) for at, given in votes)
            self._covered[query_id] = self._covered.get(query_id, 0.0) + covered
            self._spread[query_id] = self._spread.get(query_id, 0.0) + spread


def position_effect(judgments: Iterable[Judgment]) -> PositionEffect | None:
    """Return the effect that judgments in memory show; see `PositionSums.effect`."""
    sums = PositionSums()
    for judgment in judgments:
        sums.add(judgment)
    return sums.effect()
