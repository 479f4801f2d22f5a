"""Tables as documents: each row of a CSV or TSV file is one, in lines of `column: value`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragforge.corpus.formats import UnreadableError
from ragforge.errors import DataError
from ragforge.files.lines import open_source
from ragforge.files.rows import read_table

_TITLES = ("title", "name", "subject", "heading")
_NUMBER = re.compile(r"[-+]?[.,]*\d[\d.,]*%?")
_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its id (else its number from 1), its title (else ""), and its cells as text."""

    name: str
    title: str
    text: str


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


@dataclass(frozen=True, slots=True)
class _Columns:
    """Names of columns; "" where the table has none of the kind."""

    id: str
    title: str


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
