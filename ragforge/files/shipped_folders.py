"""The shipped folders `prompts/`, `configs/` and `datasets/`, in a wheel or in a checkout."""

from importlib.resources import files
from pathlib import Path

from ragforge.errors import DataError


def shipped(folder: str) -> Path:
    """Return the shipped folder of that name.

    Raises:
        DataError: The installation lacks it.
    """
    package = Path(str(files("ragforge")))
    for place in (package / "_data" / folder, package.parent / folder):
        if place.is_dir():
            return place
    raise DataError(f"{package}: the shipped folder {folder!r} is missing; reinstall ragforge")
