"""One refresh of a dataset at a time."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ragforge.errors import DataError, LockedError, UsageError
from ragforge.files.atomic import maker
from ragforge.files.inside import require_inside
from ragforge.files.own_place import NAME, make_own_place
from ragforge.files.version_places import home_of
from ragforge.files.versions.recovery import recover

FILE: Final = "refresh.lock"
_LONGEST: Final = 200


@contextlib.contextmanager
def refresh_lock(dataset_path: Path) -> Iterator[None]:
    """Keep other refreshes of a dataset out; what a killed one left is put in order first.

    The lock ends with the process that has it, however that ends.

    Raises:
        LockedError: Another refresh is running.
        UsageError: This system has no such locks.
        DataError: The directory is missing, cannot be written, or has files that lead out of it.
    """
    home = home_of(dataset_path)
    if not home.is_dir():
        raise DataError(f"{home}: no such directory")
    require_inside(home)
    path = home / NAME / FILE
    try:
        make_own_place(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; a refresh needs to write into "
            "the directory of the set, also for a dry run and where nothing changed"
        ) from error
    try:
        _lock(path, descriptor)
        try:
            _leave_name(descriptor)
            recover(home)
        except OSError as error:
            raise DataError(f"{home}: cannot be written: {error.strerror or error}") from error
        yield
    finally:
        os.close(descriptor)


def _lock(path: Path, descriptor: int) -> None:
    try:
        import fcntl
    except ImportError as error:
        raise UsageError(
            "versions of a dataset need locks and links of files, which this system does not have"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LockedError(
            f"{path.parent.parent}: another refresh of this set is running{_name_in(descriptor)}; "
            "wait for its end"
        ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be locked: {error.strerror or error}") from error


def _leave_name(descriptor: int) -> None:
    """Write who has the lock, for those who are turned away; not into a file with other names."""
    if os.fstat(descriptor).st_nlink > 1:
        return
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, maker().encode(), 0)


def _name_in(descriptor: int) -> str:
    host, _, pid = os.pread(descriptor, _LONGEST, 0).decode("ascii", "replace").rpartition("-")
    return f" (process {pid} on {host})" if host.isidentifier() and pid.isdigit() else ""
