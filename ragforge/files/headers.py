"""First lines that name the columns of a table."""

from ragforge.files.lines import Source, unpacked_name
from ragforge.files.names import QUERY, QUERY_ID, Field, normal_name

_DELIMITERS = "\t,;"
"""Semicolons are what spreadsheets write where the comma is the decimal sign."""


def has_header(source: Source, fields: tuple[Field, ...] = (QUERY_ID, QUERY)) -> bool:
    """Whether the first line names columns: of files without names, `.csv` never are.

    Args:
        source: A table.
        fields: Of which a header has to name one.
    """
    if unpacked_name(source.path).lower().endswith(".csv"):
        return True
    cells = [cell.strip().strip('"') for cell in source.first.split(delimiter_of(source.first))]
    known = {normal_name(name) for field in fields for name in field.accepted}
    return len(cells) > 1 and any(normal_name(cell) in known for cell in cells)


def delimiter_of(header: str) -> str:
    """Return the character between the columns that a header names."""
    return max(_DELIMITERS, key=header.count)
