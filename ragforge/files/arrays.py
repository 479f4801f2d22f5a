"""Arrays of numbers on disk, written piece by piece and read without being loaded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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
    return np.memmap(path, dtype, mode="r").view(np.ndarray)


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
    """Return `count` numbers from number `start` on, in memory."""
    return np.fromfile(path, dtype, count, offset=start * np.dtype(dtype).itemsize)


def _little_endian(array: Array) -> Array:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
