"""Damaged store files: set aside, and replaced by new ones with every reply that can be read."""

import contextlib
import mmap
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

from ragforge.deferred import dataclass
from ragforge.llm.store.open_files import opened_beside_sqlite
from ragforge.llm.store.sqlite_file import NAMES, SIDE_FILES, Row, add_rows, checked_row, open_file

Value = int | float | str | bytes | None

_HEADS = {0x02: 12, 0x0A: 8, 0x0D: 8}
"""Kinds of pages that hold records, with the size of their header: index interior, index leaf (both
also of tables without row ids), and table leaf."""

_INTERIOR, _TABLE_LEAF = 0x02, 0x0D
_USUAL_SIZE = 4096
_JOURNAL_MAGIC = (0x377F0682, 0x377F0683)
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its kind."""


def read_records(path: Path, columns: int) -> Iterator[tuple[Value, ...]]:
    """Yield every record of so many columns that a file and its journal still hold.

    Records come in no order, and more than once: older versions too. Nothing tells a damaged one
    from a whole one; the caller must.

    Raises:
        OSError: The file cannot be read.
    """
    with opened_beside_sqlite(path) as stack:
        main = _mapped(path, stack)
        journal = _mapped(path.with_name(f"{path.name}-wal"), stack, missing_ok=True)
        for pages in _readings(main, journal):
            for number, page in pages.all():
                for payload in _payloads(pages, number, page):
                    record = _record(payload, columns)
                    if record is not None:
                        yield record


def _mapped(path: Path, stack: ExitStack, *, missing_ok: bool = False) -> bytes | mmap.mmap:
    if missing_ok and not path.exists():
        return b""
    stream = stack.enter_context(path.open("rb"))
    if not path.stat().st_size:
        return b""
    return stack.enter_context(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


@dataclass(frozen=True, slots=True)
class _Pages:
    """The pages of a file and of its journal.

    Args:
        main, journal: The files' bytes.
        size: Bytes of a page.
        usable: Those of them that SQLite itself uses.
        frames: Where in the journal pages lie, in the order they were written: number and offset.
        latest: The last of these places, by number.
    """

    main: bytes | mmap.mmap
    journal: bytes | mmap.mmap
    size: int
    usable: int
    frames: list[tuple[int, int]]
    latest: dict[int, int]

    @property
    def most_bytes(self) -> int:
        """More than any record can have."""
        return len(self.main) + len(self.journal)

    def get(self, number: int) -> bytes:
        """Return a page as it was written last; b"" where there is none."""
        if number in self.latest:
            return self.journal[self.latest[number] :][: self.size]
        return self.main[(number - 1) * self.size : number * self.size] if number else b""

    def all(self) -> Iterator[tuple[int, bytes]]:
        """Yield every version of every page with its number."""
        for number in range(1, -(-len(self.main) // self.size) + 1):
            yield number, self.main[(number - 1) * self.size : number * self.size]
        for number, offset in self.frames:
            yield number, self.journal[offset : offset + self.size]


def _readings(main: bytes | mmap.mmap, journal: bytes | mmap.mmap) -> Iterator[_Pages]:
    """Yield the pages in every way in which they may have been written."""
    size = _page_size(main, journal)
    frames = list(_frames(journal, size))
    # Apple's SQLite keeps a few bytes of each page back; or the byte that says so is damaged.
    for kept_back in {0, *main[20:21]}:
        yield _Pages(main, journal, size, size - kept_back, frames, dict(frames))


def _page_size(main: bytes | mmap.mmap, journal: bytes | mmap.mmap) -> int:
    # Two bytes cannot hold the largest size; 1 stands for it there.
    in_main = int.from_bytes(main[16:18])
    for size in (65536 if in_main == 1 else in_main, int.from_bytes(journal[8:12])):
        if size in {512 << shift for shift in range(8)}:
            return size
    return _USUAL_SIZE


def _frames(journal: bytes | mmap.mmap, size: int) -> Iterator[tuple[int, int]]:
    if len(journal) < 32 or int.from_bytes(journal[:4]) not in _JOURNAL_MAGIC:
        return
    salts = journal[16:24]
    for start in range(32, len(journal) - size - 23, size + 24):
        # Behind the frames in use lie those of before the journal was begun anew.
        if journal[start + 8 : start + 16] != salts:
            return
        yield int.from_bytes(journal[start : start + 4]), start + 24


def _payloads(pages: _Pages, number: int, page: bytes) -> Iterator[bytes]:
    start = 100 if number == 1 else 0
    kind = page[start] if len(page) > start + 12 else 0
    if kind not in _HEADS:
        return
    first = start + _HEADS[kind]
    count = min(int.from_bytes(page[start + 3 : start + 5]), (pages.size - first) // 2)
    for (at,) in struct.iter_unpack(">H", page[first : first + 2 * count]):
        try:
            yield _payload(pages, page, kind, at)
        except (IndexError, ValueError):
            continue


def _payload(pages: _Pages, page: bytes, kind: int, at: int) -> bytes:
    """Return the payload of a cell, with its part in overflow pages.

    Raises:
        IndexError, ValueError: It is cut off.
    """
    length, at = _varint(page, at + 4 if kind == _INTERIOR else at)
    if length > pages.most_bytes:
        raise ValueError("longer than the file")
    if kind == _TABLE_LEAF:
        _, at = _varint(page, at)
    here = _local_bytes(length, pages.usable, kind)
    parts = [page[at : at + here]]
    following, missing = page[at + here : at + here + 4], length - here
    while missing > 0:
        more = pages.get(int.from_bytes(following))
        if len(more) < pages.usable:
            raise ValueError("a page is missing")
        part = more[4 : min(4 + missing, pages.usable)]
        parts.append(part)
        following, missing = more[:4], missing - len(part)
    return b"".join(parts)


def _local_bytes(length: int, usable: int, kind: int) -> int:
    """Return how much of a payload lies in the cell itself."""
    most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    fitting = least + (length - least) % (usable - 4)
    return fitting if fitting <= most else least


def _record(payload: bytes, columns: int) -> tuple[Value, ...] | None:
    """Return the values of a record, None where it is none of so many columns."""
    try:
        end, at = _varint(payload, 0)
        kinds: list[int] = []
        while at < end and len(kinds) <= columns:
            kind, at = _varint(payload, at)
            kinds.append(kind)
    except IndexError:
        return None
    if len(kinds) != columns or at != end:
        return None
    values: list[Value] = []
    for kind in kinds:
        length = _value_bytes(kind)
        values.append(_value(kind, payload[at : at + length]))
        at += length
    return tuple(values) if at == len(payload) else None


def _value_bytes(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    return 8 if kind == 7 else _INTEGERS.get(kind, 0)


def _value(kind: int, raw: bytes) -> Value:
    if kind >= 12:
        return raw.decode("utf-8", "replace") if kind % 2 else raw
    if kind == 7 and len(raw) == 8:
        number: float = struct.unpack(">d", raw)[0]
        return number
    if kind in _INTEGERS:
        return int.from_bytes(raw, signed=True)
    return {8: 0, 9: 1}.get(kind)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return the number that stands at a place, and the place behind it."""
    value = 0
    for index in range(8):
        byte = raw[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | raw[at + 8], at + 9


def _mend(path: Path) -> Path:
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
def mending_lock(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Keep other processes from mending a store in the same folder at the same time.

    Where the system has no such locks, two that mend at the same moment each set a file aside.

    Args:
        folder: Where the store is.
        shared: Keep only those away that mend. Whoever opens a store needs this: SQLite makes its
            journal by the file's name, so that one that was just replaced would get the journal of
            the old file.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
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
    with mending_lock(path.parent):
        try:
            return open_file(path), None
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            aside = _mend(path)
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
