"""A file in parts that threads read at the same time; numpy lets go of the interpreter's lock."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

import numpy as np

from ragforge.files.scan.collecting import Collector, Qrels
from ragforge.files.scan.rows import Irregular, Rows
from ragforge.files.scan.window import Window
from ragforge.files.source_files import open_unpacked, unpacked_name

_KEPT_BYTES: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a file is cut up; tests cut finer than is fast."""

    window_bytes: int
    """Looked at together."""
    part_bytes: int
    """Read by one thread at a time."""


def fastest_sizes(n_threads: int) -> Sizes:
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
    sizes = sizes or fastest_sizes(n_threads)
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
