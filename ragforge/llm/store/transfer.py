"""Exporting the replies of a store as JSON Lines, and importing them into another."""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.source_files import read_groups
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.damage import salvage
from ragforge.llm.store.sqlite_file import (
    COLUMNS,
    NAMES,
    Row,
    checked_row,
    is_sqlite,
    reading,
    row_values,
)

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(slots=True)
class ExportCounts:
    """Counts of an export.

    Args:
        rows: How many replies.
        left_out: How many were not: set aside, or damaged.
        salvaged: Whether the store is damaged, so that only what could be read came along.
    """

    rows: int = 0
    left_out: int = 0
    salvaged: bool = False


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line of an import that was skipped."""

    line: int
    why: str


@dataclass(slots=True)
class ImportResult:
    """The result of an import.

    Args:
        rows: Usable lines.
        new: How many of them the store lacked, or held in an earlier or a damaged version.
        faults: The other lines.
    """

    rows: int = 0
    new: int = 0
    faults: list[SkippedLine] = field(default_factory=list)


def export_lines(path: Path, exported: ExportCounts) -> Iterator[str]:
    """Yield the replies in use as lines of JSON, by key; also those of a damaged store.

    Args:
        path: The store, which is not changed.
        exported: Its counts are advanced.

    Raises:
        DataError: There is no store, or nothing in it can be read.
    """
    for row in _rows_in_use(path, exported):
        exported.rows += 1
        yield _to_line(row)


def import_file(source: Path, store_path: Path) -> ImportResult:
    """Add the replies of a file to a store, which is made where missing.

    Of two replies to one call the later one stays, so that a second import changes nothing. What
    is no whole row is passed over, as is a last line that was cut off.

    Args:
        source: What `export_lines` wrote; packed where its name ends in .gz or .zst.
        store_path: The store.

    Raises:
        DataError: The file cannot be read, or none of its lines is usable; or the store cannot be
            opened or written.
    """
    if store_path.is_file() and store_path.stat().st_size and not is_sqlite(store_path):
        raise DataError(f"{store_path}: is no call store; nothing was changed")
    imported = ImportResult()
    rows = _read_rows(source, imported)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{source}: holds no usable reply{_first_fault(imported)}")
    store = CallStore(store_path)
    try:
        imported.new = store.add(chain([first], rows))
    finally:
        store.close()
    return imported


def _rows_in_use(path: Path, exported: ExportCounts) -> Iterable[Row]:
    try:
        with reading(path) as connection:
            # What SQLite cannot read to its end would otherwise show when half is written.
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("its pages are damaged")
    except DataError as error:
        if type(error.__cause__) is not sqlite3.DatabaseError:
            raise
        exported.salvaged = True
        return _salvaged(path, exported)
    return _read(path, exported)


def _read(path: Path, exported: ExportCounts) -> Iterator[Row]:
    with reading(path) as connection:
        for values in connection.execute(f"SELECT {COLUMNS} FROM calls ORDER BY key"):  # noqa: S608  # constants
            try:
                row = checked_row(values)
            except ValueError:
                row = None
            if row is None or row.aside:
                exported.left_out += 1
            else:
                yield row


def _salvaged(path: Path, exported: ExportCounts) -> list[Row]:
    latest: dict[str, Row] = {}
    for row in salvage(path):
        if row.key not in latest or row.bought_at > latest[row.key].bought_at:
            latest[row.key] = row
    if not latest:
        raise DataError(f"{path}: is no call store, or a damaged one without a readable reply")
    exported.left_out = sum(1 for row in latest.values() if row.aside)
    return [latest[key] for key in sorted(latest) if not latest[key].aside]


def _to_line(row: Row) -> str:
    fields = dict(zip(NAMES, row_values(row), strict=True))
    fields["endpoint"] = _without_secrets(row.endpoint)
    fields["reply"] = json.loads(row.reply)
    return json.dumps(fields, ensure_ascii=True, allow_nan=False) + "\n"


def _without_secrets(endpoint: str) -> str:
    """Return an address without what some gateways take keys in."""
    if "://" not in endpoint:
        return endpoint
    try:
        parts = urlsplit(endpoint)
        return parts._replace(
            netloc=parts.netloc.rpartition("@")[2], query="", fragment=""
        ).geturl()
    except ValueError:
        return ""


def _read_rows(source: Path, imported: ImportResult) -> Iterator[Row]:
    for first, lines in read_groups(source):
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                continue
            try:
                row = _to_row(line)
            except (ValueError, RecursionError) as error:
                torn = not line.endswith(b"\n")
                imported.faults.append(SkippedLine(number, "was cut off" if torn else str(error)))
                continue
            imported.rows += 1
            yield row


def _to_row(line: bytes) -> Row:
    """Return the row that a line holds.

    Raises:
        ValueError: It holds none; the message says why.
    """
    try:
        fields = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError("is not one complete JSON object") from error
    if not isinstance(fields, dict) or set(fields) != set(NAMES):
        raise ValueError(f"expected an object with {COLUMNS}")
    if not isinstance(fields["key"], str) or not _KEY.fullmatch(fields["key"]):
        raise ValueError("key: expected 64 hexadecimal digits")
    fields["reply"] = json.dumps(fields["reply"], ensure_ascii=True)
    return checked_row([fields[name] for name in NAMES])


def _first_fault(imported: ImportResult) -> str:
    if not imported.faults:
        return ": it is empty"
    first = imported.faults[0]
    return f"; line {first.line}: {first.why}" + (
        f" (and {len(imported.faults) - 1} more)" if len(imported.faults) > 1 else ""
    )
