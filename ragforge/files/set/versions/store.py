"""The versions of a dataset: which there are, going back to one, and which are kept."""

from pathlib import Path

from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import remove_whole
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.version_places import (
    MANIFEST,
    VERSIONS,
    current_version,
    home_of,
    is_flat,
    require_links,
    switch,
    version_name,
    versions_of,
)
from ragforge.files.set.versions.lock import refresh_lock
from ragforge.files.set.versions.publishing import publish, reject, stage_version

__all__ = [
    "current_version",
    "next_version",
    "open_version",
    "prune",
    "publish",
    "refresh_lock",
    "reject",
    "roll_back",
    "stage_version",
    "versions_of",
]


def next_version(path: Path) -> int:
    """Return the number of the version to be made; none that was published comes twice."""
    home = home_of(path)
    return max([*versions_of(home), Dataset(home).manifest.version]) + 1


def open_version(path: Path, number: int) -> Dataset:
    """Return a version of a dataset.

    Raises:
        DataError: There is no such version.
    """
    home = home_of(path)
    if is_flat(home) and Dataset(home).manifest.version == number:
        return Dataset(home)
    there = versions_of(home)
    if number not in there:
        known = ", ".join(map(str, there)) or "none, as it was never refreshed"
        raise DataError(f"{home}: has no version {number}; there are: {known}")
    return Dataset(home / VERSIONS / version_name(number))


def roll_back(path: Path, number: int) -> Dataset:
    """Publish an earlier version again, or a later one; takes the `refresh_lock` itself.

    Raises:
        DataError: There is no such version, or the link cannot be switched.
        UsageError: A refresh is running.
    """
    home = home_of(path)
    with refresh_lock(home):
        open_version(home, number)
        require_links(home)
        try:
            if not is_flat(home):
                switch(home, number)
        except OSError as error:
            raise DataError(f"{home}: cannot be written: {error.strerror or error}") from error
    return Dataset(home)


def prune(path: Path, keep: int) -> list[int]:
    """Remove the oldest versions beyond a number; the caller has the `refresh_lock`.

    The published version stays, and so does the newest, whose number must not come twice; the
    parent of the published one goes only where nothing else can.

    Returns:
        Which were removed, in ascending order.

    Raises:
        UsageError: Less than one is to be kept.
    """
    if keep < 1:
        raise UsageError(f"keep {keep}: expected at least 1")
    home = home_of(path)
    there = versions_of(home)
    parent, stay = _parent(home, there), {current_version(home), *there[-1:]}
    may_go = sorted(
        (number for number in there if number not in stay), key=lambda n: (n == parent, n)
    )
    gone = []
    for number in may_go[: max(len(there) - keep, 0)]:
        folder = home / VERSIONS / version_name(number)
        remove_whole(folder)
        if not folder.exists():
            gone.append(number)
    return sorted(gone)


def _parent(home: Path, there: list[int]) -> int | None:
    """Return the version that the published one was made of, or else the one before it."""
    current = current_version(home)
    if current is None:
        return None
    digest = open_version(home, current).manifest.parent
    before = [number for number in there if number < current]
    for number in reversed(before):
        if digest_file(home / VERSIONS / version_name(number) / MANIFEST) == digest:
            return number
    return max(before, default=None)
