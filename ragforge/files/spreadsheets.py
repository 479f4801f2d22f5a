"""Spreadsheets as lines of a table: the values of the first sheet of an .xlsx file."""

import io
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import field
from importlib import import_module
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final, Protocol

from ragforge.deferred import csv, dataclass, datetime, zipfile
from ragforge.errors import ConfigError, DataError
from ragforge.files.text import shown

_MOST_BYTES: Final = 500_000_000
"""Unpacked; a file of some megabytes may unpack to any size."""
_OTHERS: Final = frozenset({".xls", ".ods", ".xlsm", ".xlsb", ".numbers"})


class _Cell(Protocol):
    """A cell as openpyxl reads it; an empty one knows nothing but that."""

    value: object


@dataclass(slots=True)
class Sheet:
    """How the cells of a sheet with numbers are read, and what came of it."""

    is_number: Callable[[str], bool]
    """Whether the column of a name holds numbers or ids: they stay what they are, however they are
    shown."""
    n_shown: int = 0
    """Cells that are read as they show their number."""
    n_not_read: int = 0
    """Cells whose format is not read."""
    examples: dict[str, str] = field(default_factory=dict)
    """The first of each, by `shown` and `not read`."""

    def notes(self, path: Path) -> Iterator[str]:
        """Yield what is to be told of it, once all is read."""
        if self.n_shown:
            yield (
                f"{path}: cells that are read as they show their number: {self.n_shown:,}, such as "
                f"{self.examples['shown']}"
            )
        if self.n_not_read:
            yield (
                f"{path}: cells with a number in a format that is not read, of which the number is "
                f"taken: {self.n_not_read:,}, such as {self.examples['not read']}"
            )

    def text(self, place: str, value: float, number_format: str) -> str:
        """Return the text of a cell with a number, and note what is to be told of it."""
        from ragforge.files.cell_formats import plain_number, shown_number

        plain, found = plain_number(value), shown_number(value, number_format)
        if found is None:
            self.n_not_read += 1
            told = f"{place}: {plain} in the format {shown(number_format)}"
            self.examples.setdefault("not read", told)
        elif found != plain:
            self.n_shown += 1
            self.examples.setdefault("shown", f"{place}: {shown(found)} for {plain}")
        return plain if found is None else found


def is_spreadsheet(path: Path) -> bool:
    """Whether a file is one that spreadsheets write; others than .xlsx are refused.

    Raises:
        DataError: It is of another kind than .xlsx.
    """
    suffix = path.suffix.lower()
    if suffix in _OTHERS:
        raise DataError(f"{path}: {suffix} is not read; save it as .xlsx or as CSV UTF-8")
    return suffix == ".xlsx"


def table_lines(path: Path, sheet: Sheet) -> Iterator[bytes]:
    """Yield the rows of the first sheet as lines of a table with commas; blank rows are blank.

    Args:
        path: The file.
        sheet: Says which columns hold numbers, and notes what other cells show.

    Raises:
        ConfigError: openpyxl is not installed.
        DataError: The file cannot be read, a cell holds an error such as #REF!, or formulas that
            nobody computed, which is only known behind the last row.
    """
    try:
        openpyxl: Any = import_module("openpyxl")  # No stubs; 0.07 s to import, for this alone.
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{path}: reading it needs openpyxl: pip install 'ragforge[xlsx]'; or save it as CSV"
        ) from error
    _check_size(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (ValueError, KeyError, OSError, zipfile.BadZipFile, SyntaxError) as error:
        raise DataError(f"{path}: is no whole .xlsx file: {error}") from error
    try:
        if not book.worksheets:
            raise DataError(f"{path}: holds no sheet of cells")
        without_value: set[str] = set()
        yield from _lines(path, book.worksheets[0].iter_rows(), sheet, without_value)
    finally:
        book.close()
    if without_value:
        with closing(openpyxl.load_workbook(path, read_only=True)) as formulas:
            _refuse_formulas(path, formulas.worksheets[0].iter_rows(), without_value)


def _refuse_formulas(
    path: Path, rows: Iterable[Iterable[_Cell]], without_value: Collection[str]
) -> None:
    """Refuse a sheet with formulas in cells that have no value.

    Raises:
        DataError: There is one: a program wrote it, and no spreadsheet computed it.
    """
    for cell in chain.from_iterable(rows):
        place = getattr(cell, "coordinate", "")
        if cell.value is not None and place in without_value:
            raise DataError(
                f"{path}: cell {place} holds the formula {shown(cell.value)} and no value; open "
                "and save it in a spreadsheet, which computes it"
            )


def _lines(
    path: Path, rows: Iterable[Iterable[_Cell]], sheet: Sheet, without_value: set[str]
) -> Iterator[bytes]:
    """Yield lines, and add the cells that stand in the file and have no value."""
    width = 0
    are_numbers: list[bool] = []
    for number, each in enumerate(rows, start=1):
        row = list(each)
        # A formula that was computed as "" says that it is text.
        without_value.update(
            place
            for cell in row
            if cell.value is None and (place := getattr(cell, "coordinate", ""))
            if getattr(cell, "data_type", "") == "n"
        )
        columns = chain(are_numbers, repeat(False))
        cells = [
            _text(path, number, cell, None if is_number else sheet)
            for cell, is_number in zip(row, columns, strict=False)
        ]
        while cells and not cells[-1]:
            cells.pop()
        if cells and not width:
            are_numbers = [sheet.is_number(name) for name in cells]
        # What spreadsheets call the width of a sheet may go far beyond its header.
        width = width or len(cells)
        cells += [""] * (width - len(cells))
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        yield line.getvalue().encode()


def _text(path: Path, number: int, cell: _Cell, sheet: Sheet | None) -> str:
    """Return what a cell says; of a number what it shows, where there is a sheet to note it in."""
    value = cell.value
    if value is None:
        return ""
    if getattr(cell, "data_type", "") == "e":
        place = getattr(cell, "coordinate", "?")
        raise DataError(f"{path}:{number}: cell {place} holds the error {value}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()  # A day, which openpyxl gives as its midnight.
    if not isinstance(value, int | float):
        return str(value)
    if sheet is not None:
        place = getattr(cell, "coordinate", "?")
        return sheet.text(place, value, getattr(cell, "number_format", ""))
    from ragforge.files.cell_formats import plain_number

    return plain_number(value)


def _check_size(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as packed:
            n_bytes = sum(entry.file_size for entry in packed.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path}: is no whole .xlsx file: {error}") from error
    if n_bytes > _MOST_BYTES:
        raise DataError(f"{path}: unpacks to {n_bytes:,} bytes; at most {_MOST_BYTES:,} are read")
