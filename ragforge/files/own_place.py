"""The folder beside a dataset of what is never published: replies of models, locks, copies."""

from pathlib import Path
from typing import Final

NAME: Final = ".ragforge"
MIRRORS: Final = "sources"
"""The folder in it of copies of documents from elsewhere, a folder for each origin."""
_IGNORED: Final = (
    "# Made by ragforge: what is bought and what can be made again is not for git.\n*\n"
)


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
