"""The bridge between two versions: queries on which they cannot be told apart."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ragforge.files.dataset import Dataset
from ragforge.pipeline.ground_digests import grades_digest, item_digests
from ragforge.report.one_judge import JudgeKey, judge_key, one_key_a_judge


def bridge_of(parent: Dataset, staged: Dataset) -> tuple[str, ...]:
    """Return the ids of the queries that ask for the same and have the same grades, sorted.

    They are accepted in both versions, with the same question, answer and quotes, and the same
    chunks have the same grades above 0. A chunk that only has another id now is the same; one that
    is gone, or a new one that is relevant, makes a difference. So a system that finds the same
    texts has the same values on them. No two judges graded them in the one version or the other:
    else a system that finds other texts is held against itself by another judge.
    """
    before, now = item_digests(parent.queries()), item_digests(staged.queries())
    same = {query_id for query_id in before if before[query_id] == now.get(query_id)}
    old = dict(_grades(parent, same, staged.past.moved_chunks()))
    new = dict(_grades(staged, same, {}))
    nothing = _Graded(grades_digest({}), frozenset())
    both = {one: (old.get(one, nothing), new.get(one, nothing)) for one in same}
    judges = one_key_a_judge(key for pair in both.values() for of in pair for key in of.judges)
    return tuple(
        sorted(
            query_id
            for query_id, (before, after) in both.items()
            if before.digest == after.digest
            and len({judges[key] for key in before.judges | after.judges}) < 2
        )
    )


class _Graded(NamedTuple):
    """The grades of a query, and who gave them."""

    digest: str
    judges: frozenset[JudgeKey]


def _grades(
    dataset: Dataset, query_ids: set[str], moved: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, _Graded]]:
    """Yield what the grades of queries are, and who gave them."""
    for query_id, of_query in groupby(dataset.each_judgment(), lambda one: one.query_id):
        if query_id in query_ids:
            judged = list(of_query)
            of_now = [(i, one) for one in judged for i in moved.get(one.chunk_id, (one.chunk_id,))]
            marks = {chunk_id: one.relevant for chunk_id, one in of_now}
            listed = [chunk_id for chunk_id, is_relevant in marks.items() if is_relevant]
            has_list = any(mark is not None for mark in marks.values())
            grades = {chunk_id: one.grade for chunk_id, one in of_now}
            judges = frozenset(key for one in judged if (key := judge_key(one)) is not None)
            yield query_id, _Graded(grades_digest(grades, listed if has_list else None), judges)
