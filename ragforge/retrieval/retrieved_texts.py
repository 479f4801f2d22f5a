"""Texts that retrievers give and that are no chunks of the set: their ids, and where they stand.

A text is kept under an id that is made of it, once however often it comes, and is looked for in the
documents when all are there: an index is only made where there is something to look for, and no
query waits for it. Until then each hit counts by itself; in the end those of one ranking that are
known to be one place of the documents are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.records import Chunk, Ranking, RetrievedText, Span, distinct_places, text_id
from ragforge.retrieval.waiting import counted_as_wait

if TYPE_CHECKING:
    from ragforge.retrieval.corpus_documents import CorpusDocuments, Origin

_MOST_ORIGINS: Final = 32
"""Documents and offsets that are looked at of a text that comes with many."""
_MOST_PLACES: Final = 32
"""Places from which on there may be more than a locator tells."""


Standing = tuple[bool, int]
"""What a chunk or document has for a question: whether people graded it, and the grade."""
StandingOf = Callable[[str], Mapping[str, Standing]]
"""Returns what has a grade for a question, by its id."""
_UNGRADED: Final = (False, -1)


def nothing_graded(_: str) -> Mapping[str, Standing]:
    """Return nothing."""
    return {}


@dataclass(slots=True)
class _Text:
    text: str
    origins: dict[Origin, None] = field(default_factory=dict)
    """An ordered set."""
    spans: set[tuple[str, int, int]] = field(default_factory=set)
    """Places that the retriever gave itself, as offsets."""
    n_chunks: int = 0
    """Chunks with this text that the ranking has as hits already."""

    def copy(self) -> _Text:
        """Return another one that is the same."""
        return replace(self, origins=dict(self.origins), spans=set(self.spans))


@dataclass(frozen=True, slots=True)
class _Settled:
    """What a text is, now that the documents are there.

    Args:
        place: What its id tells of where it is from, beside its text; "" for nothing.
        n_hits: How many hits of a ranking it may be, each at a place of its own; `inf` where that
            is not known.
        named: Documents that it is said to be from, where it stands nowhere; it is so many hits of
            each.
    """

    place: str
    n_hits: float
    named: tuple[str, ...] = ()


class RetrievedTexts:
    """Takes the texts of one run.

    Args:
        documents: In which they are looked for.
        standing_of: Tells which of several chunks that read the same is graded.
    """

    def __init__(
        self, documents: CorpusDocuments, standing_of: StandingOf = nothing_graded
    ) -> None:
        self.documents = documents
        self._standing_of = standing_of
        self._texts: dict[str, _Text] = {}
        self.n_repeated = 0
        """Hits that are left out, as they are known to be of a place that a ranking has above."""
        self.n_misnamed = 0
        """Hits that came with the id of a chunk of the set and with another text, which counts."""
        self.misnamed: tuple[str, str] = ("", "")
        """The id and the text of the first such hit."""

    @property
    def ids(self) -> Set[str]:
        """Ids of the texts so far."""
        return self._texts.keys()

    def text(self, chunk_id: str) -> str:
        """Return a text by its id; "" where it was not taken."""
        held = self._texts.get(chunk_id)
        return held.text if held else ""

    def count_misnamed(self, chunk_id: str, text: str) -> None:
        """Count a hit with the id of a chunk and another text."""
        self.n_misnamed += 1
        if self.n_misnamed == 1:
            self.misnamed = (chunk_id, text)

    def best_graded_first(self, same: Sequence[Chunk], question: str) -> Sequence[Chunk]:
        """Return chunks that read the same, those first that people graded for a question.

        Nothing tells which of them a text is that came without an id. People grade one: were it
        another, a retriever would lose by which copy it is held to have found.
        """
        if len(same) < 2:
            return same
        with counted_as_wait():
            standing = self._standing_of(question)

        def of(chunk: Chunk) -> Standing:
            of_document = standing.get(chunk.doc_id, _UNGRADED)
            return max(standing.get(chunk.chunk_id, _UNGRADED), of_document)

        return sorted(same, key=of, reverse=True)

    def add(self, text: str, origin: Origin, n_chunks: int = 0) -> str:
        """Take a text that is not blank, and return its id.

        Args:
            text: As it was retrieved.
            origin: Where it is said to be from.
            n_chunks: Chunks with this text, all of which the ranking holds above it.
        """
        # A lone surrogate fits into no file.
        encodable = text.encode("utf-8", "replace").decode()
        told = origin.doc_ids or origin.near is not None or n_chunks
        chunk_id = text_id(encodable, repr((origin, n_chunks)) if told else "")
        self._take(chunk_id, _Text(encodable, {origin: None}, n_chunks=n_chunks))
        return chunk_id

    def add_again(self, chunk_id: str, number: int) -> str:
        """Take a text that comes again in a ranking, and return the id of this hit.

        It may be from another place, which `settle` finds out.

        Args:
            chunk_id: Of the text.
            number: Which hit of it this is, from 2.
        """
        held = self._texts[chunk_id]
        again = text_id(held.text, f"{chunk_id} {number}")
        self._take(again, held.copy())
        return again

    def add_slice(self, span: Span) -> str:
        """Take a stretch of a document that is not blank, and return the id of its text.

        Its place is that of its words: as a text it has no other one.
        """
        text = self.documents.seen(span.doc_id, span.start, span.end)
        whole = self.documents.texts[span.doc_id][span.start : span.end]
        start = span.start + len(whole) - len(whole.lstrip())
        place = span.doc_id, start, start + len(whole.strip())
        chunk_id = text_id(text, repr(place))
        self._take(chunk_id, _Text(text, spans={place}))
        return chunk_id

    def _take(self, chunk_id: str, text: _Text) -> None:
        held = self._texts.setdefault(chunk_id, text)
        # Whichever query comes first, the same file is written.
        held.text = min(held.text, text.text)
        held.origins |= text.origins
        held.spans |= text.spans

    def settle(self, rankings: Sequence[Ranking]) -> list[Ranking]:
        """Give texts the ids that they keep, and return the rankings with these.

        One that stands in several places, and was said to be at one of them, has an id of its own
        for each. Where nothing tells which place it is, the hits of a ranking that read the same
        are as many as the documents may hold, each at its rank; else what is behind them would move
        up. Whatever is known to be one place counts once, and so does what stands nowhere: twice
        the same words are no two texts that another run would have to find.
        """
        cited = {hit.chunk_id for ranking in rankings for hit in ranking.ranking}
        texts = {key: self._read(held) for key, held in self._texts.items() if key in cited}
        self._texts = {}
        settled = {each: self._settled(texts[each]) for each in sorted(texts)}
        now = [_ids_of_hits(ranking, settled, texts) for ranking in rankings]
        for of_ranking in now:
            for before, chunk_id in of_ranking.items():
                self._take(chunk_id, texts[before].copy())
        kept = [
            _renamed(ranking, of_ranking, settled)
            for ranking, of_ranking in zip(rankings, now, strict=True)
        ]
        self.n_repeated = sum(len(ranking.ranking) for ranking in rankings)
        self.n_repeated -= sum(len(ranking.ranking) for ranking in kept)
        return kept

    def _read(self, held: _Text) -> _Text:
        """Return a text as the documents have it."""
        if not held.origins:
            return held
        [origin] = held.origins
        return replace(held, text=self.documents.reading(held.text, origin))

    def _settled(self, held: _Text) -> _Settled:
        locate = self.documents.locator.locate
        [origin] = held.origins or [None]
        if origin is None:
            [(doc_id, start, _)] = held.spans
        else:
            told = locate(held.text, doc_ids=origin.doc_ids, near=origin.near)
            # Where labels name documents, words that many pages have are a hit of the one named.
            named = origin.doc_ids if self.documents.names_documents else ()
            if told is None:
                place = repr(named) if named else ""
                return _Settled(place, 1 - held.n_chunks, origin.doc_ids)
            is_of_one = any(doc_id in self.documents for doc_id in named)
            place = repr(named) if is_of_one else ""
            n_places = len(told.spans)
            if n_places != 1:
                n_hits = n_places if n_places < _MOST_PLACES else inf
                return _Settled(place, n_hits - held.n_chunks)
            doc_id, start = told.spans[0].doc_id, told.spans[0].start
        n_hits = 1 - held.n_chunks
        anywhere = locate(held.text)
        if anywhere and [span.doc_id for span in anywhere.spans] == [doc_id]:
            return _Settled("", n_hits)
        there = locate(held.text, doc_ids=(doc_id,))
        is_repeated = there is not None and len(there.spans) > 1
        place = f"{doc_id}\n{start}" if is_repeated else doc_id
        return _Settled(place, n_hits)

    def located(self, wanted: Set[str]) -> Iterator[RetrievedText]:
        """Yield the texts with their places, those of some ids alone, sorted by id."""
        for chunk_id in sorted(wanted & self._texts.keys()):
            held = self._texts[chunk_id]
            spans, likeness = set(held.spans), 1.0
            for origin in islice(held.origins, _MOST_ORIGINS):
                location = self.documents.locator.locate(
                    held.text, doc_ids=origin.doc_ids, near=origin.near
                )
                if location is not None:
                    spans |= {(span.doc_id, span.start, span.end) for span in location.spans}
                    likeness = location.likeness
            doc_ids = {doc_id for origin in held.origins for doc_id in origin.doc_ids}
            yield RetrievedText(
                chunk_id=chunk_id,
                text=held.text,
                places=distinct_places(
                    Span(doc_id=doc_id, start=start, end=end) for doc_id, start, end in spans
                ),
                likeness=likeness,
                doc_ids=() if spans else tuple(sorted(doc_ids)),
            )


def _ids_of_hits(
    ranking: Ranking, settled: Mapping[str, _Settled], texts: Mapping[str, _Text]
) -> dict[str, str]:
    """Return the ids that the texts of a ranking keep; those that are no hit of their own lack."""
    now: dict[str, str] = {}
    numbers, counts = Counter[str](), Counter[tuple[str, tuple[str, ...]]]()
    for hit in ranking.ranking:
        item = settled.get(hit.chunk_id)
        if item is None:
            continue
        text = texts[hit.chunk_id].text
        own = text_id(text, item.place)
        if counts[own, item.named] >= item.n_hits:
            continue
        counts[own, item.named] += 1
        numbers[own] += 1
        again = f"{item.place} hit {numbers[own]}".strip()
        now[hit.chunk_id] = own if numbers[own] == 1 else text_id(text, again)
    return now


def _renamed(ranking: Ranking, now: Mapping[str, str], settled: Mapping[str, _Settled]) -> Ranking:
    if not any(hit.chunk_id in settled for hit in ranking.ranking):
        return ranking
    hits = tuple(
        hit.model_copy(update={"chunk_id": now.get(hit.chunk_id, hit.chunk_id)})
        for hit in ranking.ranking
        if hit.chunk_id in now or hit.chunk_id not in settled
    )
    return ranking.model_copy(update={"ranking": hits})
