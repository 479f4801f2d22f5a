"""PDF files as text: pages joined, running headers left out, words at line ends made whole."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.corpus.formats import Page, UnreadableError
from ragforge.corpus.html import escape_markup
from ragforge.corpus.running_lines import without_running_lines

if TYPE_CHECKING:
    from pypdf import PdfReader

_MAX_BYTES = 500_000_000
_MAX_CHARS = 100_000_000
"""Of all pages together: more than any book, less than a file made to fill the memory."""
_HYPHEN = re.compile(r"(\w*[^\W\d_])[-\u00ad\u2010][ \t]*\n[ \t]*([^\W\d_]\w*)")
_LEADERS = re.compile(r" ?(?:\. ?){5,}")
"""Between the titles and the page numbers of a table of contents."""
_SECTION_NUMBER = re.compile(r"\s*(?:\d{1,3}|[A-Z])(?:\.\d{1,3})*\.?\s+")
_QUIET = logging.NullHandler()
_DEEPEST = 6


def read_pdf(path: Path) -> Page:
    """Return title and text of a PDF file; entries of its outline become headings.

    A line that stands at the top or bottom of most pages is left out, as page numbers are. A page
    break is a line end, no more.

    Raises:
        UnreadableError: The file is broken, encrypted, too large, or holds pictures of pages only.
    """
    from pypdf import PdfReader

    # Else the library tells of each oddity of each file on stderr.
    logging.getLogger("pypdf").addHandler(_QUIET)
    try:
        _check_size(path)
        with path.open("rb") as stream:
            reader = PdfReader(stream)
            _unlock(reader)
            title = str((reader.metadata.title if reader.metadata else "") or "")
            return Page(_usable(title), _text(reader))
    except UnreadableError:
        raise
    except Exception as error:  # what is broken raises whatever comes first
        raise UnreadableError(f"is no whole PDF: {type(error).__name__}: {error}") from error


def _check_size(path: Path) -> None:
    if path.stat().st_size > _MAX_BYTES:
        raise UnreadableError(f"is larger than {_MAX_BYTES:,} bytes")


def _unlock(reader: "PdfReader") -> None:
    """Open a file that asks for no password, only forbids printing and the like."""
    from pypdf.errors import DependencyError

    if not reader.is_encrypted:
        return
    try:
        opened = bool(reader.decrypt(""))
    except DependencyError as error:
        raise UnreadableError(
            "is encrypted with AES, which needs cryptography: pip install 'pypdf[crypto]'"
        ) from error
    if not opened:
        raise UnreadableError("is encrypted; save it without a password")


def _text(reader: "PdfReader") -> str:
    pages: list[str] = []
    length = 0
    for page in reader.pages:
        pages.append(page.extract_text().replace("\r\n", "\n"))
        length += len(pages[-1])
        if length > _MAX_CHARS:
            raise UnreadableError(f"holds more than {_MAX_CHARS:,} characters")
    if pages and not any(map(str.strip, pages)):
        raise UnreadableError("holds pictures of pages and no text; run it through OCR first")
    lines = [escape_markup(page).split("\n") for page in pages]
    # A heading is set apart first: `Chapter 1` and `Chapter 2` on top of pages are no header.
    kept = without_running_lines(list(_with_headings(lines, _outline(reader))))
    joined = "\n".join(line for page in kept for line in page)
    return whole_words(_LEADERS.sub(" … ", joined))


def whole_words(text: str) -> str:
    """Join words that a hyphen parts at a line end; the hyphen stays where other lines have it."""

    def joined(found: re.Match[str]) -> str:
        front, back = found[1], found[2]
        hyphen = "-" if back[0].isupper() or f"{front}-{back}" in text else ""
        return f"{front}{hyphen}{back}"

    return _HYPHEN.sub(joined, text)


def _outline(reader: "PdfReader") -> Mapping[int, Mapping[str, int]]:
    """Return by page number the folded titles of the outline with their levels."""
    found: dict[int, dict[str, int]] = {}
    for level, entry in _entries(reader.outline, 1):
        number = reader.get_destination_page_number(entry)  # type: ignore[arg-type]  # a union
        title = _folded(str(getattr(entry, "title", "") or ""))
        if number is not None and number >= 0 and title:
            found.setdefault(number, {})[title] = level
    return found


def _entries(outline: Sequence[object], level: int) -> Iterator[tuple[int, object]]:
    """Yield the entries of an outline; a list holds what is below the entry before it."""
    for entry in outline:
        if not isinstance(entry, list):
            yield min(level, _DEEPEST), entry
        elif level < _DEEPEST * 2:
            yield from _entries(entry, level + 1)


def _with_headings(
    pages: Sequence[Sequence[str]], outline: Mapping[int, Mapping[str, int]]
) -> Iterator[list[str]]:
    """Yield the pages with `#` before the first line that reads as a title of the outline."""
    for number, lines in enumerate(pages):
        titles = dict(outline.get(number, {}))
        page: list[str] = []
        for line in lines:
            level = _level(titles, line) if titles else 0
            page.append(f"\n{'#' * level} {' '.join(line.split())}\n" if level else line)
        yield page


def _level(titles: dict[str, int], line: str) -> int:
    """Take the title that a line is out of the titles; it may lack the line's number."""
    whole = titles.pop(_folded(line), 0)
    return whole or titles.pop(_folded(_SECTION_NUMBER.sub("", line, count=1)), 0)


def _folded(line: str) -> str:
    return "".join(filter(str.isalnum, line.casefold()))


def _usable(title: str) -> str:
    """Return a title unless it is what a program left: the name of a file, or of itself."""
    is_name = re.search(r"\.\w{2,4}$|^(microsoft|untitled)\b|^\W*$", title.strip(), re.IGNORECASE)
    return "" if is_name else " ".join(title.split())
