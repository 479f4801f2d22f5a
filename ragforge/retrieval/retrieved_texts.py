"""Texts that retrievers give and that are no chunks of the set: their ids, and where they stand.

A text is kept under an id that is made of it, once however often it comes, and is looked for in the
documents when all are there: an index is only made where there is something to look for, and no
query waits for it. Until then each hit counts by itself; in the end those of one ranking that are
known to be one place of the documents are one.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cached_property
from itertools import islice
from math import inf
from typing import Final, Protocol

from ragforge.deferred import dataclass
from ragforge.files.set.document_level import DocumentNames
from ragforge.records import Chunk, Ranking, RetrievedText, Span, text_id
from ragforge.retrieval.markup import marks_of, readings_of, without_markup
from ragforge.retrieval.object_fields import fold_blanks

_MOST_ORIGINS: Final = 32
"""Documents and offsets that are looked at of a text that comes with many."""
_MOST_PLACES: Final = 32
"""Places from which on there may be more than a locator tells."""
_LONGEST_NAME: Final = 1000
"""Characters; what is longer is a text."""
_LEAST_LIKENESS: Final = 0.5
"""Share of letters from which a text is that of the chunk that its id names."""
_LEAST_SHARED: Final = 40
"""Characters of a chunk that a longer text is known by; a short sentence may stand in many."""
_ENOUGH_ROWS: Final = 20
"""Rows of three words from which on two texts that share none are not alike."""
_WORD: Final = re.compile(r"\w+")
_IT: Final = "it"
_MARK_OF_A_CUT: Final = re.compile(r"…|\.{3,}|\[…\]|\[\.{3}\]")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a retriever says that a text is from.

    Args:
        doc_ids: Documents of the set that it may mean; () where it names none.
        near: Offset at which it says that the text begins; None where it does not.
    """

    doc_ids: tuple[str, ...] = ()
    near: int | None = None


class Location(Protocol):
    """Where a text stands: `TextLocation` is one."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its places."""

    @property
    def likeness(self) -> float:
        """Share of its letters that stand there."""


class Locator(Protocol):
    """Finds texts in documents: `TextLocator` is one."""

    def locate(
        self, text: str, *, doc_ids: Iterable[str] = (), near: int | None = None
    ) -> Location | None:
        """Return where a text stands, first in the documents named, near an offset."""


class CorpusDocuments:
    """The documents of a set, as its chunks have them; put together when they are asked for.

    Args:
        chunks: Of the set.
        documents_of: Returns text by document for chunks.
        locator_of: Makes what finds texts in these.
        names_documents: Whether labels name documents, so that a whole one may be retrieved.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        documents_of: Callable[[Iterable[Chunk]], Mapping[str, str]],
        locator_of: Callable[[Mapping[str, str]], Locator],
        *,
        names_documents: bool = False,
    ) -> None:
        self._chunks = chunks
        self._documents_of = documents_of
        self._locator_of = locator_of
        self._doc_ids = frozenset(chunk.doc_id for chunk in chunks)
        self._resolved: dict[str, tuple[str, ...]] = {}
        self._folded: dict[str, str] = {}
        self._compared: dict[tuple[str, str], bool] = {}
        self.retrievable: Set[str] = self._doc_ids if names_documents else frozenset()
        """Ids of documents that a hit may be."""

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Text by id, as long as the file: what a reader does not see is blank."""
        return self._documents_of(self._chunks)

    def seen(self, doc_id: str, start: int = 0, end: int | None = None) -> str:
        """Return what a reader sees of a stretch of a document, as its chunks have it.

        Args:
            doc_id: Of the set.
            start: Offset in the file.
            end: Offset behind the stretch; None for the rest of the document.
        """
        text = self.texts[doc_id]
        parts, done, stop = [], start, len(text) if end is None else end
        hidden = self._hidden.get(doc_id, ())
        for first, behind in hidden[max(0, bisect_left(hidden, (start, 0)) - 1) :]:
            if first >= stop:
                break
            parts.append(text[done:first])
            done = max(done, behind)
        return "".join((*parts, text[done:stop]))

    @cached_property
    def _hidden(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """What a reader does not see, by document, from the first to the last."""
        found: dict[str, set[tuple[int, int]]] = {}
        for chunk in self._chunks:
            if chunk.has_offsets:
                of_document = found.setdefault(chunk.doc_id, set())
                for place, length in chunk.hidden:
                    behind = chunk.offset(place)
                    if length > 0:
                        of_document.add((behind - length, behind))
        return {doc_id: sorted(stretches) for doc_id, stretches in found.items()}

    def __contains__(self, doc_id: str) -> bool:
        """Whether a document is called so."""
        return doc_id in self._doc_ids

    def called(self, name: str) -> str:
        """Return the one document of an id, or whose path ends so; "" for none.

        What has neither a suffix nor a folder is no end of a path: chunks may be called so.
        """
        if name in self._doc_ids:
            return name
        if len(name) > _LONGEST_NAME or not {".", "/"} & {*name}:
            return ""
        found = self._names.find(name)
        return found[0] if len(found) == 1 else ""

    def folded(self, doc_id: str) -> str:
        """Return what a reader sees of a document with single blanks."""
        if doc_id not in self._folded:
            self._folded[doc_id] = fold_blanks(self.seen(doc_id))
        return self._folded[doc_id]

    def is_text_of(self, text: str, chunk: Chunk) -> bool:
        """Whether a text is that of a chunk as a reader sees it, by its letters.

        It may be cut short, have a heading or other words about it, or be written in another way.
        What stands word for word in the document of the chunk, and not in the chunk, is another
        piece of it.
        """
        key = (chunk.chunk_id, text)
        if key not in self._compared:
            self._compared[key] = any(
                self._is_text_of(fold_blanks(reading), chunk) for reading in readings_of(text)
            )
        return self._compared[key]

    def _is_text_of(self, text: str, chunk: Chunk) -> bool:
        original = fold_blanks(chunk.text)
        if all(_holds(original, piece) for piece in _pieces(text)):
            return True
        is_most = 2 * len(original) >= len(text)
        if text in self.folded(chunk.doc_id) and text not in original:
            return is_most and _holds(text, original)
        is_known = is_most or len(original) >= _LEAST_SHARED
        return (is_known and _holds(text, original)) or self._is_like(text, original)

    def is_of_document(self, text: str, doc_id: str) -> bool:
        """Whether a text is of a document, likewise."""
        key = (doc_id, text)
        if key not in self._compared:
            original = self.folded(doc_id)
            self._compared[key] = any(
                _holds(original, folded)
                or _holds(folded, original)
                or self._is_like(folded, original)
                for folded in map(fold_blanks, readings_of(text))
            )
        return self._compared[key]

    def chunks_but_for_markup(self, text: str) -> list[Chunk]:
        """Return the chunks that have a text but for tags and entities; [] for one without any.

        What stands in the document of a chunk as it is, is none: the document is about HTML.
        """
        if not marks_of(text):
            return []
        as_is, bare = fold_blanks(text), without_markup(text)
        return [
            chunk
            for chunk in self._without_markup.get(hash(bare), ())
            if without_markup(chunk.text) == bare and as_is not in self.folded(chunk.doc_id)
        ]

    @cached_property
    def _without_markup(self) -> Mapping[int, Sequence[Chunk]]:
        found: dict[int, list[Chunk]] = {}
        for chunk in self._chunks:
            found.setdefault(hash(without_markup(chunk.text)), []).append(chunk)
        return found

    def reading(self, text: str, origin: Origin) -> str:
        """Return a text as it stands in the documents: as it is, else without markup of a service.

        Of several readings the one counts that has most of its letters there, then the one with
        fewest tags and entities that do not stand there. A text that stands nowhere is as it was.
        """
        if not marks_of(text):
            return text
        best, best_fit = text, (0.0, 0)
        for reading in readings_of(text):
            found = self.locator.locate(reading, doc_ids=origin.doc_ids, near=origin.near)
            if found is None:
                continue
            there = [self.texts[span.doc_id][span.start : span.end] for span in found.spans]
            foreign = min(sum(mark not in each for mark in marks_of(reading)) for each in there)
            fit = (found.likeness, -foreign)
            if fit > best_fit:
                best, best_fit = reading, fit
            if best_fit == (1.0, 0):
                break
        return best

    def _is_like(self, text: str, original: str) -> bool:
        """Whether most of a text, or of its pieces, is in another one, or the other way round."""
        # A locator takes milliseconds, and words in a row tell nearly always.
        rows, of_original = _rows_of_words(text), _rows_of_words(original)
        n_shared = len(rows & of_original)
        if n_shared >= _LEAST_LIKENESS * len(rows) > 0:
            return True
        if not n_shared and min(len(rows), len(of_original)) >= _ENOUGH_ROWS:
            return False
        within = self._locator_of({_IT: original})
        shares = [(len(each), within.locate(each, doc_ids=(_IT,))) for each in _pieces(text)]
        shared = sum(size * place.likeness for size, place in shares if place is not None)
        if shared >= _LEAST_LIKENESS * sum(size for size, _ in shares) > 0:
            return True
        if len(original) < _LEAST_SHARED:
            return False
        place = self._locator_of({_IT: text}).locate(original, doc_ids=(_IT,))
        return place is not None and place.likeness >= _LEAST_LIKENESS

    @cached_property
    def locator(self) -> Locator:
        """Finds texts in them."""
        return self._locator_of(self.texts)

    @cached_property
    def _names(self) -> DocumentNames:
        return DocumentNames(self._doc_ids)

    def named(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the documents that the first name means that means any; () for none."""
        for name in names:
            if len(name) > _LONGEST_NAME:
                continue
            if name not in self._resolved:
                self._resolved[name] = self._names.resolve(name)
            if doc_ids := self._resolved[name]:
                return doc_ids
        return ()


@dataclass(slots=True)
class _Text:
    text: str
    origins: dict[Origin, None] = field(default_factory=dict)
    """An ordered set."""
    spans: set[tuple[str, int, int]] = field(default_factory=set)
    """Places that the retriever gave itself, as offsets."""
    n_chunks: int = 0
    """Chunks with this text that the ranking has as hits already."""

    def copy(self) -> "_Text":
        """Return another one that is the same."""
        return replace(self, origins=dict(self.origins), spans=set(self.spans))


@dataclass(frozen=True, slots=True)
class _Settled:
    """What a text is, now that the documents are there.

    Args:
        chunk_id: The id that it keeps.
        n_hits: How many hits of a ranking it may be, each at a place of its own; `inf` where that
            is not known.
        named: Documents that it is said to be from, where it stands nowhere; it is so many hits of
            each.
    """

    chunk_id: str
    n_hits: float
    named: tuple[str, ...] = ()


class RetrievedTexts:
    """Takes the texts of one run.

    Args:
        documents: In which they are looked for.
    """

    def __init__(self, documents: CorpusDocuments) -> None:
        self.documents = documents
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
        """Take a stretch of a document that is not blank, and return the id of its text."""
        text = self.documents.seen(span.doc_id, span.start, span.end)
        chunk_id = text_id(text, repr(span))
        self._take(chunk_id, _Text(text, spans={(span.doc_id, span.start, span.end)}))
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
        own = text_id(held.text)
        [origin] = held.origins or [None]
        if origin is None:
            [(doc_id, start, _)] = held.spans
        else:
            told = locate(held.text, doc_ids=origin.doc_ids, near=origin.near)
            if told is None:
                return _Settled(own, 1 - held.n_chunks, origin.doc_ids)
            n_places = len(told.spans)
            if n_places != 1:
                n_hits = n_places if n_places < _MOST_PLACES else inf
                return _Settled(own, n_hits - held.n_chunks)
            doc_id, start = told.spans[0].doc_id, told.spans[0].start
        n_hits = 1 - held.n_chunks
        anywhere = locate(held.text)
        if anywhere and [span.doc_id for span in anywhere.spans] == [doc_id]:
            return _Settled(own, n_hits)
        there = locate(held.text, doc_ids=(doc_id,))
        is_repeated = there is not None and len(there.spans) > 1
        place = f"{doc_id}\n{start}" if is_repeated else doc_id
        return _Settled(text_id(held.text, place), n_hits)

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
                places=tuple(
                    Span(doc_id=doc_id, start=start, end=end)
                    for doc_id, start, end in sorted(spans)
                ),
                likeness=likeness,
                doc_ids=() if spans else tuple(sorted(doc_ids)),
            )


def _pieces(text: str) -> list[str]:
    """Return what stands between the marks of a text that something was cut out of."""
    return [piece.strip() for piece in _MARK_OF_A_CUT.split(text) if piece.strip()]


def _rows_of_words(text: str) -> set[tuple[str, str, str]]:
    """Return each three words of a text that follow each other."""
    words = _WORD.findall(text.casefold())
    return {*zip(words, words[1:], words[2:], strict=False)}


def _holds(text: str, part: str) -> bool:
    """Whether a text holds another one as whole words, or begins with it; both of single blanks."""
    return bool(part) and (text.startswith(part) or f" {part} " in f" {text} ")


def _ids_of_hits(
    ranking: Ranking, settled: Mapping[str, _Settled], texts: Mapping[str, _Text]
) -> dict[str, str]:
    """Return the ids that the texts of a ranking keep; those that are no hit of their own lack."""
    now: dict[str, str] = {}
    numbers, counts = Counter[str](), Counter[tuple[str, tuple[str, ...]]]()
    for hit in ranking.ranking:
        item = settled.get(hit.chunk_id)
        if item is None or counts[item.chunk_id, item.named] >= item.n_hits:
            continue
        counts[item.chunk_id, item.named] += 1
        numbers[item.chunk_id] += 1
        number = numbers[item.chunk_id]
        again = f"hit {number}"
        now[hit.chunk_id] = (
            item.chunk_id if number == 1 else text_id(texts[hit.chunk_id].text, again)
        )
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
