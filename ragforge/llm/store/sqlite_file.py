"""The SQLite file of a call store: its tables, opening it, and writing rows into it."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from itertools import islice
from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.atomic import OWN_FOLDER
from ragforge.files.set.containment import require_own_place
from ragforge.files.text import shown
from ragforge.llm.store.open_files import connect, read_head
from ragforge.llm.store.rows import COLUMNS, Row, row_values

CHECKED_BYTES = 256_000_000
"""A larger file is not read whole at each start; its rows have checksums, and a torn page says so
when it is met."""

SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside a file, as suffixes of its name."""

_BATCH = 1000
"""Rows written in one transaction: others who write wait no longer than for these."""

_MAGIC = b"SQLite format 3\0"

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL, reply TEXT NOT NULL,
    sha256 TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cost_usd REAL, bought_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, boot TEXT NOT NULL, until_boot REAL NOT NULL,
    until_wall REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unanswered (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, why TEXT NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS dialects (
    endpoint TEXT PRIMARY KEY, dialect TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pruned (
    model TEXT PRIMARY KEY, calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, priced INTEGER NOT NULL, cost_usd REAL NOT NULL
) WITHOUT ROWID;
"""

_ADD = f"""
INSERT INTO calls ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO UPDATE SET
    endpoint = excluded.endpoint, model = excluded.model, reply = excluded.reply,
    sha256 = excluded.sha256, prompt_tokens = excluded.prompt_tokens,
    completion_tokens = excluded.completion_tokens, cost_usd = excluded.cost_usd,
    bought_at = excluded.bought_at
WHERE excluded.bought_at > calls.bought_at
    OR (excluded.sha256 = calls.sha256 AND excluded.reply IS NOT calls.reply)
"""  # noqa: S608  # constants
"""Of two replies to one call the later one stays; the same one, whole, replaces a damaged one."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open a store file, made where missing, for reading and writing.

    Raises:
        sqlite3.OperationalError: It cannot be opened, read or written.
        sqlite3.DatabaseError: It is damaged, or holds what ragforge did not make.
        DataError: It is a link that leads out of its `.ragforge`.
    """
    check_header(path)
    connection = connect(path)
    try:
        _check_schema(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_TABLES)
        _read_any_text(connection)
        _check_pages(connection, path)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing store file without changing it.

    Raises:
        DataError: There is none, or it is damaged, or no call store; raised while reading, too.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no call store; the first call to a model makes it")
    try:
        check_header(path)
        with closing(_open_to_read(path)) as connection:
            connection.execute("BEGIN")  # All that is read is of one moment.
            _check_schema(connection)
            connection.execute(f"SELECT {COLUMNS} FROM calls LIMIT 0")  # noqa: S608  # constants
            yield connection
    except sqlite3.OperationalError as error:
        raise DataError(f"{path}: cannot be read as a call store: {error}") from error
    except sqlite3.DatabaseError as error:
        raise DataError(
            f"{path}: the call store is damaged: {error}; the next run that uses it sets it aside "
            "and goes on with every reply that can be read, and so does `ragforge cache export`"
        ) from error


def is_sqlite(path: Path) -> bool:
    """Whether a file is, or once was, one of SQLite's: it begins like one."""
    try:
        return read_head(path, len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def check_header(path: Path) -> None:
    """Check the first bytes of a store file.

    SQLite takes some damage there for a newer format or for missing rights, and a changed encoding
    for an empty file; no later check would tell.

    Raises:
        sqlite3.DatabaseError: They are damaged.
        DataError: The file, or what lies beside it, leads out of its `.ragforge`.
    """
    if path.parent.name == OWN_FOLDER:
        require_own_place(path.parent)
    try:
        head = read_head(path, 100)
    except OSError:
        return
    sound = (
        len(head) == 100
        and head.startswith(_MAGIC)
        and head[18] in (1, 2)
        and head[19] in (1, 2)
        and head[21:24] == bytes((64, 32, 32))
        and int.from_bytes(head[44:48]) <= 4
        and int.from_bytes(head[56:60]) <= 1
        and not any(head[60:64])
    )
    if head and not sound:
        raise sqlite3.DatabaseError("its header is damaged")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite itself has rolled back where the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def add_rows(connection: sqlite3.Connection, rows: Iterable[Row]) -> int:
    """Write rows, some at a time, and return how many the file lacked."""
    before = connection.total_changes
    rest = iter(rows)
    while batch := [row_values(row) for row in islice(rest, _BATCH)]:
        with transaction(connection):
            connection.executemany(_ADD, batch)
    return connection.total_changes - before


@cache
def _schema() -> frozenset[tuple[object, ...]]:
    """Return the definitions of a store: its tables, and the indexes that SQLite makes for them."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return frozenset(_definitions(connection))


def _definitions(connection: sqlite3.Connection) -> Iterator[tuple[object, ...]]:
    for *names, sql in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"):
        yield (*names, " ".join(str(sql).split()))


def _check_schema(connection: sqlite3.Connection) -> None:
    """Check that a file defines nothing but what a store does: a trigger would act on its own.

    Raises:
        sqlite3.DatabaseError: It does; what it holds can be read without SQLite.
    """
    for kind, name, *rest in _definitions(connection):
        if (kind, name, *rest) not in _schema():
            what = f"{shown(str(kind))} {shown(str(name))}"
            raise sqlite3.DatabaseError(f"it defines the {what}, which ragforge did not make")


def check_at_next_open(path: Path) -> None:
    """Have a file's pages checked when it is opened next, however large it is."""
    _suspicion(path).touch()


def _suspicion(path: Path) -> Path:
    return path.with_name(f"{path.name}.check")


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size > CHECKED_BYTES and not _suspicion(path).exists():
        return
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise sqlite3.DatabaseError("its pages are damaged")
    _suspicion(path).unlink(missing_ok=True)


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open a file that may lie where nothing can be written."""
    connection = _connect_to_read(path, "mode=ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if path.with_name(path.name + SIDE_FILES[0]).exists():
            raise
        # Beside a file that nobody has open SQLite still wants to make its own.
        return _connect_to_read(path, "mode=ro&immutable=1")
    except (sqlite3.Error, DataError):
        connection.close()
        raise
    return connection


def _connect_to_read(path: Path, options: str) -> sqlite3.Connection:
    connection = connect(path, options)
    _read_any_text(connection)
    return connection


def _read_any_text(connection: sqlite3.Connection) -> None:
    # A damaged row may not be UTF-8; its checksum tells, not an exception.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
