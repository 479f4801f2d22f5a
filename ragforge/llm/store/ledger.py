"""The ledger of a call store: replies and their costs; pruning that keeps what was paid."""

import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.manifest import Spent
from ragforge.llm.store.leases import COLUMNS as LEASE_COLUMNS
from ragforge.llm.store.leases import Owner, lease_holder
from ragforge.llm.store.sqlite_file import (
    ASIDE,
    COLUMNS,
    SIDE_FILES,
    Row,
    open_file,
    reading,
    stored_reply,
    transaction,
)

_DAY_S = 86_400.0

_SUMS = """
SELECT model, COUNT(*) AS calls, TOTAL(prompt_tokens) AS prompt_tokens,
    TOTAL(completion_tokens) AS completion_tokens, COUNT(cost_usd) AS priced,
    TOTAL(cost_usd) AS cost_usd
FROM calls
"""

_TOTALS = "SUM(calls), SUM(prompt_tokens), SUM(completion_tokens), SUM(priced), SUM(cost_usd)"

_GOING = f"{_SUMS} WHERE key IN going"

_KEEP_SUMS = f"""
INSERT INTO pruned {_GOING} GROUP BY model ON CONFLICT (model) DO UPDATE SET
    calls = calls + excluded.calls, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    priced = priced + excluded.priced, cost_usd = cost_usd + excluded.cost_usd
"""


@dataclass(frozen=True, slots=True)
class ModelLedger:
    """The replies of one model that a store holds.

    Args:
        spent: What all of them took; those set aside were paid, too.
        estimated: Replies whose tokens the endpoint did not count.
        forgotten: Replies set aside, to be asked for again.
        damaged: Replies that came out of the store otherwise than they went in.
    """

    model: str
    spent: Spent
    estimated: int = 0
    forgotten: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class ActiveOwner:
    """A process that is buying replies now."""

    pid: int
    host: str
    leases: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """The replies of a store, with what was paid for them.

    Args:
        models: Sorted by name.
        spent: What all replies ever stored took, those pruned since included.
        pruned: How many were pruned.
        unanswered: Attempts that gave no reply and may have been billed.
        holdings: Leases held now, by who holds them.
        file_bytes: The file and its journal.
    """

    models: tuple[ModelLedger, ...]
    spent: Spent
    pruned: int
    unanswered: int
    holdings: tuple[ActiveOwner, ...]
    file_bytes: int


@dataclass(frozen=True, slots=True)
class PruneFilter:
    """Chooses the replies to prune: those to which all that is given applies.

    Args:
        older_than_days: Since they were bought.
        model: Exactly as the ledger names it.
        set_aside: Forgotten or damaged.
    """

    older_than_days: float | None = None
    model: str | None = None
    set_aside: bool = False

    def keys(self, rows: Iterable[Row]) -> Iterator[str]:
        """Yield the keys of the rows to prune."""
        now_s = time.time()
        for row in rows:
            # A date that damage made unreadable is no old one.
            dated = isinstance(row.bought_at, int | float)
            age_days = (now_s - row.bought_at) / _DAY_S if dated else 0.0
            young = self.older_than_days is not None and age_days <= self.older_than_days
            other = self.model not in (None, row.model)
            in_use = self.set_aside and not row.aside and row.whole
            if not (young or other or in_use):
                yield row.key


@dataclass(frozen=True, slots=True)
class Pruned:
    """The replies that were pruned, or would be.

    Args:
        spent: What it took; the ledger keeps that.
        bytes_before, bytes_after: Size of the file and its journal.
    """

    spent: Spent
    bytes_before: int
    bytes_after: int


def spent(connection: sqlite3.Connection) -> Spent:
    """Return tokens and cost of all replies ever stored; the cost is None if one has no price."""
    if _has_pruned(connection):
        return _summed(connection, f"SELECT * FROM ({_SUMS}) UNION ALL SELECT * FROM pruned")  # noqa: S608  # constants
    return _summed(connection, _SUMS)


def read_ledger(path: Path) -> Ledger:
    """Return the ledger of a store, which is not changed.

    Raises:
        DataError: There is no store, or it is damaged.
    """
    with reading(path) as connection:
        [unanswered] = connection.execute("SELECT COUNT(*) FROM unanswered").fetchone()
        pruned = 0
        if _has_pruned(connection):
            [pruned] = connection.execute("SELECT COALESCE(SUM(calls), 0) FROM pruned").fetchone()
        return Ledger(
            tuple(_models(connection)),
            spent(connection),
            pruned,
            unanswered,
            tuple(_holdings(connection)),
            size_of(path),
        )


def count_prunable(path: Path, selected: PruneFilter) -> Pruned:
    """Return the replies that `prune` would remove, changing nothing.

    Raises:
        DataError: There is no store, or it is damaged.
    """
    size = size_of(path)
    with reading(path) as connection:
        _select(connection, selected)
        return Pruned(_summed(connection, _GOING), size, size)


def prune(path: Path, selected: PruneFilter) -> Pruned:
    """Remove replies from a store and make its file smaller.

    Raises:
        DataError: There is no store, or it is damaged or cannot be written, or another process is
            buying replies.
    """
    before = size_of(path)
    with reading(path):
        pass
    try:
        with closing(open_file(path)) as connection:
            with transaction(connection):
                _refuse_if_held(connection, path)
                _select(connection, selected)
                went = _summed(connection, _GOING)
                connection.execute(_KEEP_SUMS)
                connection.execute("DELETE FROM calls WHERE key IN going")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise DataError(f"{path}: cannot be pruned: {error}") from error
    return Pruned(went, before, size_of(path))


def size_of(path: Path) -> int:
    """Return the bytes of a store file and its journal; 0 where there is none."""
    files = (path, path.with_name(path.name + SIDE_FILES[0]))
    return sum(file.stat().st_size for file in files if file.is_file())


def _models(connection: sqlite3.Connection) -> Iterator[ModelLedger]:
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in _rows(connection):
        reply = stored_reply(str(row.key).partition(ASIDE)[0], row.reply, row.sha256)
        if reply is None:
            seen[row.model]["damaged"] += 1
            continue
        seen[row.model][row.aside] += 1
        seen[row.model]["estimated"] += bool(reply.usage.estimated)
    # By whatever damage made of a name, too.
    for model in sorted(seen, key=str):
        counts = seen[model]
        took = _summed(connection, f"{_SUMS} WHERE model IS ?", model)
        kinds = (counts["estimated"], counts["forgotten"], counts["damaged"])
        yield ModelLedger(str(model), took, *kinds)


def _rows(connection: sqlite3.Connection) -> Iterator[Row]:
    """Yield every row, set aside or not, damaged or not."""
    for values in connection.execute(f"SELECT {COLUMNS} FROM calls"):  # noqa: S608  # constants
        yield Row(*values)


def _holdings(connection: sqlite3.Connection) -> Iterator[ActiveOwner]:
    leases_of: Counter[Owner] = Counter()
    for values in connection.execute(f"SELECT {LEASE_COLUMNS} FROM leases"):  # noqa: S608  # constants
        owner = lease_holder(*values)
        if owner is not None:
            leases_of[owner] += 1
    for owner, leases in sorted(leases_of.items(), key=str):
        yield ActiveOwner(owner.pid, owner.machine.partition("/")[0], leases)


def _refuse_if_held(connection: sqlite3.Connection, path: Path) -> None:
    holdings = list(_holdings(connection))
    if holdings:
        who = ", ".join(f"process {item.pid} on {item.host}" for item in holdings)
        raise DataError(f"{path}: is in use: {who} is buying replies; prune when it has ended")


def _select(connection: sqlite3.Connection, selected: PruneFilter) -> None:
    """Put the keys to prune into the table `going`, which only this connection sees."""
    connection.execute("CREATE TEMP TABLE going (key PRIMARY KEY) WITHOUT ROWID")
    keys = selected.keys(_rows(connection))
    connection.executemany("INSERT INTO going VALUES (?)", ((key,) for key in keys))


def _has_pruned(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'pruned'")
    return found.fetchone() is not None


def _summed(connection: sqlite3.Connection, sums: str, *values: object) -> Spent:
    calls, prompt, completion, priced, cost = connection.execute(
        f"SELECT {_TOTALS} FROM ({sums})",  # noqa: S608  # constants
        values,
    ).fetchone()
    try:
        counts = [int(count) for count in (calls, prompt, completion)]
        cost_usd = round(float(cost), 9) if priced == calls else None
    except (TypeError, ValueError, OverflowError) as error:
        raise sqlite3.DatabaseError("its sums are no numbers") from error
    return Spent(
        calls=counts[0], prompt_tokens=counts[1], completion_tokens=counts[2], cost_usd=cost_usd
    )
