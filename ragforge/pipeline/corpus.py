"""From documents or a chunk file to chunks."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ragforge.config import ChunkSettings
from ragforge.corpus.chunking import MIN_CHARS, chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.errors import DataError
from ragforge.files.chunks import read_chunks
from ragforge.observe import Event, Observer
from ragforge.records import Chunk


def chunks_of(
    documents: Sequence[Path], settings: ChunkSettings, observer: Observer
) -> Iterator[Chunk]:
    """Yield the chunks of documents, one document at a time.

    Args:
        documents: Files and folders.
        settings: Sizes and patterns.
        observer: Told of documents that are passed over.

    Raises:
        DataError: A document cannot be read.
    """

    def skipped(path: str, reason: str) -> None:
        observer(Event("note", message=f"{path}: passed over: {reason}"))

    found = read_documents(
        documents, include=settings.include, exclude=settings.exclude, skipped=skipped
    )
    smallest = min(MIN_CHARS, settings.max_chars // 2)
    for document in found:
        yield from chunk_document(document, max_chars=settings.max_chars, min_chars=smallest)


def load_chunks(
    documents: Sequence[Path],
    chunk_file: Path | None,
    settings: ChunkSettings,
    observer: Observer,
) -> list[Chunk]:
    """Return all chunks, of documents or of a ready-made file, sorted by id.

    Raises:
        DataError: A file cannot be read, two chunks have one id, or there is none.
    """
    found = read_chunks(chunk_file) if chunk_file else chunks_of(documents, settings, observer)
    chunks = sorted(found, key=lambda chunk: chunk.chunk_id)
    if not chunks:
        raise DataError(
            f"{', '.join(map(str, documents))}: no text to cut into chunks; every document is empty"
        )
    for first, second in pairwise(chunks):
        if first.chunk_id == second.chunk_id:
            raise DataError(
                f"chunk {first.chunk_id} comes twice, in {first.doc_id} and {second.doc_id}"
            )
    return chunks
