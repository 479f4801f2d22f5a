"""Making a version out of the one before: in a folder of its own, under no name."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import maker, umask
from ragforge.files.dataset import Dataset
from ragforge.files.manifest import digest_file
from ragforge.files.swapping import MAKING
from ragforge.files.version_links import FOLDERS, require_links
from ragforge.files.version_places import MANIFEST, VERSIONS, files_of, home_of
from ragforge.files.versions.listing import bring, list_files, version_files

_LEFT_BEHIND: Final = frozenset({"diff.json"})


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
    folder = Path(tempfile.mkdtemp(MAKING, f".{maker()}-", versions))
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
