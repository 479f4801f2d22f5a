"""Arrays and strings on disk, written piece by piece and read without being loaded."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ragforge.deferred import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

_ENDS = ".ends"
_ENDS_HELD = 8192


def write_array(path: Path, parts: Iterable[Array]) -> None:
    """Write the parts one behind the other, as bare numbers of their types, little-endian.

    Raises:
        OSError: There is no space for it.
    """
    with path.open("wb") as stream:
        for part in parts:
            stream.write(_little_endian(part).data)


def map_array(path: Path, dtype: str) -> Array:
    """Return what was written as an array that is read when it is looked at.

    Args:
        path: The file.
        dtype: Type of its numbers, such as "<u4".

    Raises:
        OSError: The file cannot be read, or does not hold such numbers.
    """
    size = path.stat().st_size
    if size % np.dtype(dtype).itemsize:
        raise OSError(f"{path.name} is damaged")
    if size == 0:
        return np.zeros(0, dtype)
    # Not numpy.memmap, which looks up each folder of the path: ten times as long.
    with path.open("rb") as stream:
        return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), dtype)


def require_sound(name: str, is_sound: bool) -> None:
    """Check what an array says of others: it may have come from elsewhere.

    Raises:
        OSError: It is not sound.
    """
    if not is_sound:
        raise OSError(f"{name} is damaged")


def is_ascending(array: Array, first: int, last: int) -> bool:
    """Return whether numbers ascend from a first one to a last one, or stay."""
    ends = len(array) > 0 and (int(array[0]), int(array[-1])) == (first, last)
    return ends and bool(np.all(array[:-1] <= array[1:]))


def read_part(path: Path, dtype: str, start: int, count: int) -> Array:
    """Return `count` numbers from number `start` on, in memory; all of them for -1."""
    return np.fromfile(path, dtype, count, offset=start * np.dtype(dtype).itemsize)


def read_parts(path: Path, dtype: str, count: int) -> Iterator[Array]:
    """Yield the numbers of a file in memory, `count` at once; the last may be fewer."""
    n_numbers = path.stat().st_size // np.dtype(dtype).itemsize
    for start in range(0, n_numbers, count):
        yield read_part(path, dtype, start, min(count, n_numbers - start))


def _little_endian(array: Array) -> Array:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


class ArrayWriter(AbstractContextManager["ArrayWriter"]):
    """Writes numbers of one type, array by array; a context manager.

    Args:
        path: The file, made anew.
        dtype: Of the numbers, such as "<u4".

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, path: Path, dtype: str) -> None:
        self._dtype = dtype
        self._stream = path.open("wb")

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, numbers: Array) -> None:
        """Write the next numbers.

        Raises:
            OSError: There is no space for them.
        """
        self._stream.write(np.ascontiguousarray(numbers, self._dtype).data)

    def close(self) -> None:
        """Write what is left; a second call does nothing.

        Raises:
            OSError: There is no space for it.
        """
        self._stream.close()


class StringWriter(AbstractContextManager["StringWriter"]):
    """Writes strings, and beside them where each ends; a context manager.

    Args:
        path: A file of this name, and one that ends in `.ends`, are made.

    Raises:
        OSError: They cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._held = array("Q")
        self._behind = 0
        self._stream = path.open("wb")
        self._ends = ArrayWriter(path.with_suffix(_ENDS), "<u8")

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, string: str) -> None:
        """Write the next string.

        Raises:
            OSError: There is no space for it.
        """
        self._behind += self._stream.write(string.encode())
        self._held.append(self._behind)
        if len(self._held) == _ENDS_HELD:
            self._put()

    def close(self) -> None:
        """Write what is left; a second call does nothing.

        Raises:
            OSError: There is no space for it.
        """
        if self._stream.closed:
            return
        self._stream.close()
        self._put()
        self._ends.close()

    def _put(self) -> None:
        self._ends.add(np.array(self._held, np.uint64))
        self._held = array("Q")


class Strings(AbstractContextManager["Strings"]):
    """Strings that `StringWriter` wrote, by number; a context manager.

    Raises:
        OSError: The files cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._ends = map_array(path.with_suffix(_ENDS), "<u8")
        with path.open("rb") as stream:
            size = path.stat().st_size
            ends = [0, *self._ends[:1].tolist()]
            is_sound = size == 0 if ends == [0] else is_ascending(self._ends, ends[1], size)
            require_sound(path.with_suffix(_ENDS).name, is_sound)
            self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""

    def __exit__(self, *_: object) -> None:
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        return self._raw(number).decode("utf-8", "replace")

    def part(self, start: int, behind: int) -> list[str]:
        """Return the strings [start, behind)."""
        first = int(self._ends[start - 1]) if start else 0
        ends = self._ends[start:behind].tolist()
        raw = self._bytes[first : ends[-1]] if ends else b""
        return [
            raw[one - first : other - first].decode("utf-8", "replace")
            for one, other in zip([first, *ends], ends, strict=False)
        ]

    def find(self, string: str) -> int | None:
        """Return the number of a string in a list that is sorted; None where it is not there."""
        wanted = string.encode()
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._raw(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._raw(low) == wanted else None

    def _raw(self, number: int) -> bytes:
        start = int(self._ends[number - 1]) if number else 0
        return self._bytes[start : int(self._ends[number])]
