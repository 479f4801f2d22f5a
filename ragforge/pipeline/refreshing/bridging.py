"""The bridge between two versions: queries on which they cannot be told apart."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ragforge.files.dataset import Dataset
from ragforge.pipeline.ground_digests import grades_digest, item_digests


def bridge_of(parent: Dataset, staged: Dataset) -> tuple[str, ...]:
    """Return the ids of the queries that ask for the same and have the same grades, sorted.

    They are accepted in both versions, with the same question, answer and quotes, and the same
    chunks have the same grades above 0. A chunk that only has another id now is the same; one that
    is gone, or a new one that is relevant, makes a difference. So a system that finds the same
    texts has the same values on them.
    """
    before, now = item_digests(parent.queries()), item_digests(staged.queries())
    same = {query_id for query_id in before if before[query_id] == now.get(query_id)}
    old = dict(_grades(parent, same, staged.past.moved_chunks()))
    new = dict(_grades(staged, same, {}))
    nothing = grades_digest({})
    return tuple(sorted(one for one in same if old.get(one, nothing) == new.get(one, nothing)))


def _grades(
    dataset: Dataset, query_ids: set[str], moved: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield what the grades of queries are, as a digest each."""
    for query_id, of_query in groupby(dataset.each_judgment(), lambda one: one.query_id):
        if query_id in query_ids:
            yield (
                query_id,
                grades_digest(
                    {
                        chunk_id: one.grade
                        for one in of_query
                        for chunk_id in moved.get(one.chunk_id, (one.chunk_id,))
                    }
                ),
            )
