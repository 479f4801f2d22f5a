"""Links that take the place of something else, so that its name can be read all the time."""

import contextlib
import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ragforge.files.atomic import writer_id

MAKING: Final = ".making"
"""What ends the names of things that are not ready yet."""
_HERE: Final = -100
_EXCHANGE: Final = 2


def put_link(link: Path, target: str) -> None:
    """Make a link, in one step; what has its name until then is dropped.

    Args:
        link: May be there: as a link, a file, or a folder. In the place of a folder it comes in
            one step where the system can exchange two names, else the name is free for a moment.
        target: What it points to, seen from the folder it is in.

    Raises:
        OSError: It cannot be made; what was there still is.
    """
    temporary = link.with_name(f".{writer_id()}-{secrets.token_hex(4)}-{link.name}{MAKING}")
    try:
        temporary.symlink_to(target)
        if link.is_dir() and not link.is_symlink():
            exchange(temporary, link)
        else:
            temporary.replace(link)
    finally:
        drop(temporary)


def exchange(path: Path, other: Path) -> None:
    """Give each of two paths the name of the other.

    Raises:
        OSError: They cannot be renamed.
    """
    swap = _system_call()
    if swap is not None and swap(os.fsencode(path), os.fsencode(other)) == 0:
        return
    aside = path.with_name(f".{writer_id()}-{secrets.token_hex(4)}-aside{MAKING}")
    other.rename(aside)
    path.rename(other)
    aside.rename(path)


def drop(path: Path) -> None:
    """Remove a file, a link or a folder, as far as that can be done."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk.

    Raises:
        OSError: They cannot be written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _system_call() -> Callable[[bytes, bytes], int] | None:
    """Return what exchanges two names; None where the system has no such call."""
    if sys.platform not in ("linux", "darwin"):
        return None
    library = ctypes.CDLL(None)
    if sys.platform == "darwin":
        rename = getattr(library, "renamex_np", None)
        return rename and (lambda one, other: int(rename(one, other, _EXCHANGE)))
    rename = getattr(library, "renameat2", None)
    return rename and (lambda one, other: int(rename(_HERE, one, _HERE, other, _EXCHANGE)))
