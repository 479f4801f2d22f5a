"""The chunks of some documents out of a file that is sorted by chunk id."""

import re
from array import array
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.chunk_lines import ChunkLines
from ragforge.files.jsonl import explain
from ragforge.files.sorted_lines import each_line
from ragforge.records import Chunk

_HEAD = re.compile(rb'\{"chunk_id":"[^"\\]*","doc_id":"([^"\\]*)"')
"""How a line begins as ragforge writes it; any other is read in full."""


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

    def of(self, doc_id: str) -> list[Chunk]:
        """Return the chunks of a document in its order; [] where it has none."""
        chunks = [self._lines.at(begin) for begin in self._begins.get(doc_id, ())]
        return sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id))


def _doc_id(path: Path, number: int, line: bytes) -> str:
    try:
        return Chunk.model_validate_json(line).doc_id
    except ValidationError as error:
        raise DataError(f"{path}:{number}: {explain(error)}") from error
