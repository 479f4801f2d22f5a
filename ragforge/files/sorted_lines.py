"""Files of records sorted by id, read in a stream: each is checked, and none is held."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ragforge.errors import DataError
from ragforge.files.jsonl import explain
from ragforge.records import SourceDocument

T = TypeVar("T")

R = TypeVar("R", bound=BaseModel)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def side_by_side(
    old: Iterator[T], new: Iterator[T], key: Callable[[T], str | tuple[str, ...]]
) -> Iterator[tuple[T | None, T | None]]:
    """Yield the items of both in order, those of one key together; one of a pair may be missing.

    Args:
        old: Sorted by key, each once.
        new: Sorted likewise.
        key: Of the same type for all.
    """
    before, now = next(old, None), next(new, None)
    while before is not None or now is not None:
        at = min(key(item) for item in (before, now) if item is not None)
        has_old = before is not None and key(before) == at
        has_new = now is not None and key(now) == at
        yield (before if has_old else None), (now if has_new else None)
        before = next(old, None) if has_old else before
        now = next(new, None) if has_new else now


def each_sorted(path: Path, kind: type[R], field: str) -> Iterator[tuple[int, R]]:
    """Yield where each line begins, in bytes, and the record that it holds.

    Args:
        path: With the records sorted by id; empty lines are passed over.
        kind: What each line must be.
        field: Name of its id.

    Raises:
        DataError: The file cannot be read, a line is no such record, or an id is not above the
            one before.
    """
    last = ""
    for number, at, line in each_line(path):
        try:
            record = kind.model_validate_json(line)
        except ValidationError as error:
            raise DataError(f"{path}:{number}: {explain(error)}") from error
        found: str = getattr(record, field)
        if found <= last:
            raise not_sorted(path, number, field, last, found)
        last = found
        yield at, record


def each_document(path: Path) -> Iterator[tuple[int, SourceDocument]]:
    """Yield where each line of a `documents.jsonl` begins, and the document, as `each_sorted`."""
    return each_sorted(path, SourceDocument, "doc_id")


def each_line(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of each line that is not empty, where it begins, and the line.

    Raises:
        DataError: The file cannot be read.
    """
    at = 0
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                mark = len(_BYTE_ORDER_MARK) if _is_marked(number, line) else 0
                if line.strip():
                    yield number, at + mark, line[mark:]
                at += len(line)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def not_sorted(path: Path, number: int, field: str, last: str, found: str) -> DataError:
    """Return the error about an id that is not above the one before."""
    return DataError(
        f"{path}:{number}: {field}: expected one above {last!r}, as the file is sorted by id, "
        f"got {found!r}"
    )


def _is_marked(number: int, line: bytes) -> bool:
    return number == 1 and line.startswith(_BYTE_ORDER_MARK)
