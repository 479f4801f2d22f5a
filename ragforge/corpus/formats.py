"""Formats of documents: by suffix, which library reads them, and what a reader hands back."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import accumulate
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError

Format = Literal[
    "markdown", "rst", "asciidoc", "notebook", "man", "source", "text", "html", "pdf", "docx", "row"
]
FORMATS: Final[dict[str, Format | Literal["export"]]] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".rst": "rst",
    ".adoc": "asciidoc",
    ".asciidoc": "asciidoc",
    ".asc": "asciidoc",
    ".ipynb": "notebook",
    **dict.fromkeys((f".{section}" for section in range(1, 9)), "man"),
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
SOURCE_CODE: Final = frozenset(
    ".py .pyi .js .jsx .mjs .ts .tsx .java .kt .scala .c .h .cc .cpp .hpp .cs .go .rs .swift .php"
    .split()
)  # fmt: skip
"""The suffixes of source files, which are read where that is asked for."""
_LIBRARIES: Final = {".pdf": ("pypdf", "pdf"), ".docx": ("mammoth", "docx")}
Kind = Literal["heading", "text", "code", "table", "mark"]
"""`code` and `table` are kept whole; a `mark` says nothing alone: a rule, a label, a comment."""
TITLE_CHARS = 200
"""A longer heading is read as text: it is a paragraph that an underline follows by accident."""


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


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """Title and text of a document as a reader of it sees them; headings are `#` lines.

    `lacks` says which part of the file holds no text, and why; "" for none.
    """

    title: str
    text: str
    lacks: str = ""


class UnreadableError(DataError):
    """A document that is passed over: the others can be read without it."""


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of lines; a heading has its level, 1 outermost, and its title as plain text."""

    start: int
    end: int
    kind: Kind
    level: int = 0
    title: str = ""


class Lines:
    """The lines of a text and where each of them starts."""

    def __init__(self, text: str) -> None:
        self.lines: Sequence[str] = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def block(self, first: int, behind: int, kind: Kind, level: int = 0, title: str = "") -> Block:
        """Return the block of the lines [first, behind), without the last line end."""
        if kind == "heading" and not 0 < len(title) <= TITLE_CHARS:
            kind, level, title = "text", 0, ""
        return Block(self._starts[first], self._starts[behind] - 1, kind, level, title)

    def blank(self, number: int) -> bool:
        """Return whether the line holds nothing visible; lines behind the last one are blank."""
        return number >= len(self.lines) or not self.lines[number].strip()

    def run_end(self, first: int) -> int:
        """Return the number of the first blank line from `first` on."""
        behind = first
        while not self.blank(behind):
            behind += 1
        return behind


def text_blocks(text: str) -> Iterator[Block]:
    """Yield the paragraphs of plain text: runs of lines that blank lines part."""
    lines = Lines(text)
    at = 0
    while at < len(lines.lines):
        behind = lines.run_end(at)
        if behind > at:
            yield lines.block(at, behind, "text")
        at = behind + 1
