"""Damaged store files: set aside, with every reply that can still be read saved from them."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ragforge.llm.store.rows import COLUMNS, Row

CHECKED_BYTES = 256_000_000
"""A larger file is not read whole at each start; its rows have checksums, and a torn page says so
when it is met."""

_SLICES = 256


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Check the structure of a store file.

    Raises:
        sqlite3.DatabaseError: It is damaged.
    """
    if path.stat().st_size > CHECKED_BYTES:
        return
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise sqlite3.DatabaseError("its pages are damaged")


def set_aside(path: Path) -> Path:
    """Move a damaged store, with its journal, to another name, and return that."""
    taken = sum(1 for _ in path.parent.glob(f"{path.name}.damaged-*[0-9]"))
    aside = path.with_name(f"{path.name}.damaged-{taken + 1}")
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return path.rename(aside)


def salvage(aside: Path) -> Iterator[Row]:
    """Yield the rows of a damaged store that are whole.

    Keys are hexadecimal and spread evenly, so the file is read slice by slice: a damaged page
    costs the slices that touch it, and no others.
    """
    try:
        connection = sqlite3.connect(aside)
    except sqlite3.Error:
        return
    with contextlib.closing(connection):
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for number in range(_SLICES):
            yield from _slice(connection, number)


def _slice(connection: sqlite3.Connection, number: int) -> Iterator[Row]:
    first = f"{number:02x}"
    seen: set[str] = set()
    # From both ends towards the damage.
    for order in ("ASC", "DESC"):
        with contextlib.suppress(sqlite3.Error):
            found = connection.execute(
                f"SELECT {COLUMNS} FROM calls WHERE key >= ? AND key < ? ORDER BY key {order}",  # noqa: S608  # constants
                (first, f"{first}g"),
            )
            for fields in found:
                row = Row(*fields)
                if row.key in seen:
                    return
                if row.whole:
                    seen.add(row.key)
                    yield row
            return
