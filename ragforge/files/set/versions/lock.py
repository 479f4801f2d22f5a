"""One refresh of a dataset at a time."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ragforge.errors import DataError, LockedError, UsageError
from ragforge.files.atomic import MAKING, OWN_FOLDER, drop, make_own_place, remove_whole, writer_id
from ragforge.files.set.containment import require_inside
from ragforge.files.set.version_paths import (
    CURRENT,
    PUBLISHING,
    REJECTED,
    VERSIONS,
    drop_dead_links,
    home_of,
    link_own_files,
    published,
    unpublished,
    version_name,
    versions_of,
)

FILE: Final = "refresh.lock"
_LONGEST: Final = 200


def recover(home: Path) -> None:
    """Bring a dataset into the state before or after what was broken off; nobody else may write.

    A version whose publishing was begun and that was not yet published is dropped: the same inputs
    make it again.

    Raises:
        OSError: That cannot be done.
    """
    sweep(home)
    drop_unpublished(home)
    drop_superseded(home)
    if published(home) is not None and (home / CURRENT).is_dir():
        link_own_files(home)
        drop_dead_links(home)


def sweep(home: Path) -> None:
    """Remove what never got its name."""
    for place in (home, home / VERSIONS, home / REJECTED):
        if place.is_dir():
            for stray in [each for each in place.iterdir() if _is_stray(each.name)]:
                drop(stray)


def drop_unpublished(home: Path) -> None:
    """Remove a version that was not published, and the mark of the one that was to be."""
    number = unpublished(home)
    if number is not None:
        shutil.rmtree(home / VERSIONS / version_name(number), ignore_errors=True)
        if (home / VERSIONS / version_name(number)).exists():
            return  # The mark stays as long as that is not a version.
    (home / VERSIONS / PUBLISHING).unlink(missing_ok=True)


def drop_superseded(home: Path) -> None:
    """Remove versions that a gate stopped, where a good one of their number was published."""
    rejected = home / REJECTED
    for number in versions_of(home) if rejected.is_dir() else []:
        remove_whole(rejected / version_name(number))
    with contextlib.suppress(OSError):
        rejected.rmdir()


def _is_stray(name: str) -> bool:
    return name.startswith(".") and name.endswith(MAKING)


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
    path = home / OWN_FOLDER / FILE
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
    os.pwrite(descriptor, writer_id().encode(), 0)


def _name_in(descriptor: int) -> str:
    host, _, pid = os.pread(descriptor, _LONGEST, 0).decode("ascii", "replace").rpartition("-")
    return f" (process {pid} on {host})" if host.isidentifier() and pid.isdigit() else ""
