"""One pass over the chunks of a dataset: how many there are, and what the report needs of some."""

from collections.abc import Collection
from dataclasses import dataclass

from ragforge.files.dataset import Dataset
from ragforge.report.worst import ChunkStart, chunk_start


@dataclass(frozen=True, slots=True)
class Census:
    """What a pass over the chunks found."""

    n_documents: int
    n_chunks: int
    starts: dict[str, ChunkStart]
    """The chunks that are shown."""
    documents: dict[str, str]
    """Chunk id to document, of the queries' sources."""


def take_census(dataset: Dataset, shown: Collection[str], sources: Collection[str]) -> Census:
    """Count the chunks and keep what is asked for; a dataset may come without its corpus.

    Args:
        dataset: Whose chunks are read, one by one.
        shown: Chunks whose starts are kept.
        sources: Chunks whose documents are kept.
    """
    n_chunks, seen = 0, set()
    starts: dict[str, ChunkStart] = {}
    documents: dict[str, str] = {}
    if (dataset.path / "chunks.jsonl").exists():
        for chunk in dataset.chunks():
            n_chunks += 1
            seen.add(chunk.doc_id)
            if chunk.chunk_id in shown:
                starts[chunk.chunk_id] = chunk_start(chunk)
            if chunk.chunk_id in sources:
                documents[chunk.chunk_id] = chunk.doc_id
    return Census(len(seen), n_chunks, starts, documents)
