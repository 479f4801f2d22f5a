"""As much of a chunk as is shown, and where in it the evidence stands."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ragforge.records import Chunk
from ragforge.report.shown import Excerpt, visible

CHUNK_CHARS: Final = 500
_BEFORE: Final = 80
"""Characters shown before a quote that is farther down than a chunk is shown."""
_NEEDLE: Final = 24
"""Characters by which a quote is known whose end is not shown."""
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class ChunkStart:
    """As much of a chunk as is shown: its start, or what is around a quote farther down."""

    doc_id: str
    heading: str
    text: Excerpt
    offset: int = 0
    """Characters left out before the text."""

    @property
    def cut_note(self) -> str:
        """What was cut, in words; "" where nothing was."""
        if not self.offset:
            return self.text.cut_note
        first, last = self.offset + 1, self.offset + len(self.text.text)
        return f"characters {first:,} to {last:,} of {self.text.length:,}"


class Span(NamedTuple):
    """Part of a text, in characters, the end left out."""

    start: int
    end: int


def chunk_start(chunk: Chunk, quotes: Iterable[str] = ()) -> ChunkStart:
    """Return as much of a chunk as is shown.

    Args:
        chunk: The chunk.
        quotes: What is to be seen in it; the first that is found decides.
    """
    text = chunk.text
    offset = 0
    if len(text) > CHUNK_CHARS:
        found = next((span for quote in quotes if (span := _find(text, quote))), None)
        if found is not None and found.end > CHUNK_CHARS:
            offset = max(0, min(found.start - _BEFORE, len(text) - CHUNK_CHARS))
    part = Excerpt(text[offset : offset + CHUNK_CHARS], len(text))
    return ChunkStart(chunk.doc_id, " / ".join(chunk.heading_path), part, offset)


class ShownStarts:
    """Collects the starts of what is shown: chunks, and documents by their first chunk.

    Args:
        shown: Ids, with the quotes to be seen in each.
    """

    def __init__(self, shown: Mapping[str, Sequence[str]]) -> None:
        self._shown = shown
        self._chunks: dict[str, ChunkStart] = {}
        self._documents: dict[str, ChunkStart] = {}
        self._firsts: dict[str, int] = {}

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk of the corpus; most are of no account."""
        if chunk.chunk_id in self._shown:
            self._chunks[chunk.chunk_id] = chunk_start(chunk, self._shown[chunk.chunk_id])
        if chunk.doc_id in self._shown:
            first = self._firsts.get(chunk.doc_id)
            if first is None or chunk.start < first:
                self._firsts[chunk.doc_id] = chunk.start
                self._documents[chunk.doc_id] = chunk_start(chunk)

    @property
    def has_all(self) -> bool:
        """Whether nothing is left to be found; a document may have an earlier chunk."""
        return len(self._chunks) == len(self._shown)

    def found(self) -> dict[str, ChunkStart]:
        """Return the starts by id; an id that is of a chunk is that of no document."""
        return {**self._documents, **self._chunks}


def spans(text: str, quotes: Sequence[str]) -> tuple[Span, ...]:
    """Return where quotes stand in a shown text, in order and apart from one another."""
    found = sorted(span for quote in quotes if (span := _find(text, quote) or _cut(text, quote)))
    joined: list[Span] = []
    for span in found:
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return tuple(joined)


def visible_pieces(text: str, marked: Sequence[Span]) -> Iterator[str]:
    """Yield the text in pieces, plain and marked ones in turn, hidden characters visible."""
    at = 0
    for span in marked:
        yield visible(text[at : span.start])
        yield visible(text[span.start : span.end])
        at = span.end
    yield visible(text[at:])


def _find(text: str, quote: str) -> Span | None:
    """Return where a quote stands, however its words are spaced."""
    words = quote[:_LONGEST].split()
    if not words:
        return None
    at = text.find(quote)
    if at >= 0:
        return Span(at, at + len(quote))
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    return Span(*match.span()) if match else None


def _cut(text: str, quote: str) -> Span | None:
    """Return where a quote begins that goes on beyond the shown text."""
    at = text.find(quote[:_NEEDLE]) if len(quote) >= _NEEDLE else -1
    if at >= 0 and quote.startswith(text[at:]):
        return Span(at, len(text))
    return None
