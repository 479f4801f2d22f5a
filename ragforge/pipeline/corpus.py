"""From documents or a chunk file to chunks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ragforge.config import ChunkSettings
from ragforge.corpus.chunkers import BUILT_IN, make_chunker
from ragforge.corpus.chunking import MIN_CHARS
from ragforge.corpus.documents import read_documents
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import write_whole
from ragforge.files.chunks import read_chunks
from ragforge.files.spool import Spool
from ragforge.observe import Event, Observer
from ragforge.records import Chunk


def chunks_of(
    documents: Sequence[Path], settings: ChunkSettings, observer: Observer
) -> Iterator[Chunk]:
    """Yield the chunks of documents, one document at a time.

    Args:
        documents: Files and folders.
        settings: Sizes, patterns and the chunker.
        observer: Told of documents that are passed over, and of those without a chunk.

    Raises:
        DataError: A document cannot be read.
        UsageError: There is no such chunker, it returned what is not in the document, or no chunk
            of any document.
    """

    def skipped(path: str, reason: str) -> None:
        observer(Event("note", message=f"{path}: passed over: {reason}"))

    found = read_documents(
        documents, include=settings.include, exclude=settings.exclude, skipped=skipped
    )
    smallest = min(MIN_CHARS, settings.max_chars // 2)
    chunker = make_chunker(settings.chunker, max_chars=settings.max_chars, min_chars=smallest)
    empty: list[str] = []
    any_cut = False
    for document in found:
        chunks = chunker(document)
        if chunks:
            any_cut = True
        else:
            empty.append(document.doc_id)
        yield from chunks
    if not empty:
        return
    if not any_cut and settings.chunker != BUILT_IN:
        raise UsageError(
            f"chunker {settings.chunker}: gave no chunk for any of {len(empty)} documents"
        )
    told = f"{len(empty)} documents gave no chunk: {', '.join(empty[:3])}"
    observer(Event("note", message=told))


def write_corpus(
    documents: Sequence[Path],
    chunk_file: Path | None,
    settings: ChunkSettings,
    observer: Observer,
    path: Path,
) -> int:
    """Write all chunks, of documents or of a ready-made file, sorted by id; return how many.

    Memory does not grow with the corpus but for the ids of a ready-made file.

    Args:
        documents: Files and folders.
        chunk_file: A ready-made file, instead of documents.
        settings: Sizes and patterns.
        observer: Told of documents that are passed over.
        path: The file; missing folders above it are made.

    Raises:
        DataError: A file cannot be read, two chunks have one id, or there is none; or the file
            cannot be written. The old one is untouched.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
    with Spool(_id_and_document, path.parent) as spool:
        for chunk in _found(documents, chunk_file, settings, observer):
            spool.add(chunk)
        if not spool.count:
            raise _nothing_in(documents)
        write_whole(path, _each_once(spool.lines()))
        return spool.count


def _found(
    documents: Sequence[Path],
    chunk_file: Path | None,
    settings: ChunkSettings,
    observer: Observer,
) -> Iterator[Chunk]:
    return read_chunks(chunk_file) if chunk_file else chunks_of(documents, settings, observer)


def _id_and_document(chunk: Chunk) -> tuple[str, ...]:
    return chunk.chunk_id, chunk.doc_id


def _each_once(lines: Iterator[str]) -> Iterator[str]:
    last, last_id = "", ""
    for line in lines:
        # In JSON, no string can hold the bare quotes that end the first field.
        chunk_id = line.partition('","doc_id":')[0]
        if chunk_id == last_id:
            raise _twice(Chunk.model_validate_json(last), Chunk.model_validate_json(line))
        last, last_id = line, chunk_id
        yield line


def _nothing_in(documents: Sequence[Path]) -> DataError:
    return DataError(
        f"{', '.join(map(str, documents))}: no text to cut into chunks; every document is empty"
    )


def _twice(first: Chunk, second: Chunk) -> DataError:
    return DataError(f"chunk {first.chunk_id} comes twice, in {first.doc_id} and {second.doc_id}")
