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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers
from ragforge.measures.distributions import normal_cdf, normal_quantile, student_quantile
from ragforge.measures.left_out import Common, LeftOut, difference_ends
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
    common: Common = field(default_factory=dict)
    """Of runs of which one failed on some queries."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Why a run is not called worse than another: what failed could turn it."""

    worse_than: int
    """The run that else would have beaten it."""
    low: float
    """The run less that one, had all that failed come out worst for it."""
    high: float
    """The same, had it come out best."""
    n_left_out: int
    """Queries on which one of the two failed; else judgments did."""


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
    n_queries: int
    """On which neither of the two failed."""
    saved: Saved | None = None
    """None where nothing that failed saves it."""


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


class _OfTwo(NamedTuple):
    """The pairs of the queries on which neither of two runs failed."""

    pairs: DecidingPairs
    rows: NDArray[np.bool_]
    """Which of all pairs they are."""

    @property
    def n_queries(self) -> int:
        return self.pairs.n_queries


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
        return most_equal_pairs(self.n_runs, any_beaten=bool(self.beaten))

    def wanted(self) -> Integers:
        """Return the pairs that are to be judged by the next look, ascending indexes."""
        weights = self._open_weights()
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
        return unless_failed(
            found, lambda worse, better: self._saved(worse, better, values, highest)
        )

    def _saved(self, worse: int, better: int, values: Floats, highest: float) -> Saved | None:
        """Return how a run could be no worse than another; None where it is whatever failed."""
        a, b = min(worse, better), max(worse, better)
        drawn, left_out = self._is_drawn(), self._left_out(a, b)
        of_two = self._pairs_of((a, b))
        taken = values[of_two.rows], drawn[of_two.rows], self._probabilities[of_two.rows]
        ends = extreme_differences(of_two.pairs, *taken, highest)
        difference = self._looked((a, b), values, drawn & ~np.isnan(values)).difference
        return saved_by(difference_ends(difference, *ends, left_out), worse, better, left_out)

    def _left_out(self, a: int, b: int) -> LeftOut | None:
        common = self.pairs.common.get((a, b))
        return None if common is None else common.left_out

    def _open_weights(self) -> Floats:
        """Return what each pair weighs most between two runs that are open, shape (N,)."""
        pairs = self.pairs
        if not pairs.common:
            of_open = pairs.discounts[:, self._open]
            found: Floats = of_open.max(axis=1) - of_open.min(axis=1)
            return found
        most = np.zeros(len(pairs.queries))
        for a, b in combinations(sorted(self._open), 2):
            weights = np.abs(pairs.discounts[:, b] - pairs.discounts[:, a])
            common = pairs.common.get((a, b))
            if common is not None:
                weights = weights * common.weights[pairs.queries]
            most = np.maximum(most, weights)
        return most

    def _drop(self, looks: dict[tuple[int, int], Look], *, is_last: bool) -> None:
        """Drop what is beaten; the clearest first, as each one makes the next easier to tell."""
        for (a, b), look in sorted(looks.items(), key=lambda item: -abs(item[1].z)):
            worse, better = (a, b) if look.difference > 0 else (b, a)
            if worse in self.beaten or abs(look.z) <= critical_value(self.n_equal, is_last=is_last):
                continue
            if len(self.left) == 1:  # On other queries each, all could be beaten in a circle.
                return
            if is_last or look.n_judged >= LEAST_PAIRS:
                self.beaten[worse] = better

    def _undecided(self, best: int, looks: dict[tuple[int, int], Look]) -> list[int]:
        """Return the runs of which judging the rest may well show that the best one beats them."""
        last = critical_value(self.n_equal, is_last=True)
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
        return best_of(self.left, {pair: look.difference for pair, look in looks.items()})

    def _standings(
        self, best: int, values: Floats, drawn: NDArray[np.bool_], *, is_last: bool
    ) -> Standings:
        share = normal_cdf(critical_value(self.n_equal, is_last=is_last))
        standings = []
        for run in range(self.n_runs):
            look, n = (
                self._looked((best, run), values, drawn),
                self._pairs_of((best, run)).n_queries,
            )
            half = student_quantile(share, n - 1) * look.error
            low, high = look.difference - half, look.difference + half
            standings.append(Standing(run, look.difference, low, high, self.beaten.get(run), n))
        standings.sort(key=lambda each: (each.run != best, -each.difference, each.run))
        share = self.shares[self.n_looks - 1]
        return Standings(tuple(standings), share, self.n_judged, self.n_looks)

    def _looked(self, pair: tuple[int, int], values: Floats, drawn: NDArray[np.bool_]) -> Look:
        of_two = self._pairs_of(pair)
        rows = of_two.rows
        counted = self.known[rows] | (np.abs(of_two.pairs.weights) <= _NOTHING)
        probabilities = self._probabilities[rows]
        return looked(of_two.pairs, values[rows], drawn[rows], probabilities, counted)

    def _pairs_of(self, pair: tuple[int, int]) -> _OfTwo:
        a, b = pair
        found = self.pairs
        weights = found.discounts[:, b] - found.discounts[:, a]
        common = found.common.get((min(pair), max(pair)))
        if common is None:
            every = np.ones(len(weights), dtype=bool)
            of_all = (found.queries, weights, found.features, found.places, found.n_queries)
            return _OfTwo(DecidingPairs(*of_all), every)
        rows = common.kept[found.queries]
        queries = found.queries[rows]
        numbers = np.cumsum(common.kept) - 1
        pairs = DecidingPairs(
            numbers[queries],
            weights[rows] * common.weights[queries],
            found.features[rows],
            found.places[rows],
            int(common.kept.sum()),
        )
        return _OfTwo(pairs, rows)

    def _is_drawn(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.known | (self.pairs.places < self._probabilities)
        return found


def most_equal_pairs(n_runs: int, *, any_beaten: bool) -> int:
    """Return how many pairs of runs may be equal at the most: fewer once one run is beaten."""
    return comb(n_runs - 1, 2) or 1 if any_beaten else comb(n_runs, 2)


def critical_value(n_equal: int, *, is_last: bool) -> float:
    """Return the standard score from which a look tells two runs apart.

    Args:
        n_equal: Pairs of runs that may be equal at the most; the level is divided among them.
        is_last: Whether all pairs are judged at this look.
    """
    p = LAST_P if is_last else EARLY_P
    return -normal_quantile(p / n_equal / 2)


def best_of(runs: Sequence[int], differences: Mapping[tuple[int, int], float]) -> int:
    """Return the run that is least behind any other; of one set of queries that with the best mean.

    Args:
        runs: One or more; of several that are alike the first one is returned.
        differences: By two runs, the first one first: the second less the first.
    """

    def least(run: int) -> float:
        ahead = (
            differences[other, run] if other < run else -differences[run, other]
            for other in runs
            if other != run
        )
        return min(ahead, default=0.0)

    return max(runs, key=least)


def saved_by(
    ends: tuple[float, float], worse: int, better: int, left_out: LeftOut | None
) -> Saved | None:
    """Return how a run could be no worse than another; None where it is whatever failed.

    Args:
        ends: Of the difference, of the later run less the earlier one.
        worse: The run that would be beaten.
        better: By this one.
        left_out: Queries on which one of the two failed; None where none did.
    """
    low, high = ends if worse > better else (-ends[1], -ends[0])
    if high < 0:
        return None
    return Saved(better, low, high, 0 if left_out is None else len(left_out.low))


def unless_unseen(found: Standings, reaches: Mapping[int, float]) -> Standings:
    """Return standings whose intervals have no zero width; no run whose interval holds 0 is beaten.

    Args:
        found: As they were seen.
        reaches: By run: how far on either side the mean difference could be by queries unseen.
    """
    runs = []
    for each in found.runs:
        if each.low == each.high and each.run in reaches:
            low, high = each.low - reaches[each.run], each.high + reaches[each.run]
            beaten_by = None if low <= 0 <= high else each.beaten_by
            each = replace(each, low=low, high=high, beaten_by=beaten_by)
        runs.append(each)
    return replace(found, runs=tuple(runs))


def unless_failed(found: Standings, saved: Callable[[int, int], Saved | None]) -> Standings:
    """Return standings in which no run is beaten that what failed could save.

    Args:
        found: As they were seen.
        saved: Returns for a run, and the one that beat it, how it could be no worse.
    """
    best = found.runs[0].run
    return replace(found, runs=tuple(_unless_saved(each, best, saved) for each in found.runs))


def _unless_saved(each: Standing, best: int, saved: Callable[[int, int], Saved | None]) -> Standing:
    if each.beaten_by is None:
        return each
    saving = saved(each.run, each.beaten_by)
    if saving is None:
        return each
    if each.high < 0 and saved(each.run, best) is None:
        return replace(each, beaten_by=best)
    return replace(each, beaten_by=None, saved=saving)
