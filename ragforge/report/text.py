"""Documents as plain text for terminals and logs."""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final

from ragforge.deferred import dataclass, textwrap
from ragforge.evaluating.formatting import Table, render_table, visible
from ragforge.report.document import Block, Document, Listing, Notice


@dataclass(frozen=True, slots=True)
class TextLayout:
    """How text is laid out."""

    width: int = 88
    """Columns of a sentence; tables are as wide as they are."""
    clean: Callable[[str], str] = visible
    """Makes texts of the data harmless where they are shown."""
    break_on_hyphens: bool = True
    indent: str = "  "
    """Of the lines of a sentence in a list, all but the first."""

    def paragraph(self, text: str, indent: str = "", mark: str = "") -> str:
        """Return a mark and a cleaned text, broken into lines; all but the first are indented."""
        return textwrap.fill(
            mark + self.clean(text),
            self.width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=self.break_on_hyphens,
        )

    def notice(self, notice: Notice) -> str:
        """Return a notice as an item of a list, a loud one with a mark of its own."""
        mark = "! " if notice.is_loud else "- "
        return self.paragraph(f"{notice.title}: {notice.text}", "  ", mark)

    def listing(self, listing: Listing) -> str:
        """Return sentences, as items of a list where they have a title."""
        mark = "- " if listing.title else ""
        lines = [self.paragraph(line, self.indent, mark) for line in listing.lines]
        return "\n".join([f"{listing.title}:", *lines] if listing.title else lines)

    def table(self, table: Table) -> str:
        """Return a table with its title and note; one without rows may be its note alone."""
        has_cells = table.rows or not table.note
        cells = render_table(table.headers, table.rows) if has_cells else ""
        note = self.paragraph(table.note) if table.note else ""
        return "\n".join(filter(None, (table.title, cells, note)))

    def document(self, document: Document) -> str:
        """Return a document with its title underlined, without a line feed at its end."""
        title = self.clean(document.title)
        head = [title, "═" * len(title), *map(self.paragraph, document.lead)]
        return "\n\n".join(["\n".join(head), *self.blocks(document)])

    def blocks(self, document: Document) -> Iterator[str]:
        """Yield the blocks of a document; notices that follow one another are one."""
        for kind, blocks in groupby(document.blocks, key=type):
            if kind is Notice:
                yield "\n".join(map(self._block, blocks))
            else:
                yield from map(self._block, blocks)

    def _block(self, block: Block) -> str:
        if isinstance(block, Notice):
            return self.notice(block)
        return self.listing(block) if isinstance(block, Listing) else self.table(block)


REPORT_LAYOUT: Final = TextLayout()


def table_text(table: Table) -> str:
    """Return a table with its title and note as a report shows it, without a line feed."""
    return REPORT_LAYOUT.table(table)
