"""Which texts a run is measured with: those of runs that cut the documents as it does.

The best possible nDCG and what recall is a share of are made of all that is relevant. Pieces of two
splitters must not be mixed there: a run cannot find the pieces of another one, and is no worse for
it. A run of the set's chunks is measured on their grades alone; one of other texts on the grades of
the texts of runs that are cut alike.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from sys import intern
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.overlapping_texts import holds, letters_to_compare, overlap
from ragforge.evaluating.repeated_passages import Grades, Passages, Place, RepeatedPassages
from ragforge.evaluating.retrieved_places import PlacedText, retrieved_places
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import AS_IT_IS, DocumentLevel
from ragforge.records import Hit, Span, is_text_id, without_place

if TYPE_CHECKING:
    from ragforge.corpus.file_texts import ChunkPlace

COMPARED_ON_EVIDENCE: Final = ("EvidenceR@10", "TokenR@10", "TokenP@10", "TokenIoU@10")
"""What runs of different chunks are compared by where nothing is asked for."""
_ALIKE: Final = 0.9
"""Share of the texts at a common place that are the same, from which two runs are cut alike."""
_HALF: Final = 0.5
"""Share of a text that another one must have more of, to stand at its place; windows that slide by
half of their size have no more than that of each other."""
_LEAST_COMMON: Final = 0.1
"""Share of texts that another run has as well, among those without a place that are not told to be
cut otherwise, below which nobody knows whether two runs are cut alike."""
_TOP: Final = 10
"""Hits of a query that are looked at for texts that have much of each other."""
_QUERIES: Final = 3
"""Queries of a text in which that is done."""
_EARLIER: Final = ""
"""Stands for the name of earlier rankings; no run has it."""
_LOOKED_AT: Final = 2000
"""Texts of a run that are compared with those of another: ids are digests, so the first of them in
order are a random sample."""
_READ: Final = 500
"""The same where texts without a place are read."""

_Rankings: TypeAlias = Mapping[str, Sequence[str]]
"""Ids by query, best first."""


@dataclass(frozen=True, slots=True)
class GradesOfFile:
    """What an export says that a run is measured on: there each passage is graded once already.

    Args:
        grades: By query.
    """

    grades: Mapping[str, Grades]

    def graded(self, query_id: str, grades: Grades, rel_threshold: int) -> Grades:
        """Return the grades of a query; `grades`, of all texts cut alike, count where none."""
        del rel_threshold
        return self.grades.get(query_id) or grades

    def repeated(self, query_id: str, grades: Grades, rel_threshold: int) -> frozenset[str]:
        """Return which of some listed ids are a passage that counts already."""
        del rel_threshold
        return frozenset(grades) - self.grades.get(query_id, {}).keys()


@dataclass(frozen=True, slots=True)
class Chunking:
    """What a run with texts that are no chunks of the set is measured on.

    Args:
        ids: Of all that the runs cut alike retrieved.
        has_chunks: Whether the chunks of the set are cut alike too, so that all of them count.
        runs: Names of the runs cut alike, this one among them, sorted.
        replaced: Chunks of the set at whose places these runs have texts, such as earlier wordings:
            they could find the one or the other.
        unlike: Names of runs that have other texts at its places, though runs between them may be
            like both.
    """

    ids: frozenset[str]
    has_chunks: bool
    runs: tuple[str, ...]
    replaced: frozenset[str] = frozenset()
    unlike: frozenset[str] = frozenset()
    repeats: "RepeatedPassages | GradesOfFile | None" = None

    def __contains__(self, chunk_id: str) -> bool:
        """Whether the grades of a text or chunk count."""
        if chunk_id in self.ids:
            return True
        return self.has_chunks and not is_text_id(chunk_id) and chunk_id not in self.replaced

    def grades(
        self, query_id: str, of_chunks: Grades, of_texts: Grades, rel_threshold: int
    ) -> Grades:
        """Return the grades of a query that the run is measured on: each passage once.

        Args:
            query_id: Of the query.
            of_chunks: Grades of the chunks of the set.
            of_texts: Those of other texts.
            rel_threshold: Lowest grade that counts as relevant.
        """
        graded = grades_of_chunking(of_chunks, of_texts, self.__contains__)
        return self.repeats.graded(query_id, graded, rel_threshold) if self.repeats else graded

    def listed(
        self, query_id: str, listed: Iterable[str], of_texts: Grades, rel_threshold: int
    ) -> list[str]:
        """Return what counts as listed as relevant to a query; arguments as for `grades`."""
        relevant = listed_of_chunking(listed, of_texts, self.__contains__, rel_threshold)
        if self.repeats is None:
            return relevant
        repeated = self.repeats.repeated(query_id, dict.fromkeys(relevant, 1), 1)
        return [chunk_id for chunk_id in relevant if chunk_id not in repeated]

    def describe(self, run: str) -> str:
        """Return a sentence on what the run is measured on."""
        others = ", ".join(name for name in self.runs if name != run)
        alike = f" and of {others}, cut alike" if others else ""
        chunks = " beside the chunks of the set" if self.has_chunks else ""
        return (
            f"run {run} has texts that are no chunks of the set: it is measured on the grades of "
            f"its own texts{alike}{chunks}; nDCG and recall of runs that are cut otherwise are of "
            "other texts"
        )


def grades_of_chunking(
    of_chunks: Grades,
    of_texts: Grades,
    counts: Callable[[str], bool],
) -> Grades:
    """Return the grades of a query that a run is measured on: of texts cut as its own.

    Where there are none, one that is no hit of any run stands for them, with grade 0: the query has
    relevant texts, and a run that found nothing of them must not be measured without it.

    Args:
        of_chunks: Grades of the chunks of the set.
        of_texts: Those of other texts.
        counts: Whether it is measured on a chunk or text.
    """
    both = {**of_chunks, **of_texts}
    graded = {name: grade for name, grade in both.items() if counts(name)}
    return graded or dict.fromkeys(list(both)[:1], 0)


def listed_of_chunking(
    listed: Iterable[str],
    of_texts: Grades,
    counts: Callable[[str], bool],
    rel_threshold: int,
) -> list[str]:
    """Return what is listed as relevant to a query and texts with the grade of it, cut alike."""
    relevant = [name for name, grade in of_texts.items() if (grade or 0) >= rel_threshold]
    return [name for name in (*listed, *relevant) if counts(name)]


def chunkings(dataset: Dataset, level: DocumentLevel = AS_IT_IS) -> dict[str, Chunking]:
    """Return what runs are measured on, by name; runs of chunks of the set alone are left out.

    Args:
        dataset: Has the runs.
        level: Gives chunks that hold the same quotes one id, and names the queries that are
            measured on documents, however these are cut: they are left out.

    Raises:
        DataError: The chunks or the texts cannot be read.
    """
    if next(dataset.retrieved_texts(), None) is None:
        return {}
    names = dataset.run_names()
    return _chunkings(dataset, {name: _rankings_of(dataset, name, level) for name in names})


def has_other_chunks(
    dataset: Dataset,
    run: str,
    earlier: Mapping[str, Sequence[str]],
    by_document: frozenset[str] = frozenset(),
) -> bool:
    """Whether a run and earlier rankings, which are no run any more, are cut otherwise.

    Args:
        dataset: Has the run.
        run: Its name.
        earlier: The earlier rankings by query. Where nothing is known of their texts any more,
            nobody can tell, and they are not.
        by_document: Queries that are measured on documents, however these are cut.

    Raises:
        DataError: The chunks or the texts cannot be read.
    """
    earlier = {key: ranked for key, ranked in earlier.items() if key not in by_document}
    ids = frozenset(chain.from_iterable(earlier.values()))
    texts = frozenset(filter(is_text_id, ids))
    known = {item.chunk_id for item in dataset.retrieved_texts()}
    if not ids or not known or (texts and known.isdisjoint(texts)):
        return False
    level = DocumentLevel(query_ids=by_document)
    held = {run: _rankings_of(dataset, run, level), _EARLIER: earlier if texts else {}}
    return not are_cut_alike(_chunkings(dataset, held), run, _EARLIER)


def _chunkings(dataset: Dataset, runs: Mapping[str, _Rankings]) -> dict[str, Chunking]:
    """Return what runs are measured on, by their rankings; none for chunks of the set."""
    held = {name: rankings for name, rankings in runs.items() if rankings}
    if not held:
        return {}
    # It is for sets with other texts alone.
    from ragforge.corpus.file_texts import chunk_places

    hits = {hit for rankings in held.values() for of in rankings.values() for hit in of}
    placed = retrieved_places(dataset, hits)
    of_chunks = list(chunk_places(dataset.chunks() if dataset.chunks_path.exists() else ()))
    places = {chunk_id: each.places for chunk_id, each in placed.items() if each.places}
    # Chunks without offsets stand in the documents that texts are looked for in, too.
    places |= {each.chunk_id: (_span(each),) for each in of_chunks if each.chunk_id in hits}
    words = _Words(placed)
    texts = {name: _Texts(rankings, places, words) for name, rankings in held.items()}
    chunks = _Places(map(_span, of_chunks))
    shares = {(a, b): _share_alike(texts[a], texts[b]) for a, b in combinations(texts, 2)}
    told = {couple: share for couple, share in shares.items() if share is not None}
    unlike = {frozenset(couple) for couple, share in told.items() if share < _ALIKE}
    made = {}
    for group in _connected(texts, (couple for couple in told if {*couple} not in unlike)):
        # All of them are measured on the same texts: else the one that is like more runs would have
        # more to find.
        of_group = [texts[name] for name in group]
        ids = frozenset[str]().union(*(each.ids for each in of_group))
        has_chunks = any(_has_chunks_alike(chunks, each) for each in of_group)
        replaced = _replaced(of_chunks, of_group) if has_chunks else frozenset[str]()
        # A run may find any of the chunks then, as well as texts.
        passages = _passages(of_group[0], of_chunks if has_chunks else ())
        for name in group:
            others = frozenset(other for other in texts if {name, other} in unlike)
            once = texts[name].repeated_passages(passages)
            made[name] = Chunking(ids, has_chunks, group, replaced, others, once)
    return dict(sorted(made.items()))


def _connected(
    names: Iterable[str], couples: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, ...]]:
    """Yield the names that couples connect, sorted, those that none has alone."""
    group_of = {name: {name} for name in names}
    for a, b in couples:
        if group_of[a] is not group_of[b]:
            group_of[a] |= group_of[b]
            group_of |= dict.fromkeys(group_of[b], group_of[a])
    yield from sorted({tuple(sorted(group)) for group in group_of.values()})


def _span(place: "ChunkPlace") -> Span:
    return Span(doc_id=place.doc_id, start=place.start, end=place.end)


def _replaced(chunks: Iterable["ChunkPlace"], runs: Iterable["_Texts"]) -> frozenset[str]:
    """Return the chunks of the set at whose places runs have texts that are no chunks."""
    places = _Places(
        place
        for texts in runs
        for chunk_id in texts.ids
        if is_text_id(chunk_id)
        for place in texts.places_of(chunk_id)
    )
    return frozenset(each.chunk_id for each in chunks if places.cover(_span(each)))


def are_cut_alike(cut: Mapping[str, Chunking], a: str, b: str) -> bool:
    """Whether two runs have texts of one splitter, or both have chunks of the set.

    Args:
        cut: What runs are measured on; see `chunkings`.
        a: Name of a run.
        b: Of the other.
    """
    if a in cut and b in cut:
        return b in cut[a].runs and b not in cut[a].unlike
    other = cut.get(a) or cut.get(b)
    return other is None or other.has_chunks


def why_not_alike(cut: Mapping[str, Chunking], a: str, b: str) -> str:
    """Return why grades must not tell two runs apart that are not known to be cut alike.

    Args:
        cut: What runs are measured on; see `chunkings`.
        a: Name of a run.
        b: Of the other.
    """
    if a in cut and b in cut and b not in cut[a].unlike:
        return (
            "too few of their texts are in both to tell whether they have the same chunks, and "
            "they go by the grades of their own"
        )
    return "they have different chunks, and go by the grades of their own"


def differ(cut: Mapping[str, Chunking], names: Iterable[str]) -> bool:
    """Whether some of several runs are of different texts, so that nDCG must not tell them apart.

    Args:
        cut: What runs are measured on; see `chunkings`.
        names: Of the runs.
    """
    return not all(are_cut_alike(cut, a, b) for a, b in combinations(names, 2))


def differ_in_words(measures: Sequence[str], *, has_evidence: bool) -> str:
    """Return a sentence on measures of runs with different texts that go by judgments.

    Args:
        measures: Canonical names.
        has_evidence: Whether some query has evidence, by which such runs are compared.
    """
    return (
        f"the runs have different chunks, and {', '.join(measures)} of each go by the grades of "
        f"its own: a difference may be one of the chunks alone; {_instead(has_evidence)}"
    )


def _instead(has_evidence: bool) -> str:
    if has_evidence:
        return f"{', '.join(COMPARED_ON_EVIDENCE)} do not depend on them"
    return "measures of evidence do not depend on them, and no query has any"


def _rankings_of(dataset: Dataset, name: str, level: DocumentLevel) -> _Rankings:
    """Return what a run retrieved by query; nothing where that is chunks of the set alone."""
    try:
        found = {
            item.query_id: _ranked(level.counted_once(item).ranking)
            for item in dataset.each_ranking(name)
            if item.query_id not in level.query_ids
        }
    except DataError:
        return {}  # Whoever measures it says so.
    return found if any(map(is_text_id, chain.from_iterable(found.values()))) else {}


def _ranked(hits: Iterable[Hit]) -> tuple[str, ...]:
    by_score = sorted(hits, key=lambda hit: (hit.score, hit.chunk_id), reverse=True)
    return tuple(intern(hit.chunk_id) for hit in by_score)


class _Places:
    """Stretches of documents, to be asked whether they cover others."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._by_document: dict[str, list[tuple[int, int]]] = {}
        self._longest: dict[str, int] = {}
        for span in spans:
            self._by_document.setdefault(span.doc_id, []).append((span.start, span.end))
        for doc_id, places in self._by_document.items():
            places.sort()
            self._longest[doc_id] = max(end - start for start, end in places)

    def cover(self, span: Span) -> bool:
        """Whether one of them has more than half of a stretch."""
        least = _HALF * (span.end - span.start)
        return any(_shared(place, span) > least for place in self._around(span))

    def overlap(self, span: Span) -> bool:
        """Whether one of them has more than half of a stretch, or the stretch of one of them."""
        whole = span.end - span.start
        return any(
            _shared((start, end), span) > _HALF * min(whole, end - start)
            for start, end in self._around(span)
        )

    def _around(self, span: Span) -> Sequence[tuple[int, int]]:
        places = self._by_document.get(span.doc_id, [])
        first = bisect_left(places, (span.start - self._longest.get(span.doc_id, 0), 0))
        return places[first : bisect_left(places, (span.end, 0))]


def _shared(place: tuple[int, int], span: Span) -> int:
    """Return how many characters a stretch has of a place in its document."""
    return min(place[1], span.end) - max(place[0], span.start)


class _Words:
    """The letters of texts that have no place.

    Args:
        placed: What is known of texts, by id.
    """

    def __init__(self, placed: Mapping[str, PlacedText]) -> None:
        self._placed = placed
        self._letters: dict[str, str] = {}

    def of(self, chunk_id: str) -> str:
        """Return the letters of a text; "" where it has a place, or its text is not known."""
        if chunk_id not in self._letters:
            placed = self._placed.get(chunk_id)
            text = placed.text if placed and not placed.places else ""
            self._letters[chunk_id] = letters_to_compare(text) if text else ""
        return self._letters[chunk_id]


class _Texts:
    """What a run retrieved.

    Args:
        rankings: By query.
        places: Of what has any, by id.
        words: Of what has none.
    """

    def __init__(
        self, rankings: _Rankings, places: Mapping[str, tuple[Span, ...]], words: _Words
    ) -> None:
        self.ids = frozenset(chain.from_iterable(rankings.values()))
        self.sample = sorted(self.ids)[:_LOOKED_AT]
        self.texts = frozenset(map(without_place, self.ids))
        self._rankings = rankings
        self._places_by_id = places
        self._words = words

    def places_of(self, chunk_id: str) -> tuple[Span, ...]:
        """Return where one of them stands."""
        return self._places_by_id.get(chunk_id, ())

    def letters_of(self, chunk_id: str) -> str:
        """Return the letters of one of them that has no place; "" for others."""
        return "" if chunk_id in self._places_by_id else self._words.of(chunk_id)

    def repeated_passages(self, passages: Passages) -> RepeatedPassages:
        """Return what tells which texts are one passage in its rankings."""
        return RepeatedPassages(self._rankings, passages)

    @cached_property
    def places(self) -> _Places:
        """Where all of them stand."""
        return _Places(span for each in self.ids for span in self.places_of(each))

    @cached_property
    def letters(self) -> frozenset[str]:
        """The letters of those without a place."""
        return frozenset(map(self.letters_of, self.ids)) - {""}

    @cached_property
    def _queries(self) -> Mapping[str, Sequence[str]]:
        """Some queries by what was retrieved for them."""
        found: dict[str, list[str]] = {}
        for query_id in sorted(self._rankings):
            for chunk_id in self._rankings[query_id]:
                of_chunk = found.setdefault(chunk_id, [])
                if len(of_chunk) < _QUERIES:
                    of_chunk.append(query_id)
        return found

    def has_same(self, chunk_id: str, of: "_Texts") -> bool:
        """Whether it has a text of another run, whatever its marks and markup."""
        return without_place(chunk_id) in self.texts or of.letters_of(chunk_id) in self.letters

    def is_cut_otherwise(self, chunk_id: str, of: "_Texts") -> bool:
        """Whether a text of another run is told to be no text of this one's splitter.

        It is where, for the same query, one of this run is a part of it or the other way round; or
        has most of it, while no other text of its own run has: texts of one form share sentences.
        """
        letters = of.letters_of(chunk_id)
        beside = [each for near in self._beside(chunk_id, of) if (each := self.letters_of(near))]
        if any(holds(letters, each) for each in beside):
            return True
        if not any(overlap(letters, each) for each in beside):
            return False
        own = [of.letters_of(near) for near in of._beside(chunk_id, of) if near != chunk_id]
        return not any(overlap(letters, each) for each in own if each)

    def _beside(self, chunk_id: str, of: "_Texts") -> Iterator[str]:
        """Yield what was retrieved for queries for which another run has a text."""
        for query_id in of._queries[chunk_id]:
            yield from self._rankings.get(query_id, ())[:_TOP]


def _place(of: "Span | ChunkPlace") -> Place:
    return Place(of.doc_id, of.start, of.end)


def _passages(texts: _Texts, chunks: Iterable["ChunkPlace"]) -> Passages:
    """Return how much texts, and some chunks of the set, have in common."""
    known = {each.chunk_id: each for each in chunks}

    def places_of(chunk_id: str) -> Sequence[Place]:
        if chunk := known.get(chunk_id):
            return [_place(chunk)]
        return [_place(place) for place in texts.places_of(chunk_id)]

    return Passages(places_of, texts.letters_of)


def _share_alike(one: _Texts, other: _Texts) -> float | None:
    """Return how much of what two runs have at common places is the same; None without such.

    None, too, where too few of those without a place are the same to tell.
    """
    n_same = n_others = 0
    known = []
    for mine, theirs in ((one, other), (other, one)):
        sample = mine.sample[:_READ] if mine.letters or theirs.letters else mine.sample
        same = [each for each in sample if theirs.has_same(each, mine)]
        n_same += len(same)
        n_open = 0
        for chunk_id in set(sample).difference(same):
            if places := mine.places_of(chunk_id):
                n_others += any(map(theirs.places.cover, places))
            elif mine.letters_of(chunk_id):
                is_other = theirs.is_cut_otherwise(chunk_id, mine)
                n_others += is_other
                n_open += not is_other
        known.append(len(same) >= _LEAST_COMMON * (len(same) + n_open))
    if not n_same + n_others or not any(known):
        return None
    return n_same / (n_same + n_others)


def _has_chunks_alike(chunks: _Places, texts: _Texts) -> bool:
    """Whether a run has chunks of the set where it has texts at their places.

    Texts that stand nowhere may be earlier wordings of a few chunks; where they are most of what it
    has, they are pieces of another splitter whose places nobody knows.

    Args:
        chunks: Where the chunks stand.
        texts: What the run retrieved.
    """
    own = [chunk_id for chunk_id in texts.sample if not is_text_id(chunk_id)]
    of_others = [chunk_id for chunk_id in texts.sample if is_text_id(chunk_id)]
    n_nowhere = sum(not texts.places_of(chunk_id) for chunk_id in of_others)
    if n_nowhere > len(own):
        return False
    n_others = sum(any(map(chunks.overlap, texts.places_of(chunk_id))) for chunk_id in of_others)
    return bool(own) and len(own) >= _ALIKE * (len(own) + n_others)
