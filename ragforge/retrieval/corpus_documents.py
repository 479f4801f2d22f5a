"""The documents of a set, in which texts that retrievers give are looked for.

Services cut texts short, put headings before them and mark what was found: so a text is compared by
what of that changes nothing.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Final, Protocol

from ragforge.deferred import dataclass
from ragforge.files.set.document_level import DocumentNames
from ragforge.records import Chunk, Span
from ragforge.retrieval.markup import marks_of, readings_of, without_markup
from ragforge.retrieval.object_fields import fold_blanks

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
