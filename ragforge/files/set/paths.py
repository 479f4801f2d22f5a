"""Where the files of a dataset lie: those of each version in a folder, and none outside of it.

A link leads to the version that is published; a directory that was never refreshed has its files
in itself. A link that came with a dataset may lead anywhere, so whoever opens one, to read or to
write, checks that first. The directory itself may be behind a link; that is how somebody on this
machine named it.
"""

import contextlib
import filecmp
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ragforge.deferred import pattern
from ragforge.errors import DataError
from ragforge.files.atomic import MIRRORS, OWN_FOLDER, drop, put_link, sync
from ragforge.files.text import escaped

CURRENT: Final = "current"
"""The link to the published version; it is switched in one step."""
VERSIONS: Final = "versions"
"""The folder of the versions."""
REJECTED: Final = "rejected"
"""The folder of versions that a gate stopped."""
FIRST: Final = ".first"
"""Beside the versions: a link to the one that the directory's own files became."""
PUBLISHING: Final = ".publishing"
"""Beside the versions: a link to the one that is being published."""
MANIFEST: Final = "manifest.json"
_DIGITS: Final = 6
_NAME: Final = pattern(rf"\d{{{_DIGITS},}}")

FOLDERS: Final = ("answer_grades", "answers", "runs")
"""Have a link even where a version has none of them yet."""
_FOR_PEOPLE: Final = frozenset({"CHANGELOG.md", "README.md"})
"""May be somebody's own in the directory of a dataset."""
_TOP_FOLDERS: Final = frozenset(
    {*FOLDERS, "calibration", "history", OWN_FOLDER, VERSIONS, REJECTED}
)
_SUFFIXES: Final = (".json", ".jsonl", ".md")
"""Of the files that a dataset has at its top; what is called otherwise is somebody's own there."""


def version_name(number: int) -> str:
    """Return the name of a version's folder."""
    return f"{number:0{_DIGITS}}"


def number_of(name: str) -> int | None:
    """Return the version that a folder's name stands for; None where it is no such name."""
    return int(name) if _NAME.fullmatch(name) else None


def published(home: Path) -> Path | None:
    """Return where the link to the published version points, seen from its directory.

    None where there is no such link; one of that name that leads elsewhere, be it to a version of
    another set, is somebody's own.
    """
    link = home / CURRENT
    target = link.readlink() if link.is_symlink() else None
    if target is None or target.parent.name != VERSIONS or number_of(target.name) is None:
        return None
    if target.parent == Path(VERSIONS):
        return target
    return target if (home / target.parent).resolve() == (home / VERSIONS).resolve() else None


def files_of(path: Path) -> Path:
    """Return the folder with the files of a dataset: that of its published version, else its own.

    The link is followed once, so that whoever reads from there sees one version throughout.
    """
    if path.name == CURRENT and (target := published(path.parent)):
        return path.parent / target
    target = published(path)
    return path / target if target else path


def home_of(path: Path) -> Path:
    """Return the directory of the dataset that a folder is a version of, else the folder itself."""
    place = Path(os.path.realpath(path))  # `resolve` raises where links go in a circle.
    if place.parent.name not in (VERSIONS, REJECTED) or number_of(place.name) is None:
        return path
    home = place.parent.parent
    if published(home) is None and not (home / MANIFEST).is_file():
        return path
    return path.parent.parent if path.parent.name == place.parent.name else home


def is_published(path: Path, files: Path) -> bool:
    """Whether a dataset is what its directory is read as.

    Args:
        path: Its directory, or one of its versions, maybe one that a gate stopped.
        files: The folder that its files are read from.
    """
    home = home_of(path)
    return home == path or os.path.realpath(files) == os.path.realpath(files_of(home))


def published_since(path: Path, files: Path) -> int | None:
    """Return the version that was published since the directory of a dataset was opened.

    None where that is the one it was opened as, and of a version that was named.

    Args:
        path: Its directory, or one of its versions.
        files: The folder that its files are read from.
    """
    is_named = home_of(path) != path
    is_current = os.path.realpath(files) == os.path.realpath(files_of(path))
    return None if is_named or is_current else current_version(path)


def first_of(path: Path) -> Path:
    """Return the version that a directory's own files became, where that is so; else itself."""
    return path / VERSIONS / FIRST if published(path) else path


def versions_of(path: Path) -> list[int]:
    """Return the versions of a dataset that were published and are kept, in ascending order.

    None in a directory that was never refreshed.
    """
    home = home_of(path)
    versions = home / VERSIONS
    if is_flat(home) or not versions.is_dir():
        return []
    numbers = (number_of(each.parent.name) for each in versions.glob(f"*/{MANIFEST}"))
    half_done = unpublished(home)
    return sorted(each for each in numbers if each is not None and each != half_done)


def current_version(path: Path) -> int | None:
    """Return the number of the published version; None where there is none."""
    target = published(home_of(path))
    return number_of(target.name) if target else None


def unpublished(home: Path) -> int | None:
    """Return the version whose publishing was begun and did not get as far as the switch."""
    mark = home / VERSIONS / PUBLISHING
    number = number_of(mark.readlink().name) if mark.is_symlink() else None
    return None if number == current_version(home) else number


def _is_linked(home: Path) -> bool:
    """Whether what a directory has by name are links to its published version."""
    manifest = home / MANIFEST
    return manifest.is_symlink() and manifest.readlink().parts[0] == CURRENT


def is_flat(home: Path) -> bool:
    """Whether a directory has the files of a dataset in itself."""
    manifest = home / MANIFEST
    return manifest.is_file() and not manifest.is_symlink() and published(home) is None


def switch(home: Path, number: int) -> None:
    """Make a version the published one.

    Raises:
        OSError: The link cannot be made; the version before is still published.
    """
    folder = home / VERSIONS / version_name(number)
    _add_links(home, folder)
    put_link(home / CURRENT, f"{VERSIONS}/{folder.name}")
    sync(home)
    drop_dead_links(home)


def _add_links(home: Path, folder: Path) -> None:
    """Make the links that a version needs and that are not there."""
    for name in _names(folder):
        if not os.path.lexists(home / name):
            put_link(home / name, f"{CURRENT}/{name}")


def link_own_files(home: Path) -> None:
    """Put links in the place of files that are the same in the published version."""
    current = home / CURRENT
    if published(home) is None or not current.is_dir():
        return
    for name in _names(current):
        if _is_own(home / name) and is_same(home / name, current / name):
            put_link(home / name, f"{CURRENT}/{name}")
    _add_links(home, current)


def drop_dead_links(home: Path) -> None:
    """Remove links to files that the published version does not have."""
    for link in home.iterdir():
        if link.name not in FOLDERS and _is_ours(link) and not link.exists():
            drop(link)


def own_files(home: Path) -> list[str]:
    """Return the names of files that differ from those of the published version beside them."""
    current = home / CURRENT
    if published(home) is None or not current.is_dir():
        return []
    names = (name for name in _names(current) if name not in _FOR_PEOPLE)
    return [
        name for name in names if _is_own(home / name) and not is_same(home / name, current / name)
    ]


def require_current(home: Path) -> None:
    """Check that the files of a directory are not those of another set.

    Raises:
        DataError: `current`, which they are read through, is no link to a version of this one.
    """
    if _is_linked(home) and os.path.lexists(home / CURRENT) and published(home) is None:
        raise _wrong_current(home)


def require_links(home: Path) -> None:
    """Check that what scripts read by name is what is published.

    Raises:
        DataError: A file that somebody changed took the place of a link, or `current` does not
            lead to a version of the set.
    """
    require_current(home)
    current = home / CURRENT
    if os.path.lexists(current) and published(home) is None:
        if any(_is_ours(path) for path in home.iterdir()):
            raise _wrong_current(home)
        raise DataError(
            f"{current}: expected a link to a version, found something else; if this is a copy "
            f"that followed links, remove {current} and {home / VERSIONS}, and what lies beside "
            "them is the set"
        )
    if found := own_files(home):
        raise DataError(
            f"{home / found[0]}: differs from {current / found[0]}, which it should be a link to; "
            "what is published is the latter: move the former there, or remove it"
        )


def show_in_home(folder: Path, name: str) -> None:
    """Make the link to a new file of a version, where that is the published one.

    One that cannot be made now is made by the next refresh.
    """
    home, top = home_of(folder), Path(name).parts[0]
    if home == folder or published(home) is None or os.path.lexists(home / top):
        return
    with contextlib.suppress(OSError):
        if (home / CURRENT).samefile(folder):
            put_link(home / top, f"{CURRENT}/{top}")


def is_same(first: Path, other: Path) -> bool:
    """Whether two files, or two folders with all that is in them, are the same."""
    if not first.is_dir():
        return other.is_file() and (
            first.samefile(other) or filecmp.cmp(first, other, shallow=False)
        )
    names = sorted(path.relative_to(first) for path in _files(first))
    if not other.is_dir() or names != sorted(path.relative_to(other) for path in _files(other)):
        return False
    return all(is_same(first / name, other / name) for name in names)


def _wrong_current(home: Path) -> DataError:
    current = home / CURRENT
    target = f"one to {current.readlink()}" if current.is_symlink() else "something else"
    there = ", ".join(map(str, versions_of(home)))
    way = (
        f"move it away; then `ragforge refresh --dataset {home} --rollback N` publishes one of "
        f"the versions that are there: {there}"
        if there
        else "no version is there either: copy the whole set again, links as links"
    )
    return DataError(
        f"{current}: expected a link to a version of this directory, found {target}; {way}"
    )


def _names(folder: Path) -> list[str]:
    there = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    return sorted({*there, *FOLDERS})


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder; what begins with a dot is a stray of writing."""
    return (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _is_own(path: Path) -> bool:
    return path.exists() and not _is_ours(path)


def _is_ours(path: Path) -> bool:
    return path.is_symlink() and path.readlink().parts[0] == CURRENT


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
    _check_inside(Path(os.path.realpath(home)), tops)


def require_own_place(folder: Path) -> None:
    """Check a `.ragforge` that is no dataset's, such as the one beside a file of results.

    Raises:
        DataError: As for `require_inside`.
    """
    if folder.is_symlink():
        _check_inside(Path(os.path.realpath(folder.parent)), [folder])
    _check_inside(Path(os.path.realpath(folder)), [Path(entry.path) for entry in _entries(folder)])


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, all links followed, lies in a folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _tops(folder: Path, home: Path) -> Iterator[Path]:
    """Yield what a dataset may have at the top of a folder."""
    others: list[Path] = []
    for entry in _entries(folder):
        if entry.name in _TOP_FOLDERS or entry.name.endswith(_SUFFIXES):
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


def _check_inside(root: Path, tops: Iterable[Path]) -> None:
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
