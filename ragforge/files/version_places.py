"""Where the versions of a dataset lie: a folder each, and a link to the one that is published.

A directory that was never refreshed has its files in itself and none of this.
"""

import os
import re
from pathlib import Path
from typing import Final

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
_NAME: Final = re.compile(rf"\d{{{_DIGITS},}}")


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


def is_linked(home: Path) -> bool:
    """Whether what a directory has by name are links to its published version."""
    manifest = home / MANIFEST
    return manifest.is_symlink() and manifest.readlink().parts[0] == CURRENT


def is_flat(home: Path) -> bool:
    """Whether a directory has the files of a dataset in itself."""
    manifest = home / MANIFEST
    return manifest.is_file() and not manifest.is_symlink() and published(home) is None
