"""Spreadsheets as lines of a table: the values of the first sheet of an .xlsx file."""

import csv
import io
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from ragforge.deferred import zipfile
from ragforge.errors import ConfigError, DataError

_MOST_BYTES: Final = 500_000_000
"""Unpacked; a file of some megabytes may unpack to any size."""
_OTHERS: Final = frozenset({".xls", ".ods", ".xlsm", ".xlsb", ".numbers"})


class _Cell(Protocol):
    """A cell as openpyxl reads it; an empty one knows nothing but that."""

    value: object


def is_spreadsheet(path: Path) -> bool:
    """Whether a file is one that spreadsheets write; others than .xlsx are refused.

    Raises:
        DataError: It is of another kind than .xlsx.
    """
    suffix = path.suffix.lower()
    if suffix in _OTHERS:
        raise DataError(f"{path}: {suffix} is not read; save it as .xlsx or as CSV UTF-8")
    return suffix == ".xlsx"


def table_lines(path: Path) -> Iterator[bytes]:
    """Yield the rows of the first sheet as lines of a table with commas; blank rows are blank.

    Raises:
        ConfigError: openpyxl is not installed.
        DataError: The file cannot be read, or a cell holds an error such as #REF!.
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
        yield from _lines(path, book.worksheets[0].iter_rows())
    finally:
        book.close()


def _lines(path: Path, rows: Iterable[Iterable[_Cell]]) -> Iterator[bytes]:
    width = 0
    for number, row in enumerate(rows, start=1):
        cells = [_text(path, number, cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        # What spreadsheets call the width of a sheet may go far beyond its header.
        width = width or len(cells)
        cells += [""] * (width - len(cells))
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        yield line.getvalue().encode()


def _text(path: Path, number: int, cell: _Cell) -> str:
    value = cell.value
    if value is None:
        return ""
    if getattr(cell, "data_type", "") == "e":
        place = getattr(cell, "coordinate", "?")
        raise DataError(f"{path}:{number}: cell {place} holds the error {value}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _check_size(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as packed:
            n_bytes = sum(entry.file_size for entry in packed.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path}: is no whole .xlsx file: {error}") from error
    if n_bytes > _MOST_BYTES:
        raise DataError(f"{path}: unpacks to {n_bytes:,} bytes; at most {_MOST_BYTES:,} are read")
