"""Damaged store files: set aside, and replaced by new ones with every reply that can be read."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from ragforge.llm.store.file import SIDE_FILES, add_rows, open_file
from ragforge.llm.store.pages import Value, read_records
from ragforge.llm.store.rows import NAMES, Row, checked_row


def mend(path: Path) -> Path:
    """Replace a damaged store by a new one with every reply that can be read from it.

    The new one is complete before it takes the old one's place, so that whatever ends the process
    leaves the damaged file where it will be mended the next time.

    Returns:
        Where the damaged file is now.

    Raises:
        OSError, sqlite3.Error: The new one cannot be written; nothing has changed then.
    """
    fresh = path.with_name(f"{path.name}.mending")
    _remove(fresh)
    try:
        with closing(open_file(fresh)) as connection:
            add_rows(connection, salvage(path))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except BaseException:
        _remove(fresh)
        raise
    aside = _free_name(path)
    for suffix in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            _beside(path, suffix).rename(_beside(aside, suffix))
    try:
        aside.hardlink_to(path)
    except OSError:  # Not every file system has links.
        path.rename(aside)
    fresh.replace(path)
    return aside


def salvage(path: Path) -> Iterator[Row]:
    """Yield the rows that a damaged store, or one that somebody has open, still holds whole.

    A row may come more than once. A reply that was set aside does not come back into use, though
    an older version of its page may be found.

    Raises:
        OSError: The file cannot be read.
    """
    forgotten = {(row.sha256, row.bought_at) for row in _whole_rows(path) if row.aside}
    for row in _whole_rows(path):
        if row.aside or (row.sha256, row.bought_at) not in forgotten:
            yield row


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes from mending a store in the same folder at the same time.

    Where the system has no such locks, two that mend at the same moment each set a file aside.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def open_mended(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    """Open a store that was found damaged, unless another process has mended it meanwhile.

    Returns:
        The connection, and where this process set the damaged file aside.

    Raises:
        OSError, sqlite3.Error: It cannot be mended or opened.
    """
    with alone(path.parent):
        try:
            return open_file(path), None
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            aside = mend(path)
        return open_file(path), aside


def _whole_rows(path: Path) -> Iterator[Row]:
    for values in read_records(path, len(NAMES)):
        with contextlib.suppress(ValueError):
            yield checked_row([*values[:-2], *map(_as_real, values[-2:])])


def _as_real(value: Value) -> Value:
    # SQLite keeps a real number without a fraction as an integer.
    return float(value) if isinstance(value, int) else value


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def _remove(path: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        _beside(path, suffix).unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
