"""How far the pools of a version are judged, read as two streams side by side."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import Key, key_of, query_and_chunk
from ragforge.records import Judgment, Query

_RELEVANT = 2


@dataclass(frozen=True, slots=True)
class GradedPools:
    """The pools of some queries.

    Args:
        n_pairs: Queries with a chunk of their pool.
        n_holes: Those without a grade.
        relevant: Ids of the queries to which somebody found a chunk relevant: grade 2 or 3, by a
            person or a judge.
    """

    n_pairs: int
    n_holes: int
    relevant: frozenset[str]


def graded_pools(dataset: Dataset, query_ids: Collection[str]) -> GradedPools:
    """Return how far the pools of some queries are judged; neither file is held in memory.

    Raises:
        DataError: A file cannot be read.
    """
    relevant = set[str]()
    grades = _graded(dataset, query_ids, relevant)
    graded = next(grades, None)
    n_pairs = n_holes = 0
    for entry in dataset.each_pool_entry():
        if entry.query_id not in query_ids:
            continue
        pair = query_and_chunk(entry)
        while graded is not None and graded < pair:
            graded = next(grades, None)
        n_pairs += 1
        n_holes += graded != pair
    for _ in grades:
        pass
    return GradedPools(n_pairs, n_holes, frozenset(relevant))


def without_judge(dataset: Dataset, queries: Iterable[Query]) -> set[str]:
    """Return the ids of accepted queries that a person wrote anew and no judge has seen since.

    Raises:
        DataError: The grades cannot be read.
    """
    edited = {
        query.query_id
        for query in queries
        if query.status == "accepted" and query.reviewed and query.reviewed.decision == "edit"
    }
    if not edited:
        return edited
    seen = {one.query_id for one in dataset.each_judgment() if one.source in ("judge", "carried")}
    return edited - seen


def _graded(dataset: Dataset, query_ids: Collection[str], relevant: set[str]) -> Iterator[Key]:
    """Yield the pairs that have a grade, and note the queries with a relevant chunk."""
    for judgment in dataset.each_judgment():
        if judgment.query_id in query_ids and not judgment.is_failed:
            if _is_found(judgment):
                relevant.add(judgment.query_id)
            yield key_of(judgment)


def _is_found(judgment: Judgment) -> bool:
    return (judgment.listed_grade or 0) >= _RELEVANT and judgment.source != "evidence"
