"""The shipped folders `prompts/`, `configs/` and `datasets/`, in a wheel or in a checkout."""

from pathlib import Path

from ragforge.errors import DataError


def shipped(folder: str) -> Path:
    """Return the shipped folder of that name.

    Raises:
        DataError: The installation lacks it.
    """
    package = Path(__file__).parents[1]
    for place in (package / "_data" / folder, package.parent / folder):
        if place.is_dir():
            return place
    raise DataError(f"{package}: the shipped folder {folder!r} is missing; reinstall ragforge")
