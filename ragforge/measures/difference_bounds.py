"""By how much two runs could differ on a query if some chunks had other grades than none.

The chunks are the same in both runs, and so are their grades: a chunk at one rank in both moves
P@5 in neither. The extremes are those over all joint grades, and exact, for

* measures that are a weighted sum of what the chunks are worth over something that all grades lift
  alike (P, R, F1, RBP, DCG, NumRelRet, SetP, nDCG): see `_greatest_quotient`;
* RR and Success, where one relevant chunk settles a query: see `_greatest_first`.

For the others (AP, infAP, Rprec, bpref, ERR, SetF) each run is bounded on its own, as if a chunk
could have one grade in the one run and another in the other: valid, but wider than needed.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import inf, log2
from typing import Final, NamedTuple

from ragforge.measures.bounds import Interval, judgment_bounds
from ragforge.measures.hit_table import FailedJudgments, JudgedRanking
from ragforge.measures.measure_names import Measure


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
    greatest = _GREATEST.get(measure.name)
    if greatest is not None:
        least = -greatest(query.mirrored(), measure, rel, top)
        return Interval(least, greatest(query, measure, rel, top))
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


def _greatest_quotient(query: OpenQuery, measure: Measure, rel: int, top: int) -> float:
    """Return the greatest difference of a measure that a `_Scale` describes.

    Let w be a chunk's weight in b less that in a. Where b can come out ahead, chunks with w <= 0
    are best at grade 0: more lowers the sum and lifts the divisor. Where b stays behind, chunks
    with w >= 0 are best at the top, as they lift the divisor too, and of the others those of
    least size are at the top or at 0 all together.
    """
    scale = _scale(query, measure, rel, top)
    counts = [sum(grade >= level for grade in query.a.judged) for level in scale.levels]
    known = _sum(query.b, scale, scale.weigh_b) - _sum(query.a, scale, scale.weigh_a)
    weights = sorted((_weight(chunk, scale) for chunk in query.chunks), reverse=True)
    rising = [0.0, *accumulate(weight for weight in weights if weight > 0)]
    reachable = sum(level <= top for level in scale.levels)
    full = sum(scale.worth[:reachable])
    most = known + full * rising[-1]
    if most >= 0:
        return _ahead(known, rising, counts, scale, reachable)
    n_up = sum(weight >= 0 for weight in weights)
    falling = [0.0, *accumulate(weights[n_up:])]
    return max(
        (most + full * loss) / _divisor(scale, counts, [n_up + n] * reachable)
        for n, loss in enumerate(falling)
    )


def _ahead(
    known: float, rising: list[float], counts: list[int], scale: _Scale, reachable: int
) -> float:
    """Return the greatest quotient where one of at least 0 is possible.

    For a quotient t, the sum less t times the divisor is a sum over the levels, and the more known
    chunks a level has, the less a further one lifts the divisor. So the best numbers of chunks for
    each level, `rising` in weight, nest by themselves: who reaches a level reaches those below.

    Source: Dinkelbach 1967, Management Science 13(7).
    """
    numbers = [len(rising) - 1] * reachable
    quotient = 0.0
    while True:
        divisor = _divisor(scale, counts, numbers)
        gained = (worth * rising[n] for worth, n in zip(scale.worth, numbers, strict=False))
        found = (known + sum(gained)) / divisor if divisor else 0.0
        if found <= quotient:
            return quotient
        quotient = found
        numbers = [_best(rising, scale, found, count) for count in counts[:reachable]]


def _best(rising: list[float], scale: _Scale, quotient: float, count: int) -> int:
    """Return how many more chunks at a level gain most beyond the quotient."""
    return max(range(len(rising)), key=lambda n: rising[n] - quotient * scale.lift(count + n))


def _divisor(scale: _Scale, counts: Sequence[int], more: Sequence[int]) -> float:
    added = [*more, *[0] * (len(counts) - len(more))]
    return scale.fixed + sum(
        worth * scale.lift(count + n)
        for worth, count, n in zip(scale.worth, counts, added, strict=True)
    )


def _sum(ranking: JudgedRanking, scale: _Scale, weigh: Callable[[int], float]) -> float:
    return sum(
        weigh(rank)
        * sum(w for level, w in zip(scale.levels, scale.worth, strict=True) if g >= level)
        for rank, g in zip(ranking.ranks, ranking.grades, strict=True)
    )


def _weight(chunk: OpenChunk, scale: _Scale) -> float:
    of_a = 0.0 if chunk.rank_a is None else scale.weigh_a(chunk.rank_a)
    of_b = 0.0 if chunk.rank_b is None else scale.weigh_b(chunk.rank_b)
    return of_b - of_a


def _scale(query: OpenQuery, measure: Measure, rel: int, top: int) -> _Scale:
    cutoff = measure.cutoff or inf
    name = measure.name
    if name in {"nDCG", "DCG"}:
        return _graded_scale(query, measure, top)
    if name == "SetP":
        return _Scale([rel], [1.0], _evenly(query.a), _evenly(query.b), 1.0, _nothing)

    def weigh(rank: int) -> float:
        if rank > cutoff:
            return 0.0
        return measure.p ** (rank - 1) if name == "RBP" else 1.0

    fixed = {"P": cutoff, "F1": cutoff / 2, "RBP": 1 / (1 - measure.p), "NumRelRet": 1.0}
    lifts: dict[str, Callable[[int], float]] = {"F1": _half, "R": float, "SetR": float}
    return _Scale([rel], [1.0], weigh, weigh, fixed.get(name, 0.0), lifts.get(name, _nothing))


def _graded_scale(query: OpenQuery, measure: Measure, top: int) -> _Scale:
    levels = range(1, max(top, *query.a.judged[:1], 1) + 1)
    gains = [2.0**level - 1 if measure.gain == "exp" else float(level) for level in (0, *levels)]
    worth = [high - low for low, high in pairwise(gains)]
    cutoff = measure.cutoff or inf

    def weigh(rank: int) -> float:
        return 1 / log2(rank + 1) if rank <= cutoff else 0.0

    if measure.name == "DCG":
        return _Scale(levels, worth, weigh, weigh, 1.0, _nothing)
    n_most = len(query.a.judged) + len(query.chunks)
    lifts = list(accumulate(map(weigh, range(1, n_most + 1)), initial=0.0))
    return _Scale(levels, worth, weigh, weigh, 0.0, lifts.__getitem__)


def _evenly(ranking: JudgedRanking) -> Callable[[int], float]:
    share = 1 / ranking.n_retrieved if ranking.n_retrieved else 0.0
    return lambda rank: share


def _nothing(count: int) -> float:
    return 0.0


def _half(count: int) -> float:
    return count / 2


_GREATEST: Final[dict[str, Callable[[OpenQuery, Measure, int, int], float]]] = {
    "RR": _greatest_first,
    "Success": _greatest_first,
    **dict.fromkeys(
        ("P", "R", "F1", "RBP", "nDCG", "DCG", "NumRelRet", "SetP", "SetR"), _greatest_quotient
    ),
}
