"""Which texts are one passage, so that no run gains by both, and none loses by what another found.

A service may return a passage as it is, and with "Read more" behind it: for one query the one, for
another the other, or both. The best possible ranking has it once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
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


class Shared(NamedTuple):
    """How much two texts have in common, of the longer one and of the shorter one."""

    of_longer: float
    of_shorter: float


class Passages:
    """How much texts have in common, asked for several runs that are measured on the same.

    Args:
        places_of: Returns the places of a text or chunk; several where nothing tells which it is.
        letters_of: Returns the letters of a text without a place; "" where it has one.
    """

    def __init__(
        self, places_of: Callable[[str], Sequence[Place]], letters_of: Callable[[str], str]
    ) -> None:
        self.places_of = places_of
        self._letters_of = letters_of
        self._known: dict[str, tuple[frozenset[str], Mapping[frozenset[str], Shared]]] = {}

    def shared(self, query_id: str, ids: frozenset[str]) -> Mapping[frozenset[str], Shared]:
        """Return which two texts of a query have something in common, one of them no chunk.

        Args:
            query_id: Of the query.
            ids: Of all that is graded.
        """
        of, found = self._known.get(query_id, (None, {}))
        if of != ids:
            found = {**dict(self._of_places(ids)), **dict(self._of_letters(ids))}
            self._known[query_id] = ids, found
        return found

    def _of_places(self, ids: Iterable[str]) -> Iterator[tuple[frozenset[str], Shared]]:
        by_document: dict[str, list[tuple[str, Place]]] = {}
        for chunk_id in ids:
            for place in self.places_of(chunk_id):
                by_document.setdefault(place.doc_id, []).append((chunk_id, place))
        best: dict[frozenset[str], Shared] = {}
        for placed in by_document.values():
            for (one, a), (other, b) in combinations(placed, 2):
                if one != other and (is_text_id(one) or is_text_id(other)):
                    couple = frozenset((one, other))
                    if (shared := _shared(a, b)) and shared > best.get(couple, (0.0, 0.0)):
                        best[couple] = shared
        yield from best.items()

    def _of_letters(self, ids: Iterable[str]) -> Iterator[tuple[frozenset[str], Shared]]:
        read = [(chunk_id, of) for chunk_id in ids if (of := self._letters_of(chunk_id))]
        for (one, text), (other, more) in combinations(read, 2):
            if holds(text, more):
                shorter, longer = sorted((len(text), len(more)))
                is_all = longer - shorter <= _FEW and 2 * shorter > longer
                yield frozenset((one, other)), Shared(1.0 if is_all else shorter / longer, 1.0)


def _shared(a: Place, b: Place) -> Shared | None:
    """Return how much two places have in common; None for nothing."""
    n_shared = min(a.end, b.end) - max(a.start, b.start)
    if a.doc_id != b.doc_id or n_shared <= 0:
        return None
    lengths = a.end - a.start, b.end - b.start
    return Shared(n_shared / max(lengths), n_shared / min(lengths))


class _OpenPlaces:
    """Where texts that may stand in several places still may, as they are taken for others.

    Two hits that read the same and may be in several places are not both at one of them.

    Args:
        passages: Tells where each may stand.
    """

    def __init__(self, passages: Passages) -> None:
        self._passages = passages
        self._settled: dict[str, Place] = {}
        self._taken: dict[str, set[Place]] = {}

    def is_open(self, chunk_id: str) -> bool:
        """Whether nothing tells at which of several places a text stands."""
        return len(self._passages.places_of(chunk_id)) > 1

    def shared(self, one: str, other: str) -> tuple[Shared, Place, Place] | None:
        """Return how much two texts may have in common at most, and where; None for nothing."""
        if self.is_open(one) and self.is_open(other) and without_place(one) == without_place(other):
            return None
        found = (
            (shared, a, b)
            for a in self._of(one)
            for b in self._of(other)
            if (shared := _shared(a, b))
        )
        return max(found, default=None)

    def settle(self, chunk_id: str, place: Place) -> None:
        """Take a text to be at one of its places."""
        if self.is_open(chunk_id) and chunk_id not in self._settled:
            self._settled[chunk_id] = place
            self._taken.setdefault(without_place(chunk_id), set()).add(place)

    def _of(self, chunk_id: str) -> Sequence[Place]:
        places = self._passages.places_of(chunk_id)
        if len(places) < 2:
            return places
        if settled := self._settled.get(chunk_id):
            return [settled]
        taken = self._taken.get(without_place(chunk_id), ())
        return [place for place in places if place not in taken]


class RepeatedPassages:
    """Tells, for the rankings of one run, which graded texts are a passage that counts already.

    The first of a ranking counts. Grades stay what they are: a text that is less relevant than
    another form of its passage, and not relevant, takes nothing from that.

    Args:
        rankings: Of the run: ids by query, best first.
        passages: Which texts have something in common.
    """

    def __init__(self, rankings: Mapping[str, Sequence[str]], passages: Passages) -> None:
        self._rankings = rankings
        self._passages = passages

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
        shared = self._passages.shared(query_id, frozenset(known))
        if not shared:
            return frozenset()
        hits = [chunk_id for chunk_id in self._rankings.get(query_id, ()) if chunk_id in known]
        found = frozenset(hits)
        others = sorted(known.keys() - found, key=lambda chunk_id: (-known[chunk_id], chunk_id))
        counting: list[str] = []
        repeated = set()
        places = _OpenPlaces(self._passages)
        for chunk_id in (*hits, *others):
            grade = known[chunk_id]
            if any(
                (couple := frozenset((first, chunk_id))) in shared
                and (grade <= known[first] or known[first] >= rel_threshold)
                and self._is_one(first, chunk_id, shared[couple], found, places)
                for first in counting
            ):
                repeated.add(chunk_id)
            else:
                counting.append(chunk_id)
        return frozenset(repeated)

    def _is_one(
        self, first: str, other: str, shared: Shared, found: frozenset[str], places: _OpenPlaces
    ) -> bool:
        """Whether two texts are one passage, the one that counts first.

        Two hits of a ranking that may stand in two places are two; and of two that nearly read the
        same the longer may say more. What was not found is no other passage than a hit that it is a
        part of, or that is a part of it: the run could find the one or the other. A hit that may
        stand in several places is so at one of them alone.
        """
        if not (places.is_open(first) or places.is_open(other)):
            is_same = without_place(first) == without_place(other)
            may_be_two = is_same and not self._passages.places_of(other)
            return _are_one(shared, first in found, other in found) and not (
                other in found and may_be_two
            )
        there = None if other in found else places.shared(first, other)
        if there is None or not _are_one(there[0], first in found, is_found=False):
            return False
        places.settle(first, there[1])
        places.settle(other, there[2])
        return True


def _are_one(shared: Shared, is_first_found: bool, is_found: bool) -> bool:
    if shared.of_longer >= _NEARLY_ALL:
        return True
    return is_first_found and not is_found and shared.of_shorter >= _WITHIN
