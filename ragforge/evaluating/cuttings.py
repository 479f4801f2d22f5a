"""Which texts a run is measured with: those of runs that cut the documents as it does.

The best possible nDCG and what recall is a share of are made of all that is relevant. Pieces of two
splitters must not be mixed there: a run cannot find the pieces of another one, and is no worse for
it. A run of the set's chunks is measured on their grades alone; one of other texts on the grades of
the texts of runs that are cut alike.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.retrieved_places import PlacedText, retrieved_places
from ragforge.files.set.dataset import Dataset
from ragforge.records import Chunk, Span, is_text_id, without_place

COMPARED_ON_EVIDENCE: Final = ("EvidenceR@10", "TokenR@10", "TokenP@10", "TokenIoU@10")
"""What runs of different chunks are compared by where nothing is asked for."""
_ALIKE: Final = 0.9
"""Share of the texts at a common place that are the same, from which two runs are cut alike."""
_HALF: Final = 0.5
"""Share of a text that another one must have more of, to stand at its place; windows that slide by
half of their size have no more than that of each other."""
_EARLIER: Final = ""
"""Stands for the name of earlier rankings; no run has it."""
_LOOKED_AT: Final = 2000
"""Texts of a run that are compared with those of another: ids are digests, so the first of them in
order are a random sample."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """What a run with texts that are no chunks of the set is measured on.

    Args:
        ids: Of all that the runs cut alike retrieved.
        has_chunks: Whether the chunks of the set are cut alike too, so that all of them count.
        runs: Names of the runs cut alike, this one among them, sorted.
        replaced: Chunks of the set at whose places these runs have texts, such as earlier wordings:
            they could find the one or the other.
        unlike: Names of those of the runs that have other texts at its places, though runs between
            them are like both.
    """

    ids: frozenset[str]
    has_chunks: bool
    runs: tuple[str, ...]
    replaced: frozenset[str] = frozenset()
    unlike: frozenset[str] = frozenset()

    def __contains__(self, chunk_id: str) -> bool:
        """Whether the grades of a text or chunk count."""
        if chunk_id in self.ids:
            return True
        return self.has_chunks and not is_text_id(chunk_id) and chunk_id not in self.replaced

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


def cuttings(dataset: Dataset) -> dict[str, Cutting]:
    """Return what runs are measured on, by name; runs of chunks of the set alone are left out.

    Raises:
        DataError: The chunks or the texts cannot be read.
    """
    if next(dataset.retrieved_texts(), None) is None:
        return {}
    return _cuttings(dataset, {name: _ids_of(dataset, name) for name in dataset.run_names()})


def has_other_chunks(dataset: Dataset, run: str, earlier: Iterable[str]) -> bool:
    """Whether a run and earlier rankings, which are no run any more, are cut otherwise.

    Args:
        dataset: Has the run.
        run: Its name.
        earlier: All that the earlier rankings hold. Where nothing is known of their texts any more,
            nobody can tell, and they are not.

    Raises:
        DataError: The chunks or the texts cannot be read.
    """
    texts = frozenset(filter(is_text_id, ids := frozenset(earlier)))
    known = {item.chunk_id for item in dataset.retrieved_texts()}
    if not ids or not known or (texts and known.isdisjoint(texts)):
        return False
    held = {run: _ids_of(dataset, run), _EARLIER: ids if texts else frozenset()}
    return not are_cut_alike(_cuttings(dataset, held), run, _EARLIER)


def _cuttings(dataset: Dataset, runs: Mapping[str, frozenset[str]]) -> dict[str, Cutting]:
    """Return what runs are measured on, by the ids that they hold; none for chunks of the set."""
    held = {name: ids for name, ids in runs.items() if ids}
    if not held:
        return {}
    placed = retrieved_places(dataset, set().union(*held.values()))
    texts = {name: _Texts(ids, placed) for name, ids in held.items()}
    chunks = _Chunks(dataset.chunks() if dataset.chunks_path.exists() else ())
    shares = {(a, b): _share_alike(texts[a], texts[b]) for a, b in combinations(texts, 2)}
    known = {couple: share for couple, share in shares.items() if share is not None}
    unlike = {frozenset(couple) for couple, share in known.items() if share < _ALIKE}
    made = {}
    for group in _connected(texts, (couple for couple in known if {*couple} not in unlike)):
        # All of them are measured on the same texts: else the one that is like more runs would have
        # more to find.
        ids = frozenset[str]().union(*(held[name] for name in group))
        of_group = [texts[name] for name in group]
        has_chunks = any(map(chunks.are_alike, of_group))
        replaced = _replaced(dataset, of_group) if has_chunks else frozenset[str]()
        for name in group:
            others = frozenset(other for other in group if {name, other} in unlike)
            made[name] = Cutting(ids, has_chunks, group, replaced, others)
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


def _replaced(dataset: Dataset, runs: Iterable["_Texts"]) -> frozenset[str]:
    """Return the chunks of the set at whose places runs have texts that are no chunks."""
    places = _Places(
        place
        for texts in runs
        for chunk_id in texts.ids
        if is_text_id(chunk_id)
        for place in texts.places_of(chunk_id)
    )
    both = ((chunk, list(_spans([chunk]))) for chunk in dataset.chunks())
    return frozenset(chunk.chunk_id for chunk, spans in both if any(map(places.cover, spans)))


def are_cut_alike(cut: Mapping[str, Cutting], a: str, b: str) -> bool:
    """Whether two runs have texts of one splitter, or both have chunks of the set.

    Args:
        cut: What runs are measured on; see `cuttings`.
        a: Name of a run.
        b: Of the other.
    """
    if a in cut and b in cut:
        return b in cut[a].runs and b not in cut[a].unlike
    other = cut.get(a) or cut.get(b)
    return other is None or other.has_chunks


def differ(cut: Mapping[str, Cutting], names: Iterable[str]) -> bool:
    """Whether some of several runs are of different texts, so that nDCG must not tell them apart.

    Args:
        cut: What runs are measured on; see `cuttings`.
        names: Of the runs.
    """
    return not all(are_cut_alike(cut, a, b) for a, b in combinations(names, 2))


def differ_in_words(measures: Sequence[str]) -> str:
    """Return a sentence on measures of runs with different texts that go by judgments."""
    return (
        f"the runs have different chunks, and {', '.join(measures)} of each go by the grades of "
        f"its own: a difference may be one of the chunks alone; {', '.join(COMPARED_ON_EVIDENCE)} "
        "do not depend on them"
    )


def _ids_of(dataset: Dataset, name: str) -> frozenset[str]:
    """Return what a run retrieved; nothing where that is chunks of the set alone."""
    try:
        ids = frozenset(hit.chunk_id for item in dataset.each_ranking(name) for hit in item.ranking)
    except DataError:
        return frozenset()  # Whoever measures it says so.
    return ids if any(map(is_text_id, ids)) else frozenset()


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
        places = self._by_document.get(span.doc_id, [])
        first = bisect_left(places, (span.start - self._longest.get(span.doc_id, 0), 0))
        least = _HALF * (span.end - span.start)
        return any(
            min(end, span.end) - max(start, span.start) > least
            for start, end in places[first : bisect_left(places, (span.end, 0))]
        )


class _Texts:
    """What a run retrieved."""

    def __init__(self, ids: frozenset[str], placed: Mapping[str, PlacedText]) -> None:
        self.ids = ids
        self.sample = sorted(ids)[:_LOOKED_AT]
        self.texts = frozenset(map(without_place, ids))
        self._placed = placed
        self._places: _Places | None = None

    def places_of(self, chunk_id: str) -> tuple[Span, ...]:
        """Return where one of them stands."""
        placed = self._placed.get(chunk_id)
        return placed.places if placed else ()

    @property
    def places(self) -> _Places:
        """Where all of them stand."""
        if self._places is None:
            self._places = _Places(span for each in self.ids for span in self.places_of(each))
        return self._places


def _share_alike(one: _Texts, other: _Texts) -> float | None:
    """Return how much of what two runs have at common places is the same; None without such."""
    n_same = n_others = 0
    for mine, theirs in ((one, other), (other, one)):
        for chunk_id in mine.sample:
            if without_place(chunk_id) in theirs.texts:
                n_same += 1
            elif any(map(theirs.places.cover, mine.places_of(chunk_id))):
                n_others += 1
    return n_same / (n_same + n_others) if n_same + n_others else None


class _Chunks:
    """The chunks of the set."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._places = _Places(_spans(chunks))

    def are_alike(self, texts: _Texts) -> bool:
        """Whether a run has chunks of the set where it has texts at their places.

        Texts that stand nowhere may be earlier wordings of a few chunks; where they are most of
        what it has, they are pieces of another splitter whose places nobody knows.
        """
        own = [chunk_id for chunk_id in texts.sample if not is_text_id(chunk_id)]
        n_nowhere = sum(
            is_text_id(chunk_id) and not texts.places_of(chunk_id) for chunk_id in texts.sample
        )
        if n_nowhere > len(own):
            return False
        others = sum(
            any(map(self._places.cover, texts.places_of(chunk_id)))
            for chunk_id in texts.sample
            if is_text_id(chunk_id)
        )
        return bool(own) and len(own) >= _ALIKE * (len(own) + others)


def _spans(chunks: Iterable[Chunk]) -> Iterator[Span]:
    for chunk in chunks:
        if chunk.end > chunk.start:
            yield Span(doc_id=chunk.doc_id, start=chunk.start, end=chunk.end)
