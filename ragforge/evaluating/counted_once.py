"""Which texts are one passage, so that no run gains by both, and none loses by what another found.

A service may return a passage as it is, and with "Read more" behind it: for one query the one, for
another the other, or both. The best possible ranking has it once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from ragforge.evaluating.overlapping_texts import holds
from ragforge.records import is_text_id, without_place

_NEARLY_ALL: Final = 0.8
"""Share of the longer of two texts that both have, from which they are one passage."""
_FEW: Final = 24
"""Letters that a text may have beside one that it holds, if that is more than half of it: services
put some words of their own around a passage, however short it is."""
_WITHIN: Final = 0.9
"""Share of the shorter one, from which it is a part of the other."""

Grades: TypeAlias = Mapping[str, int | None]


class Place(NamedTuple):
    """A stretch of a document."""

    doc_id: str
    start: int
    end: int


class CountedOnce:
    """Tells, for the rankings of one run, which graded texts are a passage that counts already.

    The first of a ranking counts. Grades stay what they are: a text that is less relevant than
    another form of its passage, and not relevant, takes nothing from that.

    Args:
        rankings: Of the run: ids by query, best first.
        place_of: Returns the one place of a text or chunk; None where it has none, or several.
        letters_of: Returns the letters of a text without a place; "" where it has one.
    """

    def __init__(
        self,
        rankings: Mapping[str, Sequence[str]],
        place_of: Callable[[str], Place | None],
        letters_of: Callable[[str], str],
    ) -> None:
        self._rankings = rankings
        self._place_of = place_of
        self._letters_of = letters_of

    def graded(self, query_id: str, grades: Grades, rel_threshold: int) -> Grades:
        """Return grades with each passage once: 0 for a hit that is one again, no other copies."""
        repeated = self.repeated(query_id, grades, rel_threshold)
        if not repeated:
            return grades
        hits = {*self._rankings.get(query_id, ())}
        return {
            chunk_id: 0 if chunk_id in repeated else grade
            for chunk_id, grade in grades.items()
            if chunk_id not in repeated or chunk_id in hits
        }

    def repeated(self, query_id: str, grades: Grades, rel_threshold: int) -> frozenset[str]:
        """Return what is a passage of a query that counts already.

        Args:
            query_id: Of the query.
            grades: Of all that the run is measured on.
            rel_threshold: Lowest grade that counts as relevant.
        """
        known = {chunk_id: grade for chunk_id, grade in grades.items() if grade}
        if len(known) < len("ab") or not any(map(is_text_id, known)):
            return frozenset()
        hits = [chunk_id for chunk_id in self._rankings.get(query_id, ()) if chunk_id in known]
        found = frozenset(hits)
        others = sorted(known.keys() - found, key=lambda chunk_id: (-known[chunk_id], chunk_id))
        counting: list[str] = []
        repeated = set()
        for chunk_id in (*hits, *others):
            grade = known[chunk_id]
            if any(
                (grade <= known[first] or known[first] >= rel_threshold)
                and self._is_one(first, chunk_id, found)
                for first in counting
            ):
                repeated.add(chunk_id)
            else:
                counting.append(chunk_id)
        return frozenset(repeated)

    def _is_one(self, first: str, other: str, found: frozenset[str]) -> bool:
        """Whether two texts are one passage, the one that counts first.

        Two hits of a ranking that read the same are two where the documents may hold both; and of
        two that nearly do the longer may say more. What was not found is no other passage than a
        hit that it is a part of, or that is a part of it: the run could find the one or the other.
        """
        if not (is_text_id(first) or is_text_id(other)):
            return False
        shared = self._shared(first, other)
        if other in found:
            is_again = without_place(first) == without_place(other) and not self._place_of(other)
            return shared.of_longer >= _NEARLY_ALL and not is_again
        if shared.of_longer >= _NEARLY_ALL:
            return True
        return first in found and shared.of_shorter >= _WITHIN

    def _shared(self, one: str, other: str) -> "_Shared":
        a, b = self._place_of(one), self._place_of(other)
        if a is not None and b is not None:
            lengths = a.end - a.start, b.end - b.start
            n_shared = min(a.end, b.end) - max(a.start, b.start) if a.doc_id == b.doc_id else 0
            return _Shared(n_shared / max(lengths), n_shared / min(lengths))
        letters = self._letters_of(one), self._letters_of(other)
        if not all(letters) or not holds(*letters):
            return _NOTHING
        shorter, longer = sorted(map(len, letters))
        is_all = longer - shorter <= _FEW and 2 * shorter > longer
        return _Shared(1.0 if is_all else shorter / longer, 1.0)


class _Shared(NamedTuple):
    """How much two texts have in common, of the longer one and of the shorter one."""

    of_longer: float
    of_shorter: float


_NOTHING: Final = _Shared(0.0, 0.0)
