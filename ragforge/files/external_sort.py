"""An external merge sort: more records than memory should hold, sorted in parts on disk."""

import contextlib
import heapq
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Generic, TypeVar

from pydantic import BaseModel

from ragforge.errors import DataError
from ragforge.files.atomic import write_whole

R = TypeVar("R", bound=BaseModel)

PART = 20_000
"""Records held in memory before they are sorted and put on disk."""

_MOST_PARTS = 64


class ExternalSorter(contextlib.AbstractContextManager["ExternalSorter[R]"], Generic[R]):
    """Takes records in any order and gives their lines back sorted by key, as often as asked.

    Args:
        key: The sort key of a record; unique.
        folder: Where parts are put, beside the file that will be written.
    """

    def __init__(self, key: Callable[[R], tuple[str, ...]], folder: Path) -> None:
        self._key = key
        self._folder = folder
        self._held: list[tuple[tuple[str, ...], str]] = []
        self._parts: list[IO[str]] = []
        self.count = 0
        """Records taken."""

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.close()

    def add(self, record: R) -> None:
        """Take a record.

        Raises:
            DataError: There is no space for it.
        """
        self._held.append((self._key(record), record.model_dump_json()))
        self.count += 1
        if len(self._held) >= PART:
            self._put()

    def lines(self) -> Iterator[str]:
        """Yield the records' JSON, sorted by key, each with its line end."""
        self._held.sort()
        for _, line in heapq.merge(self._held, *map(_read, self._parts)):
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
            self._parts.append(self._part(iter(self._held)))
            self._held.clear()
            if len(self._parts) >= _MOST_PARTS:
                merged = self._part(heapq.merge(*map(_read, self._parts)))
                self.__exit__()
                self._parts = [merged]
        except OSError as error:
            raise DataError(f"{self._folder}: {error.strerror or error}") from error

    def _part(self, rows: Iterator[tuple[tuple[str, ...], str]]) -> IO[str]:
        # It has no name in the folder, so that nothing is left after a kill.
        part: IO[str] = tempfile.TemporaryFile(  # noqa: SIM115  # closed in __exit__
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
