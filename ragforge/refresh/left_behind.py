"""What people gave to a version that an earlier one does not have, which is published again."""

from collections import Counter
from collections.abc import Iterator

from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.records import Judgment, text_id, without_place


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
        target: The one that is to be. A grade is found in it under another id of its text, too; one
            that followed its words into a text that was edited is the same by who gave what.

    Raises:
        DataError: A file cannot be read.
    """
    new, old = _only_in(leaving, target), _only_in(target, leaving)
    decided = {query.query_id: (query.reviewed, query.pinned) for query in target.all_queries()}
    return LeftBehind(
        leaving.manifest.version,
        (new - old).total(),
        sum(
            (query.reviewed, query.pinned) != decided.get(query.query_id, (None, None))
            for query in leaving.all_queries()
            if query.reviewed or query.pinned
        ),
    )


def _only_in(dataset: Dataset, other: Dataset) -> Counter[tuple[object, ...]]:
    """Return the grades of people that another version has under no id, by who gave what."""
    here, elsewhere = _Names(dataset), _Names(other)
    there = {_grade(one, name) for one in elsewhere.grades for name in here.now(one.chunk_id)}
    texts = {_grade(one, name) for one in elsewhere.grades for name in elsewhere.text(one)}
    # A text in a later version is a copy beside the grade that follows or waits.
    is_later = dataset.manifest.version > other.manifest.version
    return Counter(
        (one.query_id, one.grade, one.relevant, one.provenance)
        for one in here.grades
        if there.isdisjoint(
            _grade(one, name)
            for name in (*elsewhere.now(one.chunk_id), *(here.text(one) if is_later else ()))
        )
        and _grade(one, without_place(one.chunk_id)) not in texts
    )


class _Names:
    """The grades of people in a version, and the ids that each goes by: of chunks and of texts."""

    def __init__(self, dataset: Dataset) -> None:
        self.grades = [*_of_people(dataset)]
        self._moved = dataset.past.moved_chunks()
        graded = {one.chunk_id for one in self.grades}
        self._texts = {
            chunk.chunk_id: text_id(chunk.text)
            for chunk in (dataset.chunks() if graded else ())
            if chunk.chunk_id in graded
        }

    def now(self, chunk_id: str) -> tuple[str, ...]:
        """Return the ids that a chunk has in this version, its own among them."""
        return (without_place(chunk_id), *self._moved.get(chunk_id, ()))

    def text(self, judgment: Judgment) -> tuple[str, ...]:
        """Return the id of the text of a graded chunk; none for what is no chunk here."""
        text = self._texts.get(judgment.chunk_id)
        return (text,) if text else ()


def _grade(judgment: Judgment, name: str) -> tuple[object, ...]:
    return judgment.query_id, name, judgment.grade, judgment.relevant


def _of_people(dataset: Dataset) -> Iterator[Judgment]:
    """Yield the grades of people, also those that wait for their text."""
    yield from (one for one in dataset.each_judgment() if one.source == "human")
    yield from (one.judgment for one in dataset.past.dormant_grades())
