"""Rows as documents: of exports in JSON Lines, with an id and a text, and of CSV and TSV tables."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from ragforge.corpus.formats import UnreadableError
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import Field
from ragforge.files.formats.row_files import read_json_lines, read_table
from ragforge.files.row import Row
from ragforge.files.source_files import open_source

_RowFormat = Literal["markdown", "rst", "text", "html"]
ID: Final = Field("id", ("id", "doc_id", "document_id", "_id", "url", "uri"))
BODY: Final = Field("text", ("text", "content", "contents", "page_content", "body"))
TITLE: Final = Field("title", ("title", "name", "subject", "heading"))
FORMAT: Final = Field("format", ("format", "mime_type", "content_type"))
DELETED: Final = Field("deleted", ("deleted", "is_deleted", "_deleted"))
DELETED_AT: Final = Field("deleted_at", ("deleted_at",))
FORMS: Final[dict[str, _RowFormat]] = {
    "text": "text",
    "text/plain": "text",
    "plain": "text",
    "markdown": "markdown",
    "md": "markdown",
    "text/markdown": "markdown",
    "rst": "rst",
    "text/x-rst": "rst",
    "html": "html",
    "text/html": "html",
}
"""What a row may say of the form of its text."""
_YES: Final = (True, 1, "1", "true", "t", "yes", "y")
_NO: Final = (None, False, 0, "", "0", "false", "f", "no", "n")
_TITLES = ("title", "name", "subject", "heading")
_NUMBER = re.compile(r"[-+]?[.,]*\d[\d.,]*%?")
_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """A document of an export; its title is "" where it has none."""

    name: str
    title: str
    text: str
    format: _RowFormat


class Export:
    """An export, read once when it is made: what is wrong with it shows before the first row.

    Of a later row that says `deleted`, it follows that an earlier one of its id is gone; a row
    after that brings it back. Ids are held in memory, texts are not.

    Args:
        path: JSON Lines, packed with gzip where the name says so.

    Raises:
        DataError: It cannot be read, is empty, or a row is no document: it has no id or no field
            with a text, or its id came before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._deleted_in: dict[str, int] = {}
        there: set[str] = set()
        for number, row in self._given():
            name = row.identifier(ID)
            if _is_deleted(row):
                there.discard(name)
                self._deleted_in[name] = number
                continue
            if name in there:
                raise DataError(
                    f"{row.where}: id {name!r} comes twice; expected one row for each id"
                )
            there.add(name)
            _document(row, name)

    def rows(self) -> Iterator[ExportedRow]:
        """Yield the documents in the order of the file, without those that are deleted."""
        for number, row in self._given():
            name = row.identifier(ID)
            if number > self._deleted_in.get(name, 0):
                yield _document(row, name)

    def _given(self) -> Iterator[tuple[int, Row]]:
        source = open_source(self._path, "rows")
        return enumerate(read_json_lines(self._path, source.lines), start=1)


def form_of(value: object) -> _RowFormat | None:
    """Return the format that a row gives for its text, plain text where it gives none."""
    if value is None:
        return "text"
    return FORMS.get(str(value).partition(";")[0].strip().lower())


def deleted(value: object) -> bool | None:
    """Return whether a field marks its row as deleted; None where it is neither yes nor no."""
    flag = value.strip().lower() if isinstance(value, str) else value
    return flag in _YES if flag in (*_YES, *_NO) else None


def _document(row: Row, name: str) -> ExportedRow:
    row.require(BODY)
    form = form_of(row.get(FORMAT))
    if form is None:
        raise row.wrong(FORMAT, f"one of {', '.join(FORMS)}", row.get(FORMAT))
    title = row.optional_text(TITLE) or ""
    return ExportedRow(name, title, row.optional_text(BODY) or "", form)


def _is_deleted(row: Row) -> bool:
    if row.get(DELETED_AT) is not None:
        return True
    found = deleted(row.get(DELETED))
    if found is None:
        raise row.wrong(DELETED, "true or false", row.get(DELETED))
    return found


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its id (else its number from 1), its title (else ""), and its cells as text."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class _Columns:
    """Names of columns; "" where the table has none of the kind."""

    id: str
    title: str


def read_table_rows(path: Path) -> Iterator[TableRow]:
    """Yield the rows of a table one by one; the column `id` names them, `title` or `name` heads.

    Separated by commas, tabs or semicolons. Empty cells are left out, blank lines passed over.

    Raises:
        UnreadableError: The first line names no columns.
        DataError: The file is empty, not UTF-8, or broken; a row has another number of cells; an
            id comes twice. Raised when the row's turn comes.
    """
    seen: set[str] = set()
    columns: _Columns | None = None
    for number, row in enumerate(read_table(open_source(path, "rows")), start=1):
        cells = {name: str(cell) for name, cell in row.given.items()}
        columns = columns or _columns(list(cells))
        name = _cell(cells, columns.id) or str(number)
        if name in seen:
            raise DataError(f"{row.where}: id {name!r} comes twice; expected one row for each id")
        seen.add(name)
        filled = [(column, cell) for column, cell in cells.items() if cell]
        lines = (f"{column}: {cell}" if column else cell for column, cell in filled)
        yield TableRow(name, _cell(cells, columns.title), "\n".join(lines))


def _cell(cells: Mapping[str, str], column: str) -> str:
    return cells[column] if column else ""


def _columns(header: list[str]) -> _Columns:
    odd = [name for name in header if _NUMBER.fullmatch(name) or len(name) > _NAME_CHARS]
    if odd or not any(header):
        found = repr(odd[0][:_NAME_CHARS]) if odd else "none"
        raise UnreadableError(f"expected names of columns in the first line, got {found}")
    named = {name.casefold(): name for name in reversed(header)}
    title = next((named[known] for known in _TITLES if known in named), "")
    return _Columns(named.get("id", ""), title)
