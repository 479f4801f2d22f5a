"""Deciding which of two runs is better with as few judged pairs as it takes.

One linear measure is declared before the first call. Pairs are drawn by what they weigh in the
difference, over all queries at once; a free model of ranks stands in for what was not drawn, and
drawn pairs correct it. After each of a few looks the decision is made, or more pairs are judged:
each look's sample lies within the next. Looks may stop early for a winner only on overwhelming
evidence (p < .001), so that the last look still has nearly the whole of the 5 %, and for a tie only
where judging the rest would hardly show a winner.

With the model's values fixed, estimates of nested Poisson samples have the covariance of the later
one, so theory of group sequential tests holds with the share of variance that sampling does not add
as information.

Source: Haybittle 1971, British Journal of Radiology 44(526), and Peto et al. 1976, British Journal
of Cancer 34(6), for the boundary; Lan, Simon and Halperin 1982, Sequential Analysis 1(3), for
stopping where a winner has become unlikely; Horvitz and Thompson 1952, JASA 47(260), for weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import comb, sqrt
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers
from ragforge.measures.distributions import (
    normal_cdf,
    normal_quantile,
    student_quantile,
    student_sf,
)
from ragforge.measures.intervals import Ends
from ragforge.measures.left_out import LeftOut, difference_ends, worst_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

Outcome: TypeAlias = Literal["a", "b", "tie"]

SHARES: Final = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)
"""Of the pairs that decide, judged at each look."""
SHARES_OF_MANY: Final = (0.02, *SHARES)
MANY_QUERIES: Final = 300
EARLY: Final = 3.29
"""Two-sided p of .001."""
LAST: Final = 1.9755
"""Two-sided p of .048: with the early looks, .05 in all."""
FUTILE: Final = 0.015
LEAST_PAIRS: Final = 100
"""Judged before a look may stop: with fewer, false winners reached 8.5 %."""
LEAST_QUERIES: Final = 10
_SMALLEST_SIZE: Final = 0.001
_LEAST_INFORMATION: Final = 0.05
_EXACT: Final = 1000
"""Queries that differ, up to which signs are counted: of more, t is as good."""
_LEAST_P: Final = 1e-300
_NOTHING: Final = 1e-12
"""Below it a difference is what sums are rounded by."""


@dataclass(frozen=True, slots=True)
class DecidingPairs:
    """The pairs that weigh something in the difference of two runs, N of them."""

    queries: Integers
    """Shape (N,), from 0 to n_queries - 1."""
    weights: Floats
    """Shape (N,): what a value of 1 adds to B minus A of its query; none is 0."""
    features: Floats
    """Shape (N, F): what the model of ranks knows, the first column 1."""
    places: Floats
    """Shape (N,), in [0, 1): from a digest of seed, query and text; fixes what is drawn."""
    n_queries: int


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one look."""

    share: float
    n_judged: int
    """Pairs judged so far, without those that were there before."""
    difference: float
    """B minus A, in the mean over queries."""
    error: float
    z: float
    information: float
    """Share of what judging all pairs would tell, in [0.05, 1]."""
    chance_of_winner: float | None
    """That judging the rest would show a winner; None at the last look."""


@dataclass(frozen=True, slots=True)
class DecidedDifference:
    """The decision, and what it rests on."""

    outcome: Outcome
    look: Look
    low: float
    high: float
    """Interval of the difference; at an early look wider, as it had to be convincing."""


@dataclass
class SequentialDecision:
    """A comparison that goes on until it is decided.

    Ask `wanted` for the pairs to be judged, judge them, tell `look` their values; go on while it
    returns no decision.
    """

    pairs: DecidingPairs
    shares: Sequence[float]
    known: NDArray[np.bool_]
    """Pairs graded before: they cost nothing."""
    allowed: float | None = None
    """How much lower B may be, where that is to be decided, and not which is better."""
    left_out: LeftOut | None = None
    """Queries on which a retriever failed; None where none did."""
    looks: list[Look] = field(default_factory=list)
    _probabilities: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Start from what is known.

        Raises:
            UsageError: There are fewer than ten queries.
            DataError: A pair weighs nothing.
        """
        if self.pairs.n_queries < LEAST_QUERIES:
            raise UsageError(
                f"{self.pairs.n_queries} queries: expected at least {LEAST_QUERIES}, as the spread "
                "between queries decides"
            )
        if not np.all(self.pairs.weights):
            raise DataError("expected pairs that weigh something")
        self._probabilities = self.known.astype(np.float64)

    @property
    def n_looks(self) -> int:
        """How often it was looked at the values."""
        return len(self.looks)

    @property
    def n_judged(self) -> int:
        """Pairs judged so far, without those that were there before."""
        return self.looks[-1].n_judged if self.looks else 0

    @property
    def failed(self) -> tuple[int, ...]:
        """Queries without a value: none, as what failed counts as not drawn."""
        return ()

    @property
    def probabilities(self) -> Floats:
        """With which probability each pair is drawn by now, shape (N,)."""
        return self._probabilities

    def wanted(self) -> Integers:
        """Return the pairs that are to be judged by the next look, ascending indexes."""
        share = self.shares[len(self.looks)]
        drawn = drawing_probabilities(self.pairs.weights, self.known, share)
        self._probabilities = np.maximum(self._probabilities, drawn)
        found: Integers = np.flatnonzero(self._is_drawn()).astype(np.intp)
        return found

    def look(self, values: Floats) -> DecidedDifference | None:
        """Return the decision, or None where more pairs are to be judged.

        Args:
            values: Of the pairs, shape (N,): of those that are not `wanted` they are not looked at.
                A wanted pair without a value (NaN) counts as not drawn: try failures again first.
        """
        pairs, drawn = self.pairs, self._is_drawn() & ~np.isnan(values)
        share = self.shares[len(self.looks)]
        is_last = len(self.looks) == len(self.shares) - 1
        look = looked(pairs, values, drawn, self._probabilities, self.known, share)
        self.looks.append(look)
        if is_last:
            return _decided(look, LAST, pairs.n_queries, is_winner=abs(look.z) > LAST)
        if look.n_judged < LEAST_PAIRS or not self._is_told(look, values):
            return None
        return _decided(look, EARLY, pairs.n_queries, is_winner=abs(look.z) > EARLY)

    def _is_told(self, look: Look, values: Floats) -> bool:
        """Return whether judging the rest would hardly change what is said."""
        if self.allowed is None:
            chance = look.chance_of_winner
            return abs(look.z) > EARLY or (chance is not None and chance < FUTILE)
        falls = -look.z
        within = _score(look.difference + self.allowed, look.error, self.pairs.n_queries)
        if self.left_out is not None:
            drawn = self._is_drawn() & ~np.isnan(values)
            seen = differences_by_query(self.pairs, values, drawn, self._probabilities)
            within = min(within, _score_of(self.left_out.at_low(seen) + self.allowed))
            falls = max(falls, -_score_of(self.left_out.with_drops(seen)))
        if within > EARLY:
            return True
        if _chance_above(within, look.information, LAST) >= FUTILE:
            return False
        return falls > EARLY or _chance_above(falls, look.information, LAST) < FUTILE

    def bounds(self, values: Floats, highest: float) -> tuple[float, float] | None:
        """Return the difference, had all that failed come out worst and best for B.

        Args:
            values: As at the last look.
            highest: What the highest grade is worth; the lowest is worth 0.

        Returns:
            None where nothing failed.
        """
        if self.left_out is None and not np.isnan(values[self._is_drawn()]).any():
            return None
        ends = self._extremes(values, highest)
        return difference_ends(self.looks[-1].difference, *ends, self.left_out)

    def worst(self, values: Floats, highest: float, seen: Ends) -> tuple[float, float]:
        """Return the interval that decides a rule on B, with failures as in `worst_interval`.

        Args:
            values: As at the last look.
            highest: As for `bounds`.
            seen: The interval without them.
        """
        if self.left_out is None and not np.isnan(values[self._is_drawn()]).any():
            return seen.low, seen.high
        critical = LAST if self.looks[-1].share >= 1 else EARLY

        def ends_of(differences: Floats) -> tuple[float, float]:
            n = len(differences)
            error = float(differences.std(ddof=1)) / sqrt(n)
            half = student_quantile(normal_cdf(critical), n - 1) * error
            return float(differences.mean()) - half, float(differences.mean()) + half

        return worst_interval(seen, *self._extremes(values, highest), self.left_out, ends_of)

    def _extremes(self, values: Floats, highest: float) -> tuple[Floats, Floats]:
        """Return the differences by query, had judgments that failed come out worst and best."""
        drawn = self._is_drawn()
        return extreme_differences(self.pairs, values, drawn, self._probabilities, highest)

    def _is_drawn(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.known | (self.pairs.places < self._probabilities)
        return found


def shares_for(n_queries: int) -> tuple[float, ...]:
    """Return the shares of the looks: many queries are worth a look at fewer pairs."""
    return SHARES_OF_MANY if n_queries >= MANY_QUERIES else SHARES


def drawing_probabilities(weights: Floats, known: NDArray[np.bool_], share: float) -> Floats:
    """Return with which probability each pair is drawn: by its weight, `share` of them in all.

    Args:
        weights: Shape (N,).
        known: Pairs that cost nothing: their probability is 1, and they are not counted.
        share: From above 0 to 1.
    """
    found = np.ones(len(weights))
    others = np.flatnonzero(~known)
    if share >= 1 or not len(others):
        return found
    sizes = np.abs(weights[others])
    sizes = np.maximum(sizes, _SMALLEST_SIZE * sizes.max())
    found[others] = np.minimum(1.0, _scale(sizes, share * len(sizes)) * sizes)
    return found


def _scale(sizes: Floats, expected: float) -> float:
    """Return the factor c with which min(1, c * sizes) sums to the expected number."""
    falling = np.sort(sizes)[::-1]
    rest = np.cumsum(falling[::-1])[::-1]
    for certain in range(len(falling)):
        c = (expected - certain) / float(rest[certain])
        if c * float(falling[certain]) <= 1:
            return c
    return 1 / float(falling[-1])


def looked(
    pairs: DecidingPairs,
    values: Floats,
    drawn: NDArray[np.bool_],
    probabilities: Floats,
    known: NDArray[np.bool_],
    share: float = 0.0,
) -> Look:
    """Return what the drawn pairs tell of the difference.

    Args:
        pairs: Those that weigh nothing teach the model of ranks alone.
        values: Shape (N,); of what is not drawn they are not looked at.
        drawn: Which pairs have a value, shape (N,).
        probabilities: With which they were drawn.
        known: Pairs that are not counted as judged.
        share: Of the look; at 1 nothing is left to be told.
    """
    n, p = pairs.n_queries, probabilities[drawn]
    found = _differences(pairs, values, drawn, probabilities)
    by_query = found.by_query
    difference = float(by_query.mean())
    variance = float(by_query.var(ddof=1))
    error = sqrt(variance / n)
    within = float((found.missed**2 * (1 - p)).sum()) / n
    information = 1.0
    if share < 1 and not np.all(drawn | (np.abs(pairs.weights) <= _NOTHING)):
        # As long as all grades are alike, they say nothing of how far others are from them.
        information = 1 - within / variance if within > _NOTHING else 0.0
    information = max(information, _LEAST_INFORMATION)
    z = weaker_score(by_query)
    chance = None if share >= 1 else chance_of_winner(z, information, LAST)
    return Look(share, int((drawn & ~known).sum()), difference, error, z, information, chance)


class _Differences(NamedTuple):
    by_query: Floats
    missed: Floats
    """Of each drawn pair: what the model missed, over its probability."""


def differences_by_query(
    pairs: DecidingPairs, values: Floats, drawn: NDArray[np.bool_], probabilities: Floats
) -> Floats:
    """Return the difference of each query, shape (n_queries,); as for `looked`."""
    return _differences(pairs, values, drawn, probabilities).by_query


def _differences(
    pairs: DecidingPairs, values: Floats, drawn: NDArray[np.bool_], probabilities: Floats
) -> _Differences:
    chosen = np.flatnonzero(drawn)
    n, p = pairs.n_queries, probabilities[chosen]
    expected = _modelled(pairs.features, values, chosen, p)
    missed = pairs.weights[chosen] * (values[chosen] - expected[chosen]) / p
    by_query: Floats = np.zeros(n)
    by_query += np.bincount(pairs.queries, weights=pairs.weights * expected, minlength=n)
    by_query += np.bincount(pairs.queries[chosen], weights=missed, minlength=n)
    # Of equal grades sums differ by their rounding alone, and its sign is the same throughout.
    by_query[np.abs(by_query) < _NOTHING] = 0.0
    return _Differences(by_query, missed)


def extreme_differences(
    pairs: DecidingPairs,
    values: Floats,
    drawn: NDArray[np.bool_],
    probabilities: Floats,
    highest: float,
) -> tuple[Floats, Floats]:
    """Return the differences by query with the least and with the greatest mean.

    Drawn pairs without a value leave them open; where there are none both are what was seen.

    Args:
        pairs: As for `looked`.
        probabilities: As for `looked`.
        values: NaN where a judgment failed.
        drawn: Which pairs were asked for, shape (N,).
        highest: What the highest grade is worth; the lowest is worth 0.
    """
    failed = drawn & np.isnan(values)
    found = [differences_by_query(pairs, values, drawn & ~failed, probabilities)]
    if failed.any():
        for is_highest in (pairs.weights < 0, pairs.weights > 0):
            filled = np.where(failed, np.where(is_highest, highest, 0.0), values)
            found.append(differences_by_query(pairs, filled, drawn, probabilities))
    found.sort(key=lambda by_query: float(by_query.mean()))
    return found[0], found[-1]


def _modelled(features: Floats, values: Floats, chosen: Integers, p: Floats) -> Floats:
    """Return what ranks alone let expect of each pair, by weighted least squares."""
    if not len(chosen):
        return np.zeros(len(features))
    root = np.sqrt(1 / p)
    fitted, *_ = np.linalg.lstsq(
        features[chosen] * root[:, np.newaxis], values[chosen] * root, rcond=None
    )
    found: Floats = features @ fitted
    return found


def normal_score(t: float, degrees: int) -> float:
    """Return the normal score with the probability that Student's t has below."""
    tail = student_sf(abs(t), degrees)
    score = 40.0 if tail < 1e-300 else -normal_quantile(tail)
    return score if t > 0 else -score


def weaker_score(diffs: Floats) -> float:
    """Return the normal score of a mean difference of which few queries may tell anything.

    The weaker of Student's t and a test by signs. With four queries that differ t alone finds a
    winner in one of eight pairs of equal runs.

    Args:
        diffs: Of the queries, two or more.
    """
    difference = float(diffs.mean())
    if not difference:
        return 0.0
    score = sign_score(diffs)
    error = float(diffs.std(ddof=1)) / sqrt(len(diffs))
    if error:
        score = min(score, abs(normal_score(difference / error, len(diffs) - 1)))
    return score if difference > 0 else -score


def sign_score(diffs: Floats) -> float:
    """Return how far the signs of differences are from chance, as a normal score of at least 0.

    Of 0 and one other size by the exact binomial test of the queries that differ, else by the
    strongest that flipped signs of so many could be.

    Args:
        diffs: Of the queries.
    """
    moved = diffs[diffs != 0]
    if not len(moved):
        return 0.0
    n, n_ahead = len(moved), int((np.sign(moved) == np.sign(diffs.mean())).sum())
    is_binary = np.ptp(np.abs(moved)) < _NOTHING and n <= _EXACT
    outcomes = range(n_ahead, n + 1) if is_binary else (n,)
    tail = sum(comb(n, ahead) for ahead in outcomes) / 2**n
    return -normal_quantile(max(tail, _LEAST_P)) if tail < 0.5 else 0.0


def _score(difference: float, error: float, n_queries: int) -> float:
    """Return the normal score of a difference; where no two queries differ that of their signs."""
    if error or not difference:
        return normal_score(difference / error, n_queries - 1) if error else 0.0
    score = -normal_quantile(max(0.5**n_queries, 1e-300))
    return score if difference > 0 else -score


def _score_of(differences: Floats) -> float:
    error = float(differences.std(ddof=1)) / sqrt(len(differences))
    return _score(float(differences.mean()), error, len(differences))


def chance_of_winner(z: float, information: float, last: float) -> float:
    """Return the chance that judging the rest shows a winner, if the difference is as seen."""
    return _chance_above(z, information, last) + _chance_above(-z, information, last)


def _chance_above(z: float, information: float, last: float) -> float:
    """Return the chance that judging the rest lifts a score above the last boundary."""
    if information >= 1:
        return float(z > last)
    r = sqrt((1 - information) / information)
    return normal_cdf((z / sqrt(information) - last) / r)


def _decided(look: Look, critical: float, n_queries: int, *, is_winner: bool) -> DecidedDifference:
    outcome: Outcome = "tie"
    if is_winner:
        outcome = "b" if look.difference > 0 else "a"
    half = student_quantile(normal_cdf(critical), n_queries - 1) * look.error
    low, high = look.difference - half, look.difference + half
    if outcome == "tie":  # By signs, where few queries differ: t alone would leave 0 out.
        low, high = min(low, 0.0), max(high, 0.0)
    return DecidedDifference(outcome, look, low, high)
