"""Where the versions of a dataset lie: a folder each, and a link to the one that is published.

A directory that was never refreshed has its files in itself and none of this.
"""

from pathlib import Path
from typing import Final

CURRENT: Final = "current"
"""The link to the published version; it is switched in one step."""
VERSIONS: Final = "versions"
"""The folder of the versions."""
REJECTED: Final = "rejected"
"""The folder of versions that a gate stopped."""
_DIGITS: Final = 6


def version_name(number: int) -> str:
    """Return the name of a version's folder."""
    return f"{number:0{_DIGITS}}"


def files_of(path: Path) -> Path:
    """Return the folder with the files of a dataset: that of its published version, else its own.

    The link is followed once, so that whoever reads from there sees one version throughout.
    """
    current = path / CURRENT
    return current.resolve() if current.is_symlink() else path


def home_of(path: Path) -> Path:
    """Return the directory of the dataset that a folder is a version of, else the folder itself."""
    home = path.parent.parent
    if path.parent.name in (VERSIONS, REJECTED) and (home / CURRENT).is_symlink():
        return home
    return path
