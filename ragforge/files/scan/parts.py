"""A file in parts that threads read at the same time; numpy lets go of the interpreter's lock.

What is looked at of a part is a window, which moves on through the file inside one buffer.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import IO, Final

import numpy as np

from ragforge.deferred import dataclass
from ragforge.files.scan.collecting import Collector, Qrels
from ragforge.files.scan.decimals import BEFORE
from ragforge.files.scan.rows import Bytes, Irregular, Rows
from ragforge.files.scan.tokens import LONGEST_TOKEN
from ragforge.files.source_files import open_unpacked, unpacked_name

_FRONT: Final = BEFORE + 8
_BACK: Final = LONGEST_TOKEN + 64
"""What stands before and behind the window is read into words, then masked."""
_NEWLINE: Final = ord("\n")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_ASCII_END: Final = 0x80
_KEPT_BYTES: Final = 1 << 24


class Window:
    """Whole lines of a stream, which is read into one buffer again and again.

    Attributes:
        buffer: The bytes of the window, and some around it.
        array: The same bytes. Words may be read around the window without leaving it.
        start: Where the window begins in the buffer.
        stop: Behind its last whole line.
        at_end: Whether nothing comes behind the window.
    """

    def __init__(self, stream: IO[bytes], size: int, offset: int, soft_end: int | None) -> None:
        """Start with an empty window.

        Args:
            stream: Stands at the start of a line.
            size: Of the buffer at first; it grows where a query does not fit.
            offset: Of that place in the file.
            soft_end: An offset behind which little is needed, and so read; None where all is.
        """
        self._stream = stream
        self.buffer = bytearray(_FRONT + size + _BACK)
        self._soft_end = soft_end
        self._fill = _FRONT
        self._offset = offset - _FRONT
        self._checked = _FRONT
        self.array: Bytes = np.frombuffer(self.buffer, np.uint8)
        self.start = self.stop = _FRONT
        self.at_end = False

    def position_of(self, offset: int) -> int:
        """Return where an offset of the file is, or would be, in the buffer."""
        return offset - self._offset

    def drop(self, position: int) -> None:
        """Let the window begin at a position of the buffer."""
        self.start = position

    def read_on(self) -> None:
        """Keep what is in the window, and read more behind it until there is a new whole line.

        Raises:
            Irregular: The new part is not UTF-8, or holds a byte order mark.
        """
        self._make_room()
        before = self.stop
        while self.stop == before and not self.at_end:
            if len(self.array) - self._fill <= _BACK:
                self._grow()
            self._read()
            self.stop = max(before, self.buffer.rfind(b"\n", before, self._fill) + 1)
        if self.at_end and self._fill > self.stop:
            self.array[self._fill] = _NEWLINE
            self._fill += 1
            self.stop = self._fill
        self._check_text()

    def _make_room(self) -> None:
        size = self._fill - self.start
        if self.start > _FRONT:
            shift = self.start - _FRONT
            self.array[_FRONT : _FRONT + size] = self.array[self.start : self._fill]
            self.start, self._fill = _FRONT, _FRONT + size
            self.stop -= shift
            self._checked -= shift
            self._offset += shift
        if 2 * size > len(self.array):
            self._grow()

    def _grow(self) -> None:
        self.buffer = self.buffer + bytes(len(self.buffer))
        self.array = np.frombuffer(self.buffer, np.uint8)

    def _read(self) -> None:
        room = len(self.array) - _BACK
        if self._soft_end is not None:
            # The rest of one query is all that is needed of what comes there.
            room = min(room, max(self._soft_end - self._offset, self._fill + (room >> 3)))
        with memoryview(self.buffer) as memory:
            while self._fill < room:
                n_read = self._stream.readinto(memory[self._fill : room])  # type: ignore[attr-defined]  # IO lacks it, the streams have it
                if not n_read:
                    self.at_end = True
                    return
                self._fill += n_read

    def _check_text(self) -> None:
        """Refuse what is not UTF-8; lines end where characters do."""
        start, self._checked = self._checked, self.stop
        if start < self.stop and self.array[start : self.stop].max() >= _ASCII_END:
            text = self.buffer[start : self.stop]
            if _BYTE_ORDER_MARK in text:
                raise Irregular
            try:
                text.decode()
            except UnicodeDecodeError:
                raise Irregular from None


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a file is cut up; tests cut finer than is fast."""

    window_bytes: int
    """Looked at together."""
    part_bytes: int
    """Read by one thread at a time."""


def _fastest_sizes(n_threads: int) -> Sizes:
    """Return what was measured to be fast.

    The arrays that are made of a window should stay in a core's second-level cache: windows of
    4 MiB took twice as long. Threads wait for the interpreter's lock between any two arrays, so
    with several of them larger windows pay. Parts are small enough that no thread waits long for
    the last one.
    """
    return Sizes(window_bytes=1 << (19 if n_threads == 1 else 20), part_bytes=1 << 24)


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a file, which has what begins in it."""

    begin: int
    end: int | None
    """None for the end of the file, wherever that is."""


RowsOf = Callable[[Window, Part], Iterator[Rows]]
"""Yields the whole queries of a part; the window stands at the start of the part's first line."""


def scan_parts(
    path: Path, rows_of: RowsOf, qrels: Qrels, *, n_threads: int, sizes: Sizes | None
) -> list[Collector]:
    """Collect the hits of each part of a file, in the order of the file.

    Args:
        path: The file.
        rows_of: Finds the rows of a part.
        qrels: Query id to chunk id to grade.
        n_threads: How many read at once, where the file is large and not packed.
        sizes: How the file is cut up; None for what is fast.

    Raises:
        Irregular: A part is of another shape than `rows_of` and `Collector.add` take.
        DataError: The file cannot be read or unpacked.
    """
    if sys.byteorder != "little":
        raise Irregular
    # When glibc takes back a block that it had mapped, it serves blocks up to that size from the
    # heap from then on: without this, every array made of a window costs its page faults again.
    np.empty(_KEPT_BYTES, np.uint8)
    sizes = sizes or _fastest_sizes(n_threads)
    parts = _parts(path, n_threads, sizes.part_bytes)
    stopped = Event()

    def scan(part: Part) -> Collector:
        return _scan_part(path, rows_of, Collector(qrels), part, sizes.window_bytes, stopped)

    if len(parts) == 1:
        return [scan(parts[0])]
    with ThreadPoolExecutor(n_threads) as executor:
        futures = [executor.submit(scan, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stopped.set()
            executor.shutdown(cancel_futures=True)
            raise


def _parts(path: Path, n_threads: int, part_bytes: int) -> list[Part]:
    is_packed = unpacked_name(path) != path.name
    if n_threads == 1 or is_packed:
        return [Part(0, None)]
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # Opening it says what is wrong.
    n_parts = max(1, size // part_bytes)
    ends = [size * n // n_parts for n in range(1, n_parts)]
    return [Part(begin, end) for begin, end in zip([0, *ends], [*ends, None], strict=True)]


def _scan_part(
    path: Path,
    rows_of: RowsOf,
    collector: Collector,
    part: Part,
    window_bytes: int,
    stopped: Event,
) -> Collector:
    with open_unpacked(path) as stream:
        first_line = part.begin
        if first_line:
            # The newline before it tells whether a line begins at the very start of the part.
            stream.seek(part.begin - 1)
            first_line += len(stream.readline()) - 1
        window = Window(stream, window_bytes, first_line, part.end)
        for rows in rows_of(window, part):
            if stopped.is_set():
                break
            collector.add(rows)
    return collector
