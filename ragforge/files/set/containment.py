"""Whether what a dataset keeps lies in its directory: a link that came with it may lead anywhere.

Whoever opens a dataset, to read or to write, comes through here first. The directory itself may
be behind a link; that is how somebody on this machine named it.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.atomic import MIRRORS, OWN_FOLDER
from ragforge.files.set.version_paths import (
    CURRENT,
    FOLDERS,
    MANIFEST,
    REJECTED,
    VERSIONS,
    files_of,
    home_of,
    published,
    require_current,
)
from ragforge.files.text import escaped

_FOLDERS: Final = frozenset({*FOLDERS, "history", OWN_FOLDER, VERSIONS, REJECTED})
_SUFFIXES: Final = (".json", ".jsonl", ".md")
"""Of the files that a dataset has at its top; what is called otherwise is somebody's own there."""


def require_inside(path: Path) -> None:
    """Check that all that a dataset keeps lies in its directory, as files and folders.

    Links that stay inside are fine: ragforge makes some. What is none of a dataset's own, such as
    a link to its documents beside it, is not looked at.

    Args:
        path: The directory, or one of its versions; may be missing.

    Raises:
        DataError: A link leads out of it, `current` leads to no version of it, or a pipe or a
            device has the place of a file.
    """
    home = home_of(path)
    require_current(home)
    folders = dict.fromkeys((home, files_of(path)))
    tops = [top for folder in folders for top in _tops(folder, home)]
    _check(Path(os.path.realpath(home)), tops)


def require_own_place(folder: Path) -> None:
    """Check a `.ragforge` that is no dataset's, such as the one beside a file of results.

    Raises:
        DataError: As for `require_inside`.
    """
    if folder.is_symlink():
        _check(Path(os.path.realpath(folder.parent)), [folder])
    _check(Path(os.path.realpath(folder)), [Path(entry.path) for entry in _entries(folder)])


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, all links followed, lies in a folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _tops(folder: Path, home: Path) -> Iterator[Path]:
    """Yield what a dataset may have at the top of a folder."""
    others: list[Path] = []
    for entry in _entries(folder):
        if entry.name in _FOLDERS or entry.name.endswith(_SUFFIXES):
            yield Path(entry.path)
        elif entry.name == CURRENT:
            if published(home):
                yield Path(entry.path)
        elif entry.is_symlink() or entry.is_dir():
            others.append(Path(entry.path))
    listed = _listed(folder / MANIFEST) if others else frozenset()
    yield from (path for path in others if path.name in listed)


def _listed(manifest: Path) -> frozenset[str]:
    """Return the first parts of the names that a manifest lists; whoever reads it tells faults."""
    try:
        files = json.loads(manifest.read_bytes())["files"] if manifest.is_file() else ()
        return frozenset(str(name).partition("/")[0] for name in files)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return frozenset()


def _check(root: Path, tops: Iterable[Path]) -> None:
    paths, seen = list(tops), set[Path]()
    mirrors = (root / MIRRORS, root / OWN_FOLDER / MIRRORS)
    while paths:
        path = paths.pop()
        try:
            is_folder = _is_folder(path, root)
        except FileNotFoundError:
            continue  # Somebody removed it meanwhile, or a link leads to what is not there yet.
        except OSError as error:
            raise DataError(f"{_escape(path)}: cannot be read: {error.strerror}") from error
        if not is_folder:
            continue
        real = Path(os.path.realpath(path))
        # A mirror, which may have a hundred thousand files, looks after itself.
        if real not in seen and real.parent not in mirrors:
            seen.add(real)
            paths += [Path(entry.path) for entry in _entries(path)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder; [] where there is none, or somebody removed it meanwhile.

    Raises:
        DataError: It may not be looked into, so that nobody can say where its files lead.
    """
    try:
        return list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DataError(f"{_escape(folder)}: cannot be read: {error.strerror}") from error


def _is_folder(path: Path, root: Path) -> bool:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(root):
            raise DataError(
                f"{_escape(path)}: leads to {_escape(Path(real))}, which is outside of "
                f"{_escape(root)}; through links of a dataset nothing outside of it is read or "
                "written: remove the link, or put a file of your own in its place"
            )
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError(
            f"{_escape(path)}: expected a file or a folder, got a pipe, a socket or a device; "
            "remove it"
        )
    return stat.S_ISDIR(mode)


def _escape(path: Path) -> str:
    return escaped(str(path))
