"""What the measures of a run mean together, in a sentence, and where to look next."""

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from ragforge.measures import Scores
from ragforge.measures.strata import Design, mean_over_queries

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
_MEASURES: Final = (_RECALL, "RR", _HIT_RATE, _NDCG)
_OF_TELLING: Final = ", where anything relevant is known"


def patterns(scores: Scores) -> list[str]:
    """Return what the measures of a run mean together; [] where they say nothing beyond themselves.

    Precision is held against what is possible: with one relevant chunk a query, P@5 is 0.2 at best.
    Queries of which nothing relevant is known tell nothing here; in a sample each counts by its
    weight.

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
    rescored = scores.rescore(_NEEDED, rel_threshold=scores.rel_threshold)
    # A query with evidence and no grade has a value of evidence alone.
    telling = {
        query_id: values
        for query_id, values in rescored.per_query.items()
        if values.get(_N_RELEVANT)
    }
    if len(telling) < _FEWEST_QUERIES:
        return []
    of = "" if len(telling) == len(rescored.per_query) else _OF_TELLING
    means = _means(telling, scores.design)._replace(of=of)
    return list(_sentences(means, scores.is_by_list))[:_MOST]


class _Means(NamedTuple):
    precision: float
    """Share of what is possible."""
    recall: float
    rr: float
    hit_rate: float
    ndcg: float
    of: str = ""
    """Of which queries, where these are not all: the means of a table are of all."""


def _means(per_query: Mapping[str, Mapping[str, float]], design: Design | None) -> _Means:
    """Return the means over queries, in a sample by the weights of its strata."""

    def mean(value: Callable[[Mapping[str, float]], float]) -> float:
        values = {query_id: value(of_query) for query_id, of_query in per_query.items()}
        return mean_over_queries(design, values) or 0.0

    recall, rr, hit_rate, ndcg = (mean(itemgetter(name)) for name in _MEASURES)
    return _Means(mean(_share_of_possible_precision), recall, rr, hit_rate, ndcg)


def _sentences(means: _Means, is_by_list: bool) -> Iterator[str]:
    if means.hit_rate < _LOW:
        yield (
            f"Fewer than half of the queries find anything relevant ({_HIT_RATE} "
            f"{means.hit_rate:.2f}{means.of}): look at the worst queries first; chunks, index or "
            "embedding do not fit the questions."
        )
        return
    if means.precision >= _HIGH and means.recall < _LOW:
        yield (
            f"What stands at the top is right, and much is missing ({_RECALL} "
            f"{means.recall:.2f}{means.of}): retrieve more, or let the retriever look further."
        )
    yield from _of_order(means, is_by_list)
    if means.recall >= _HIGH and means.precision < _LOW:
        yield (
            f"What is relevant comes among much else ({_PRECISION} at {means.precision:.0%} of "
            f"what is possible{means.of}): rerank, or pass fewer chunks on."
        )


def _of_order(means: _Means, is_by_list: bool) -> Iterator[str]:
    """Yield whether the order is to blame: what was never retrieved cannot be ranked better."""
    if means.recall >= _HIGH and means.rr < _LOW:
        yield (
            f"What is relevant is found, and stands too far down (RR {means.rr:.2f}, {_RECALL} "
            f"{means.recall:.2f}{means.of}): rerank."
        )
    elif means.hit_rate < _HIGH:
        return
    elif means.recall < _LOW and means.precision < _HIGH:
        yield (
            f"Most queries find something relevant, and miss most of it ({_HIT_RATE} "
            f"{means.hit_rate:.2f}, {_RECALL} {means.recall:.2f}{means.of}): retrieve more, or "
            "let the retriever look further."
        )
    elif means.recall >= _LOW and means.ndcg < _LOW and not is_by_list:
        yield (
            f"Most queries find something relevant, and not the best first ({_HIT_RATE} "
            f"{means.hit_rate:.2f}, {_NDCG} {means.ndcg:.2f}{means.of}): rerank, or look at what "
            "crowds the top."
        )


def _share_of_possible_precision(values: Mapping[str, float]) -> float:
    """Return precision over the best that so many relevant chunks allow, of which there is one."""
    return values[_PRECISION] * _DEPTH_OF_PRECISION / min(_DEPTH_OF_PRECISION, values[_N_RELEVANT])
