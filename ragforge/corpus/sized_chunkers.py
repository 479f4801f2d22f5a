"""Chunkers of a wanted size and overlap, of any splitter: what a sweep cuts documents with.

A chunk has at most SIZE characters; the first OVERLAP of them, or fewer, are the end of the chunk
before it, from the start of a word on.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from ragforge.corpus.chunking import MIN_CHARS, ChunkSpan, Span, chunk_spans, chunks_at
from ragforge.corpus.documents import Document
from ragforge.corpus.user_chunkers import (
    BUILT_IN,
    Chunker,
    Titles,
    chunker_version,
    make_chunker,
)
from ragforge.deferred import pattern
from ragforge.errors import UsageError
from ragforge.plugins import HandedOver, find, parameters_of
from ragforge.records import Chunk

SPLITTERS: Final = (BUILT_IN, "recursive", "sentences")
"""Built-in splitters; only the first cuts at headings."""
LEAST_SIZE: Final = 20
_PLAIN_VERSION: Final = "2"
"""Goes up when `recursive` or `sentences` cut otherwise."""
_SIZE_NAMES: Final = ("chunk_size", "max_chars", "size")
_OVERLAP_NAMES: Final = ("chunk_overlap", "overlap")
_VISIBLE: Final = pattern(r"\S")
_EMPTY_LINE: Final = pattern(r"\n[^\S\n]*\n")
_LINE_END: Final = pattern(r"\n")
_SENTENCE_END: Final = pattern(r"[.!?…][\"'”’)\]]*\s+|[。！？]+|\n[^\S\n]*\n")  # noqa: RUF001
_BLANK: Final = pattern(r"\s+")
_CUTS: Final = {
    "recursive": (_EMPTY_LINE, _LINE_END, _SENTENCE_END, _BLANK),
    "sentences": (_SENTENCE_END, _BLANK),
}
"""Where a text is cut: at the last such place that the size allows, the first kind first."""


def takes_size(spec: str) -> bool:
    """Whether a splitter cuts to a size that it is told.

    Raises:
        UsageError: There is no such splitter.
    """
    return spec in SPLITTERS or bool(_size_arguments(find("chunkers", spec, SPLITTERS), 0, 0))


def sized_chunker(spec: str, size: int | None, overlap: int) -> Chunker:
    """Return a chunker.

    Args:
        spec: `headings`, `recursive` (at empty lines, else line ends, sentences, blanks),
            `sentences`, or any chunker as `make_chunker` takes it. A function or a class of the
            user's is told the size and the overlap where it has parameters for them: `chunk_size`,
            `max_chars` or `size`, and `chunk_overlap` or `overlap`.
        size: Characters of a chunk; None for a splitter that takes none.
        overlap: Characters that two neighbours share, fewer than the size.

    Raises:
        UsageError: There is no such splitter, or it takes no such size; raised by the chunker as
            for `make_chunker`.
    """
    if size is None:
        return make_chunker(spec, max_chars=0, min_chars=0)
    if size - overlap < LEAST_SIZE:
        raise UsageError(
            f"size {size}, overlap {overlap}: expected a size of at least {LEAST_SIZE} characters "
            "more than the overlap"
        )
    if spec == BUILT_IN:
        return partial(_by_headings, size=size, overlap=overlap)
    if spec in _CUTS:
        return partial(_by_cuts, cuts=_CUTS[spec], size=size, overlap=overlap)
    held = find("chunkers", spec, SPLITTERS)
    given = _size_arguments(held, size, overlap)
    if isinstance(held, type):
        try:
            held = held(**given)
        except Exception as error:  # a user's code may raise anything
            raise UsageError(
                f"chunker {spec}: the constructor raised {type(error).__name__}: {error}"
            ) from error
    elif callable(held):
        held = partial(held, **given)
    return make_chunker(HandedOver(str(spec), held), max_chars=size, min_chars=0)


def splitter_version(spec: str) -> str:
    """Return the version of a splitter, which changes when it cuts otherwise.

    Raises:
        UsageError: There is no such splitter.
    """
    return _PLAIN_VERSION if spec in _CUTS else chunker_version(spec)


def _size_arguments(held: object, size: int, overlap: int) -> dict[str, int]:
    """Return what tells a user's chunker size and overlap; empty where it takes no size."""
    names = _parameters(held) if callable(held) else set()
    of_size = next((name for name in _SIZE_NAMES if name in names), None)
    if of_size is None:
        return {}
    of_overlap = next((name for name in _OVERLAP_NAMES if name in names), None)
    return {of_size: size} | ({of_overlap: overlap} if of_overlap else {})


def _parameters(held: Callable[..., object]) -> set[str]:
    """Return the names of parameters; of a class those of the classes above it too."""
    if not isinstance(held, type):
        return {parameter.name for parameter in parameters_of(held)}
    names = set()
    for cls in held.__mro__:
        if "__init__" in vars(cls) and cls is not object:
            names |= {parameter.name for parameter in parameters_of(vars(cls)["__init__"])}
    return names


def _by_headings(document: Document, *, size: int, overlap: int) -> list[Chunk]:
    most = size - overlap
    spans = chunk_spans(document, max_chars=most, min_chars=min(MIN_CHARS, most // 2))
    return list(chunks_at(document, _overlapping(document.text, spans, overlap)))


def _by_cuts(
    document: Document, *, cuts: tuple[re.Pattern[str], ...], size: int, overlap: int
) -> list[Chunk]:
    spans = (ChunkSpan(span, ()) for span in _spans(document.text, cuts, size - overlap))
    cut = _overlapping(document.text, spans, overlap)
    # Titles are searched with the text: with them for some splitters alone, a sweep would tell
    # apart what is searched, not how it is cut.
    titles = Titles(document)
    titled = (ChunkSpan(each.span, titles.around(each.span.start)) for each in cut)
    return list(chunks_at(document, titled))


def _spans(text: str, cuts: tuple[re.Pattern[str], ...], size: int) -> Iterator[Span]:
    """Yield pieces that leave out nothing but blanks at their ends."""
    visible = _VISIBLE.search(text)
    while visible is not None:
        start = visible.start()
        end = len(text) if len(text) - start <= size else _cut(text, start, start + size, cuts)
        yield Span(start, start + len(text[start:end].rstrip()))
        visible = _VISIBLE.search(text, end)


def _cut(text: str, start: int, stop: int, cuts: tuple[re.Pattern[str], ...]) -> int:
    for cut in cuts:
        last = 0
        for found in cut.finditer(text, start + 1, stop):
            last = found.end()
        if last:
            return last
    return stop


def _overlapping(text: str, spans: Iterable[ChunkSpan], overlap: int) -> Iterator[ChunkSpan]:
    """Yield spans that begin with the end of the one before, under the same titles."""
    before: ChunkSpan | None = None
    for each in spans:
        start = each.span.start
        if overlap and before is not None and before.path == each.path:
            start = _word_from(text, max(before.span.start + 1, start - overlap), start)
        yield ChunkSpan(Span(start, each.span.end), each.path)
        before = each


def _word_from(text: str, low: int, start: int) -> int:
    """Return where the first whole word from a place on begins; `start` where there is none."""
    if text[low - 1].isspace():
        found = _VISIBLE.search(text, low, start)
        return found.start() if found else start
    blank = _BLANK.search(text, low, start)
    return blank.end() if blank else start
