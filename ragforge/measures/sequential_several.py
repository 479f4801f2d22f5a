"""Deciding which of several runs may be the best with as few judged pairs as it takes.

All runs share one sample. At each look every two runs that are left are held against each other,
as for two runs; a run that another one beats is dropped, and what only told it from others is asked
for no more. It ends where one run is left, or where judging the rest would hardly drop another.

The chance of 5 % that any run is dropped that is as good as what beat it is shared by all pairs of
runs that may be equal: of K runs K (K - 1) / 2, and (K - 1) (K - 2) / 2 once one pair is told
apart. So the runs that are left hold the best in at least 95 %.

Source: Shaffer 1986, JASA 81(395), for how many may be equal; Maurer and Bretz 2013, Statistics in
Biopharmaceutical Research 5(4), for levels that grow over looks; `sequential` for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers
from ragforge.measures.distributions import normal_cdf, normal_quantile, student_quantile
from ragforge.measures.sequential import (
    FUTILE,
    LEAST_PAIRS,
    LEAST_QUERIES,
    DecidingPairs,
    Look,
    chance_of_winner,
    drawing_probabilities,
    extreme_differences,
    looked,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

EARLY_P: Final = 0.001
LAST_P: Final = 0.048
_NOTHING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class RankedPairs:
    """The pairs that K runs have in their top ranks, N of them."""

    queries: Integers
    """Shape (N,), from 0 to n_queries - 1."""
    discounts: Floats
    """Shape (N, K): what a value of 1 adds to each run's measure; 0 where it has not the pair."""
    features: Floats
    """Shape (N, F): what the model of ranks knows, the first column 1."""
    places: Floats
    """Shape (N,), in [0, 1): fixes what is drawn."""
    n_queries: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A run beside the best by the estimate."""

    run: int
    difference: float
    """The run less the best, in the mean over queries."""
    low: float
    high: float
    beaten_by: int | None
    """The run that was shown to be better; None where this one may be the best."""


@dataclass(frozen=True, slots=True)
class Standings:
    """Which of several runs may be the best."""

    runs: tuple[Standing, ...]
    """The best by the estimate first."""
    share: float
    n_judged: int
    n_looks: int

    @property
    def may_be_best(self) -> tuple[int, ...]:
        """The runs that were not dropped, the best by the estimate first."""
        return tuple(each.run for each in self.runs if each.beaten_by is None)


@dataclass
class SeveralDecision:
    """A comparison of several runs that goes on until it is decided; used as for two runs."""

    pairs: RankedPairs
    shares: Sequence[float]
    known: NDArray[np.bool_]
    """Pairs graded before: they cost nothing."""
    beaten: dict[int, int] = field(default_factory=dict)
    """Runs that were dropped, and by which."""
    n_looks: int = 0
    n_judged: int = 0
    """Pairs judged so far, without those that were there before."""
    _open: list[int] = field(init=False)
    _probabilities: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Start from what is known.

        Raises:
            UsageError: There are fewer than ten queries, or two runs.
        """
        if self.pairs.n_queries < LEAST_QUERIES:
            raise UsageError(
                f"{self.pairs.n_queries} queries: expected at least {LEAST_QUERIES}, as the spread "
                "between queries decides"
            )
        if self.n_runs < 2:
            raise UsageError(f"{self.n_runs} runs: expected at least 2")
        self._open = list(range(self.n_runs))
        self._probabilities = self.known.astype(np.float64)

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return int(self.pairs.discounts.shape[1])

    @property
    def probabilities(self) -> Floats:
        """With which probability each pair is drawn by now, shape (N,)."""
        return self._probabilities

    @property
    def left(self) -> list[int]:
        """The runs that were not dropped."""
        return [run for run in range(self.n_runs) if run not in self.beaten]

    @property
    def n_equal(self) -> int:
        """How many pairs of runs may be equal at the most, by what is told apart."""
        return comb(self.n_runs - 1, 2) or 1 if self.beaten else comb(self.n_runs, 2)

    def wanted(self) -> Integers:
        """Return the pairs that are to be judged by the next look, ascending indexes."""
        of_open = self.pairs.discounts[:, self._open]
        weights = of_open.max(axis=1) - of_open.min(axis=1)
        active = np.flatnonzero(weights > _NOTHING)
        share = self.shares[self.n_looks]
        drawn = drawing_probabilities(weights[active], self.known[active], share)
        self._probabilities[active] = np.maximum(self._probabilities[active], drawn)
        found: Integers = np.flatnonzero(self._is_drawn()).astype(np.intp)
        return found

    def look(self, values: Floats) -> Standings | None:
        """Return what is decided, or None where more pairs are to be judged.

        Args:
            values: As for two runs.
        """
        drawn = self._is_drawn() & ~np.isnan(values)
        self.n_looks += 1
        self.n_judged = int((drawn & ~self.known).sum())
        is_last = self.n_looks == len(self.shares)
        looks = {pair: self._looked(pair, values, drawn) for pair in combinations(self.left, 2)}
        self._drop(looks, is_last=is_last)
        best = self._best(looks)
        self._open = [best, *self._undecided(best, looks)]
        if not is_last and len(self._open) > 1:
            return None
        return self._standings(best, values, drawn, is_last=is_last)

    def unless_failed(self, found: Standings, values: Floats, highest: float) -> Standings:
        """Return standings in which no run is beaten that judgments that failed could save.

        Args:
            found: What `look` returned.
            values: As at the last look.
            highest: What the highest grade is worth; the lowest is worth 0.
        """
        drawn = self._is_drawn()
        if not np.isnan(values[drawn]).any():
            return found

        def may_be_saved(worse: int, better: int) -> bool:
            pairs = self._pairs_of((worse, better))
            low, _ = extreme_differences(pairs, values, drawn, self._probabilities, highest)
            return float(low.mean()) <= 0

        runs = tuple(
            replace(each, beaten_by=None)
            if each.beaten_by is not None and may_be_saved(each.run, each.beaten_by)
            else each
            for each in found.runs
        )
        return replace(found, runs=runs)

    def _drop(self, looks: dict[tuple[int, int], Look], *, is_last: bool) -> None:
        """Drop what is beaten; the clearest first, as each one makes the next easier to tell."""
        for (a, b), look in sorted(looks.items(), key=lambda item: -abs(item[1].z)):
            worse, better = (a, b) if look.difference > 0 else (b, a)
            if worse in self.beaten or abs(look.z) <= self._critical(is_last=is_last):
                continue
            if is_last or look.n_judged >= LEAST_PAIRS:
                self.beaten[worse] = better

    def _undecided(self, best: int, looks: dict[tuple[int, int], Look]) -> list[int]:
        """Return the runs of which judging the rest may well show that the best one beats them."""
        last = self._critical(is_last=True)
        found = []
        for run in self.left:
            if run == best:
                continue
            look = looks[min(run, best), max(run, best)]
            chance = chance_of_winner(look.z, look.information, last)
            if look.n_judged < LEAST_PAIRS or chance >= FUTILE:
                found.append(run)
        return found

    def _best(self, looks: dict[tuple[int, int], Look]) -> int:
        left = self.left
        first = left[0]
        # All are held against the first of those left, so that the order is one.
        return max(left, key=lambda run: 0.0 if run == first else looks[first, run].difference)

    def _standings(
        self, best: int, values: Floats, drawn: NDArray[np.bool_], *, is_last: bool
    ) -> Standings:
        degrees = self.pairs.n_queries - 1
        reach = student_quantile(normal_cdf(self._critical(is_last=is_last)), degrees)
        standings = []
        for run in range(self.n_runs):
            look = self._looked((best, run), values, drawn)
            half = reach * look.error
            low, high = look.difference - half, look.difference + half
            standings.append(Standing(run, look.difference, low, high, self.beaten.get(run)))
        standings.sort(key=lambda each: (each.run != best, -each.difference, each.run))
        share = self.shares[self.n_looks - 1]
        return Standings(tuple(standings), share, self.n_judged, self.n_looks)

    def _looked(self, pair: tuple[int, int], values: Floats, drawn: NDArray[np.bool_]) -> Look:
        of_two = self._pairs_of(pair)
        counted = self.known | (np.abs(of_two.weights) <= _NOTHING)
        return looked(of_two, values, drawn, self._probabilities, counted)

    def _pairs_of(self, pair: tuple[int, int]) -> DecidingPairs:
        a, b = pair
        pairs = self.pairs
        weights = pairs.discounts[:, b] - pairs.discounts[:, a]
        return DecidingPairs(pairs.queries, weights, pairs.features, pairs.places, pairs.n_queries)

    def _critical(self, *, is_last: bool) -> float:
        p = LAST_P if is_last else EARLY_P
        return -normal_quantile(p / self.n_equal / 2)

    def _is_drawn(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.known | (self.pairs.places < self._probabilities)
        return found
