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
        OSError: The file cannot be read.
    """
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode="r").view(np.ndarray)


def read_part(path: Path, dtype: str, start: int, count: int) -> Array:
    """Return `count` numbers from number `start` on, in memory."""
    return np.fromfile(path, dtype, count, offset=start * np.dtype(dtype).itemsize)


def _little_endian(array: Array) -> Array:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
