"""Which document a text counts as that stands in several, where labels name documents.

Nothing tells which of them it was retrieved from. Were it another than the labelled one, a
retriever would lose by which copy it is held to have found.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from ragforge.deferred import dataclass
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.records import without_place
from ragforge.records.judgments import Grading

_LABELS: Final = ("human", "evidence")
"""Sources of grades that say of a chunk's document that it is relevant, whatever judges say."""
_LISTED: Final = 2
"""What a chunk counts as that people list as relevant without a grade."""
_UNGRADED: Final = -1


class CopiedTexts:
    """Finds the documents that texts count as for a query.

    A text is of the document that is labelled highest, as a whole or by a chunk of it. Where none
    is labelled its own grade counts, for all of its documents as they all hold it, and a hit is the
    one with the lowest grade.

    Args:
        several: Documents by text that stands in more than one.
        documents: Document by any other chunk or text.
        judgments: Of the set.
    """

    def __init__(
        self,
        several: Mapping[str, Set[str]],
        documents: Mapping[str, str],
        judgments: JudgmentTable,
    ) -> None:
        self._several = several
        self._documents = documents
        self._judgments = judgments
        self._last: tuple[str, _Grades] | None = None

    def __contains__(self, text_id: str) -> bool:
        """Whether a text stands in several documents."""
        return text_id in self._several

    def hits(self, query_id: str, ids: Sequence[str]) -> dict[str, str]:
        """Return the documents of the texts of a ranking that stand in several.

        One that comes again with the same words is of the next of its documents. Of those without a
        label it is one that no other hit is of, if there is any, so that it keeps its rank.

        Args:
            query_id: The query.
            ids: Of all its hits, best first.
        """
        texts = [name for name in ids if name in self._several]
        if not texts:
            return {}
        grades = self._grades(query_id)
        present = {self._documents.get(name, name) for name in ids}
        found: dict[str, str] = {}
        taken: dict[str, set[str]] = {}
        for text_id in texts:
            doc_ids = self._several[text_id]
            of_words = taken.setdefault(without_place(text_id), set())
            left = doc_ids - of_words or doc_ids
            found[text_id] = min(left, key=lambda doc_id: grades.order(doc_id, present))
            of_words.add(found[text_id])
        return found

    def judged(self, query_id: str, names: Iterable[str]) -> dict[str, Iterable[str]]:
        """Return the documents that judgments of such texts count for, by text.

        Args:
            query_id: The query.
            names: Of what was judged.
        """
        texts = sorted(name for name in names if name in self._several)
        labelled = self._grades(query_id).labelled if texts else {}
        of_labels = [one for one in texts if not labelled.keys().isdisjoint(self._several[one])]
        found: dict[str, Iterable[str]] = {one: sorted(self._several[one]) for one in texts}
        return found | {one: [doc] for one, doc in self.hits(query_id, of_labels).items()}

    def _grades(self, query_id: str) -> "_Grades":
        # Texts of a query come together.
        if self._last is None or self._last[0] != query_id:
            judged = self._judgments.of_query(query_id, self._judgments.gradings)
            self._last = query_id, self._grades_in(judged)
        return self._last[1]

    def _grades_in(self, judged: Mapping[str, Grading]) -> "_Grades":
        whole: dict[str, int] = {}
        by_chunk: dict[str, int] = {}
        highest: dict[str, int] = {}
        for name, given in judged.items():
            doc_id, grade = self._documents.get(name, name), _grade_of(given)
            if given.level == "document":
                whole[name] = grade
            elif name not in self._several:
                _raise(highest, doc_id, grade)
                if grade > 0 and given.source in _LABELS:
                    _raise(by_chunk, doc_id, grade)
        labelled = {**by_chunk, **whole}
        for name in judged.keys() & self._several.keys():
            if labelled.keys().isdisjoint(self._several[name]):
                for doc_id in self._several[name]:
                    _raise(highest, doc_id, _grade_of(judged[name]))
        return _Grades(labelled, highest)


def _grade_of(given: Grading) -> int:
    if given.is_failed:
        return _UNGRADED
    return max(given.grade or 0, _LISTED if given.relevant else 0)


def _raise(grades: dict[str, int], doc_id: str, grade: int) -> None:
    grades[doc_id] = max(grade, grades.get(doc_id, _UNGRADED))


@dataclass(frozen=True, slots=True)
class _Grades:
    """What tells the documents of a query apart.

    Args:
        labelled: By document that a label names, or a chunk of it that people call relevant.
        highest: Of its chunks and texts, by document.
    """

    labelled: Mapping[str, int]
    highest: Mapping[str, int]

    def order(self, doc_id: str, present: Set[str]) -> tuple[bool, int, bool, str]:
        """Return what the documents of a text are sorted by."""
        if doc_id in self.labelled:
            return False, -self.labelled[doc_id], False, doc_id
        return True, self.highest.get(doc_id, _UNGRADED), doc_id in present, doc_id
