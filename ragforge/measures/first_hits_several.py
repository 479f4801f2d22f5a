"""Deciding which of several runs may be the best by their first hits, read only as far as these.

Queries are read in nested parts, in an order that their digests fix. After each part every two runs
that are left are held against each other, as in `sequential_several`: a run that another one beats
is dropped and read no further, nor is one of which the rest would hardly tell that the best beats
it. Each query that is read has its true value, so that the share of the queries is the information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers
from ragforge.measures.first_hits import interval_of_hits
from ragforge.measures.left_out import Common
from ragforge.measures.sequential import FUTILE, LEAST_QUERIES, chance_of_winner, weaker_score
from ragforge.measures.sequential_several import (
    Saved,
    Standing,
    Standings,
    best_of,
    critical_value,
    most_equal_pairs,
    saved_by,
    unless_failed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS: Final = (0.2, 0.35, 0.5, 0.65, 0.8, 1.0)
"""Of the queries, read by each look."""
LEAST_READ: Final = 20
"""Queries read before a run is dropped, or called no worse, early."""


class _RunDifference(NamedTuple):
    """What a part of the queries tells of two runs, the second less the first."""

    difference: float
    error: float
    z: float
    n: int
    diffs: Floats


@dataclass
class SeveralFirstHits:
    """Several runs that are read down; used as a `SeveralDecision`."""

    lists: Sequence[Sequence[Sequence[int]]]
    """By query and run the pairs in their order, as places in the values."""
    values: Floats
    """Of the pairs: 1 for a hit, 0 for none, NaN where that is not known yet."""
    by_rank: bool
    """Whether a hit is worth 1 / rank; else 1."""
    places: Floats
    """Of the queries, in [0, 1): fixes in which order they are read."""
    query_weights: Floats
    """What each query stands for, 1 in the mean."""
    common: Common = field(default_factory=dict)
    """Of runs of which one failed on some queries."""
    beaten: dict[int, int] = field(default_factory=dict)
    """Runs that were dropped, and by which."""
    n_looks: int = 0
    n_judged: int = 0
    """Pairs judged so far, without those that were there before."""
    _asked: NDArray[np.bool_] = field(init=False)
    _known: NDArray[np.bool_] = field(init=False)
    _order: Integers = field(init=False)
    _open: list[int] = field(init=False)
    _n_read: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Start from what is known.

        Raises:
            UsageError: There are fewer than ten queries, or two runs.
        """
        if len(self.lists) < LEAST_QUERIES:
            raise UsageError(f"{len(self.lists)} queries: expected at least {LEAST_QUERIES}")
        if self.n_runs < 2:
            raise UsageError(f"{self.n_runs} runs: expected at least 2")
        self._known = ~np.isnan(self.values)
        self._asked = self._known.copy()
        self._order = np.argsort(self.places, kind="stable").astype(np.intp)
        self._open = list(range(self.n_runs))
        self._n_read = [0] * self.n_runs

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return len(self.lists[0])

    @property
    def left(self) -> list[int]:
        """The runs that were not dropped."""
        return [run for run in range(self.n_runs) if run not in self.beaten]

    @property
    def n_equal(self) -> int:
        """How many pairs of runs may be equal at the most, by what is told apart."""
        return most_equal_pairs(self.n_runs, any_beaten=bool(self.beaten))

    @property
    def probabilities(self) -> Floats:
        """With which probability each pair that was asked for was: 1, as none is drawn."""
        return np.ones(len(self.values))

    def wanted(self) -> Integers:
        """Return the pairs that are read next, ascending indexes; none is asked for twice."""
        new = sorted(self._next_pairs())
        self._asked[new] = True
        return np.array(new, dtype=np.intp)

    def look(self, values: Floats) -> Standings | None:
        """Return what is decided, or None where there is more to be read.

        Args:
            values: Of the pairs, NaN for those that were not asked for, or failed.
        """
        self.values = values
        self.n_judged = int((self._asked & ~self._known & ~np.isnan(values)).sum())
        if self._next_pairs():
            return None
        n_read = self._n_part
        is_last = n_read == len(self.lists)
        for run in self._open:
            self._n_read[run] = n_read
        self.n_looks += 1
        differences = {
            pair: self._difference_of(pair) for pair in combinations(sorted(self._open), 2)
        }
        self._drop(differences, is_last=is_last)
        best = self._best(differences)
        self._open = [best, *self._undecided(best, differences)]
        if not is_last and len(self._open) > 1:
            return None
        return self._standings(best)

    def unless_failed(self, found: Standings, values: Floats, highest: float) -> Standings:
        """Return standings in which no run is beaten that judgments that failed could save.

        Args:
            found: What `look` returned.
            values: As at the last look.
            highest: Of a value; a hit.
        """
        self.values = values
        return unless_failed(found, lambda worse, better: self._saved(worse, better, highest))

    def _saved(self, worse: int, better: int, highest: float) -> Saved | None:
        """Return how a run could be no worse than another; None where it is whatever failed."""
        a, b = min(worse, better), max(worse, better)
        queries = [int(query) for query in self._read_of(a, b)]
        weights = self._weights_of(a, b)[queries]
        ends = [
            float(np.average([self._end(query, *sides) for query in queries], weights=weights))
            for sides in ((a, highest, b, 0.0), (a, 0.0, b, highest))
        ]
        common = self.common.get((a, b))
        if common is None:
            return saved_by((ends[0], ends[1]), worse, better, None)
        found = common.left_out.mean_ends(ends[0], ends[1])
        return saved_by(found, worse, better, common.left_out)

    def _end(self, query: int, a: int, unknown_a: float, b: int, unknown_b: float) -> float:
        """Return B less A in a query, with what is not known of each taken for a hit or none."""
        if self._are_alike(query, a, b):
            return 0.0
        return self._worth(query, b, unknown_b) - self._worth(query, a, unknown_a)

    def _weights_of(self, a: int, b: int) -> Floats:
        """Return what each query stands for between two runs; 0 where one of them failed."""
        common = self.common.get((min(a, b), max(a, b)))
        return self.query_weights if common is None else self.query_weights * common.weights

    def _are_common(self, query: int, a: int, b: int) -> bool:
        common = self.common.get((min(a, b), max(a, b)))
        return common is None or bool(common.weights[query] > 0)

    @property
    def _n_part(self) -> int:
        """How many queries are read by the next look."""
        return ceil(PARTS[self.n_looks] * len(self.lists))

    def _next_pairs(self) -> set[int]:
        return {at for query in self._order[: self._n_part] for at in self._next(int(query))}

    def _next(self, query: int) -> list[int]:
        """Return the pairs that the values of a query hang on next; [] where it is known."""
        present = self._present(query)
        if all(self._are_alike(query, present[0], other) for other in present[1:]):
            return []
        found = []
        for run in present:
            at = self._first_open(self.lists[query][run])
            if at is not None:
                found.append(at)
        return found

    def _present(self, query: int) -> list[int]:
        """Return the open runs that did not fail on a query; one at least where it counts."""
        if not self.common:
            return self._open
        found = [
            run
            for run in self._open
            if any(self._are_common(query, run, other) for other in self._open if other != run)
        ]
        return found or self._open[:1]

    def _first_open(self, ranked: Sequence[int]) -> int | None:
        """Return the pair to be asked for next; None behind a hit, or where none is left."""
        for at in ranked:
            value = self.values[at]
            if np.isnan(value):
                if not self._asked[at]:
                    return at
                if self.by_rank:
                    return None  # What failed may be the first hit.
            elif value != 0:
                return None
        return None

    def _are_alike(self, query: int, a: int, b: int) -> bool:
        """Whether two runs have the same value in a query, whatever is not known yet."""
        first, second = self.lists[query][a], self.lists[query][b]
        if self.by_rank:
            return list(first) == list(second)
        rest = [{at for at in ranked if self.values[at] != 0} for ranked in (first, second)]
        return rest[0] == rest[1]

    def _worth(self, query: int, run: int, unknown: float = 0.0) -> float:
        """Return the value of a run in a query, with what is not known taken for a hit or none."""
        for rank, at in enumerate(self.lists[query][run], 1):
            value = self.values[at]
            if (unknown if np.isnan(value) else value) != 0:
                return 1 / rank if self.by_rank else 1.0
        return 0.0

    def _read_of(self, a: int, b: int) -> Integers:
        """Return the queries in which both runs were read, and neither failed."""
        read = self._order[: min(self._n_read[a], self._n_read[b])]
        return read[self._weights_of(a, b)[read] > 0]

    def _n_common(self, a: int, b: int) -> int:
        """Return in how many queries neither of two runs failed."""
        return int((self._weights_of(a, b) > 0).sum())

    def _difference_of(self, pair: tuple[int, int]) -> _RunDifference:
        a, b = pair
        diffs, weights, of_query = [], [], self._weights_of(a, b)
        for query in self._read_of(a, b):
            if self._are_alike(query, a, b):
                diffs.append(0.0)
            elif all(self._worth(query, r) == self._worth(query, r, 1.0) for r in pair):
                diffs.append(self._worth(query, b) - self._worth(query, a))
            else:
                continue  # A judgment failed.
            weights.append(of_query[query])
        n = len(diffs)
        if n < 2:
            return _RunDifference(0.0, 0.0, 0.0, n, np.zeros(n))
        of = np.array(diffs) * np.array(weights) / np.mean(weights)
        difference, error = float(of.mean()), float(of.std(ddof=1)) / sqrt(n)
        return _RunDifference(difference, error, weaker_score(of), n, of)

    def _drop(self, differences: dict[tuple[int, int], _RunDifference], *, is_last: bool) -> None:
        """Drop what is beaten; the clearest first, as each one makes the next easier to tell."""
        for (a, b), each in sorted(differences.items(), key=lambda item: -abs(item[1].z)):
            worse, better = (a, b) if each.difference > 0 else (b, a)
            if worse in self.beaten or abs(each.z) <= critical_value(self.n_equal, is_last=is_last):
                continue
            if len(self.left) == 1:  # On other queries each, all could be beaten in a circle.
                return
            if each.n >= (LEAST_QUERIES if is_last else LEAST_READ):
                self.beaten[worse] = better

    def _best(self, differences: dict[tuple[int, int], _RunDifference]) -> int:
        left = [run for run in sorted(self._open) if run not in self.beaten]
        return best_of(left, {pair: each.difference for pair, each in differences.items()})

    def _undecided(
        self, best: int, differences: dict[tuple[int, int], _RunDifference]
    ) -> list[int]:
        """Return the runs of which reading on may well show that the best one beats them."""
        last = critical_value(self.n_equal, is_last=True)
        found = []
        for run in self._open:
            if run == best or run in self.beaten:
                continue
            each = differences[min(run, best), max(run, best)]
            information = each.n / self._n_common(run, best)
            if each.n < LEAST_READ or chance_of_winner(each.z, information, last) >= FUTILE:
                found.append(run)
        return found

    def _standings(self, best: int) -> Standings:
        standings = []
        for run in range(self.n_runs):
            each = self._difference_of((best, run))
            low, high = -1.0, 1.0
            if each.n > 1:
                critical = critical_value(self.n_equal, is_last=each.n == self._n_common(run, best))
                low, high = interval_of_hits(each.diffs, critical, same_rankings=run == best)
            standings.append(
                Standing(run, each.difference, low, high, self.beaten.get(run), each.n)
            )
        standings.sort(key=lambda item: (item.run != best, -item.difference, item.run))
        share = max(self._n_read) / len(self.lists)
        return Standings(tuple(standings), share, self.n_judged, self.n_looks)
