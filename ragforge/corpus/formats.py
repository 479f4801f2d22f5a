"""Formats of documents: by suffix, which library reads them, and what a reader hands back."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal

from ragforge.errors import DataError

Format = Literal["markdown", "rst", "text", "html", "pdf", "docx", "row"]

FORMATS: Final[dict[str, Format | Literal["export"]]] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".rst": "rst",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".jsonl": "export",
    ".ndjson": "export",
    ".jsonl.gz": "export",
    ".ndjson.gz": "export",
    ".csv": "row",
    ".tsv": "row",
}
"""The suffixes that are read, lower case. The rows of an export say themselves what form they have.
"""

_LIBRARIES: Final = {".pdf": ("pypdf", "pdf"), ".docx": ("mammoth", "docx")}


@dataclass(frozen=True, slots=True)
class Page:
    """Title and text of a document as a reader of it sees them; headings are `#` lines."""

    title: str
    text: str


class UnreadableError(DataError):
    """A document that is passed over: the others can be read without it."""


def suffix_of(path: str) -> str:
    """Return the suffix of a path in lower case, both where a packed file has one of `FORMATS`."""
    name = path.lower().rpartition("/")[2]  # Of a million paths, pathlib would take a minute.
    stem, _, last = name.rpartition(".")
    suffix = f".{last}" if stem and last else ""
    packed = f".{stem.rpartition('.')[2]}{suffix}"
    return packed if packed in FORMATS else suffix


def missing_extra(suffix: str) -> str:
    """Return how to install what reads files of a suffix; "" where nothing is missing."""
    library, extra = _LIBRARIES.get(suffix, ("", ""))
    if not library or _installed(library):
        return ""
    return f"reading them needs {library}: pip install 'ragforge[{extra}]'"


def _installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ValueError:  # what is imported already, and says not from where
        return False
