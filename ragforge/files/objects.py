"""Files that hold one JSON object, such as a manifest or the audit of a judge."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.jsonl import explain
from ragforge.files.text import read_text

T = TypeVar("T", bound=BaseModel)


def read_object(path: Path, kind: type[T]) -> T:
    """Return the object in a file.

    Raises:
        DataError: It cannot be read or does not hold to the format.
    """
    try:
        return kind.model_validate_json(read_text(path))
    except ValidationError as error:
        raise DataError(f"{path}: {explain(error)}") from error


def write_object(path: Path, value: BaseModel) -> None:
    """Write an object, whole and indented.

    Raises:
        DataError: It cannot be written.
    """
    write_whole(path, [value.model_dump_json(indent=2), "\n"])
