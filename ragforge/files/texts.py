"""The texts of some chunks, read from the file when they are wanted."""

import json
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path

from ragforge.errors import DataError


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
