"""Documents as Markdown, fit for a pull request or a job summary: data in it is text, no markup."""

import re
from collections.abc import Callable
from typing import Final

from ragforge.evaluating.formatting import Table, numeric_column, one_line, visible
from ragforge.report.document import Block, Document, Listing, Notice

_ESCAPES: Final = (
    (re.compile(r"&"), "&amp;"),
    (re.compile(r"<"), "&lt;"),
    (re.compile(r">"), "&gt;"),
    (re.compile(r"([\\`*_{}\[\]|~$!])"), r"\\\1"),
    (re.compile(r"(?<!\w)([@#])(?=\w)"), r"\1&#8288;"),
    (re.compile(r"://"), "&#58;//"),
    (re.compile(r"\b(www)\.", re.IGNORECASE), r"\1&#46;"),
)
"""In this order. The last three keep mentions of people, numbers of issues and addresses from
becoming links: hosts look for the first two in the rendered text, so a joiner has to part them.
"""


def document_markdown(document: Document) -> str:
    """Return a document with its title as heading, without a line feed at its end."""
    head = [f"# {escape_markdown(document.title)}", *map(escape_markdown, document.lead)]
    return "\n\n".join([*head, *map(markdown_block, document.blocks)])


def escape_markdown(text: str) -> str:
    """Return a text, on one line, that Markdown and the HTML in it show as it is."""
    line = visible(" ".join(text.split()))
    for pattern, replacement in _ESCAPES:
        line = pattern.sub(replacement, line)
    return line


def markdown_block(
    block: Block, escape: Callable[[str], str] = escape_markdown, level: int = 2
) -> str:
    """Return a block of a document as Markdown.

    Args:
        block: Of any kind.
        escape: Of the texts of notices and lists.
        level: Of its heading.
    """
    if isinstance(block, Notice):
        alert = "> [!WARNING]\n" if block.is_loud else ""
        return f"{alert}> **{escape(block.title)}.** {escape(block.text)}"
    if isinstance(block, Listing):
        head = [f"{'#' * level} {block.title.capitalize()}", ""] if block.title else []
        return "\n".join([*head, *(f"- {escape(one_line(line, 1000))}" for line in block.lines)])
    return _markdown_table(block, level)


def _markdown_table(table: Table, level: int = 2) -> str:
    """Return a table under its title."""
    columns = zip(*table.rows, strict=True)
    rule = ["---:" if numeric_column(column) else ":---" for column in columns]
    rows = [table.headers, *table.rows]
    head, *body = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    lines = [
        f"{'#' * level} {escape_markdown(table.title)}",
        "",
        head,
        f"| {' | '.join(rule)} |",
        *body,
    ]
    return "\n".join([*lines, *(["", escape_markdown(table.note)] if table.note else [])])
