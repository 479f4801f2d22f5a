"""Looking at the quality of chunks in passing, as long as there are not too many of them."""

from typing import Final

from ragforge.config import ChunkSettings
from ragforge.corpus.quality import ChunkQuality, Inspector
from ragforge.records import Chunk

MOST_CHUNKS: Final = 10_000
"""With more, looking at them would take longer than the rest of a report."""


class Inspection:
    """Takes the chunks of a dataset; with too many it lets go of them."""

    def __init__(self) -> None:
        self._inspector: Inspector | None = Inspector(ChunkSettings().max_chars)
        self._n_chunks = 0

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        self._n_chunks += 1
        if self._n_chunks > MOST_CHUNKS:
            self._inspector = None
        if self._inspector is not None:
            self._inspector.add(chunk)

    def quality(self) -> ChunkQuality | None:
        """Return what was found; None where there were no chunks, or too many."""
        return None if self._inspector is None else self._inspector.quality()
