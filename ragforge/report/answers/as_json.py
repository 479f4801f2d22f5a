"""The numbers about one system's answers as one JSON object, of a shape that stays.

    {"rates": {NAME: RATE}, "slices": [{dimension, value, n_queries, is_small, rates}],
     "length": {slope, p, n, is_suspicious},
     "given": {sources, n_given, n_both, n_same, kappa, mean_score_given, mean_score_judged,
               differing: [{query_id, given, judged}]},
     "diagnosis": [{run, readings: {READING: {count, share: RATE}}, undecided: {REASON: count},
                    queries: [{query_id, retrieval, answer, reading, reason}], context}]}

A RATE is {mean, low, high, n, n_failed, n_absent, bound_low, bound_high}. What is not known is
null, and never 0.
"""

from collections.abc import Iterable

from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate
from ragforge.report.answers.context import ContextGroup, ContextUse
from ragforge.report.answers.diagnosis import Diagnosis
from ragforge.report.answers.rates import AnswerSlice, LengthCheck
from ragforge.report.answers.summary import AnswerSummary, GivenBeside
from ragforge.report.selection import selection_json

JsonObject = dict[str, object]


def answers_json(item: AnswerSummary) -> JsonObject:
    """Return all numbers about the answers of a system."""
    return {
        **({"selection": selection_json(item.part.selection)} if item.part else {}),
        "rates": _rates(item.rates),
        "slices": [_slice(part) for part in item.slices],
        "length": _length(item.length),
        "given": _given(item.given),
        "diagnosis": [_diagnosis(grid) for grid in item.diagnoses],
    }


def _given(found: GivenBeside | None) -> JsonObject | None:
    if found is None:
        return None
    return {
        "sources": list(found.sources),
        "n_given": found.n_given,
        "n_both": len(found.pairs),
        "n_same": len(found.pairs) - len(found.differing),
        "kappa": found.kappa,
        "mean_score_given": found.mean_given,
        "mean_score_judged": found.mean_judged,
        "differing": [
            {"query_id": query_id, "given": given, "judged": judged}
            for query_id, given, judged in found.pairs
            if given != judged
        ],
    }


def rate_json(rate: Rate) -> JsonObject:
    """Return a rate; its interval is `low` to `high`."""
    return {
        "mean": rate.mean,
        **_ends(rate.interval, "low", "high"),
        "n": rate.n,
        "n_failed": rate.n_failed,
        "n_absent": rate.n_absent,
        **_ends(rate.bounds, "bound_low", "bound_high"),
    }


def _ends(found: Ends | None, low: str, high: str) -> JsonObject:
    return {low: found.low if found else None, high: found.high if found else None}


def _rates(rates: dict[str, Rate]) -> JsonObject:
    return {name: rate_json(rate) for name, rate in rates.items()}


def _slice(part: AnswerSlice) -> JsonObject:
    return {
        "dimension": part.dimension,
        "value": part.value,
        "n_queries": part.n_queries,
        "is_small": part.is_small,
        "rates": _rates(part.rates),
    }


def _length(check: LengthCheck) -> JsonObject:
    found = check.slope
    is_suspicious = check.is_suspicious
    return {"slope": found.slope, "p": found.p, "n": found.n, "is_suspicious": is_suspicious}


def _diagnosis(grid: Diagnosis) -> JsonObject:
    return {
        "run": grid.run or None,
        "readings": {
            cell.reading: {"count": len(cell.query_ids), "share": rate_json(cell.share)}
            for cell in grid.cells
        },
        "undecided": {item.reason: len(item.query_ids) for item in grid.undecided},
        "queries": sorted(_queries(grid), key=lambda row: str(row["query_id"])),
        "context": _context(grid.context),
    }


def _queries(grid: Diagnosis) -> Iterable[JsonObject]:
    for cell in grid.cells:
        for query_id in cell.query_ids:
            yield {
                "query_id": query_id,
                "retrieval": "good" if cell.retrieval_is_good else "bad",
                "answer": "good" if cell.answer_is_good else "bad",
                "reading": cell.reading,
                "reason": None,
            }
    for item in grid.undecided:
        for query_id in item.query_ids:
            yield {
                "query_id": query_id,
                "retrieval": None,
                "answer": None,
                "reading": None,
                "reason": item.reason,
            }


def _context(use: ContextUse) -> JsonObject:
    apart = use.difference
    return {
        "precision": rate_json(use.precision),
        "n_chunks": use.n_chunks,
        "n_unjudged": use.n_unjudged,
        "relevant_only": _group(use.clean),
        "with_irrelevant": _group(use.noisy),
        "difference": None
        if apart is None
        else {"mean": apart.mean, **_ends(apart.interval, "low", "high")},
        "n_open": use.n_open,
    }


def _group(group: ContextGroup) -> JsonObject:
    return {"score": rate_json(group.score), "wrong_claims": rate_json(group.wrong_claims)}
