"""Finishing or undoing what a process that was killed left of a version."""

import contextlib
import shutil
from pathlib import Path

from ragforge.files.folders import remove_whole
from ragforge.files.swapping import MAKING, drop
from ragforge.files.version_links import drop_dead_links, link_own_files
from ragforge.files.version_places import (
    CURRENT,
    PUBLISHING,
    REJECTED,
    VERSIONS,
    published,
    unpublished,
    version_name,
    versions_of,
)


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
