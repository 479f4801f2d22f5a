"""Sheets for reviewers: a table of queries to decide about, and the decisions that come back.

A cell that a spreadsheet would take for a formula gets an apostrophe in front, and loses it when
it is read; one that starts so of itself gets another, so that every text comes back as it was.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass, pattern
from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.field_names import Field
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.row import Row
from ragforge.files.source_files import open_source

RANDOM: Final = "random"
SHAPES: Final = (
    "the table that `ragforge review export` wrote, with its column `decision` filled in",
    "the JSON file that the review page saved",
)
_BOM = "\ufeff"
_STARTS_FORMULA = pattern("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""The wide forms count too: Japanese spreadsheets take them for the plain ones."""
_STARTS_ESCAPED = pattern(f"'{_STARTS_FORMULA.pattern}")

_QUERY_ID = Field("query_id", ("query_id",))
_REVISION = Field("revision", ("revision",))
_QUERY = Field("query", ("query",))
_EXPECTED_ANSWER = Field("expected_answer", ("expected_answer",))
_EVIDENCE = Field("evidence", ("evidence",))
_FLAGS = Field("flags", ("flags",))
_STATE = Field("state", ("state",))
_DRAWN = Field("random", ("random",))
_REVIEWER = Field("reviewer", ("reviewer",))
_DECISION = Field("decision", ("decision",))
_NEW_QUERY = Field("new_query", ("new_query",))
_NEW_STANDALONE = Field("new_standalone", ("new_standalone",))
_NEW_ANSWER = Field("new_answer", ("new_answer",))
_NOTE = Field("note", ("note",))


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A query as a reviewer sees it; the last five are for the reviewer to fill in."""

    query_id: str
    revision: str
    reviewer: str
    query: str
    history: str
    standalone: str
    expected_answer: str
    evidence: str
    difficulty: str
    type: str
    place: str
    """Documents and sections that the evidence stands in."""
    flags: str
    """Why it is shown."""
    random: str
    """`RANDOM` where it was drawn at random, "" where not."""
    state: str = ""
    """What tells whether the query changed since."""
    decision: str = ""
    new_query: str = ""
    new_standalone: str = ""
    new_answer: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class SheetDecision:
    """A row that came back; texts without blanks around them, "" for an empty cell."""

    where: str
    query_id: str
    revision: int
    random: bool
    reviewer: str
    decision: str
    """In small letters; any word."""
    new_query: str
    new_standalone: str
    new_answer: str
    note: str
    shown_query: str | None
    """What the row says the query is; None where it does not say."""
    shown_answer: str | None
    shown_evidence: str | None = None
    shown_flags: str | None = None
    state: str = ""
    """Of the query as it was shown; "" in sheets of before there were states."""


def write_sheet(path: Path, rows: Iterable[SheetRow]) -> None:
    """Write a table that spreadsheets open as it is: UTF-8 with a mark, all cells quoted.

    Raises:
        DataError: The file cannot be written.
    """
    write_whole(path, _lines(rows))


def read_sheet(path: Path) -> list[SheetDecision]:
    """Return the rows of a sheet, in its order; those without a decision, too.

    Args:
        path: The table, or what the review page saved. Columns that are not known are passed
            over, and so are missing ones beside id, revision and decision.

    Raises:
        DataError: The file cannot be read, is in another encoding or shape, has no row, or a row
            lacks its id or revision.
    """
    source = open_source(path, "decision")
    plain = plain_cell if source.kind == "columns" else str
    decisions = []
    for row in read_rows_of(source, SHAPES):
        if not (row.has(_QUERY_ID) and row.has(_REVISION) and row.has(_DECISION)):
            needed = ", ".join(field.name for field in (_QUERY_ID, _REVISION, _DECISION))
            raise DataError(
                f"{unknown_shape(row.where, SHAPES)}\nneeded are {needed}; got {row.names()}"
            )
        decisions.append(decision_of(row, plain))
    if not decisions:
        raise none_found(path, "row")
    return decisions


def escaped_cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula."""
    text = sheet_text(text)
    return f"'{text}" if _STARTS_FORMULA.match(text) else text


def sheet_text(text: str) -> str:
    """Return a text as a sheet can hold it: no reader of tables takes NUL."""
    return text.replace("\x00", "\ufffd")


def plain_cell(cell: str) -> str:
    """Return the text that `escaped_cell` made a cell of."""
    return cell[1:] if _STARTS_ESCAPED.match(cell) else cell


def _lines(rows: Iterable[SheetRow]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(field.name for field in fields(SheetRow))
    yield f"{_BOM}{buffer.getvalue()}"
    for row in rows:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(escaped_cell(cell) for cell in astuple(row))
        yield buffer.getvalue()


def decision_of(row: Row, plain: Callable[[str], str] = str) -> SheetDecision:
    """Return the decision in a row.

    Args:
        row: Of a sheet, or of the page.
        plain: Makes a text of a cell.

    Raises:
        DataError: The row lacks its id or revision, or a field is no text.
    """

    def cell(field: Field) -> str:
        return plain(row.optional_text(field) or "").strip()

    drawn = cell(_DRAWN).lower()
    if drawn not in ("", RANDOM):
        raise row.wrong(_DRAWN, f"{RANDOM} or nothing", drawn)
    return SheetDecision(
        where=row.where,
        query_id=plain(row.identifier(_QUERY_ID)),
        revision=row.as_whole(row.get(_REVISION), _REVISION),
        random=drawn == RANDOM,
        reviewer=cell(_REVIEWER),
        decision=cell(_DECISION).lower(),
        new_query=cell(_NEW_QUERY),
        new_standalone=cell(_NEW_STANDALONE),
        new_answer=cell(_NEW_ANSWER),
        note=cell(_NOTE),
        shown_query=cell(_QUERY) if row.has(_QUERY) else None,
        shown_answer=cell(_EXPECTED_ANSWER) if row.has(_EXPECTED_ANSWER) else None,
        shown_evidence=cell(_EVIDENCE) if row.has(_EVIDENCE) else None,
        shown_flags=cell(_FLAGS) if row.has(_FLAGS) else None,
        state=cell(_STATE),
    )
