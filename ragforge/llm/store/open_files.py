"""Which database files this process has open, so that nothing takes SQLite's locks away.

As soon as a process closes any descriptor of a file, POSIX drops all locks that the process holds
on it, those of SQLite's own descriptors too. Another process then believes itself alone, and
deletes the journal that is still written to. So what is opened here without SQLite stays open
until the last connection of this process to the file is closed.

Source: https://www.sqlite.org/howtocorrupt.html, section 2.2.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import field
from io import FileIO
from pathlib import Path

from ragforge.deferred import dataclass

_Node = tuple[int, int]
"""Device and number of a file, whatever it is called."""


@dataclass(slots=True)
class _OpenFile:
    connections: int = 0
    head: FileIO | None = None
    kept: ExitStack = field(default_factory=ExitStack)


_OPEN: dict[_Node, _OpenFile] = {}
_LOCK = threading.RLock()


class _CountedConnection(sqlite3.Connection):
    nodes: frozenset[_Node] = frozenset()

    def close(self) -> None:
        with _LOCK:
            super().close()
            nodes, self.nodes = self.nodes, frozenset()
            for node in nodes:
                _OPEN[node].connections -= 1
                if not _OPEN[node].connections:
                    _OPEN.pop(node).kept.close()


def connect(path: Path, options: str = "") -> sqlite3.Connection:
    """Open a database file, and count it as open until the connection is closed.

    Args:
        path: Made where it is missing, unless the options forbid it.
        options: What stands behind the ? of SQLite's address.
    """
    address = f"{path.absolute().as_uri()}?{options}"
    with _LOCK:
        # Another process may put a mended file in its place in this very moment.
        before = _node(path)
        connection = sqlite3.connect(
            address, timeout=30, isolation_level=None, uri=True, factory=_CountedConnection
        )
        _distrust(connection)
        connection.nodes = frozenset(node for node in (before, _node(path)) if node)
        for node in connection.nodes:
            _OPEN.setdefault(node, _OpenFile()).connections += 1
    return connection


def _distrust(connection: sqlite3.Connection) -> None:
    """Let nothing that a file defines be run; what it may define at all, `check_schema` says."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    set_config = getattr(connection, "setconfig", None)  # From Python 3.12 on.
    if set_config is not None:
        set_config(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # type: ignore[attr-defined]
        set_config(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)  # type: ignore[attr-defined]
        set_config(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)  # type: ignore[attr-defined]


def read_head(path: Path, size: int) -> bytes:
    """Return the first bytes of a file.

    Raises:
        OSError: It cannot be read.
    """
    with _LOCK:
        file = _OPEN.get(_node(path) or (0, 0))
        if file is None:
            with path.open("rb", buffering=0) as stream:
                return stream.read(size)
        if file.head is None:
            file.head = file.kept.enter_context(path.open("rb", buffering=0))
        file.head.seek(0)
        return file.head.read(size)


@contextmanager
def opened_beside_sqlite(path: Path) -> Iterator[ExitStack]:
    """Lend a stack for whatever is opened of a file; it may be closed only later."""
    opened = ExitStack()
    node = _node(path)
    try:
        yield opened
    finally:
        with _LOCK:
            if node in _OPEN:
                _OPEN[node].kept.callback(opened.close)
            else:
                opened.close()


def _node(path: Path) -> _Node | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # twice as fast
    except OSError:
        return None
    return found.st_dev, found.st_ino
