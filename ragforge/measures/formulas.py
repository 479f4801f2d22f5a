"""Every measure as a formula over columns.

Semantics are those of trec_eval: P@k divides by k, the ideal DCG is over all judged chunks and cut
at k, negative grades gain nothing and count as unjudged, and 0/0 is 0. Sums run down the ranking,
so that their last bit does not depend on an order or on the Python version.
"""

from collections.abc import Callable
from math import log2
from operator import add, sub
from typing import Final, Literal, NamedTuple

from ragforge.measures.columns import Column, Columns, Hits
from ragforge.measures.measure_names import OF_EVIDENCE, Measure, require_judgments_only

Value = Callable[[Columns, Measure, int], Column]
"""What a measure is for each query, given the lowest relevant grade."""

_INFAP_EPSILON: Final = 0.00001


def _n_found(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.count(columns.hits(rel), measure.cutoff)


def _n_relevant(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.n_judged(rel)


def _precision(columns: Columns, measure: Measure, rel: int) -> Column:
    cutoff = measure.cutoff
    return columns.each(lambda found: found / cutoff, _n_found(columns, measure, rel))


def _recall(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.ratio(_n_found(columns, measure, rel), _n_relevant(columns, measure, rel))


def _f1(columns: Columns, measure: Measure, rel: int) -> Column:
    cutoff = measure.cutoff
    found, relevant = _n_found(columns, measure, rel), _n_relevant(columns, measure, rel)
    return columns.each(lambda part, whole: 2 * part / (cutoff + whole), found, relevant)


def _success(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.each(lambda found: (found > 0) * 1.0, _n_found(columns, measure, rel))


def _reciprocal_rank(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.ratio(_success(columns, measure, rel), columns.first(columns.hits(rel)))


def _precision_sum(columns: Columns, measure: Measure, rel: int) -> Column:
    relevant = columns.hits(rel)
    precisions = columns.ratio(columns.seen(relevant, rel), columns.ranks(relevant))
    return columns.total(relevant, precisions, measure.cutoff)


def _relevant_in_top_r(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.count(columns.hits(rel), _n_relevant(columns, measure, rel))


def _bpref(columns: Columns, measure: Measure, rel: int) -> Column:
    """Buckley and Voorhees 2004, as trec_eval bounds it by min(R, N)."""
    relevant = columns.hits(rel)
    n_relevant = _n_relevant(columns, measure, rel)
    n_nonrelevant = columns.each(sub, columns.n_judged(0), n_relevant)
    pairs = columns.of_query(columns.least(n_relevant, n_nonrelevant), relevant)
    above = _nonrelevant_above(columns, relevant, rel)
    counted = columns.least(above, columns.of_query(n_relevant, relevant))
    preferred = columns.each(lambda share: 1 - share, columns.ratio(counted, pairs))
    return columns.ratio(columns.total(relevant, preferred, None), n_relevant)


def _inferred_ap(columns: Columns, measure: Measure, rel: int) -> Column:
    """Yilmaz and Aslam 2006: AP where grades below 0 mark pooled chunks left unjudged."""
    relevant = columns.hits(rel)
    unjudged_above = columns.each(sub, columns.seen(relevant, None), columns.seen(relevant, 0))
    expected = columns.each(
        _expected_precision,
        columns.ranks(relevant),
        columns.each(lambda place: place - 1, columns.seen(relevant, rel)),
        _nonrelevant_above(columns, relevant, rel),
        unjudged_above,
    )
    total = columns.total(relevant, expected, None)
    return columns.ratio(total, _n_relevant(columns, measure, rel))


def _expected_precision(
    rank: Column, relevant: Column, nonrelevant: Column, unjudged: Column
) -> Column:
    """The precision at the rank of a relevant chunk, from what is above it."""
    above = rank - 1
    # Nothing is above rank 1, so its share of zero is as good as any.
    pooled = (relevant + nonrelevant + unjudged) / (above + (above == 0))
    share = (relevant + _INFAP_EPSILON) / (relevant + nonrelevant + 2 * _INFAP_EPSILON)
    return 1.0 / rank + (above / rank) * pooled * share


def _nonrelevant_above(columns: Columns, relevant: Hits, rel: int) -> Column:
    return columns.each(sub, columns.seen(relevant, 0), columns.seen(relevant, rel))


def _rbp(columns: Columns, measure: Measure, rel: int) -> Column:
    """Rank-biased precision over what is known to be relevant: Moffat and Zobel 2008."""
    relevant = columns.hits(rel)
    persistence = measure.p
    terms = columns.at_rank(lambda rank: persistence ** (rank - 1), relevant)
    total = columns.total(relevant, terms, measure.cutoff)
    return columns.each(lambda value: (1 - persistence) * value, total)


def _n_retrieved(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.n_retrieved


def _set_precision(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.ratio(_n_found(columns, measure, rel), columns.n_retrieved)


def _set_f1(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.ratio(
        columns.each(lambda found: 2 * found, _n_found(columns, measure, rel)),
        columns.each(add, columns.n_retrieved, _n_relevant(columns, measure, rel)),
    )


def _gain(measure: Measure) -> Callable[[int], float]:
    return _exponential if measure.gain == "exp" else float


def _exponential(grade: int) -> float:
    return 2.0**grade - 1


def _discount(rank: int) -> float:
    return log2(rank + 1)


def _dcg(columns: Columns, measure: Measure, rel: int) -> Column:
    """Järvelin and Kekäläinen 2002: the sum of gain / log2(rank + 1)."""
    gaining = columns.hits(1)
    gains = columns.at_grade(_gain(measure), gaining)
    terms = columns.ratio(gains, columns.at_rank(_discount, gaining))
    return columns.total(gaining, terms, measure.cutoff)


def _ideal_dcg(columns: Columns, measure: Measure, rel: int) -> Column:
    return columns.ideal(_gain(measure), _discount, measure.cutoff)


def _err(columns: Columns, measure: Measure, rel: int) -> Column:
    """Expected reciprocal rank: Chapelle et al. 2009, with an explicit top of the scale."""
    top = measure.max_grade
    gaining = columns.hits(1)
    satisfied = columns.at_grade(lambda grade: (2 ** min(grade, top) - 1) / 2**top, gaining)
    reads_on = columns.product_above(gaining, columns.each(lambda chance: 1 - chance, satisfied))
    terms = columns.ratio(
        columns.each(lambda chance, on: on * chance, satisfied, reads_on), columns.ranks(gaining)
    )
    return columns.total(gaining, terms, measure.cutoff)


def _judged(columns: Columns, measure: Measure, rel: int) -> Column:
    """The share of the top k, or of all that was retrieved where that is less, with a grade."""
    assert measure.cutoff is not None
    reached = columns.least(columns.n_retrieved, measure.cutoff)
    return columns.ratio(columns.count(columns.hits(0), measure.cutoff), reached)


def _from_evidence(columns: Columns, measure: Measure, rel: int) -> Column:
    """Refuse: judgments and rankings alone do not tell; see `evidence_coverage`."""
    require_judgments_only([str(measure)])


Response = Literal["rises", "recall", "ratio", "constant", "free"]
"""How a value follows one grade that rises: it never falls; it rises within the cutoff and falls
beyond it; it is the ratio of two parts that never fall; it stays; it goes anywhere in [0, 1]."""


class Formula(NamedTuple):
    """How a measure is computed, and what its bounds need to know about it."""

    value: Value
    response: Response
    parts: tuple[Value, Value] | None = None
    """Numerator and denominator of a "ratio"."""
    graded: bool = False
    """Whether the grades count, rather than only whether they reach the threshold."""
    unbounded: bool = False
    """Whether values leave [0, 1]."""


def _quotient(part: Value, whole: Value, *, graded: bool = False) -> Formula:
    def value(columns: Columns, measure: Measure, rel: int) -> Column:
        return columns.ratio(part(columns, measure, rel), whole(columns, measure, rel))

    return Formula(value, "ratio", (part, whole), graded=graded)


FORMULAS: Final[dict[str, Formula]] = {
    "P": Formula(_precision, "rises"),
    "R": Formula(_recall, "recall"),
    "F1": Formula(_f1, "recall"),
    "Success": Formula(_success, "rises"),
    "RR": Formula(_reciprocal_rank, "rises"),
    "AP": _quotient(_precision_sum, _n_relevant),
    "infAP": Formula(_inferred_ap, "free"),
    "Rprec": _quotient(_relevant_in_top_r, _n_relevant),
    "bpref": Formula(_bpref, "free"),
    "RBP": Formula(_rbp, "rises"),
    "NumRet": Formula(_n_retrieved, "constant", unbounded=True),
    "NumRel": Formula(_n_relevant, "rises", unbounded=True),
    "NumRelRet": Formula(_n_found, "rises", unbounded=True),
    "SetP": Formula(_set_precision, "rises"),
    "SetR": Formula(_recall, "recall"),
    "SetF": Formula(_set_f1, "recall"),
    "nDCG": _quotient(_dcg, _ideal_dcg, graded=True),
    "DCG": Formula(_dcg, "rises", graded=True, unbounded=True),
    "ERR": Formula(_err, "rises", graded=True),
    "Judged": Formula(_judged, "constant", graded=True),
    **dict.fromkeys(sorted(OF_EVIDENCE), Formula(_from_evidence, "free")),
}
"""Every measure by name."""
