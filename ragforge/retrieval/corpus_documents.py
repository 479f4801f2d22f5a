"""The documents of a set, in which texts that retrievers give are looked for.

Services cut texts short, put headings before them and mark what was found: so a text is compared by
what of that changes nothing.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Final, Protocol

from ragforge.deferred import dataclass
from ragforge.files.set.document_level import DocumentNames
from ragforge.files.text import Form, is_normalized, normalise, normalize
from ragforge.records import Chunk, Span
from ragforge.retrieval.excerpts import holds, is_excerpt, is_marked_excerpt, is_within, pieces_of
from ragforge.retrieval.markup import marks_of, readings_of, without_markup
from ragforge.retrieval.object_fields import fold_text
from ragforge.retrieval.waiting import counted_as_wait
from ragforge.retrieval.wordings import ChunkWordings, has_part, rows_of, wording

_LONGEST_NAME: Final = 1000
"""Characters; what is longer is a text."""
_LEAST_LIKENESS: Final = 0.5
"""Share of letters from which a text is that of the document that its id names."""
_LEAST_SHARED: Final = 40
"""Characters of a chunk that a longer text is known by; a short sentence may stand in many."""
_NEARLY_ALL: Final = 0.9
"""Share of a text that is that of a chunk, from which it is the chunk with a heading."""
_ENOUGH_ROWS: Final = 20
"""Rows of three words from which on two texts that share none are not alike."""
_WORD: Final = re.compile(r"\w+")
_IT: Final = "it"
_FORMS: Final[tuple[Form, ...]] = ("NFC", "NFD")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a retriever says that a text is from.

    Args:
        doc_ids: Documents of the set that it may mean, or the one that it names and the set lacks,
            where labels name documents; () where it names none.
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

    @property
    def has_other_signs(self) -> bool:
        """Whether its letters stand there with another sign, as 11 for -11."""


class Locator(Protocol):
    """Finds texts in documents: `TextLocator` is one."""

    def locate(
        self, text: str, *, doc_ids: Iterable[str] = (), near: int | None = None
    ) -> Location | None:
        """Return where a text stands, first in the documents named, near an offset."""

    def readings(self, text: str) -> Iterable[str]:
        """Return what a reader sees of a text that has the markup of files, if that is another."""


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
        self._worded: dict[str, str] = {}
        self._compared: dict[tuple[str, str], bool] = {}
        self.names_documents = names_documents
        self.retrievable: Set[str] = self._doc_ids if names_documents else frozenset()
        """Ids of documents that a hit may be."""

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Text by id, as long as the file: what a reader does not see is blank."""
        with counted_as_wait():
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
            self._folded[doc_id] = fold_text(self.seen(doc_id))
        return self._folded[doc_id]

    def is_text_of(self, text: str, chunk: Chunk) -> bool:
        """Whether a text is that of a chunk as a reader sees it, by its letters.

        It may be cut short, have a heading or other words about it, be marked up, or be shown
        otherwise, as without list numbers. What has other words within, or another sign as 11 for
        -11, is another piece of the documents, or is likelier another chunk, is not.
        """
        key = (chunk.chunk_id, text)
        if key not in self._compared:
            is_one = self._is_text_of(text, chunk) and not self._has_other_signs(text, chunk.text)
            self._compared[key] = is_one or self._is_shown_otherwise(text, chunk)
        return self._compared[key]

    def _is_text_of(self, text: str, chunk: Chunk) -> bool:
        readings = [fold_text(reading) for reading in readings_of(text)]
        original, words = fold_text(chunk.text), wording(chunk.text)
        for reading in readings:
            if is_within(original, words, reading) or self._is_about(reading, chunk):
                return True
        if any(self._is_another(reading, chunk) for reading in readings):
            return False
        is_one = is_marked_excerpt(text, chunk.text) or any(
            is_excerpt(reading, words) for reading in self.locator.readings(text)
        )
        return is_one and not any(self._is_likelier_another(each, chunk) for each in readings)

    def _is_shown_otherwise(self, text: str, chunk: Chunk) -> bool:
        """Whether a text is an excerpt of a chunk but for list numbers, accents and the like."""
        from ragforge.retrieval.renderings import alike  # Few texts are neither it nor another.

        readings = [fold_text(reading) for reading in readings_of(text)]
        if any(self._is_another(reading, chunk) for reading in readings):
            return False
        is_one = any(
            is_marked_excerpt(one, original) and not self._has_other_signs(one, original)
            for one, original in alike(text, chunk.text)
        )
        return is_one and not any(self._is_likelier_another(each, chunk) for each in readings)

    def _has_other_signs(self, text: str, original: str) -> bool:
        """Whether a text has the letters of another one, or of a part, and another sign."""
        if fold_text(text) in fold_text(original):
            return False
        found = [
            place
            for one, other in ((text, original), (original, text))
            if (place := self._locator_of({_IT: other}).locate(one, doc_ids=(_IT,))) is not None
        ]
        is_same = any(place.likeness == 1 for place in found)
        return not is_same and any(place.has_other_signs for place in found)

    def _is_about(self, text: str, chunk: Chunk) -> bool:
        """Whether a text is a chunk with words about it, and no longer piece of its document."""
        original = fold_text(chunk.text)
        is_most = 2 * len(original) >= len(text)
        if not is_most and len(original) < _LEAST_SHARED:
            return False
        if not holds(text, original) and not has_part(wording(text), wording(original)):
            return False
        return is_most or text not in self.folded(chunk.doc_id)

    def _is_another(self, text: str, chunk: Chunk) -> bool:
        """Whether a text that is not within a chunk is another piece of the document, or chunk."""
        is_within = text in fold_text(chunk.text)
        if not is_within and text in self.folded(chunk.doc_id):
            return True
        return any(other.text != chunk.text for other in self._wordings.most_of(wording(text)))

    def _is_likelier_another(self, text: str, chunk: Chunk) -> bool:
        """Whether a text that is like a chunk is a piece of another place, or likelier there."""
        found = self.locator.locate(text)
        if found is None:
            return False
        words = wording(chunk.text)
        there = {wording(one.text) for span in found.spans for one in self._chunks_at(span)}
        if found.likeness == 1 and words not in there:
            return True
        rows = rows_of(wording(text))
        n_own = len(rows & rows_of(words))
        return any(
            len(rows & rows_of(other)) > n_own for other in there if not has_part(other, words)
        )

    def _chunks_at(self, span: Span) -> Iterator[Chunk]:
        """Yield the chunks that a stretch may be: they have most of it, and it is most of them.

        What is cut out of a chunk is less of it, and what has words about it is more.
        """
        for start, end, chunk in self._placed(span.doc_id):
            shared = min(end, span.end) - max(start, span.start)
            if shared >= _NEARLY_ALL * min(end - start, span.end - span.start):
                yield chunk

    def _placed(self, doc_id: str) -> Iterator[tuple[int, int, Chunk]]:
        """Yield the chunks of a document with where they begin and end in its text here."""
        chunks = self._chunks_of[doc_id]
        if all(chunk.has_offsets for chunk in chunks):
            yield from ((chunk.start, chunk.end, chunk) for chunk in chunks)
            return
        start = 0
        for chunk in chunks:
            size = chunk.end - chunk.start if chunk.has_offsets else len(chunk.text)
            yield start, start + size, chunk
            start += size + 1  # A line end is between two.

    @cached_property
    def _chunks_of(self) -> Mapping[str, Sequence[Chunk]]:
        found: dict[str, list[Chunk]] = {}
        for chunk in self._chunks:
            found.setdefault(chunk.doc_id, []).append(chunk)
        return found

    def is_of_document(self, text: str, doc_id: str) -> bool:
        """Whether a text is of a document, likewise."""
        key = (doc_id, text)
        if key not in self._compared:
            readings = [fold_text(reading) for reading in readings_of(text)]
            self._compared[key] = self._is_of_document(readings, doc_id)
        return self._compared[key]

    def _wording(self, doc_id: str) -> str:
        if doc_id not in self._worded:
            self._worded[doc_id] = wording(self.seen(doc_id))
        return self._worded[doc_id]

    def _is_of_document(self, readings: Sequence[str], doc_id: str) -> bool:
        original, words = self.folded(doc_id), self._wording(doc_id)
        for reading in readings:
            of_reading = wording(reading)
            if holds(original, reading) or holds(reading, original):
                return True
            if has_part(words, of_reading) or has_part(of_reading, words):
                return True
        return any(
            self._is_like(reading, original) and not self._is_likelier_elsewhere(reading, doc_id)
            for reading in readings
        )

    def _is_likelier_elsewhere(self, text: str, doc_id: str) -> bool:
        """Whether a text that is like a document has more in common with another one."""
        found = self.locator.locate(text)
        doc_ids = {span.doc_id for span in found.spans} if found else {doc_id}
        if found is None or (found.likeness == 1 and doc_id in doc_ids):
            return False
        own = self.locator.locate(text, doc_ids=(doc_id,))
        rows = rows_of(wording(text))
        n_shared = dict.fromkeys((doc_id, *doc_ids), 0)
        for span in (*(own.spans if own else ()), *found.spans):
            start, end = max(0, span.start - len(text)), span.end + len(text)
            about = rows_of(wording(self.texts[span.doc_id][start:end]))
            n_shared[span.doc_id] = max(n_shared[span.doc_id], len(rows & about))
        return max(n_shared.values()) > n_shared[doc_id]

    def chunks_in_other_writing(self, text: str) -> list[Chunk]:
        """Return the chunks that a text is but for markup, case, punctuation and a heading.

        Several where these read the same. What stands in the document of a chunk as it is, is none.
        """
        if found := self._chunks_but_for_markup(text):
            return found
        as_is = fold_text(text)
        for reading in readings_of(text):
            found = self._wordings.most_of(wording(reading), _NEARLY_ALL)
            if found := [
                one
                for one in found
                if as_is not in self.folded(one.doc_id)
                and not self._has_other_signs(reading, one.text)
            ]:
                return found
        return []

    @cached_property
    def _wordings(self) -> ChunkWordings:
        with counted_as_wait():
            return ChunkWordings(self._chunks)

    def _chunks_but_for_markup(self, text: str) -> list[Chunk]:
        """Return the chunks that have a text but for tags and entities; [] for one without any.

        What stands in the document of a chunk as it is, is none: the document is about HTML.
        """
        if not marks_of(text):
            return []
        as_is, bare = fold_text(text), without_markup(text)
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

        It has their normal form: files of PDF and of macOS give letters in parts. Of several
        readings the one counts that has most of its letters there, then the one with fewest tags
        and entities that do not stand there. The markup of a text that stands nowhere stays.
        """
        text = self._in_form(text, origin)
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

    def _in_form(self, text: str, origin: Origin) -> str:
        """Return a text in the normal form of the documents; chunk files may have another one."""
        if text.isascii() or self._are_normalised:
            plain = normalise(text)
            return plain if plain.strip() else text
        found = self.locator.locate(text, doc_ids=origin.doc_ids, near=origin.near)
        spans = found.spans if found else ()
        there = [self.texts[span.doc_id][span.start : span.end] for span in spans]
        for form in _FORMS:
            if all(is_normalized(form, each) for each in there):
                return normalize(form, text)
        return text

    @cached_property
    def _are_normalised(self) -> bool:
        with counted_as_wait():
            return all(normalise(chunk.text) == chunk.text for chunk in self._chunks)

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
        shares = [(len(each), within.locate(each, doc_ids=(_IT,))) for each in pieces_of(text)]
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
        texts = self.texts
        with counted_as_wait():
            return self._locator_of(texts)

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


def _rows_of_words(text: str) -> set[tuple[str, str, str]]:
    """Return each three words of a text that follow each other."""
    words = _WORD.findall(text.casefold())
    return {*zip(words, words[1:], words[2:], strict=False)}
