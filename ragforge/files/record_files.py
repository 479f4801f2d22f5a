"""Files of records, checked on the way in and whole on the way out: JSON Lines, or one object.

More records than memory should hold are sorted in parts on disk.
"""

import contextlib
import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import IO, Generic, Protocol, TypeAlias, TypeVar

from ragforge.deferred import tempfile
from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.text import read_text
from ragforge.records.model import Model, pydantic

R = TypeVar("R", bound=Model)
L = TypeVar("L", bound="HasLine")
Key: TypeAlias = str | tuple[str, ...]

_SHOWN = 80
"""How much of a faulty value an error message repeats, in characters."""
_PART_RECORDS = 20_000
"""Records held in memory before they are sorted and put on disk."""
_MOST_PARTS = 64
"""Parts of one size before they become one of the next: so each record is written anew for each
factor of that, and not each time there are so many parts again."""


def read_records(
    path: Path, record: type[R], *, key: Callable[[R], Key] | None = None
) -> Iterator[R]:
    """Yield the records of a file, one line at a time.

    Args:
        path: A JSON Lines file; empty lines are passed over.
        record: What each line must be.
        key: What must be unique in the file; None where nothing must. Keys of a file that is not
            sorted by them are held in memory.

    Raises:
        DataError: The file cannot be read, a line does not hold to the record, or a key comes
            twice; the message names file, line, field and value.
    """
    if key is None:
        yield from (item for _, item in _numbered(path, record))
        return
    last: Key | None = None
    seen: dict[Key, int] | None = None
    for number, item in _numbered(path, record):
        own = key(item)
        if seen is None and (last is None or _is_above(own, last)):
            last = own
            yield item
            continue
        if seen is None:
            seen = {}
            for line, other in _numbered(path, record):
                if line == number:
                    break
                seen[key(other)] = line
        first = seen.setdefault(own, number)
        if first != number:
            raise DataError(f"{path}:{number}: {own} comes twice, first in line {first}")
        yield item


def _is_above(key: Key, last: Key) -> bool:
    # Keys of one file are of one type.
    return key > last  # type: ignore[operator]


def _numbered(path: Path, record: type[R]) -> Iterator[tuple[int, R]]:
    """Yield the records of a file with their lines."""
    for number, line in read_lines(path):
        try:
            item = record.model_validate_json(line)
        except pydantic.ValidationError as error:
            raise DataError(f"{path}:{number}: {explain(error)}") from error
        # Not within: whoever stops reading here would load pydantic for the name of its error.
        yield number, item


def write_records(path: Path, records: Iterable[R], key: Callable[[R], Key]) -> int:
    """Write records sorted by key, one a line, and return how many.

    Raises:
        DataError: The file cannot be written; the old one is untouched.
    """
    ordered = sorted(records, key=key)
    write_whole(path, (f"{record.model_dump_json()}\n" for record in ordered))
    return len(ordered)


def explain(error: "pydantic.ValidationError") -> str:
    """One line about an invalid record: the field, the expected value and the given one."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return f"is not one complete JSON object ({first['ctx']['error']}); was it cut off?"
    field = ".".join(str(part) for part in first["loc"])
    value = repr(first["input"])
    if len(value) > _SHOWN:
        value = f"{value[:_SHOWN]}…"
    expected = first["msg"][0].lower() + first["msg"][1:]
    got = "" if first["type"] == "missing" else f", got {value}"
    return f"{field}: {expected}{got}" if field else f"{expected}{got}"


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers.

    Raises:
        DataError: It cannot be read, or is no UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text: {error.reason} at {error.start}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_object(path: Path, kind: type[R]) -> R:
    """Return the object in a file.

    Raises:
        DataError: It cannot be read or does not hold to the format.
    """
    try:
        return kind.model_validate_json(read_text(path))
    except pydantic.ValidationError as error:
        raise DataError(f"{path}: {explain(error)}") from error


def write_object(path: Path, value: Model) -> None:
    """Write an object, whole and indented.

    Raises:
        DataError: It cannot be written.
    """
    write_whole(path, [value.model_dump_json(indent=2), "\n"])


class HasLine(Protocol):
    """What becomes a line of a file."""

    def model_dump_json(self) -> str:
        """Return it as JSON."""
        ...


class ExternalSorter(contextlib.AbstractContextManager["ExternalSorter[L]"], Generic[L]):
    """Takes records in any order and gives their lines back sorted by key, as often as asked.

    Args:
        key: The sort key of a record; unique.
        folder: Where parts are put, beside the file that will be written.
    """

    def __init__(self, key: Callable[[L], tuple[str, ...]], folder: Path) -> None:
        self._key = key
        self._folder = folder
        self._held: list[tuple[tuple[str, ...], str]] = []
        self._parts: list[list[IO[str]]] = []
        """By size, the smallest first."""
        self.count = 0
        """Records taken."""

    def __exit__(self, *_: object) -> None:
        for part in chain.from_iterable(self._parts):
            part.close()

    def add(self, record: L) -> None:
        """Take a record.

        Raises:
            DataError: There is no space for it.
        """
        self._held.append((self._key(record), record.model_dump_json()))
        self.count += 1
        if len(self._held) >= _PART_RECORDS:
            self._put()

    def lines(self) -> Iterator[str]:
        """Yield the records' JSON, sorted by key, each with its line end."""
        self._held.sort()
        for _, line in heapq.merge(self._held, *map(_read, chain(*self._parts))):
            yield f"{line}\n"

    def write(self, path: Path) -> None:
        """Write the records to a file, whole.

        Raises:
            DataError: It cannot be written; the old one is untouched.
        """
        write_whole(path, self.lines())

    def _put(self) -> None:
        try:
            self._held.sort()
            part = self._part(iter(self._held))
            self._held.clear()
            for size in count():
                if size == len(self._parts):
                    self._parts.append([])
                alike = self._parts[size]
                alike.append(part)
                if len(alike) < _MOST_PARTS:
                    break
                part = self._part(heapq.merge(*map(_read, alike)))
                for merged in alike:
                    merged.close()
                alike.clear()
        except OSError as error:
            raise DataError(f"{self._folder}: {error.strerror or error}") from error

    def _part(self, rows: Iterator[tuple[tuple[str, ...], str]]) -> IO[str]:
        # It has no name in the folder, so that nothing is left after a kill.
        part: IO[str] = tempfile.TemporaryFile(  # closed in __exit__
            "w+", encoding="utf-8", newline="\n", dir=self._folder
        )
        part.writelines(f"{json.dumps(key)}\t{line}\n" for key, line in rows)
        part.flush()
        return part


def _read(part: IO[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    part.seek(0)
    for row in part:
        key, _, line = row.rstrip("\n").partition("\t")
        yield tuple(json.loads(key)), line
