"""The report as plain text for a terminal."""

from textwrap import fill

from ragforge.report.answers.summary import AnswerSummary
from ragforge.report.answers.tables import diagnosis, rates
from ragforge.report.graded_by import graded_line
from ragforge.report.shown import visible
from ragforge.report.summary import Summary
from ragforge.report.table import Table, render_table
from ragforge.report.tables import all_tables
from ragforge.report.words import Notice, notices, size_line

_WIDTH = 88


def render_text(summary: Summary) -> str:
    """Return the report as plain text; no character of the data can steer a terminal."""
    title = f"ragforge report: {visible(summary.making.name)}"
    graded = _paragraph(graded_line(summary.graded_by))
    head = f"{title}\n{'═' * len(title)}\n{graded}\n{size_line(summary)}"
    warned = "\n".join(map(_notice, notices(summary)))
    blocks = [head, *filter(None, [warned]), *map(table_text, all_tables(summary))]
    return "\n\n".join(blocks) + "\n"


def _notice(notice: Notice) -> str:
    mark = "!" if notice.is_loud else "-"
    return _paragraph(f"{mark} {notice.title}: {notice.text}", indent="  ")


def render_answers(item: AnswerSummary) -> str:
    """Return what a terminal shows of the answers of one system, without a line feed at its end."""
    tables = [rates([item]), diagnosis([item])]
    part = ["\n".join(item.part.lines)] if item.part else []
    return "\n\n".join([*part, *(table_text(table) for table in tables if table.rows)])


def table_text(table: Table) -> str:
    """Return a table with its title and note, without a line feed at its end."""
    note = f"\n{_paragraph(table.note)}" if table.note else ""
    return f"{table.title}\n{render_table(table.headers, table.rows)}{note}"


def _paragraph(text: str, indent: str = "") -> str:
    return fill(visible(text), _WIDTH, subsequent_indent=indent, break_long_words=False)
