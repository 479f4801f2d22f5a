"""Whether the place of a passage in its batch moved its grade, told from shuffled batches."""

from array import array
from dataclasses import dataclass
from math import sqrt

from ragforge.measures.distributions import student_quantile
from ragforge.measures.paired import randomisation_test
from ragforge.records import Judgment

_LEAST_PAIRS = 10
"""Fewer say too little, whatever they say."""
ALPHA = 0.01
_LEAST_SHIFT = 0.1
"""Grades between the first and the last place of a batch; less changes no ranking of systems."""
_HIGHEST = 3.0
_SEED = 0


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """How grades change with the place in the batch, within the same pair.

    Args:
        shift: Grades from the first place of a batch to the last; below 0 where later passages get
            lower ones.
        low, high: 95 % interval.
        p: Of the hypothesis that places do not matter.
        n_pairs: That have votes at different places.
    """

    shift: float
    low: float
    high: float
    p: float
    n_pairs: int

    @property
    def is_told(self) -> bool:
        """Whether there are enough pairs to tell."""
        return self.n_pairs >= _LEAST_PAIRS

    @property
    def is_significant(self) -> bool:
        """Whether batches are to be given up for single passages."""
        return self.is_told and self.p < ALPHA and abs(self.shift) >= _LEAST_SHIFT


class PositionSums:
    """What of the votes is needed, pair by pair, so that judgments need not be kept."""

    def __init__(self) -> None:
        self._covered = array("d")
        self._spread = array("d")
        self._last = 0

    @property
    def n_pairs(self) -> int:
        """Pairs that have votes at different places."""
        return len(self._spread)

    def add(self, judgment: Judgment) -> None:
        """Take a judgment; a copy for another chunk of the same text counts once."""
        if judgment.copied_from:
            return
        by_model: dict[str, list[tuple[int, int]]] = {}
        for vote in judgment.votes:
            if vote.position is not None and vote.grade is not None:
                by_model.setdefault(vote.model, []).append((vote.position, vote.grade))
                self._last = max(self._last, vote.position)
        sums = [_sums(votes) for votes in by_model.values()]
        spread = sum(each.spread for each in sums)
        if spread:
            self._covered.append(sum(each.covered for each in sums))
            self._spread.append(spread)

    def effect(self) -> PositionEffect | None:
        """Return the effect, None where fewer than two pairs were seen at two places.

        The slope of the grade on the place, with an intercept of its own for each pair. Places are
        drawn anew for each pair and order, so pairs are the unit: their signs are flipped for p.
        """
        n = self.n_pairs
        if n < 2:
            return None
        spread = sum(self._spread)
        slope = sum(self._covered) / spread
        residuals = (
            covered - slope * each
            for covered, each in zip(self._covered, self._spread, strict=True)
        )
        error = sqrt(sum(value * value for value in residuals) * n / (n - 1))
        half = student_quantile(0.975, n - 1) * error / spread
        test = randomisation_test([0.0] * n, self._covered.tolist(), seed=_SEED)
        shift, low, high = (
            max(-_HIGHEST, min(_HIGHEST, value * self._last))
            for value in (slope, slope - half, slope + half)
        )
        return PositionEffect(shift, low, high, test.p, n)


@dataclass(frozen=True, slots=True)
class _Sums:
    covered: float
    spread: float


def _sums(votes: list[tuple[int, int]]) -> _Sums:
    """Return the sums of products and of squares, about the means of a pair."""
    place = sum(at for at, _ in votes) / len(votes)
    grade = sum(given for _, given in votes) / len(votes)
    return _Sums(
        covered=sum((at - place) * (given - grade) for at, given in votes),
        spread=sum((at - place) ** 2 for at, _ in votes),
    )
