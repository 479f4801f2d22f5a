"""The report as Markdown, fit for a pull request or a job summary."""

import re
from typing import Final

from ragforge.report.graded_by import graded_line
from ragforge.report.shown import visible
from ragforge.report.summary import Summary
from ragforge.report.table import Table, numeric_column
from ragforge.report.tables import all_tables
from ragforge.report.words import Notice, notices, size_line

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


def render_markdown(summary: Summary) -> str:
    """Return the report as Markdown; data in it is text and no markup, link or mention."""
    blocks = [
        f"# ragforge report: {escape_markdown(summary.making.name)}",
        escape_markdown(graded_line(summary.graded_by)),
        size_line(summary),
        *map(_notice, notices(summary)),
        *map(markdown_table, all_tables(summary)),
    ]
    return "\n\n".join(blocks) + "\n"


def escape_markdown(text: str) -> str:
    """Return a text, on one line, that Markdown and the HTML in it show as it is."""
    line = visible(" ".join(text.split()))
    for pattern, replacement in _ESCAPES:
        line = pattern.sub(replacement, line)
    return line


def _notice(notice: Notice) -> str:
    alert = "> [!WARNING]\n" if notice.is_loud else ""
    return f"{alert}> **{escape_markdown(notice.title)}.** {escape_markdown(notice.text)}"


def markdown_table(table: Table) -> str:
    """Return a table under its title."""
    columns = zip(*table.rows, strict=True)
    rule = ["---:" if numeric_column(column) else ":---" for column in columns]
    rows = [table.headers, *table.rows]
    head, *body = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    lines = [f"## {escape_markdown(table.title)}", "", head, f"| {' | '.join(rule)} |", *body]
    return "\n".join([*lines, *(["", escape_markdown(table.note)] if table.note else [])])
