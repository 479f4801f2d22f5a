"""What a value could have been, or the difference of two runs, were nothing failed or unjudged.

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

Of two runs some chunks may have other grades than none. The chunks are the same in both, and so are
their grades: a chunk at one rank in both moves P@5 in neither. The extremes of the difference are
those over all joint grades, and exact, for

* measures that are a weighted sum of what the chunks are worth over something that all grades lift
  alike (P, R, F1, RBP, DCG, NumRelRet, SetP, nDCG): see `_greatest_quotient`;
* RR and Success, where one relevant chunk settles a query: see `_greatest_first`.

For the others (AP, infAP, Rprec, bpref, ERR, SetF) each run is bounded on its own, as if a chunk
could have one grade in the one run and another in the other: valid, but wider than needed.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, combinations_with_replacement, pairwise, product
from math import comb, inf, log2
from operator import neg
from typing import Final, NamedTuple

from ragforge.measures.columns import ListColumns
from ragforge.measures.formulas import FORMULAS, Value
from ragforge.measures.hit_table import FailedJudgments, JudgedRanking, Table
from ragforge.measures.measure_names import Measure

ENUMERATED: Final = 256
"""Outcomes of one query's failed judgments that are tried one by one; 4 ** 4."""
_BY_FIRST: Final = frozenset({"RR", "Success"})
_BY_QUOTIENT: Final = frozenset({
    "P", "R", "F1", "RBP", "nDCG", "DCG", "NumRelRet", "SetP", "SetR",
})  # fmt: skip
_BY_COUNT: Final = frozenset({"P", "R", "F1", "NumRelRet", "SetR"})
"""Those of them to which all chunks within the cutoff are alike."""
_DEPTHS: Final = 64
"""Tables of discounts are made for multiples of this depth, so that few are made."""


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


class OpenChunk(NamedTuple):
    """A chunk of unknown grade, and its ranks in the two runs; None where it was not retrieved."""

    rank_a: int | None
    rank_b: int | None


class OpenQuery(NamedTuple):
    """A query as two runs answered it, with chunks of unknown grade."""

    a: JudgedRanking
    b: JudgedRanking
    """Both with the same judged chunks, and without failed ones."""
    chunks: Sequence[OpenChunk]

    def mirrored(self) -> "OpenQuery":
        """Return the same with the runs swapped."""
        chunks = [OpenChunk(chunk.rank_b, chunk.rank_a) for chunk in self.chunks]
        return OpenQuery(self.b, self.a, chunks)


def difference_bounds(query: OpenQuery, measure: Measure, rel: int, top: int) -> Interval:
    """Bound the value of run b less that of run a, over every grade of the open chunks.

    Args:
        query: The two rankings.
        measure: The measure.
        rel: Lowest relevant grade.
        top: Highest grade that a chunk could have.
    """
    if measure.name in _BY_FIRST:
        least = -_greatest_first(query.mirrored(), measure, rel, top)
        return Interval(least, _greatest_first(query, measure, rel, top))
    if measure.name in _BY_COUNT:
        return _counted_bounds(query, measure, rel, top)
    if measure.name in _BY_QUOTIENT:
        return _quotient_bounds(query, measure, rel, top)
    a = judgment_bounds(_opened(query.a, query, 0), measure, rel, top)
    b = judgment_bounds(_opened(query.b, query, 1), measure, rel, top)
    return Interval(b.low - a.high, b.high - a.low)


def _opened(ranking: JudgedRanking, query: OpenQuery, side: int) -> JudgedRanking:
    """Return one ranking with the open chunks as failed judgments."""
    ranks = sorted(rank for chunk in query.chunks if (rank := chunk[side]) is not None)
    return ranking._replace(failed=FailedJudgments(ranks, len(query.chunks) - len(ranks)))


def _greatest_first(query: OpenQuery, measure: Measure, rel: int, top: int) -> float:
    """Return the greatest difference of RR or Success.

    One open chunk that is relevant, or none, is enough to get there: of several only the first of
    each run matters, and to the gain of run b the first in b. What only b has is the better the
    higher it stands, and what b has not is of no use to it.
    """
    by_rank = measure.name == "RR"

    def value(rank: int | None) -> float:
        if rank is None or (measure.cutoff is not None and rank > measure.cutoff):
            return 0.0
        return 1 / rank if by_rank else 1.0

    def known(ranking: JudgedRanking) -> float:
        hits = zip(ranking.ranks, ranking.grades, strict=True)
        return value(next((rank for rank, grade in hits if grade >= rel), None))

    a, b = known(query.a), known(query.b)
    if top < rel:
        return b - a
    first = min((c.rank_b for c in query.chunks if c.rank_a is None and c.rank_b), default=None)
    in_both = [chunk for chunk in query.chunks if chunk.rank_a and chunk.rank_b]
    candidates = [OpenChunk(None, first), *in_both]
    return max(max(b, value(chunk.rank_b)) - max(a, value(chunk.rank_a)) for chunk in candidates)


class _Scale(NamedTuple):
    """A weighted sum over chunks, divided by `fixed` and what the best chunks add to it.

    A chunk of grade g is worth the sum of `worth` over the levels up to g.
    """

    levels: Sequence[int]
    """Grades at which a chunk becomes worth more, ascending."""
    worth: Sequence[float]
    """By how much, for each level."""
    weigh_a: Callable[[int], float]
    """Weight of a rank in run a."""
    weigh_b: Callable[[int], float]
    fixed: float
    lift: Callable[[int], float]
    """What so many chunks that reach a level add to the divisor, for each unit of worth: 0 for
    none, and each chunk more adds no more than the one before."""


def _counted_bounds(query: OpenQuery, measure: Measure, rel: int, top: int) -> Interval:
    """Bound the difference of a measure that counts chunks: few numbers say all of a query."""
    last = measure.cutoff or inf
    in_a, in_b = (
        sum(rank <= last and grade >= rel for rank, grade in zip(of.ranks, of.grades, strict=True))
        for of in (query.a, query.b)
    )
    weights = [
        (b is not None and b <= last) - (a is not None and a <= last) for a, b in query.chunks
    ]
    return _bounds_of_counts(
        measure,
        known=in_b - in_a,
        better=weights.count(1),
        even=weights.count(0),
        worse=weights.count(-1),
        relevant=_reaching(query.a.judged, rel),
        reachable=int(rel <= top),
    )


@lru_cache(maxsize=4096)
def _bounds_of_counts(
    measure: Measure,
    *,
    known: int,
    better: int,
    even: int,
    worse: int,
    relevant: int,
    reachable: int,
) -> Interval:
    """Bound the difference of a measure that counts chunks.

    Args:
        measure: The measure.
        known: Relevant chunks that run b has within the cutoff, less those of run a.
        better: Open chunks that only run b has there.
        even: Those that both have, or neither.
        worse: Those that only run a has.
        relevant: Chunks known to be relevant.
        reachable: 1 where an open chunk could be relevant, 0 where none.
    """
    weights = [*[1.0] * better, *[0.0] * even, *[-1.0] * worse]
    return _between(float(known), weights, [relevant], _counting_scale(measure, 1), reachable)


def _quotient_bounds(query: OpenQuery, measure: Measure, rel: int, top: int) -> Interval:
    """Bound the difference of a measure that a `_Scale` describes."""
    scale = _scale(query, measure, rel, top)
    counts = [_reaching(query.a.judged, level) for level in scale.levels]
    known = _sum(query.b, scale, scale.weigh_b) - _sum(query.a, scale, scale.weigh_a)
    weights = [_weight(chunk, scale) for chunk in query.chunks]
    reachable = sum(level <= top for level in scale.levels)
    return _between(known, weights, counts, scale, reachable)


def _between(
    known: float, weights: Sequence[float], counts: Sequence[int], scale: _Scale, reachable: int
) -> Interval:
    """Return the least and the greatest difference; see `_greatest_quotient`."""
    mirrored = [-weight for weight in weights]
    return Interval(
        -_greatest_quotient(-known, mirrored, counts, scale, reachable),
        _greatest_quotient(known, weights, counts, scale, reachable),
    )


def _reaching(judged: Sequence[int], level: int) -> int:
    """Return how many grades are at least a level; the highest come first."""
    return bisect_right(judged, -level, key=neg)


def _greatest_quotient(
    known: float, weights: Sequence[float], counts: Sequence[int], scale: _Scale, reachable: int
) -> float:
    """Return the greatest difference that open chunks of some weights allow.

    Let w be a chunk's weight in b less that in a. Where b can come out ahead, chunks with w <= 0
    are best at grade 0: more lowers the sum and lifts the divisor. Where b stays behind, chunks
    with w >= 0 are best at the top, as they lift the divisor too, and of the others those of
    least size are at the top or at 0 all together.
    """
    weights = sorted(weights, reverse=True)
    n_up = 0
    rising = [0.0]
    for weight in weights:
        if weight <= 0:
            break
        n_up += 1
        rising.append(rising[-1] + weight)
    full = sum(scale.worth[:reachable])
    most = known + full * rising[-1]
    if most >= 0:
        return _ahead(known, rising, counts, scale, reachable)
    if scale.lift is _nothing:
        return most / scale.fixed
    while n_up < len(weights) and weights[n_up] >= 0:
        n_up += 1
    falling = [0.0, *accumulate(weights[n_up:])]
    return max(
        (most + full * loss) / _divisor(scale, counts, [n_up + n] * reachable)
        for n, loss in enumerate(falling)
    )


def _ahead(
    known: float, rising: list[float], counts: Sequence[int], scale: _Scale, reachable: int
) -> float:
    """Return the greatest quotient where one of at least 0 is possible.

    For a quotient t, the sum less t times the divisor is a sum over the levels, and the more known
    chunks a level has, the less a further one lifts the divisor. So the best numbers of chunks for
    each level, `rising` in weight, nest by themselves: who reaches a level reaches those below.

    Source: Dinkelbach 1967, Management Science 13(7).
    """
    last = len(rising) - 1
    numbers = [last] * reachable
    quotient = 0.0
    while True:
        divisor = _divisor(scale, counts, numbers)
        gained = [worth * rising[n] for worth, n in zip(scale.worth, numbers, strict=False)]
        found = (known + sum(gained)) / divisor if divisor else 0.0
        # With nothing to choose, or where no chunk lifts the divisor, all of them are best.
        if found <= quotient or not last or scale.lift is _nothing:
            return max(quotient, found)
        quotient = found
        numbers = [_best(rising, scale, found, count) for count in counts[:reachable]]


def _best(rising: list[float], scale: _Scale, quotient: float, count: int) -> int:
    """Return how many more chunks at a level gain most beyond the quotient."""
    lift = scale.lift
    gains = [weight - quotient * lift(count + n) for n, weight in enumerate(rising)]
    return gains.index(max(gains))


def _divisor(scale: _Scale, counts: Sequence[int], more: Sequence[int]) -> float:
    lift = scale.lift
    if lift is _nothing:
        return scale.fixed
    added = [*more, *[0] * (len(counts) - len(more))]
    terms = [
        worth * lift(count + n) for worth, count, n in zip(scale.worth, counts, added, strict=True)
    ]
    return scale.fixed + sum(terms)


def _sum(ranking: JudgedRanking, scale: _Scale, weigh: Callable[[int], float]) -> float:
    gains = [0.0, *accumulate(scale.worth)]
    levels = scale.levels
    hits = zip(ranking.ranks, ranking.grades, strict=True)
    return sum([weigh(rank) * gains[bisect_right(levels, grade)] for rank, grade in hits])


def _weight(chunk: OpenChunk, scale: _Scale) -> float:
    of_a = 0.0 if chunk.rank_a is None else scale.weigh_a(chunk.rank_a)
    of_b = 0.0 if chunk.rank_b is None else scale.weigh_b(chunk.rank_b)
    return of_b - of_a


def _scale(query: OpenQuery, measure: Measure, rel: int, top: int) -> _Scale:
    if measure.name in {"nDCG", "DCG"}:
        return _graded_scale(query, measure, top)
    if measure.name == "SetP":
        return _Scale([rel], [1.0], _evenly(query.a), _evenly(query.b), 1.0, _nothing)
    return _counting_scale(measure, rel)


@lru_cache
def _counting_scale(measure: Measure, rel: int) -> _Scale:
    """Return the scale of a measure by what is relevant, whatever the rankings."""
    cutoff = measure.cutoff or inf
    name = measure.name

    def weigh(rank: int) -> float:
        if rank > cutoff:
            return 0.0
        return measure.p ** (rank - 1) if name == "RBP" else 1.0

    fixed = {"P": cutoff, "F1": cutoff / 2, "RBP": 1 / (1 - measure.p), "NumRelRet": 1.0}
    lifts: dict[str, Callable[[int], float]] = {"F1": _half, "R": float, "SetR": float}
    return _Scale([rel], [1.0], weigh, weigh, fixed.get(name, 0.0), lifts.get(name, _nothing))


def _graded_scale(query: OpenQuery, measure: Measure, top: int) -> _Scale:
    judged = query.a.judged
    levels = range(1, max(top, judged[0] if judged else 1, 1) + 1)
    worth = _level_gains(len(levels), is_exponential=measure.gain == "exp")
    open_ranks = [rank or 0 for chunk in query.chunks for rank in chunk]
    n_most = len(judged) + len(query.chunks)
    deepest = max([*query.a.ranks[-1:], *query.b.ranks[-1:], *open_ranks, n_most])
    discounts, lifts = _discounts(measure.cutoff, -(-deepest // _DEPTHS) * _DEPTHS)
    weigh = discounts.__getitem__
    if measure.name == "DCG":
        return _Scale(levels, worth, weigh, weigh, 1.0, _nothing)
    return _Scale(levels, worth, weigh, weigh, 0.0, lifts.__getitem__)


@lru_cache
def _level_gains(n_levels: int, *, is_exponential: bool) -> Sequence[float]:
    """Return what each grade from 1 on is worth more than the one below."""
    levels = range(n_levels + 1)
    gains = [2.0**level - 1 if is_exponential else float(level) for level in levels]
    return [high - low for low, high in pairwise(gains)]


@lru_cache
def _discounts(cutoff: int | None, n_ranks: int) -> tuple[Sequence[float], Sequence[float]]:
    """Return the discount of each rank, from 0 on, and the sums of those up to each rank."""
    reach = cutoff or n_ranks
    of_ranks = [1 / log2(rank + 1) if rank <= reach else 0.0 for rank in range(1, n_ranks + 1)]
    return [0.0, *of_ranks], list(accumulate(of_ranks, initial=0.0))


def _evenly(ranking: JudgedRanking) -> Callable[[int], float]:
    share = 1 / ranking.n_retrieved if ranking.n_retrieved else 0.0
    return lambda rank: share


def _nothing(count: int) -> float:
    return 0.0


def _half(count: int) -> float:
    return count / 2
