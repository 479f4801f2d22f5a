"""The lines of a sorted `chunks.jsonl`: all of them in a stream, or one by where it begins."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.sorted_lines import each_sorted
from ragforge.records import Chunk


def each_chunk(path: Path) -> Iterator[tuple[int, Chunk]]:
    """Yield where each line begins, in bytes, and the chunk that it holds.

    Args:
        path: With the chunks sorted by id; empty lines are passed over.

    Raises:
        DataError: The file cannot be read, a line is no chunk, or an id is not above the one
            before.
    """
    return each_sorted(path, Chunk, "chunk_id")


class ChunkLines(AbstractContextManager["ChunkLines"]):
    """Reads chunks by where their lines begin; a context manager, and safe between threads.

    Raises:
        DataError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._stream = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def at(self, begin: int) -> Chunk:
        """Return the chunk of the line that begins at this byte.

        Raises:
            DataError: There is none: the file was written over in place.
        """
        with self._lock:
            self._stream.seek(begin)
            line = self._stream.readline()
        try:
            return Chunk.model_validate_json(line)
        except ValidationError as error:
            raise DataError(f"{self._path}: was changed while it was read") from error
