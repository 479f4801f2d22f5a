"""Word documents as text, by way of HTML: headings, lists and tables as `read_page` writes them."""

import re
import zipfile
from pathlib import Path

from ragforge.corpus.formats import ExtractedText, UnreadableError
from ragforge.corpus.html import html_blocks, read_page

_MAX_UNPACKED_BYTES = 50_000_000
"""The parts are parsed as trees of ten times their size; a book without pictures has 5 MB."""
_MAX_ELEMENTS = 500_000
"""Each takes 70 microseconds and 700 bytes; a book has 150,000. Of the shortest, 8 MB hold more."""
_PIECE = 1_000_000
_MARKUP_STARTS = (b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0")
_TAG = re.compile(r"(<[^<>]*+>)")
_CELL_STARTS = re.compile(r"<t[dh]\b")
_CELL_ENDS = re.compile(r"</t[dh]\b")
_PICTURES = "word/media/"
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(
            f"p[style-name='heading {level}'] => h{min(level + 1, 6)}:fresh"
            for level in range(1, 10)
        ),
    ]
)
"""The title is above all headings. The names of styles are the same in all languages of Word."""


def read_docx(path: Path) -> ExtractedText:
    """Return title and text of a Word document; pictures and comments are left out.

    Raises:
        UnreadableError: The file is no Word document, broken, encrypted or too large unpacked.
    """
    import mammoth

    try:
        _check_size(path)
        with path.open("rb") as stream:
            converted = mammoth.convert_to_html(
                stream,
                style_map=_STYLES,
                convert_image=_no_image,
                include_embedded_style_map=False,
                external_file_access=False,
            )
    except UnreadableError:
        raise
    except Exception as error:  # the parsers below may raise anything
        raise UnreadableError(_reason(path, error)) from error
    text = read_page(_with_bars_escaped(converted.value)).text
    return ExtractedText(_first_heading(text), text)


def _check_size(path: Path) -> None:
    """Count what the parts hold before they are parsed.

    Raises:
        UnreadableError: It is too much.
    """
    with zipfile.ZipFile(path) as archive:
        parts = [part for part in archive.infolist() if not _is_picture(archive, part)]
        unpacked = sum(part.file_size for part in parts)
        if unpacked > _MAX_UNPACKED_BYTES:
            raise UnreadableError(
                f"holds {unpacked:,} bytes unpacked; expected at most {_MAX_UNPACKED_BYTES:,}"
            )
        elements = sum(_elements(archive, part) for part in parts)
    if elements > _MAX_ELEMENTS:
        raise UnreadableError(
            f"holds {elements:,} elements; expected at most {_MAX_ELEMENTS:,}; split it"
        )


def _is_picture(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """Whether a part is kept among the pictures and cannot be read as the text after all."""
    if not part.filename.startswith(_PICTURES):
        return False
    with archive.open(part) as stream:
        start = stream.read(_PIECE).lstrip()
    return bool(start) and not start.startswith(_MARKUP_STARTS)


def _elements(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> int:
    count = 0
    with archive.open(part) as stream:
        while piece := stream.read(_PIECE):
            count += piece.count(b"<") - piece.count(b"</")
    return count


def _with_bars_escaped(html: str) -> str:
    """Return a page whose table cells hold no bar that would be taken for the end of a cell."""
    parts = _TAG.split(html)
    depth = 0
    for at, part in enumerate(parts):
        if at % 2:
            depth += bool(_CELL_STARTS.match(part)) - bool(_CELL_ENDS.match(part))
        elif depth:
            parts[at] = part.replace("|", "\\|")
    return "".join(parts)


def _no_image(_: object) -> list[object]:
    return []


def _reason(path: Path, error: Exception) -> str:
    with path.open("rb") as stream:
        # What Word encrypts, and what it wrote before 2007, are OLE containers.
        if stream.read(4) == b"\xd0\xcf\x11\xe0":
            return "is encrypted or of the old .doc format; save it as .docx without a password"
    return f"is no whole Word document: {type(error).__name__}: {error}"


def _first_heading(text: str) -> str:
    headings = (block for block in html_blocks(text) if block.kind == "heading")
    first = next(headings, None)
    return first.title if first is not None and first.level <= 2 else ""
