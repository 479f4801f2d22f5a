"""Formats of documents: by suffix, which library reads them, and what a reader hands back."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal

from ragforge.errors import DataError

Format = Literal["markdown", "rst", "text", "html", "pdf", "docx", "row"]

FORMATS: Final[dict[str, Format]] = {
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
    ".csv": "row",
    ".tsv": "row",
}
"""The suffixes that are read, lower case."""

_LIBRARIES: Final = {".pdf": ("pypdf", "pdf"), ".docx": ("mammoth", "docx")}


@dataclass(frozen=True, slots=True)
class Page:
    """Title and text of a document as a reader of it sees them; headings are `#` lines."""

    title: str
    text: str


class UnreadableError(DataError):
    """A document that is passed over: the others can be read without it."""


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
