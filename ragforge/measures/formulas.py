"""The second step: every measure as a function of the ranks of judged chunks.

Semantics are those of trec_eval: P@k divides by k, the ideal DCG is over all judged chunks and cut
at k, negative grades gain nothing and count as unjudged, and 0/0 is 0. Sums are correctly rounded
(`math.fsum`), so that they do not depend on an order or on the Python version.
"""

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum, log2
from typing import Final, Generic, Literal, TypeVar

from ragforge.measures.names import Measure
from ragforge.measures.rankings import JudgedRanking

NO_CUTOFF: Final = sys.maxsize


@dataclass(frozen=True, slots=True)
class Binary:
    """A judged ranking in which a chunk is relevant or not, and no more."""

    ranks: list[int]
    """Ranks of the relevant chunks, ascending."""
    nonrelevant_ranks: list[int]
    """Ranks of the chunks judged not relevant (grade 0 or above, but under the threshold)."""
    n_relevant: int
    n_nonrelevant: int
    n_retrieved: int


def binary(ranking: JudgedRanking, rel: int) -> Binary:
    """Cut the grades at `rel`, the lowest one that is relevant."""
    hits = list(zip(ranking.ranks, ranking.grades, strict=True))
    n_relevant = sum(grade >= rel for grade in ranking.judged)
    return Binary(
        [rank for rank, grade in hits if grade >= rel],
        [rank for rank, grade in hits if 0 <= grade < rel],
        n_relevant,
        sum(grade >= 0 for grade in ranking.judged) - n_relevant,
        ranking.n_retrieved,
    )


def _within(ranks: Sequence[int], cutoff: int | None) -> int:
    return len(ranks) if cutoff is None else bisect_right(ranks, cutoff)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _precision(query: Binary, measure: Measure) -> float:
    return _within(query.ranks, measure.cutoff) / (measure.cutoff or 1)


def _recall(query: Binary, measure: Measure) -> float:
    return _ratio(_within(query.ranks, measure.cutoff), query.n_relevant)


def _f1(query: Binary, measure: Measure) -> float:
    found = _within(query.ranks, measure.cutoff)
    return 2 * found / ((measure.cutoff or 0) + query.n_relevant)


def _success(query: Binary, measure: Measure) -> float:
    return float(_within(query.ranks, measure.cutoff) > 0)


def _reciprocal_rank(query: Binary, measure: Measure) -> float:
    return 1 / query.ranks[0] if _within(query.ranks, measure.cutoff) else 0.0


def _precision_sum(query: Binary, measure: Measure) -> float:
    reached = query.ranks[: _within(query.ranks, measure.cutoff)]
    return fsum(found / rank for found, rank in enumerate(reached, start=1))


def _relevant_in_top_r(query: Binary, measure: Measure) -> float:
    return bisect_right(query.ranks, query.n_relevant)


def _n_relevant(query: Binary, measure: Measure) -> float:
    return query.n_relevant


def _bpref(query: Binary, measure: Measure) -> float:
    """Buckley and Voorhees 2004, as trec_eval bounds it by min(R, N)."""
    n_relevant = query.n_relevant
    pairs = min(n_relevant, query.n_nonrelevant)
    above = (bisect_right(query.nonrelevant_ranks, rank) for rank in query.ranks)
    preferred = fsum(1 - min(n, n_relevant) / pairs if n else 1.0 for n in above)
    return _ratio(preferred, n_relevant)


def _rbp(query: Binary, measure: Measure) -> float:
    """Rank-biased precision over what is known to be relevant: Moffat and Zobel 2008."""
    reached = query.ranks[: _within(query.ranks, measure.cutoff)]
    return (1 - measure.p) * fsum(measure.p ** (rank - 1) for rank in reached)


def _n_retrieved(query: Binary, measure: Measure) -> float:
    return query.n_retrieved


def _n_relevant_retrieved(query: Binary, measure: Measure) -> float:
    return len(query.ranks)


def _set_precision(query: Binary, measure: Measure) -> float:
    return _ratio(len(query.ranks), query.n_retrieved)


def _set_f1(query: Binary, measure: Measure) -> float:
    return _ratio(2 * len(query.ranks), query.n_retrieved + query.n_relevant)


def _gain_at(ranks: Iterable[int], grades: Iterable[int], measure: Measure) -> float:
    """Sum gain / log2(rank + 1) down to the cutoff: Järvelin and Kekäläinen 2002."""
    cutoff = measure.cutoff or NO_CUTOFF
    exponential = measure.gain == "exp"
    return fsum(
        (2.0**grade - 1 if exponential else grade) / log2(rank + 1)
        for rank, grade in zip(ranks, grades, strict=True)
        if grade > 0 and rank <= cutoff
    )


def _dcg(query: JudgedRanking, measure: Measure) -> float:
    return _gain_at(query.ranks, query.grades, measure)


def _ideal_dcg(query: JudgedRanking, measure: Measure) -> float:
    grades = query.judged[: measure.cutoff]
    return _gain_at(range(1, len(grades) + 1), grades, measure)


def _err(query: JudgedRanking, measure: Measure) -> float:
    """Expected reciprocal rank: Chapelle et al. 2009, with an explicit top of the scale."""
    cutoff = measure.cutoff or NO_CUTOFF
    reads_on = 1.0
    terms = []
    for rank, grade in zip(query.ranks, query.grades, strict=True):
        if grade > 0 and rank <= cutoff:
            satisfied = (2 ** min(grade, measure.max_grade) - 1) / 2**measure.max_grade
            terms.append(reads_on * satisfied / rank)
            reads_on *= 1 - satisfied
    return fsum(terms)


def _judged(query: JudgedRanking, measure: Measure) -> float:
    """The share of the top k, or of all that was retrieved where that is less, with a grade."""
    reached = query.grades[: _within(query.ranks, measure.cutoff)]
    top = min(measure.cutoff or NO_CUTOFF, query.n_retrieved)
    return _ratio(sum(grade >= 0 for grade in reached), top)


Response = Literal["rises", "recall", "ratio", "constant", "free"]
"""How a value follows one grade that rises: it never falls; it rises within the cutoff and falls
beyond it; it is the ratio of two parts that never fall; it stays; it goes anywhere in [0, 1]."""

Query = TypeVar("Query", Binary, JudgedRanking)


@dataclass(frozen=True, slots=True)
class Formula(Generic[Query]):
    """How a measure is computed, and what its bounds need to know about it."""

    value: Callable[[Query, Measure], float]
    response: Response
    parts: tuple[Callable[[Query, Measure], float], Callable[[Query, Measure], float]] | None = None
    """Numerator and denominator of a "ratio"."""
    unbounded: bool = False
    """Whether values leave [0, 1]."""


def _quotient(
    part: Callable[[Query, Measure], float], whole: Callable[[Query, Measure], float]
) -> Formula[Query]:
    def value(query: Query, measure: Measure) -> float:
        return _ratio(part(query, measure), whole(query, measure))

    return Formula(value, "ratio", (part, whole))


BINARY: Final[dict[str, Formula[Binary]]] = {
    "P": Formula(_precision, "rises"),
    "R": Formula(_recall, "recall"),
    "F1": Formula(_f1, "recall"),
    "Success": Formula(_success, "rises"),
    "RR": Formula(_reciprocal_rank, "rises"),
    "AP": _quotient(_precision_sum, _n_relevant),
    "Rprec": _quotient(_relevant_in_top_r, _n_relevant),
    "bpref": Formula(_bpref, "free"),
    "RBP": Formula(_rbp, "rises"),
    "NumRet": Formula(_n_retrieved, "constant", unbounded=True),
    "NumRel": Formula(_n_relevant, "rises", unbounded=True),
    "NumRelRet": Formula(_n_relevant_retrieved, "rises", unbounded=True),
    "SetP": Formula(_set_precision, "rises"),
    "SetR": Formula(_recall, "recall"),
    "SetF": Formula(_set_f1, "recall"),
}
"""Measures that ask only whether a chunk is relevant."""

GRADED: Final[dict[str, Formula[JudgedRanking]]] = {
    "nDCG": _quotient(_dcg, _ideal_dcg),
    "DCG": Formula(_dcg, "rises", unbounded=True),
    "ERR": Formula(_err, "rises"),
    "Judged": Formula(_judged, "constant"),
}
"""Measures that use the grades themselves."""
