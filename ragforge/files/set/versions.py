"""Versions of a dataset: publishing one in one step, going back to one, removing old ones.

Everything is made ready beside what is published, then one link moves. One refresh of a dataset
has its lock at a time.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ragforge.deferred import shutil, tempfile
from ragforge.errors import ChangedMeanwhileError, DataError, LockedError, UsageError
from ragforge.files.atomic import (
    MAKING,
    OWN_FOLDER,
    alone_in,
    drop,
    make_own_place,
    put_link,
    remove_whole,
    sync,
    umask,
    whole_folder,
    writer_id,
)
from ragforge.files.manifest import Manifest, digest_file
from ragforge.files.record_files import read_object
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import bring, list_files, version_files
from ragforge.files.set.paths import (
    CURRENT,
    FIRST,
    FOLDERS,
    MANIFEST,
    PUBLISHING,
    REJECTED,
    VERSIONS,
    current_version,
    drop_dead_links,
    files_of,
    home_of,
    is_flat,
    is_same,
    link_own_files,
    published,
    require_inside,
    require_links,
    switch,
    unpublished,
    version_name,
    versions_of,
)

_LOCK_FILE: Final = "refresh.lock"
_LONGEST_NAME: Final = 200
_LEFT_BEHIND: Final = frozenset({"diff.json"})


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
    path = home / OWN_FOLDER / _LOCK_FILE
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
            _recover(home)
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
    host, _, pid = os.pread(descriptor, _LONGEST_NAME, 0).decode("ascii", "replace").rpartition("-")
    return f" (process {pid} on {host})" if host.isidentifier() and pid.isdigit() else ""


def _recover(home: Path) -> None:
    """Bring a dataset into the state before or after what was broken off; nobody else may write.

    A version whose publishing was begun and that was not yet published is dropped: the same inputs
    make it again.

    Raises:
        OSError: That cannot be done.
    """
    _remove_strays(home)
    _drop_unpublished(home)
    _drop_superseded(home)
    if published(home) is not None and (home / CURRENT).is_dir():
        link_own_files(home)
        drop_dead_links(home)


def _remove_strays(home: Path) -> None:
    """Remove what never got its name."""
    for place in (home, home / VERSIONS, home / REJECTED):
        if place.is_dir():
            for stray in [each for each in place.iterdir() if _is_stray(each.name)]:
                drop(stray)


def _drop_unpublished(home: Path) -> None:
    """Remove a version that was not published, and the mark of the one that was to be."""
    number = unpublished(home)
    if number is not None:
        shutil.rmtree(home / VERSIONS / version_name(number), ignore_errors=True)
        if (home / VERSIONS / version_name(number)).exists():
            return  # The mark stays as long as that is not a version.
    (home / VERSIONS / PUBLISHING).unlink(missing_ok=True)


def _drop_superseded(home: Path) -> None:
    """Remove versions that a gate stopped, where a good one of their number was published."""
    rejected = home / REJECTED
    for number in versions_of(home) if rejected.is_dir() else []:
        remove_whole(rejected / version_name(number))
    with contextlib.suppress(OSError):
        rejected.rmdir()


def _is_stray(name: str) -> bool:
    return name.startswith(".") and name.endswith(MAKING)


@contextlib.contextmanager
def stage_version(parent: Dataset, number: int) -> Iterator[Dataset]:
    """Give a dataset that begins as a version does: with its files, but without its diff and runs.

    Whatever is written there leaves the parent as it is. The caller has the `refresh_lock`, under
    which nobody else stages. At the end the folder is removed, unless it was published.

    Args:
        parent: The published version.
        number: Of the version to be.

    Raises:
        DataError: The files cannot be read or written, or somebody changed those beside a version.
        UsageError: The parent is another version than the published one.
    """
    home = home_of(parent.home)
    require_links(home)
    if not parent.files.samefile(files_of(home)):
        raise UsageError(f"{parent.path}: is not the published version; name {home} instead")
    try:
        folder = _folder(home)
    except OSError as error:
        raise _unwritable(home, error) from error
    try:
        staged = Dataset(folder, store_of=home)
        try:
            _fill(staged, parent.files, number)
        except OSError as error:
            raise _unwritable(home, error) from error
        yield staged
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.parent.rmdir()


def _folder(home: Path) -> Path:
    # Beside the versions, and so on their disk: `.ragforge` may be on another one.
    versions = home / VERSIONS
    versions.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(MAKING, f".{writer_id()}-", versions))
    folder.chmod(0o777 & ~umask())
    return folder


def _fill(staged: Dataset, parent: Path, number: int) -> None:
    # The manifest comes first: a command that changes files meanwhile writes it last, and then it
    # is not the one that was the parent's at the beginning.
    bring(parent / MANIFEST, staged.files / MANIFEST)
    digest = digest_file(staged.files / MANIFEST)
    for name in version_files(parent):
        if name not in _LEFT_BEHIND and Path(name).parts[0] not in FOLDERS:
            bring(parent / name, staged.files / name)
    list_files(staged, version=number, parent=digest)


def _unwritable(home: Path, error: OSError) -> DataError:
    return DataError(f"{home}: no version can be made: {error.strerror or error}")


def publish(staged: Dataset, home: Path) -> Dataset:
    """Make a staged version the published one.

    The first time, the directory's own files become a version too. At every moment, a reader finds
    the version before or this one, whole. The caller has the `refresh_lock`. A process that is
    killed here leaves one of both; the next lock clears up.

    Args:
        staged: From `stage_version`; it is not there any more afterwards.
        home: The directory of the dataset.

    Returns:
        The dataset, as whoever opens it from now on finds it.

    Raises:
        ChangedMeanwhileError: Another command changed the parent since staging.
        DataError: Something cannot be written. In both cases nothing is published, and what is
            stays readable.
    """
    home = home_of(home)
    number = staged.manifest.version
    with _publishing_errors(home):
        _require_unchanged(staged, home)
        _settle(staged)
        # Who writes into the parent is waited for, and finds this version afterwards.
        with alone_in(files_of(home)):
            _require_unchanged(staged, home)
            if is_flat(home):
                _make_first(home)
            # The files have another folder then, which one may be alone in as well.
            with alone_in(files_of(home)):
                link_own_files(home)
                require_links(home)
                _require_unchanged(staged, home)
                _enter(staged.files, home, number)
    _drop_superseded(home)
    return Dataset(home)


def reject(staged: Dataset, home: Path) -> Path:
    """Keep a staged version beside those that are published; an older one of its number is dropped.

    Returns:
        Where it is.

    Raises:
        DataError: It cannot be written.
    """
    home = home_of(home)
    folder = home / REJECTED / version_name(staged.manifest.version)
    with _publishing_errors(home):
        _settle(staged)
        folder.parent.mkdir(exist_ok=True)
        remove_whole(folder)
        staged.files.rename(folder)
        sync(folder.parent)
        sync(home)
    return folder


def _require_unchanged(staged: Dataset, home: Path) -> None:
    if digest_file(files_of(home) / MANIFEST) != staged.manifest.parent:
        raise _changed(home)


def _changed(home: Path) -> ChangedMeanwhileError:
    return ChangedMeanwhileError(
        f"{home}: the set was changed while it was refreshed; run it again"
    )


def _settle(staged: Dataset) -> None:
    """Let the manifest list what is there, and wait until all of it is on the disk."""
    list_files(staged)
    for path in staged.files.rglob("*"):
        sync(path)
    sync(staged.files)


def _enter(staged: Path, home: Path, number: int) -> None:
    folder = home / VERSIONS / version_name(number)
    _drop_unpublished(home)
    if folder.exists():
        raise DataError(f"{folder}: there is a version {number} already")
    try:
        put_link(folder.parent / PUBLISHING, folder.name)
        sync(folder.parent)
        staged.rename(folder)
        sync(folder.parent)
        switch(home, number)
    except BaseException as error:
        if current_version(home) == number and isinstance(error, OSError):
            return  # It is published, and stays so: what is left to do, the next lock does.
        with contextlib.suppress(OSError):
            _drop_unpublished(home)
            drop_dead_links(home)
        raise
    drop(folder.parent / PUBLISHING)


def _make_first(home: Path) -> None:
    """Make a version of the directory's own files, and publish it: what is read stays the same."""
    names = [*version_files(home), MANIFEST]
    folder = home / VERSIONS / version_name(read_object(home / MANIFEST, Manifest).version)
    if not _is_same_set(home, folder, names):
        remove_whole(folder)
        with whole_folder(folder) as making:
            for name in names:
                bring(home / name, making / name)
            for inner in [path for path in making.rglob("*") if path.is_dir()]:
                sync(inner)
    if not _is_same_set(home, folder, names):
        drop(folder)
        raise _changed(home)
    try:
        put_link(folder.parent / FIRST, folder.name)
        sync(folder.parent)
        put_link(home / CURRENT, f"{VERSIONS}/{folder.name}")
    except OSError:
        drop(folder.parent / FIRST)
        drop(folder)
        raise
    sync(home)


def _is_same_set(home: Path, folder: Path, names: list[str]) -> bool:
    return all((home / name).is_file() and is_same(home / name, folder / name) for name in names)


@contextlib.contextmanager
def _publishing_errors(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{home}: cannot be published: {error.strerror or error}") from error


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
