"""The call store: replies by what was asked, leases, dialects and costs in one SQLite file."""

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.atomic import make_own_place
from ragforge.files.manifest import Spent
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.damage import mending_lock, open_mended
from ragforge.llm.store.leases import COLUMNS as LEASE_COLUMNS
from ragforge.llm.store.leases import Owner, Renewal, boot_id, lease_ends, lease_holder, this_owner
from ragforge.llm.store.ledger import spent
from ragforge.llm.store.sqlite_file import (
    ASIDE,
    COLUMNS,
    Row,
    add_rows,
    check_at_next_open,
    open_file,
    reply_json,
    row_sha256,
    stored_reply,
    transaction,
)
from ragforge.llm.wire import Dialect, Mode
from ragforge.records.record import Record

_RECENT = 200
"""Replies of a model that tell what its next ones will be like."""


class _StoredDialect(Record):
    mode: Mode
    tokens_field: Literal["max_tokens", "max_completion_tokens"]
    omit: tuple[str, ...]

    @property
    def dialect(self) -> Dialect:
        return Dialect(self.mode, self.tokens_field, self.omit)


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A reply that another process is buying."""

    pid: int


@dataclass(frozen=True, slots=True)
class ReplyAverages:
    """Means over the recent replies of a model.

    Args:
        completion_tokens: Of a reply.
        latency_s: Of a live call; None where all of them came in batches.
    """

    completion_tokens: float
    latency_s: float | None


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
        self._renewal = Renewal()
        try:
            make_own_place(path.parent)
            try:
                # SQLite refuses one of two that make a file at the same moment.
                is_made = path.exists() and path.stat().st_size > 0
                with mending_lock(path.parent, shared=is_made):
                    self._connection = open_file(path)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._connection, self.set_aside = open_mended(path)
            self._inode = path.stat().st_ino
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"{path}: the call store cannot be opened: {error}") from error

    def get(self, key: str) -> ChatReply | None:
        """Return the stored reply of a call, None where there is none or its row is damaged."""
        with self.connected() as connection:
            row = connection.execute(
                "SELECT reply, sha256 FROM calls WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            reply = stored_reply(key, *row)
            if reply is None:
                self._put_aside([key], "damaged")
                self.damaged_rows += 1
        return reply

    def claim(self, key: str) -> ChatReply | HeldLease | None:
        """Lease the sole right to buy a reply; None where this owner has it now.

        The lease of a process that has ended, or has not renewed it in time, is taken over, and
        its call is counted as perhaps billed.

        Returns:
            The reply where another process has bought it meanwhile; `HeldLease` where one is at it.
        """
        self._check_file_in_place()
        with self.connected() as connection, transaction(connection):
            reply_or_holder = self.get(key) or self._holder(key)
            if reply_or_holder is None:
                connection.execute(
                    "INSERT OR REPLACE INTO leases VALUES (?,?,?,?,?)",
                    (key, str(self.owner), boot_id(), *lease_ends()),
                )
        return reply_or_holder

    def put(
        self, key: str, endpoint: str, model: str, reply: ChatReply, cost_usd: float | None
    ) -> None:
        """Keep a reply and give its lease back; committed when this returns.

        Raises:
            DataError: It cannot be written, for example because the disk is full.
        """
        self._check_file_in_place()
        text, usage = reply_json(reply), reply.usage
        counts = (usage.prompt_tokens, usage.completion_tokens)
        row = (key, endpoint, model, text, row_sha256(key, text), *counts, cost_usd, time.time())
        with self.connected() as connection, transaction(connection):
            connection.execute("INSERT OR REPLACE INTO calls VALUES (?,?,?,?,?,?,?,?,?)", row)
            connection.execute("DELETE FROM leases WHERE key = ?", (key,))

    def release(self, key: str) -> None:
        """Give a lease back without a reply."""
        with self.connected() as connection:
            connection.execute(
                "DELETE FROM leases WHERE key = ? AND owner = ?", (key, str(self.owner))
            )

    @property
    def may_be_late(self) -> bool:
        """Whether leases may have ended before they were renewed, now or ever since the opening."""
        return self._renewal.is_late

    def renew_one(self, key: str) -> bool:
        """Keep the lease of one call; return whether this owner has it still."""
        with self.connected() as connection:
            renewed = connection.execute(
                "UPDATE leases SET until_boot = ?, until_wall = ? WHERE key = ? AND owner = ?",
                (*lease_ends(), key, str(self.owner)),
            )
        return renewed.rowcount == 1

    def renew(self) -> None:
        """Keep the leases of this owner."""
        with self.connected() as connection:
            connection.execute(
                "UPDATE leases SET until_boot = ?, until_wall = ? WHERE owner = ?",
                (*lease_ends(), str(self.owner)),
            )
        self._renewal.note()

    def note_unanswered(self, key: str, why: str) -> None:
        """Count an attempt that gave nothing and may have been billed all the same."""
        with self.connected() as connection:
            connection.execute(
                "INSERT INTO unanswered (key, why, at) VALUES (?,?,?)", (key, why, time.time())
            )

    def add(self, rows: Iterable[Row]) -> int:
        """Add rows; of two replies to one call the later one stays.

        Returns:
            How many of them the store lacked.
        """
        with self.connected() as connection:
            return add_rows(connection, rows)

    def rows(self) -> Iterator[Row]:
        """Yield the replies that are in use and whole, by key."""
        with self.connected() as connection:
            for fields in connection.execute(
                f"SELECT {COLUMNS} FROM calls WHERE instr(key, '#') = 0 ORDER BY key"  # noqa: S608  # constants
            ):
                row = Row(*fields)
                if row.whole:
                    yield row

    def forget(self, keys: Iterable[str]) -> None:
        """Put replies aside, so that they are asked for again; what they cost stays counted."""
        with self.connected() as connection, transaction(connection):
            self._put_aside(keys, "forgotten")

    def bought_before(self, keys: Iterable[str], at_s: float) -> list[str]:
        """Return those of some keys whose replies were bought before a moment, by `time.time`."""
        with self.connected() as connection:
            return [
                key
                for key in keys
                if connection.execute(
                    "SELECT 1 FROM calls WHERE key = ? AND bought_at < ?", (key, at_s)
                ).fetchone()
            ]

    def dialect(self, endpoint: str) -> Dialect | None:
        """Return the dialect of an endpoint and model, None where it is not known."""
        with self.connected() as connection:
            row = connection.execute(
                "SELECT dialect FROM dialects WHERE endpoint = ?", (endpoint,)
            ).fetchone()
        try:
            return None if row is None else _StoredDialect.model_validate_json(row[0]).dialect
        except (ValueError, TypeError):
            return None  # It is learnt anew.

    def learn(self, endpoint: str, dialect: Dialect) -> None:
        """Remember how an endpoint and model want to be asked."""
        with self.connected() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO dialects VALUES (?, ?)",
                (endpoint, json.dumps(asdict(dialect))),
            )

    def cost_usd(self, key: str) -> float | None:
        """Return what a reply cost when it was bought; None where no price was known."""
        with self.connected() as connection:
            row = connection.execute("SELECT cost_usd FROM calls WHERE key = ?", (key,)).fetchone()
        cost_usd: float | None = None if row is None else row[0]
        return cost_usd

    def spent(self) -> Spent:
        """Return tokens and cost of all replies ever stored; cost is None if one has no price."""
        with self.connected() as connection:
            return spent(connection)

    def recent_averages(self, endpoint: str, model: str) -> ReplyAverages | None:
        """Return means over the recent replies of a model, None where there are none."""
        with self.connected() as connection:
            tokens, latency_s = connection.execute(
                "SELECT AVG(completion_tokens), "
                "AVG(NULLIF(json_extract(reply, '$.latency_s'), 0)) FROM ("
                "SELECT completion_tokens, reply FROM calls WHERE endpoint = ? AND model = ? "
                "AND completion_tokens > 0 AND json_valid(reply) ORDER BY bought_at DESC LIMIT ?)",
                (endpoint, model, _RECENT),
            ).fetchone()
        return None if tokens is None else ReplyAverages(tokens, latency_s)

    def close(self) -> None:
        """Give all leases back and close the file."""
        try:
            with self.connected() as connection:
                connection.execute("DELETE FROM leases WHERE owner = ?", (str(self.owner),))
        except DataError:
            pass  # Whatever keeps it from being written was told when it mattered.
        self._connection.close()

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection.

        Raises:
            DataError: Instead of whatever SQLite raises.
        """
        try:
            yield self._connection
        except sqlite3.Error as error:
            # Its subclasses speak of other things than damage.
            if type(error) is sqlite3.DatabaseError:
                with suppress(OSError):
                    check_at_next_open(self.path)
            raise DataError(f"{self.path}: the call store does not work: {error}") from error

    def _put_aside(self, keys: Iterable[str], why: str) -> None:
        self._connection.executemany(
            "UPDATE calls SET key = key || ? || hex(randomblob(8)) WHERE key = ?",
            [(ASIDE + why, key) for key in keys],
        )

    def _holder(self, key: str) -> HeldLease | None:
        """Return who holds a lease, None where nobody does any more."""
        row = self._connection.execute(
            f"SELECT {LEASE_COLUMNS} FROM leases WHERE key = ?",  # noqa: S608  # constants
            (key,),
        ).fetchone()
        if row is None or row[0] == str(self.owner):
            return None
        owner = lease_holder(*row)
        if owner is not None:
            return HeldLease(owner.pid)
        self.note_unanswered(key, "the process that asked, or was about to, has ended")
        return None

    def _check_file_in_place(self) -> None:
        """Check that the file is still where it was opened.

        Raises:
            DataError: The file was removed or replaced.
        """
        try:
            there = os.stat(self.path).st_ino == self._inode  # noqa: PTH116  # twice as fast
        except OSError:
            there = False
        if not there:
            raise DataError(f"{self.path}: the call store was removed or replaced during the run")
