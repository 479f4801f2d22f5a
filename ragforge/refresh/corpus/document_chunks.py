"""The chunks of some documents of a corpus, looked up on disk when they are needed."""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.files.set.sorted_records import ChunkLines, each_chunk
from ragforge.records import Chunk


class DocumentChunks(AbstractContextManager["DocumentChunks"]):
    """Where the chunks of some documents stand in a file; their texts are not held.

    Args:
        path: Chunks sorted by id; read once, unless no document is wanted.
        doc_ids: The documents.

    Raises:
        DataError: The file cannot be read.
    """

    def __init__(self, path: Path, doc_ids: Collection[str]) -> None:
        self._begins: dict[str, list[tuple[int, int]]] = {}
        self._last: tuple[frozenset[str], ChunkIndex] | None = None
        for begin, chunk in each_chunk(path) if doc_ids else ():
            if chunk.doc_id in doc_ids:
                self._begins.setdefault(chunk.doc_id, []).append((chunk.start, begin))
        self._lines = ChunkLines(path)

    def __exit__(self, *_: object) -> None:
        self._lines.__exit__()

    def index(self, doc_ids: frozenset[str]) -> ChunkIndex:
        """Return the chunks of some documents in their order; the last index is held."""
        if self._last is None or self._last[0] != doc_ids:
            self._last = doc_ids, ChunkIndex(self._chunks(doc_ids))
        return self._last[1]

    def _chunks(self, doc_ids: Collection[str]) -> Iterator[Chunk]:
        for doc_id in sorted(doc_ids):
            for _, begin in sorted(self._begins.get(doc_id, ())):
                yield self._lines.at(begin)
