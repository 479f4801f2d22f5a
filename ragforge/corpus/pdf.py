"""PDF files as text: pages joined, running headers left out, words at line ends made whole."""

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.corpus.formats import ExtractedText, UnreadableError
from ragforge.corpus.html import escape_markup
from ragforge.deferred import dataclass

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_MAX_BYTES = 500_000_000
_MAX_CHARS = 100_000_000
"""Of all pages together: more than any book, less than a file made to fill the memory."""
_QUIET = logging.NullHandler()
_MOST_LISTED = 10
_EDGE_LINES = 3
_FEWEST_PAGES = 3
_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")
_LEADERS = re.compile(r" ?(?:\. ?){5,}")
"""Between the titles and the page numbers of a table of contents."""
_BREAK = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010][ \t]*\n[ \t]*(?=[^\W\d_])")
_HYPHEN = re.compile(r"(?<=\w)-(?=[^\W\d_])")
_WORD = re.compile(r"\w+")
_LONGEST_WORD = 64
"""Longer ones are never looked for with a hyphen."""
_SECTION_NUMBER = re.compile(r"(?<!\s)\s*(?:\d{1,3}|[A-Z])(?:\.\d{1,3}){0,9}\.?\s+")
_DEEPEST = 6


def read_pdf(path: Path) -> ExtractedText:
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
            pages = _pages(reader)
            return ExtractedText(_usable(title), _text(reader, pages), _lacks(reader, pages))
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


def _pages(reader: "PdfReader") -> list[str]:
    """Return the text of each page."""
    pages: list[str] = []
    length = 0
    for page in reader.pages:
        pages.append(page.extract_text().replace("\r\n", "\n"))
        length += len(pages[-1])
        if length > _MAX_CHARS:
            raise UnreadableError(f"holds more than {_MAX_CHARS:,} characters")
    if pages and not any(map(str.strip, pages)):
        raise UnreadableError("holds pictures of pages and no text; run it through OCR first")
    return pages


def _lacks(reader: "PdfReader", pages: Sequence[str]) -> str:
    """Return which pages are pictures, among others that have text; "" for none."""
    numbers = [
        number
        for number, (page, text) in enumerate(zip(reader.pages, pages, strict=True), 1)
        if not text.strip() and _has_picture(page)
    ]
    if not numbers:
        return ""
    listed = ", ".join(map(str, numbers[:_MOST_LISTED]))
    more = f" and {len(numbers) - _MOST_LISTED} more" if len(numbers) > _MOST_LISTED else ""
    word = "page" if len(numbers) == 1 else "pages"
    return f"{word} {listed}{more} of {len(pages):,}, without text but with a picture; OCR reads it"


def _has_picture(page: "PageObject") -> bool:
    named = page.get("/Resources")
    resources = named.get_object() if named is not None else None
    return isinstance(resources, dict) and "/XObject" in resources


def _text(reader: "PdfReader", pages: Sequence[str]) -> str:
    lines = [escape_markup(page).split("\n") for page in pages]
    # A heading is set apart first: `Chapter 1` and `Chapter 2` on top of pages are no header.
    kept = without_running_lines(list(_with_headings(lines, _outline(reader))))
    joined = "\n".join(line for page in kept for line in page)
    return whole_words(_LEADERS.sub(" … ", joined))


def without_running_lines(pages: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the pages without what is repeated at the top or the bottom of most of them.

    Digits and Roman numbers do not count: `Page 3 of 9` and `Page 4 of 9` are one line. The
    outermost line of a page goes already if it comes on three pages and holds their number, as
    the headers of chapters do. A document of fewer than three pages is left as it is.

    Args:
        pages: The lines of each page.
    """
    stripped = [_without_blank_edges(page) for page in pages]
    if len(stripped) < _FEWEST_PAGES:
        return stripped
    counts: Counter[str] = Counter()
    numbered: Counter[str] = Counter()
    for page in stripped:
        counts.update({_numberless(page[at]) for at in _edges(page)})
        numbered.update({_numberless(line) for line in (*page[:1], *page[-1:])})
    # Left and right pages may differ, and chapters begin without a header.
    fewest = max(_FEWEST_PAGES, len(stripped) * 2 // 5)
    running = {line for line, count in counts.items() if count >= fewest}
    running |= {
        line
        for line, count in numbered.items()
        if count >= _FEWEST_PAGES and (line.startswith("# ") or line.endswith(" #"))
    }
    return [_without(page, running) for page in stripped]


def _without_blank_edges(page: Sequence[str]) -> list[str]:
    filled = [at for at, line in enumerate(page) if line.strip()]
    return list(page[filled[0] : filled[-1] + 1]) if filled else []


def _edges(page: Sequence[str]) -> list[int]:
    top = range(min(_EDGE_LINES, len(page)))
    bottom = range(max(0, len(page) - _EDGE_LINES), len(page))
    return sorted({*top, *bottom})


def _without(page: list[str], running: set[str]) -> list[str]:
    edges = {at for at in _edges(page) if _numberless(page[at]) in running}
    return _without_blank_edges([line for at, line in enumerate(page) if at not in edges])


def _numberless(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.casefold().split()))


@dataclass(frozen=True, slots=True)
class _Break:
    """A line end inside a word: from its hyphen to the rest of the word, and the two parts."""

    start: int
    end: int
    front: str
    back: str


def whole_words(text: str) -> str:
    """Join words that a hyphen parts at a line end; the hyphen stays where other lines have it."""
    breaks = list(_breaks(text))
    hyphened = _hyphened(text, {(each.front, each.back) for each in breaks})
    parts: list[str] = []
    at = 0
    for each in breaks:
        keeps = each.back[0].isupper() or (each.front, each.back) in hyphened
        parts += [text[at : each.start], "-" if keeps else ""]
        at = each.end
    return "".join([*parts, text[at:]])


def _breaks(text: str) -> Iterator[_Break]:
    taken = 0
    for match in _BREAK.finditer(text):
        start = match.start()
        while start > taken and _WORD.match(text[start - 1]):
            start -= 1
        # Of a word that goes over three lines, the first two are joined.
        if start == match.start():
            continue
        word = _WORD.match(text, match.end())
        back = word[0] if word else ""
        taken = match.end() + len(back)
        yield _Break(match.start(), match.end(), text[start : match.start()], back)


def _hyphened(text: str, words: Set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which words, as their two parts, a text has with a hyphen, or within longer ones."""
    backs: dict[str, set[str]] = {}
    for front, back in words:
        backs.setdefault(front, set()).add(back)
    hyphened: set[tuple[str, str]] = set()
    for match in _HYPHEN.finditer(text) if words else ():
        before = text[max(0, match.start() - _LONGEST_WORD) : match.start()]
        behind = text[match.end() : match.end() + _LONGEST_WORD]
        for front in _ends(before):
            known = backs.get(front, ())
            if known:
                starts = (behind[:length] for length in range(1, len(behind) + 1))
                hyphened.update((front, back) for back in starts if back in known)
    return hyphened


def _ends(text: str) -> Iterator[str]:
    """Yield the ends of a text that may be a word, from one character on."""
    for start in range(len(text) - 1, -1, -1):
        if not _WORD.match(text[start]):
            return
        yield text[start:]


def _outline(reader: "PdfReader") -> Mapping[int, Mapping[str, int]]:
    """Return by page number the folded titles of the outline with their levels."""
    titles: dict[int, dict[str, int]] = {}
    for level, entry in _entries(reader.outline, 1):
        number = reader.get_destination_page_number(entry)  # type: ignore[arg-type]  # a union
        title = _folded(str(getattr(entry, "title", "") or ""))
        if number is not None and number >= 0 and title:
            titles.setdefault(number, {})[title] = level
    return titles


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
    """Remove the title that a line is from the titles, and return its level, 0 for none."""
    whole = titles.pop(_folded(line), 0)
    return whole or titles.pop(_folded(_SECTION_NUMBER.sub("", line, count=1)), 0)


def _folded(line: str) -> str:
    return "".join(filter(str.isalnum, line.casefold()))


def _usable(title: str) -> str:
    """Return a title unless it is what a program left: the name of a file, or of itself."""
    is_name = re.search(r"\.\w{2,4}$|^(microsoft|untitled)\b|^\W*$", title.strip(), re.IGNORECASE)
    return "" if is_name else " ".join(title.split())
