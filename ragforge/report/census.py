"""One pass over the chunks of a dataset: how many there are, and what the report needs of some."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ragforge.files.dataset import Dataset
from ragforge.records import Chunk
from ragforge.report.queries.chunk_starts import ChunkStart, ShownStarts


@dataclass(frozen=True, slots=True)
class Census:
    """What a pass over the chunks found."""

    n_documents: int
    n_chunks: int
    starts: dict[str, ChunkStart]
    """The chunks and documents that are shown."""
    documents: dict[str, str]
    """Chunk id to document, of the queries' sources."""
    whole: frozenset[str] = frozenset()
    """Of the sources, ids that are of documents and not of chunks."""


def take_census(
    dataset: Dataset,
    shown: Mapping[str, Sequence[str]],
    sources: Collection[str],
    others: Collection[Callable[[Chunk], None]] = (),
) -> Census:
    """Count the chunks and keep what is asked for; a dataset may come without its corpus.

    Args:
        dataset: Whose chunks are read, one by one.
        shown: Chunks whose starts are kept, with the quotes to be seen in them.
        sources: Chunks whose documents are kept; documents among them are told apart.
        others: Who else is to see every chunk, such as `CauseFinder.take`.
    """
    n_chunks, seen = 0, set()
    starts = ShownStarts(shown)
    documents: dict[str, str] = {}
    if (dataset.chunks_path).exists():
        for chunk in dataset.chunks():
            n_chunks += 1
            for take in others:
                take(chunk)
            seen.add(chunk.doc_id)
            starts.take(chunk)
            if chunk.chunk_id in sources:
                documents[chunk.chunk_id] = chunk.doc_id
    whole = frozenset(seen.intersection(sources) - documents.keys())
    return Census(len(seen), n_chunks, starts.found(), documents, whole)
