"""Tables of text: what one holds, and how a terminal shows it."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.evaluating.formatting import MISSING, visible

_GAP: Final = "  "
_NUMERIC: Final = re.compile(r"[-+±$]?\d[\d,.]*(?:e-?\d+)?(?: ?[%\w]{1,2})?(?: ?[\[(].*[\])])?")
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
"""Longer than the units that may follow a number."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with what a reader has to know about it."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def render_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of aligned columns, without a line feed at its end.

    Columns that hold nothing but numbers, dashes and empty cells are right-aligned. Cells are
    data: hidden characters become visible escapes, and line feeds and tabs become spaces.

    Args:
        headers: Names of the columns.
        rows: As many cells in each as there are headers.

    Raises:
        ValueError: A row has another number of cells.
    """
    head = [_cell(text) for text in headers]
    body = [[_cell(text) for text in row] for row in rows]
    for row in body:
        if len(row) != len(head):
            raise ValueError(f"row {row}: expected {len(head)} cells, got {len(row)}")
    columns = [[row[index] for row in body] for index in range(len(head))]
    right = [numeric_column(column) for column in columns]
    widths = [
        max(display_width(text) for text in (name, *column))
        for name, column in zip(head, columns, strict=True)
    ]
    lines = [_line(head, widths, right), _GAP.join("─" * width for width in widths)]
    return "\n".join([*lines, *(_line(row, widths, right) for row in body)])


def numeric_column(cells: Iterable[str]) -> bool:
    """Whether a column reads as numbers and is therefore aligned on its right."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(cell == MISSING or _is_number(cell) for cell in filled)


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: wide characters 2, combining marks 0."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _is_number(text: str) -> bool:
    return bool(_NUMERIC.fullmatch(text)) and not _WORD.search(text)


def _cell(text: str) -> str:
    return visible(" ".join(text.split()))


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        space = " " * (width - display_width(cell))
        padded.append(space + cell if to_right else cell + space)
    return _GAP.join(padded).rstrip()
