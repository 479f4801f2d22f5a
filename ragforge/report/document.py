"""The document model of reports: a title, lines before all else, then notices, lists and tables.

What is said, and in which order, is decided once, in a document. Renderers lay it out: `text` for
terminals and logs, `markdown` for pull requests; the page takes its notices and tables.
"""

from typing import TypeAlias

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import Table


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the reader has to know before the numbers."""

    title: str
    text: str
    is_loud: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences, one an item, under a title."""

    title: str
    """"" for sentences that go with the table before them."""
    lines: tuple[str, ...]


Block: TypeAlias = Notice | Listing | Table


@dataclass(frozen=True, slots=True)
class Document:
    """What a report says, in the order of reading."""

    title: str
    lead: tuple[str, ...]
    """Who graded first, then what else has to be known before any number."""
    blocks: tuple[Block, ...]
    """Empty lists and tables are left out by whoever makes the document."""
