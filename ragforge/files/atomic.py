"""Writing whole files: a reader sees the old file or the new one, never a part."""

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ragforge.errors import DataError


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write the parts to a temporary name beside `path`, sync it to disk, and rename it.

    Links are written through; into pipes and devices the parts go directly.

    Args:
        path: The file; missing folders above it are made.
        parts: Pieces of text, written as UTF-8 and without changing line ends.

    Raises:
        DataError: The file cannot be written (no space, no permission); the old one is untouched.
    """
    temporary = ""
    try:
        if path.exists() and not path.is_file():
            _write_directly(path, parts)
            return
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        _remove(temporary)
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
    except BaseException:
        _remove(temporary)
        raise


def _write_directly(path: Path, parts: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(parts)


def _remove(temporary: str) -> None:
    if temporary:
        with contextlib.suppress(OSError):
            Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
