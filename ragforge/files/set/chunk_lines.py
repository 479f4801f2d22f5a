"""The lines of a sorted `chunks.jsonl`: all of them in a stream, or one by where it begins."""

import json
import re
import threading
from array import array
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.record_files import explain
from ragforge.files.set.sorted_records import each_line, each_sorted
from ragforge.records import Chunk

_HEAD = re.compile(rb'\{"chunk_id":"[^"\\]*","doc_id":"([^"\\]*)"')
"""How a line begins as ragforge writes it; any other is read in full."""


class ChunkTexts(AbstractContextManager["ChunkTexts"]):
    """Where the wanted chunks stand in a `chunks.jsonl`; their texts are never all in memory.

    Args:
        path: The file.
        wanted: Ids; those that the file lacks are not held.

    Raises:
        DataError: The file cannot be read, or a line is no chunk.
    """

    def __init__(self, path: Path, wanted: Collection[str]) -> None:
        self._path = path
        self._at: dict[str, int] = {}
        try:
            self._stream = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
        try:
            self._find(wanted)
        except DataError:
            self._stream.close()
            raise

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._at

    def __getitem__(self, chunk_id: str) -> str:
        """Return the text of a chunk that is held."""
        self._stream.seek(self._at[chunk_id])
        text: str = json.loads(self._stream.readline())["text"]
        return text

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def _find(self, wanted: Collection[str]) -> None:
        at = 0
        for number, line in enumerate(self._stream, start=1):
            if line.strip():
                try:
                    row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                    chunk_id, text = row["chunk_id"], row["text"]
                except (ValueError, KeyError, TypeError) as error:
                    where = f"{self._path}:{number}"
                    raise DataError(f"{where}: is no chunk: {error}") from error
                if not isinstance(text, str):
                    raise DataError(f"{self._path}:{number}: text: expected text, got {text!r}")
                if chunk_id in wanted:
                    self._at[chunk_id] = at + (3 if line.startswith(b"\xef\xbb\xbf") else 0)
            at += len(line)


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


class DocumentLines(AbstractContextManager["DocumentLines"]):
    """Finds where the chunks of documents are in one pass; reads them document by document.

    Of a million chunks it holds eight bytes for each chunk of these documents, and no text.

    Args:
        path: With chunks, sorted by id.
        doc_ids: Of the documents; unknown ones have no chunks.

    Raises:
        DataError: The file cannot be read, or a line that may be of these documents is no chunk.
    """

    def __init__(self, path: Path, doc_ids: Collection[str]) -> None:
        self._begins: dict[str, array[int]] = {}
        wanted = {doc_id.encode(): doc_id for doc_id in doc_ids}
        for number, begin, line in each_line(path) if wanted else ():
            head = _HEAD.match(line)
            doc_id = wanted.get(head[1] if head else _doc_id(path, number, line).encode())
            if doc_id is not None:
                self._begins.setdefault(doc_id, array("Q")).append(begin)
        self._lines = ChunkLines(path)

    def __exit__(self, *_: object) -> None:
        self._lines.__exit__()

    def chunks_of(self, doc_id: str) -> list[Chunk]:
        """Return the chunks of a document in its order; [] where it has none."""
        chunks = [self._lines.at(begin) for begin in self._begins.get(doc_id, ())]
        return sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id))


def _doc_id(path: Path, number: int, line: bytes) -> str:
    try:
        return Chunk.model_validate_json(line).doc_id
    except ValidationError as error:
        raise DataError(f"{path}:{number}: {explain(error)}") from error
