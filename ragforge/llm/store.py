"""The call store: every reply is kept, by what was asked, before anybody uses it.

One SQLite file (WAL) per dataset, shared by concurrent processes. It is cache, resume and ledger.
"""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.manifest import Spent
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Usage, call_key
from ragforge.llm.dialect import Dialect

_TABLES = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, sha256 TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost_usd REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dialects (
    endpoint TEXT PRIMARY KEY, dialect TEXT NOT NULL
) WITHOUT ROWID;
"""


class CallStore:
    """The replies of a dataset.

    A damaged file is set aside under another name and a new one begun; a damaged row is dropped
    and bought again.

    Args:
        path: The SQLite file; made with its folder where missing.

    Raises:
        DataError: The file cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set_aside: Path | None = None
        """Where a damaged store was moved on opening."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._connection = self._open()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self.set_aside = self._move_aside()
                self._connection = self._open()
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"{path}: the call store cannot be opened: {error}") from error

    def get(self, key: str) -> ChatReply | None:
        """Return the stored reply of a call, None where there is none or its row is damaged."""
        with self._speaking():
            row = self._connection.execute(
                "SELECT reply, sha256 FROM replies WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            # Damage can change a column's type as well.
            if hashlib.sha256(str(row[0]).encode()).hexdigest() != row[1]:
                self._connection.execute("DELETE FROM replies WHERE key = ?", (key,))
                return None
        fields = json.loads(row[0])
        fields["usage"] = Usage(**fields["usage"])
        return ChatReply(**fields, key=key, cached=True)

    def put(self, key: str, model: str, reply: ChatReply, cost_usd: float | None) -> None:
        """Keep a reply; committed when this returns.

        Raises:
            DataError: It cannot be written, for example because the disk is full.
        """
        fields = asdict(reply)
        del fields["key"], fields["cached"]
        text = json.dumps(fields, ensure_ascii=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        usage = reply.usage
        row = (key, model, text, digest, usage.prompt_tokens, usage.completion_tokens, cost_usd)
        with self._speaking():
            self._connection.execute("INSERT OR REPLACE INTO replies VALUES (?,?,?,?,?,?,?)", row)

    def forget(self, keys: Iterable[str]) -> None:
        """Put replies aside, so that they are asked for again; what they cost stays counted."""
        with self._speaking():
            self._connection.executemany(
                "UPDATE replies SET key = key || '#' || hex(randomblob(8)) WHERE key = ?",
                [(key,) for key in keys],
            )

    def dialect(self, endpoint: str) -> Dialect | None:
        """Return what was learnt about an endpoint and model."""
        with self._speaking():
            row = self._connection.execute(
                "SELECT dialect FROM dialects WHERE endpoint = ?", (endpoint,)
            ).fetchone()
        if row is None:
            return None
        fields = json.loads(row[0])
        return Dialect(**{**fields, "omit": tuple(fields["omit"])})

    def learn(self, endpoint: str, dialect: Dialect) -> None:
        """Remember how an endpoint and model want to be asked."""
        with self._speaking():
            self._connection.execute(
                "INSERT OR REPLACE INTO dialects VALUES (?, ?)",
                (endpoint, json.dumps(asdict(dialect))),
            )

    def spent(self) -> Spent:
        """Return what all stored replies took; the cost is None where one has no known price."""
        with self._speaking():
            calls, prompt, completion, priced, cost = self._connection.execute(
                "SELECT COUNT(*), COALESCE(SUM(prompt_tokens), 0), "
                "COALESCE(SUM(completion_tokens), 0), COUNT(cost_usd), TOTAL(cost_usd) FROM replies"
            ).fetchone()
        return Spent(
            calls=calls,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=round(cost, 9) if priced == calls else None,
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_TABLES)
            # A damaged row may not be UTF-8; its checksum tells, not an exception.
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("its pages are damaged")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _move_aside(self) -> Path:
        taken = sum(1 for _ in self._path.parent.glob(f"{self._path.name}.damaged-*"))
        aside = self._path.with_name(f"{self._path.name}.damaged-{taken + 1}")
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        return self._path.rename(aside)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DataError(f"{self._path}: the call store does not work: {error}") from error


@dataclass(slots=True)
class StoredModel:
    """Asks only what the store does not know; equal questions in flight are asked once.

    Args:
        inner: Asked on a miss.
        store: Where replies are kept.
        endpoint, model: What the call keys are bound to.
        price: For the ledger; None where unknown.
    """

    inner: ChatModel
    store: CallStore
    endpoint: str
    model: str
    price: Price | None
    _in_flight: dict[str, asyncio.Future[ChatReply]] = field(default_factory=dict, init=False)

    def key(self, request: ChatRequest) -> str:
        """Return the key under which the reply is kept."""
        return call_key(self.endpoint, self.model, request)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer from the store, or ask, store, and then answer."""
        key = self.key(request)
        found = self.store.get(key)
        if found is not None:
            return found
        if key in self._in_flight:
            return await self._wait_for(self._in_flight[key], request)
        future: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        try:
            reply = replace(await self.inner.ask(request), key=key)
            cost_usd = self.price.cost_usd(reply.usage) if self.price else None
            self.store.put(key, self.model, reply, cost_usd)
        except BaseException as error:
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()
            else:
                future.cancel()
            raise
        finally:
            del self._in_flight[key]
        future.set_result(reply)
        return reply

    async def _wait_for(self, other: asyncio.Future[ChatReply], request: ChatRequest) -> ChatReply:
        # Not awaited itself: its cancellation, or this task's, must not reach across.
        await asyncio.wait([other])
        if other.cancelled():
            return await self.ask(request)
        return replace(other.result(), cached=True)
