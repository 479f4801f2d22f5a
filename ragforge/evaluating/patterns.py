"""What the measures of a run mean together, in a sentence, and where to look next."""

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from ragforge.measures import Scores

_PRECISION: Final = "P@5"
_RECALL: Final = "R@10"
_HIT_RATE: Final = "Success@10"
_NDCG: Final = "nDCG@10"
_N_RELEVANT: Final = "NumRel"
_NEEDED: Final = (_PRECISION, _RECALL, "RR", _HIT_RATE, _NDCG, _N_RELEVANT)
_HIGH: Final = 0.7
_LOW: Final = 0.5
_MOST: Final = 2
"""Sentences; a third would only say one of them again."""
_FEWEST_QUERIES: Final = 5
_MOST_MISSING: Final = 0.1
"""Share of the queries that a run may lack before that is what its measures show."""
_DEPTH_OF_PRECISION: Final = 5


def patterns(scores: Scores) -> list[str]:
    """Return what the measures of a run mean together; [] where they say nothing beyond themselves.

    Precision is held against what is possible: with one relevant chunk a query, P@5 is 0.2 at best.

    Args:
        scores: Of a run; what is needed is computed from it.
    """
    if len(scores.query_ids) < _FEWEST_QUERIES:
        return []
    missing = set(scores.missing_from_run).intersection(scores.query_ids)
    if len(missing) > _MOST_MISSING * len(scores.query_ids):
        return [
            f"{len(missing):,} of {len(scores.query_ids):,} queries are not in the run and count "
            "0, so that its measures say little else: retrieve for them, or measure the others "
            "alone (--only-retrieved)."
        ]
    found = scores.rescore(_NEEDED, rel_threshold=scores.rel_threshold)
    return list(_sentences(found))[:_MOST]


def _sentences(scores: Scores) -> Iterator[str]:
    precision = _share_of_possible_precision(scores)
    recall, rr, hit_rate, ndcg = (
        scores.mean(name) or 0.0 for name in (_RECALL, "RR", _HIT_RATE, _NDCG)
    )
    if hit_rate < _LOW:
        yield (
            f"Fewer than half of the queries find anything relevant ({_HIT_RATE} {hit_rate:.2f}): "
            "look at the worst queries first; chunks, index or embedding do not fit the questions."
        )
        return
    if precision is not None and precision >= _HIGH and recall < _LOW:
        yield (
            f"What stands at the top is right, and much is missing ({_RECALL} {recall:.2f}): "
            "retrieve more, or let the retriever look further."
        )
    if recall >= _HIGH and rr < _LOW:
        yield (
            f"What is relevant is found, and stands too far down (RR {rr:.2f}, {_RECALL} "
            f"{recall:.2f}): rerank."
        )
    elif hit_rate >= _HIGH and ndcg < _LOW:
        yield (
            f"Most queries find something relevant, and not the best first ({_HIT_RATE} "
            f"{hit_rate:.2f}, {_NDCG} {ndcg:.2f}): rerank, or look at what crowds the top."
        )
    if recall >= _HIGH and precision is not None and precision < _LOW:
        yield (
            f"What is relevant comes among much else ({_PRECISION} at {precision:.0%} of what is "
            "possible): rerank, or pass fewer chunks on."
        )


def _share_of_possible_precision(scores: Scores) -> float | None:
    """Return precision over the best that so many relevant chunks allow; None where none is."""
    shares = [
        value / (min(_DEPTH_OF_PRECISION, n_relevant) / _DEPTH_OF_PRECISION)
        for value, n_relevant in zip(
            scores.values(_PRECISION), scores.values(_N_RELEVANT), strict=True
        )
        if n_relevant
    ]
    return fmean(shares) if shares else None
