"""Making whole folders: a reader finds all the files in one, or no folder."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.atomic import lives, maker, umask

NAME: Final = ".ragforge"
MIRRORS: Final = "sources"
"""The folder in it of copies of documents from elsewhere, a folder for each origin."""
_IGNORED: Final = (
    "# Made by ragforge: what is bought and what can be made again is not for git.\n*\n"
)

_SUFFIX = ".making"


def make_own_place(folder: Path) -> None:
    """Make a folder and those above it; one called `.ragforge` is ignored by git from then on.

    One that is there stays as it is, so that whoever wants it in git takes its `.gitignore` away.

    Raises:
        OSError: It cannot be made.
    """
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == NAME:
        (folder / ".gitignore").write_text(_IGNORED, encoding="utf-8")


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder under a temporary name; at the end its files are synced and it is renamed.

    Where another process was faster, its folder stays and this one is dropped. What processes of
    this machine left when they were killed is removed.

    Args:
        path: The name at the end; missing folders above it are made.

    Raises:
        DataError: It cannot be written.
    """
    temporary = Path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        temporary = Path(tempfile.mkdtemp(_SUFFIX, f".{maker()}-", path.parent))
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _sync(file)
        temporary.chmod(0o777 & ~umask())
        _rename(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary.name:
            shutil.rmtree(temporary, ignore_errors=True)


def remove_whole(path: Path) -> None:
    """Remove a folder, or leave it as it was: a kill half-way leaves no part under its name."""
    removed = path.with_name(f".{maker()}-{path.name}{_SUFFIX}")
    with contextlib.suppress(OSError):
        path.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)


def _rename(temporary: Path, path: Path) -> None:
    try:
        temporary.rename(path)
    except OSError:
        if not path.is_dir():
            raise


def _sync(file: Path) -> None:
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())


def _sweep(place: Path) -> None:
    host = maker().rpartition("-")[0]
    for stray in place.glob(f".{host}-*{_SUFFIX}"):
        pid = stray.name.removeprefix(f".{host}-").partition("-")[0]
        if pid.isdigit() and not lives(int(pid)):
            shutil.rmtree(stray, ignore_errors=True)
