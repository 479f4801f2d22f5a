"""The SQLite file behind the call store."""

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.manifest import Spent
from ragforge.llm.chat import ChatReply
from ragforge.llm.dialect import Dialect
from ragforge.llm.store.damage import check_pages, salvage, set_aside
from ragforge.llm.store.owner import Owner, boot, read_owner, this_owner
from ragforge.llm.store.rows import COLUMNS, Row, digest, to_reply, to_text

LEASE_S = 60.0
"""Seconds a lease lasts unless it is renewed."""

RENEWED_EVERY_S = 10.0
"""Seconds between two renewals."""

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
"""


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else is buying this reply."""

    pid: int


class CallStore:
    """The replies of a dataset.

    A damaged file is set aside under another name and a new one begun with what could be saved;
    a damaged row is set aside in place and bought again.

    Args:
        path: The SQLite file; made with its folder where missing.

    Raises:
        DataError: The file cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.owner: Owner = this_owner()
        self.set_aside: Path | None = None
        """Where a damaged store was moved on opening."""
        self.damaged_rows = 0
        """Rows set aside since."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._connection = self._open()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self.set_aside = set_aside(path)
                self._connection = self._open()
                self.add(salvage(self.set_aside))
            self._inode = path.stat().st_ino
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"{path}: the call store cannot be opened: {error}") from error

    def get(self, key: str) -> ChatReply | None:
        """Return the stored reply of a call, None where there is none or its row is damaged."""
        with self.speaking() as connection:
            row = connection.execute(
                "SELECT reply, sha256 FROM calls WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            # Damage can change a column's type as well.
            if digest(key, str(row[0])) != row[1]:
                self._put_aside([key], "damaged")
                self.damaged_rows += 1
                return None
        return to_reply(key, row[0])

    def claim(self, key: str) -> ChatReply | Held | None:
        """Take the sole right to buy a reply; None where it was taken.

        The lease of a process that has ended, or has not renewed it in time, is taken over, and
        its call is counted as perhaps billed.

        Returns:
            The reply where another process has bought it meanwhile; `Held` where one is at it.
        """
        self._check_place()
        with self.speaking() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                found = self.get(key) or self._holder(key)
                if found is None:
                    now, wall = time.monotonic() + LEASE_S, time.time() + LEASE_S
                    connection.execute(
                        "INSERT OR REPLACE INTO leases VALUES (?,?,?,?,?)",
                        (key, str(self.owner), boot(), now, wall),
                    )
            finally:
                connection.execute("COMMIT")
        return found

    def put(
        self, key: str, endpoint: str, model: str, reply: ChatReply, cost_usd: float | None
    ) -> None:
        """Keep a reply and give its lease back; committed when this returns.

        Raises:
            DataError: It cannot be written, for example because the disk is full.
        """
        self._check_place()
        text, usage = to_text(reply), reply.usage
        counts = (usage.prompt_tokens, usage.completion_tokens)
        row = (key, endpoint, model, text, digest(key, text), *counts, cost_usd, time.time())
        with self.speaking() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute("INSERT OR REPLACE INTO calls VALUES (?,?,?,?,?,?,?,?,?)", row)
                connection.execute("DELETE FROM leases WHERE key = ?", (key,))
                connection.execute("COMMIT")
            except sqlite3.Error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def release(self, key: str) -> None:
        """Give a lease back without a reply."""
        with self.speaking() as connection:
            connection.execute(
                "DELETE FROM leases WHERE key = ? AND owner = ?", (key, str(self.owner))
            )

    def renew(self) -> None:
        """Keep the leases of this owner."""
        now, wall = time.monotonic() + LEASE_S, time.time() + LEASE_S
        with self.speaking() as connection:
            connection.execute(
                "UPDATE leases SET until_boot = ?, until_wall = ? WHERE owner = ?",
                (now, wall, str(self.owner)),
            )

    def note_unanswered(self, key: str, why: str) -> None:
        """Count an attempt that gave nothing and may have been billed all the same."""
        with self.speaking() as connection:
            connection.execute(
                "INSERT INTO unanswered (key, why, at) VALUES (?,?,?)", (key, why, time.time())
            )

    def add(self, rows: Iterable[Row]) -> int:
        """Take rows over; of two replies to one call the later one stays. Returns how many."""
        with self.speaking() as connection:
            before = connection.total_changes
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(
                    "INSERT INTO calls VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO UPDATE SET "
                    "reply = excluded.reply, sha256 = excluded.sha256, "
                    "prompt_tokens = excluded.prompt_tokens, "
                    "completion_tokens = excluded.completion_tokens, "
                    "cost_usd = excluded.cost_usd, bought_at = excluded.bought_at "
                    "WHERE excluded.bought_at > calls.bought_at",
                    (_fields(row) for row in rows),
                )
            finally:
                connection.execute("COMMIT")
            return connection.total_changes - before

    def rows(self) -> Iterator[Row]:
        """Yield the replies that are in use and whole, by key."""
        with self.speaking() as connection:
            for fields in connection.execute(
                f"SELECT {COLUMNS} FROM calls WHERE instr(key, '#') = 0 ORDER BY key"  # noqa: S608  # constants
            ):
                row = Row(*fields)
                if row.whole:
                    yield row

    def forget(self, keys: Iterable[str]) -> None:
        """Put replies aside, so that they are asked for again; what they cost stays counted."""
        with self.speaking():
            self._put_aside(keys, "forgotten")

    def dialect(self, endpoint: str) -> Dialect | None:
        """Return what was learnt about an endpoint and model."""
        with self.speaking() as connection:
            row = connection.execute(
                "SELECT dialect FROM dialects WHERE endpoint = ?", (endpoint,)
            ).fetchone()
        if row is None:
            return None
        fields = json.loads(row[0])
        return Dialect(**{**fields, "omit": tuple(fields["omit"])})

    def learn(self, endpoint: str, dialect: Dialect) -> None:
        """Remember how an endpoint and model want to be asked."""
        with self.speaking() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO dialects VALUES (?, ?)",
                (endpoint, json.dumps(asdict(dialect))),
            )

    def spent(self) -> Spent:
        """Return what all stored replies took; the cost is None where one has no known price."""
        with self.speaking() as connection:
            calls, prompt, completion, priced, cost = connection.execute(
                "SELECT COUNT(*), COALESCE(SUM(prompt_tokens), 0), "
                "COALESCE(SUM(completion_tokens), 0), COUNT(cost_usd), TOTAL(cost_usd) FROM calls"
            ).fetchone()
        return Spent(
            calls=calls,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=round(cost, 9) if priced == calls else None,
        )

    def close(self) -> None:
        """Give all leases back and close the file."""
        try:
            with self.speaking() as connection:
                connection.execute("DELETE FROM leases WHERE owner = ?", (str(self.owner),))
        except DataError:
            pass  # Whatever keeps it from being written was told when it mattered.
        self._connection.close()

    @contextmanager
    def speaking(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection out.

        Raises:
            DataError: Instead of whatever SQLite raises.
        """
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: the call store does not work: {error}") from error

    def _put_aside(self, keys: Iterable[str], why: str) -> None:
        self._connection.executemany(
            "UPDATE calls SET key = key || '#' || ? || hex(randomblob(8)) WHERE key = ?",
            [(why, key) for key in keys],
        )

    def _holder(self, key: str) -> Held | None:
        """Return who holds a lease, None where nobody does any more."""
        row = self._connection.execute(
            "SELECT owner, boot, until_boot, until_wall FROM leases WHERE key = ?", (key,)
        ).fetchone()
        if row is None or row[0] == str(self.owner):
            return None
        owner = read_owner(str(row[0]))
        # Of the same boot, the monotonic clock is the same, whatever is done to the wall clock.
        late = time.monotonic() > row[2] if row[1] == boot() else time.time() > row[3]
        if owner is not None and not late and not owner.is_gone:
            return Held(owner.pid)
        self.note_unanswered(key, "the process that asked has ended")
        return None

    def _check_place(self) -> None:
        """Make sure that what is written can be found again.

        Raises:
            DataError: The file was removed or replaced.
        """
        try:
            there = os.stat(self.path).st_ino == self._inode  # noqa: PTH116  # twice as fast
        except OSError:
            there = False
        if not there:
            raise DataError(f"{self.path}: the call store was removed or replaced during the run")

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_TABLES)
            # A damaged row may not be UTF-8; its checksum tells, not an exception.
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            check_pages(connection, self.path)
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _fields(row: Row) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in COLUMNS.split(", "))
