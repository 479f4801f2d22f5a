"""What people gave to a version that an earlier one does not have, which is published again."""

from collections.abc import Iterator

from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.records import Judgment


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What stays in a version alone when another one is published."""

    version: int
    """Whose it is."""
    n_grades: int
    """Grades of people that the other version does not have, or has otherwise."""
    n_decisions: int
    """Queries about which people decided what the other version does not know."""


def left_behind(leaving: Dataset, target: Dataset) -> LeftBehind:
    """Return what people gave to a version that another one does not have.

    Args:
        leaving: The version that was published.
        target: The one that is to be. A grade is found in it under another id of its text, too.

    Raises:
        DataError: A file cannot be read.
    """
    moved, moved_on = leaving.past.moved_chunks(), target.past.moved_chunks()
    there = {
        (one.query_id, chunk_id, one.grade, one.relevant)
        for one in _of_people(target)
        for chunk_id in (one.chunk_id, *moved.get(one.chunk_id, ()))
    }
    decided = {query.query_id: (query.reviewed, query.pinned) for query in target.all_queries()}
    return LeftBehind(
        leaving.manifest.version,
        sum(
            there.isdisjoint(
                (one.query_id, chunk_id, one.grade, one.relevant)
                for chunk_id in (one.chunk_id, *moved_on.get(one.chunk_id, ()))
            )
            for one in _of_people(leaving)
        ),
        sum(
            (query.reviewed, query.pinned) != decided.get(query.query_id, (None, None))
            for query in leaving.all_queries()
            if query.reviewed or query.pinned
        ),
    )


def _of_people(dataset: Dataset) -> Iterator[Judgment]:
    """Yield the grades of people, also those that wait for their text."""
    yield from (one for one in dataset.each_judgment() if one.source == "human")
    yield from (one.judgment for one in dataset.past.dormant_grades())
