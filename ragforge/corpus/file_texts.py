"""The files that chunks were cut from, put together from these, with each character at its place.

What a reader does not see of a file is blank there.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ragforge.corpus.documents import Document
from ragforge.corpus.formats import FORMATS, suffix_of
from ragforge.corpus.laid_out import BLANK, beyond, with_beyond
from ragforge.corpus.seen_text import Edit, seen_text
from ragforge.deferred import pattern
from ragforge.records import Chunk

_UNSEEN: Final = "\0"
"""Normalised texts have none."""
_UNSEEN_RUN: Final = pattern(f"{_UNSEEN}+")


def file_texts(chunks: Iterable[Chunk]) -> dict[str, str]:
    """Return the text of each document by id; offsets of chunks and evidence lead into it."""
    from ragforge.corpus.text_locations import documents_of  # Its numpy is for long work.

    return documents_of(laid_out(chunk, BLANK) for chunk in chunks)


class ChunkPlace(NamedTuple):
    """Where a chunk stands in its document, as `file_texts` returns that."""

    chunk_id: str
    doc_id: str
    start: int
    end: int


def chunk_places(chunks: Iterable[Chunk]) -> Iterator[ChunkPlace]:
    """Yield where chunks stand, of those without offsets too, document by document.

    They stand one behind the other in a document of which one has no offsets; see `documents_of`.
    """
    of_document: dict[str, list[tuple[str, int, int, bool]]] = {}
    for chunk in chunks:
        length = chunk.end - chunk.start if chunk.has_offsets else len(chunk.text)
        row = chunk.chunk_id, chunk.start, length, chunk.has_offsets
        of_document.setdefault(chunk.doc_id, []).append(row)
    for doc_id, rows in of_document.items():
        is_known = all(has_offsets for *_, has_offsets in rows)
        at = 0
        for chunk_id, start, length, _ in rows:
            begin = start if is_known else at
            yield ChunkPlace(chunk_id, doc_id, begin, begin + length)
            at += length + len("\n")


def rebuilt_documents(chunks: Iterable[Chunk]) -> Iterator[Document]:
    """Yield the documents of chunks, as far as these hold them.

    The title of one is what all of its chunks are under.
    """
    from ragforge.corpus.text_locations import documents_of

    titles: dict[str, str] = {}

    def told() -> Iterator[Chunk]:
        for chunk in chunks:
            title = chunk.heading_path[0] if chunk.heading_path else ""
            if titles.setdefault(chunk.doc_id, title) != title:
                titles[chunk.doc_id] = ""
            yield laid_out(chunk, _UNSEEN)

    for doc_id, text in documents_of(told()).items():
        named = FORMATS.get(suffix_of(doc_id.partition("#")[0]), "text")
        form = "row" if named == "export" else named
        hidden = (Edit(*run.span()) for run in _UNSEEN_RUN.finditer(text))
        seen = seen_text(text, (*hidden, *(Edit(at, at, more) for at, more in beyond(text))))
        if seen.places:
            yield Document(doc_id, titles[doc_id], seen.text, form, seen, text)
        else:
            yield Document(doc_id, titles[doc_id], text, form)


def laid_out_text(document: Document) -> str:
    """Return what a reader sees of a document, each character at its offset in the file."""
    if document.source is None:
        return document.text
    totals = document.source.left_out
    lengths = (now - before for before, now in zip((0, *totals), totals, strict=False))
    return _laid_out(document.text, zip(document.source.places, lengths, strict=True), BLANK)


def seen_between(document: Document, start: int, end: int) -> str:
    """Return what a reader sees between two offsets of the file of a document."""
    source = document.source
    if source is None:
        return document.text[start:end]
    places = range(len(document.text))
    first = bisect_left(places, start, key=source.offset)
    return document.text[first : bisect_left(places, end, lo=first, key=source.offset)]


def laid_out(chunk: Chunk, blank: str) -> Chunk:
    """Return a chunk whose text is as long as its place in the file."""
    if not chunk.hidden or not chunk.has_offsets:
        return chunk
    text = _laid_out(chunk.text, chunk.hidden, blank)
    return chunk.model_copy(update={"text": text, "hidden": ()})


def _laid_out(text: str, hidden: Iterable[tuple[int, int]], blank: str) -> str:
    """Return a text with blanks for what is hidden; what does not fit into its place is beyond.

    Args:
        text: As it is seen.
        hidden: Places in it, ascending, each with the characters that are hidden before it; fewer
            than 0 where so many of the text have no place of their own.
        blank: Stands for one of those.
    """
    parts: list[str] = []
    over: list[tuple[int, str]] = []
    done = length = 0
    for place, n_hidden in hidden:
        parts += (text[done:place], blank * n_hidden)
        length += place - done + max(n_hidden, 0)
        done = place - min(n_hidden, 0)
        over.append((length, text[place:done]))
    return with_beyond("".join((*parts, text[done:])), over)
