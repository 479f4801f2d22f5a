"""The lines of a sorted `chunks.jsonl`: all of them in a stream, or one by where it begins."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.jsonl import explain
from ragforge.records import Chunk

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def each_chunk(path: Path) -> Iterator[tuple[int, Chunk]]:
    """Yield where each line begins, in bytes, and the chunk that it holds.

    Args:
        path: With the chunks sorted by id; empty lines are passed over.

    Raises:
        DataError: The file cannot be read, a line is no chunk, or an id is not above the one
            before.
    """
    try:
        with path.open("rb") as stream:
            yield from _each(path, stream)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _each(path: Path, stream: Iterator[bytes]) -> Iterator[tuple[int, Chunk]]:
    at, last = 0, ""
    for number, line in enumerate(stream, start=1):
        mark = len(_BYTE_ORDER_MARK) if number == 1 and line.startswith(_BYTE_ORDER_MARK) else 0
        if line.strip():
            try:
                chunk = Chunk.model_validate_json(line[mark:])
            except ValidationError as error:
                raise DataError(f"{path}:{number}: {explain(error)}") from error
            if chunk.chunk_id <= last:
                raise DataError(
                    f"{path}:{number}: chunk_id: expected one above {last!r}, as the file is "
                    f"sorted by id, got {chunk.chunk_id!r}"
                )
            last = chunk.chunk_id
            yield at + mark, chunk
        at += len(line)


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
