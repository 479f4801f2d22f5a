"""A survey of a corpus, whatever its size: chunks by id, neighbours, near-duplicates, topics.

The texts stay on disk. What is asked of all chunks is asked of their cards.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ragforge.deferred import dataclass
from ragforge.records import Chunk


@dataclass(frozen=True, slots=True)
class ChunkCard:
    """What planning needs to know of a chunk.

    Args:
        chunk_id, doc_id: Its ids.
        group: Group of its document: the folder, or "" at the top.
        level: How many titles are above it.
        topic: Number of its topic cluster, from 0.
        duplicate_of: Id of the chunk that stands for all near-duplicates of this one; its own where
            it has none, or is the one.
        is_askable: Whether it has words enough to be asked about.
    """

    chunk_id: str
    doc_id: str
    group: str
    level: int
    topic: int
    duplicate_of: str
    is_askable: bool


class Survey(Protocol):
    """A corpus that was looked through once."""

    @property
    def n_chunks(self) -> int:
        """How many chunks there are."""

    @property
    def n_documents(self) -> int:
        """How many documents there are."""

    def cards(self) -> Iterator[ChunkCard]:
        """Yield the cards of all chunks, sorted by chunk id."""

    def chunk(self, chunk_id: str) -> Chunk:
        """Return a chunk.

        Raises:
            KeyError: There is none of that id.
        """

    def neighbours(self, chunk_id: str) -> Sequence[str]:
        """Return the ids of the chunk before and the chunk behind in its document, if any."""

    def near_duplicates(self, chunk_id: str) -> Sequence[str]:
        """Return the ids of the other chunks that are near-duplicates of this one, sorted."""

    def in_document(self, doc_id: str) -> Sequence[str]:
        """Return the ids of a document's chunks in their order; [] where there is none."""
