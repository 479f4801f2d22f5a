"""The SQLite file of a call store: its rows, its tables, opening it, and writing rows into it.

The reply in a row is text with a digest, so that damage is told from data.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields as fields_of
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from ragforge.deferred import dataclass, hashlib
from ragforge.errors import DataError
from ragforge.files.atomic import OWN_FOLDER
from ragforge.files.set.paths import require_own_place
from ragforge.files.text import shown
from ragforge.llm.chat import ChatReply, Numeral, Usage
from ragforge.llm.store.open_files import connect, read_head

_KEPT = [
    field.name for field in fields_of(ChatReply) if field.name not in ("key", "cached", "numerals")
]
_USAGE = [field.name for field in fields_of(Usage)]

_LARGEST_STORED = 2**63 - 1
"""The largest whole number that the file holds."""
ASIDE = "#"
"""Behind the key of a row that is set aside, followed by the reason."""
_CHECKED_BYTES = 256_000_000
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


@dataclass(frozen=True, slots=True)
class Row:
    """One bought reply.

    Args:
        key: Of the call; with a suffix where the row is set aside.
        endpoint, model: Who was asked.
        reply: The reply's fields as JSON.
        sha256: Over key and reply.
        cost_usd: None where the price is unknown.
        bought_at: Unix time, in seconds.
    """

    key: str
    endpoint: str
    model: str
    reply: str
    sha256: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    bought_at: float

    @property
    def aside(self) -> str:
        """Why the row is set aside: `forgotten` or `damaged`; "" where it is in use."""
        why = str(self.key).partition(ASIDE)[2]
        return why.rstrip("0123456789ABCDEF")

    @property
    def whole(self) -> bool:
        """Whether the row holds the reply that was once written."""
        return row_sha256(str(self.key).partition(ASIDE)[0], self.reply) == self.sha256

    @property
    def usage(self) -> Usage:
        """What the call took, as the reply of a whole row tells it."""
        return parse_reply(self.key, self.reply).usage


NAMES = tuple(field.name for field in fields_of(Row))
COLUMNS = ", ".join(NAMES)


def row_values(row: Row) -> tuple[object, ...]:
    """Return the values of a row in the order of the columns."""
    return tuple(getattr(row, name) for name in NAMES)


def checked_row(values: Sequence[object]) -> Row:
    """Make a row of values that may be anything.

    Args:
        values: In the order of the columns.

    Raises:
        ValueError: They are no whole row; the message says what is wrong.
    """
    row = Row(*values)  # type: ignore[arg-type]  # checked below
    for name in ("key", "endpoint", "model", "reply", "sha256"):
        if not isinstance(getattr(row, name), str):
            raise ValueError(f"{name}: expected text")  # noqa: TRY004  # values, not calls, are wrong
    if not row.whole:
        raise ValueError("sha256: does not fit key and reply")
    if _numbers(row.prompt_tokens, row.completion_tokens) != _counts(row):
        raise ValueError("prompt_tokens, completion_tokens: are not those of the reply")
    if row.cost_usd is not None and not _is_amount(row.cost_usd):
        raise ValueError("cost_usd: expected a number >= 0 or null")
    if not _is_amount(row.bought_at):
        raise ValueError("bought_at: expected seconds >= 0")
    return row


def row_sha256(key: str, reply: str) -> str:
    """Return the checksum of a row."""
    return hashlib.sha256(f"{key}\n{reply}".encode("utf-8", "replace")).hexdigest()


def reply_json(reply: ChatReply) -> str:
    """Return a reply's fields as JSON."""
    usage = reply.usage
    fields = {name: getattr(reply, name) for name in _KEPT}
    fields["usage"] = {name: getattr(usage, name) for name in _USAGE}
    if reply.numerals:
        fields["numerals"] = [(one.at, one.logprobs) for one in reply.numerals]
    return json.dumps(fields, ensure_ascii=True)


def parse_reply(key: str, text: str) -> ChatReply:
    """Return the reply that a row holds; fields of other versions of ragforge are passed over.

    Raises:
        ValueError: It holds none, whatever its checksum says.
    """
    try:
        stored = json.loads(text)
        fields = {name: stored[name] for name in _KEPT if name in stored}
        usage = stored.get("usage", {})
        counted = Usage(**{name: usage[name] for name in _USAGE if name in usage})
        numerals = tuple(
            Numeral(at, tuple((token, value) for token, value in logprobs))
            for at, logprobs in stored.get("numerals", ())
        )
        fields = {**fields, "usage": counted, "numerals": numerals}
        reply = ChatReply(**fields, key=key, cached=True)
    except (AttributeError, TypeError, KeyError, ValueError, RecursionError) as error:
        raise ValueError("reply: expected an object with text and usage") from error
    if not _is_typed(reply):
        raise ValueError("reply: has a field of another type")
    return reply


def stored_reply(key: str, text: object, sha256: object) -> ChatReply | None:
    """Return the reply of a row; None where it is damaged, or was never one."""
    # Damage can change a column's type as well.
    if row_sha256(key, str(text)) != sha256:
        return None
    try:
        return parse_reply(key, str(text))
    except ValueError:
        return None


def _is_typed(reply: ChatReply) -> bool:
    """Whether what a file said of a reply is of the types that a reply has."""
    texts = [reply.text, reply.finish_reason, reply.refusal]
    texts += [reply.model, reply.fingerprint, reply.reply_id]
    usage = reply.usage
    numbers = [usage.prompt_tokens, usage.completion_tokens, reply.latency_s]
    for numeral in reply.numerals:
        texts += [token for token, _ in numeral.logprobs]
        numbers += [numeral.at, *(value for _, value in numeral.logprobs)]
    return all(isinstance(text, str) for text in texts) and all(
        isinstance(number, int | float) for number in numbers
    )


def _counts(row: Row) -> tuple[object, ...]:
    usage = row.usage
    return _numbers(usage.prompt_tokens, usage.completion_tokens)


def _numbers(*values: object) -> tuple[object, ...]:
    """Return the values with what is no count as None, so that it equals no count."""
    return tuple(value if _is_count(value) else math.nan for value in values)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_STORED


def _is_amount(value: Any) -> bool:  # noqa: ANN401  # looked at before it is used
    if type(value) is int:
        return _is_count(value)
    return type(value) is float and math.isfinite(value) and value >= 0


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
    _check_header(path)
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
        _check_header(path)
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


def _check_header(path: Path) -> None:
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
    if path.stat().st_size > _CHECKED_BYTES and not _suspicion(path).exists():
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
