"""Chunkers of users: what they return is looked up in the document, so that offsets hold."""

from __future__ import annotations

import hashlib
import inspect
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragforge.corpus.chunking import (
    CHUNKING_VERSION,
    ChunkSpan,
    Span,
    chunk_document,
    chunks_at,
    sections_of,
)
from ragforge.corpus.documents import Document
from ragforge.errors import UsageError
from ragforge.records import Chunk

if TYPE_CHECKING:
    from ragforge.corpus.quote_locations import FoldedText, Location

Chunker = Callable[[Document], list[Chunk]]
"""From a document to its chunks; a slice of `document.text` is the text of each."""

BUILT_IN = "headings"
_METHODS = ("split_text", "chunk", "split")
_SHOWN = 80
_DIGITS = 16
_TAKES_DOCUMENT = ("document", "doc")
_TEXTS = ("text", "page_content")
_NEARBY = 2000
_NOT_BLANK = re.compile(r"\S")


def make_chunker(spec: str, *, max_chars: int, min_chars: int) -> Chunker:
    """Return the chunker that a spec names.

    Args:
        spec: `headings`, which is `chunk_document`; `package.module:attribute`, or the name of an
            entry point in `ragforge.chunkers`. That is a function `f(text)` or `f(document)`
            (told by the name or the annotation of its parameter), an object with `split_text`,
            as text splitters of frameworks have it, or a class of such objects. It returns
            pieces: texts, or mappings or objects with `text` (or `page_content`), and `start`,
            `end` and `heading_path` if it knows them.
        max_chars: As in `chunk_document`; other chunkers are not told.
        min_chars: Likewise.

    Raises:
        UsageError: There is no such chunker, or it cannot be loaded; raised by the chunker: its
            code raised, returned something else, or a piece that is not in the document.
    """
    if spec == BUILT_IN:
        return lambda document: chunk_document(document, max_chars=max_chars, min_chars=min_chars)
    from ragforge.plugins import construct, find, method_of

    where = f"chunker {spec}"
    chunker = find("chunkers", spec, (BUILT_IN,))
    if isinstance(chunker, type):
        try:
            chunker = construct(chunker, where, {}, "make the object in the module and name that")
        except SystemExit as error:
            raise UsageError(f"{where}: the constructor raised SystemExit: {error}") from error
    cut = method_of(chunker, _METHODS, where, "f(text)")
    whole = _takes_document(cut)

    def chunks(document: Document) -> list[Chunk]:
        pieces = _pieces(cut, document if whole else document.text, f"{where}: {document.doc_id}")
        return list(chunks_at(document, _passages(document, pieces, where)))

    return chunks


def chunker_version(spec: str) -> str:
    """Return the version of a chunker, which changes when it cuts otherwise.

    Args:
        spec: As for `make_chunker`. That of a user's chunker is a digest of the file it is in;
            what that file imports is not looked at.

    Raises:
        UsageError: There is no such chunker.
    """
    if spec == BUILT_IN:
        return str(CHUNKING_VERSION)
    from ragforge.plugins import find

    return source_digest(find("chunkers", spec, (BUILT_IN,)))


def source_digest(found: object) -> str:
    """Return the digest of the file that a user's function, class or object is in, "" if none."""
    named = found if inspect.isroutine(found) or isinstance(found, type) else type(found)
    try:
        file = inspect.getsourcefile(named)
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:_DIGITS] if file else ""
    except (TypeError, OSError):
        return ""


def _takes_document(cut: Callable[..., object]) -> bool:
    from ragforge.plugins import parameters_of

    first = next(iter(parameters_of(cut)), None)
    if first is None:
        return False
    annotation = first.annotation if first.annotation is not inspect.Parameter.empty else ""
    return first.name in _TAKES_DOCUMENT or "Document" in str(annotation)


def _pieces(cut: Callable[..., object], given: object, where: str) -> list[object]:
    try:
        returned = cut(given)
        pieces = list(returned) if isinstance(returned, Iterable) else None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's code may raise anything, or leave with sys.exit
        raise UsageError(f"{where}: raised {type(error).__name__}: {error}") from error
    if inspect.iscoroutine(returned):
        returned.close()
        raise UsageError(f"{where}: is async; expected a plain function")
    if pieces is None or isinstance(returned, str | Mapping):
        raise UsageError(f"{where}: expected a list of pieces, got {type(returned).__name__}")
    return pieces


def _passages(document: Document, pieces: Iterable[object], where: str) -> Iterator[ChunkSpan]:
    finder = _Finder(document.text)
    titles = Titles(document)
    seen: dict[Span, int] = {}
    for number, piece in enumerate(pieces, start=1):
        named = f"{where}: {document.doc_id}: piece {number}"
        place = _place(document.text, piece, finder, named)
        if place is None:
            continue
        first = seen.setdefault(place, number)
        if first != number:
            raise UsageError(
                f"{named}: is piece {first} again: "
                f"{_shown(document.text[place.start : place.end])}; expected each part once"
            )
        path = _field(piece, "heading_path")
        if path is None:
            yield ChunkSpan(place, titles.around(place.start))
        elif isinstance(path, list | tuple) and all(isinstance(title, str) for title in path):
            yield ChunkSpan(place, tuple(path))
        else:
            raise UsageError(f"{named}: heading_path: expected a list of titles, got {path!r}")


def _place(text: str, piece: object, finder: _Finder, named: str) -> Span | None:
    """Return where a piece stands, None for a blank one."""
    wanted = piece if isinstance(piece, str) else _text(piece)
    start, end = _field(piece, "start"), _field(piece, "end")
    given = isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)
    if given and wanted in {None, text[start:end]}:
        return finder.at(start, end)
    if not isinstance(wanted, str):
        raise UsageError(f"{named}: expected text, or an object with text, got {piece!r:.80}")
    if not wanted.strip():
        return None
    location = finder.next(wanted)
    if location is None:
        raise UsageError(
            f"{named}: is not in the document: {_shown(wanted)}; expected parts of its text"
        )
    return location


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _text(piece: object) -> object:
    return next((found for name in _TEXTS if (found := _field(piece, name)) is not None), None)


def _field(piece: object, name: str) -> Any:  # noqa: ANN401  # a user's object holds anything
    if isinstance(piece, str):
        return None
    return piece.get(name) if isinstance(piece, Mapping) else getattr(piece, name, None)


class _Finder:
    """Looks up pieces in their order; each starts behind the start of the one before, if it can.

    Pieces may overlap. What goes on right behind the last piece is preferred to an earlier place.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._last = Span(-1, 0)
        self._taken: set[tuple[int, int]] = set()
        self._folded: FoldedText | None = None

    def at(self, start: int, end: int) -> Span:
        """Mark the place of a piece as taken."""
        self._taken.add((start, end))
        self._last = Span(start, end)
        return self._last

    def next(self, wanted: str) -> Span | None:
        """Return where a piece stands: verbatim, else with blanks and NFKC folded.

        Where a piece is there already, it is another place of the same text, if there is one.
        """
        location = self._verbatim(wanted) or self._nearby(wanted) or self._anywhere(wanted)
        if location is None or (location.start, location.end) not in self._taken:
            return location and self.at(location.start, location.end)
        same = self._text[location.start : location.end]
        at = self._text.find(same)
        while (at, at + len(same)) in self._taken:
            at = self._text.find(same, at + 1)
        return location if at < 0 else self.at(at, at + len(same))

    def _verbatim(self, wanted: str) -> Span | None:
        behind = _NOT_BLANK.search(self._text, self._last.end)
        follows = behind is not None and self._text.startswith(wanted, behind.start())
        at = behind.start() if behind and follows else self._text.find(wanted, self._last.start + 1)
        if at < 0:
            at = self._text.find(wanted)
        return Span(at, at + len(wanted)) if at >= 0 else None

    def _nearby(self, wanted: str) -> Span | None:
        """Look close behind the last piece: to fold a large document whole is slow."""
        from ragforge.corpus.quote_locations import FoldedText

        start = self._last.start + 1
        window = self._text[start : self._last.end + 2 * len(wanted) + _NEARBY]
        return _first(FoldedText(window).locations(wanted), start)

    def _anywhere(self, wanted: str) -> Span | None:
        from ragforge.corpus.quote_locations import FoldedText

        if self._folded is None:
            self._folded = FoldedText(self._text)
        return _first(self._folded.locations(wanted), 0)


def _first(locations: Iterator[Location], offset: int) -> Span | None:
    found = next(locations, None)
    return None if found is None else Span(found.start + offset, found.end + offset)


class Titles:
    """The titles around each place of a document."""

    def __init__(self, document: Document) -> None:
        sections = sections_of(document)
        self._starts = [section.blocks[0].start for section in sections]
        self._paths = [section.path for section in sections]
        self._root = (document.title,) if document.title and not sections else ()

    def around(self, at: int) -> tuple[str, ...]:
        """Return the titles around what begins at a place of the text."""
        number = bisect_right(self._starts, at) - 1
        return self._paths[max(0, number)] if self._paths else self._root
