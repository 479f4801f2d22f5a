"""Where results may be written: never over something that is not an earlier result."""

from collections.abc import Callable, Container
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ragforge.errors import DataError, UsageError
from ragforge.files.manifest import Manifest
from ragforge.files.objects import read_object

R = TypeVar("R", bound=BaseModel)

_MOST_BYTES = 16 * 1024 * 1024
"""What is read of a file that is one object, to see what it holds."""


def refuse_to_replace(
    out: Path,
    record: type[R],
    *,
    whole: bool = False,
    ours: Callable[[R], bool] = lambda record: True,
) -> None:
    """Check that a file is new, empty, or holds what will be written to it.

    Args:
        out: Where results are to go.
        record: What they consist of.
        whole: Whether the file is one record; else each line is.
        ours: Whether a record is one that ragforge wrote and can make again.

    Raises:
        UsageError: The file holds something else, belongs to a dataset, or is no file.
    """
    if not out.exists():
        return
    if not out.is_file():
        raise UsageError(f"--out {out}: is no file; name another")
    if _is_of_dataset(out.resolve()):
        raise UsageError(f"--out {out}: is a file of a dataset; name another")
    with out.open("rb") as stream:
        for number, found in enumerate([stream.read(_MOST_BYTES)] if whole else stream, start=1):
            is_torn = number > 1 and not found.endswith(b"\n")  # Ours up to there; made whole now.
            if found.strip() and not is_torn and not _is_ours(found, record, ours):
                raise UsageError(
                    f"--out {out}: line {number} is no {record.__name__.lower()} that ragforge "
                    "wrote; name another file"
                )


def _is_ours(found: bytes, record: type[R], ours: Callable[[R], bool]) -> bool:
    try:
        return ours(record.model_validate_json(found))
    except ValidationError:
        return False


def _is_of_dataset(path: Path) -> bool:
    """Whether a dataset's manifest, beside the file or one folder up, lists it."""
    for folder in (path.parent, path.parent.parent):
        manifest = folder / "manifest.json"
        if manifest.is_file() and path.relative_to(folder).as_posix() in _listed(manifest):
            return True
    return False


def _listed(manifest: Path) -> Container[str]:
    try:
        return read_object(manifest, Manifest).files
    except DataError:
        return ()  # Somebody else's manifest.
