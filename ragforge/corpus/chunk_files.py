"""Writing chunks to disk: of documents, with a record of each document, or of a chunk file.

The records are the rows of `documents.jsonl`: which documents a set was cut from.
"""

import hashlib
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from ragforge.config import ChunkSettings
from ragforge.corpus.chunking import MIN_CHARS, text_sha256
from ragforge.corpus.documents import MARKUP_READ, Document, read_documents
from ragforge.corpus.user_chunkers import BUILT_IN, Chunker, chunker_version, make_chunker
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import write_whole
from ragforge.files.record_files import ExternalSorter
from ragforge.files.text import escaped
from ragforge.observe import Event, Observer
from ragforge.records import Chunk, SourceDocument, is_given_in_set
from ragforge.records.record import Record

CUT_BY: Final = ", cut by "
"""Between the digest of a document's text and how it was cut, where others are cut anew."""
_SHOWN = 3


def describe_chunking(settings: ChunkSettings) -> str:
    """Describe the chunker and its limits; equal documents give equal chunks under it.

    Raises:
        UsageError: There is no such chunker.
    """
    size = f", max_chars {settings.max_chars}" if settings.chunker == BUILT_IN else ""
    return f"{settings.chunker} {chunker_version(settings.chunker)}{size}{MARKUP_READ}"


def configured_chunker(settings: ChunkSettings) -> Chunker:
    """Return the chunker of the settings.

    Raises:
        UsageError: There is no such chunker.
    """
    smallest = min(MIN_CHARS, settings.max_chars // 2)
    return make_chunker(settings.chunker, max_chars=settings.max_chars, min_chars=smallest)


def corpus_documents(
    documents: Sequence[Path],
    settings: ChunkSettings,
    observer: Observer,
    unread: Callable[[str], None] = lambda doc_id: None,
    *,
    named_must: bool = False,
) -> Iterator[Document]:
    """Yield the documents of files and folders.

    Args:
        documents: Files and folders.
        settings: Patterns.
        observer: Told of documents that are passed over.
        unread: Told the id of each file that cannot be read; those of a table's rows begin with
            it and `#`.
        named_must: Whether a file that is given by name must be read, and hold something.

    Raises:
        DataError: As for `read_documents`.
    """

    def skipped(path: str, reason: str) -> None:
        observer(Event("note", message=f"{escaped(path)}: passed over: {escaped(reason)}"))

    return read_documents(
        documents,
        include=settings.include,
        exclude=settings.exclude,
        follow_links=settings.follow_links == "on",
        source_code=settings.source_code == "on",
        skipped=skipped,
        unread=unread,
        named_must=named_must,
    )


def chunk_documents(
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
    chunker = configured_chunker(settings)
    empty = EmptyDocuments(settings, observer)
    for document in corpus_documents(documents, settings, observer):
        chunks = chunker(document)
        empty.count(document, chunks)
        yield from chunks
    empty.report()


class EmptyDocuments:
    """Counts the documents that gave no chunk, beside those that gave some."""

    def __init__(self, settings: ChunkSettings, observer: Observer) -> None:
        self._settings = settings
        self._observer = observer
        self._n_empty = 0
        self._empty: list[str] = []
        self._any_cut = False

    def count(self, document: Document, chunks: Sequence[Chunk]) -> None:
        """Count a document."""
        if chunks:
            self._any_cut = True
            return
        self._n_empty += 1
        if self._n_empty <= _SHOWN:
            self._empty.append(document.doc_id)

    def report(self, *, any_kept: bool = False) -> None:
        """Note the documents without a chunk.

        Args:
            any_kept: Whether there are chunks of documents that were not cut now.

        Raises:
            UsageError: A chunker of the user's gave none at all.
        """
        if not self._n_empty:
            return
        if not (self._any_cut or any_kept) and self._settings.chunker != BUILT_IN:
            raise UsageError(
                f"chunker {self._settings.chunker}: gave no chunk for any of {self._n_empty} "
                "documents"
            )
        message = f"{self._n_empty} documents gave no chunk: {', '.join(self._empty)}"
        self._observer(Event("note", message=message))


def write_corpus(
    documents: Sequence[Path],
    settings: ChunkSettings,
    observer: Observer,
    path: Path,
    rows: Path | None = None,
) -> int:
    """Write all chunks of documents, sorted by id; return how many.

    Memory does not grow with the corpus.

    Args:
        documents: Files and folders.
        settings: Sizes and patterns.
        observer: Told of documents that are passed over.
        path: The file; missing folders above it are made.
        rows: Where to write a row for each document, sorted by id; None for nowhere.

    Raises:
        DataError: A file cannot be read, two documents or chunks have one id, or there is no
            chunk; or the file cannot be written. The old one is untouched.
    """
    _make_room(path)
    chunker = configured_chunker(settings)
    empty = EmptyDocuments(settings, observer)
    with (
        ExternalSorter(chunk_sort_key, path.parent) as spool,
        ExternalSorter(document_sort_key, path.parent) as spooled,
    ):
        for document in corpus_documents(documents, settings, observer):
            chunks = chunker(document)
            empty.count(document, chunks)
            for chunk in chunks:
                spool.add(chunk)
            if rows is not None:
                spooled.add(document_row(document, len(chunks)))
        empty.report()
        if not spool.count:
            raise no_text_error(documents)
        write_whole(path, refuse_duplicate_chunks(spool.lines()))
        if rows is not None:
            write_rows(rows, refuse_duplicate_documents(spooled_rows(spooled)))
        return spool.count


def write_ready_made(chunk_file: Path, observer: Observer, path: Path) -> int:
    """Write the chunks of a ready-made file, sorted by id, as `write_corpus` does.

    Memory does not grow with the corpus but for the ids. Told are ids that are others in a set.
    """
    from ragforge.files.formats.chunks import read_chunks

    _make_room(path)
    n_renamed, last = 0, ""
    with ExternalSorter(chunk_sort_key, path.parent) as spool:
        for chunk in read_chunks(chunk_file):
            spool.add(chunk)
            if is_given_in_set(chunk.chunk_id):
                n_renamed, last = n_renamed + 1, chunk.chunk_id
        write_whole(path, refuse_duplicate_chunks(spool.lines()))
        if n_renamed:
            message = (
                f"{chunk_file}: {n_renamed:,} chunks have ids of the look that texts of runs get; "
                f"in a set these begin with id_, such as {last}, and files and retrievers may name "
                "either"
            )
            observer(Event("note", message=message))
        return spool.count


def spooled_rows(spool: ExternalSorter[SourceDocument]) -> Iterator[SourceDocument]:
    """Yield the rows of documents in a spool, sorted by id."""
    return map(SourceDocument.model_validate_json, spool.lines())


def write_rows(path: Path, rows: Iterator[SourceDocument]) -> None:
    """Write rows of documents as they come.

    Raises:
        DataError: The file cannot be written; the old one is untouched.
    """
    write_whole(path, (f"{row.model_dump_json()}\n" for row in rows))


def document_sort_key(row: SourceDocument) -> tuple[str, ...]:
    """Return the sort key of a document's record."""
    return (row.doc_id,)


def chunk_sort_key(chunk: Chunk) -> tuple[str, ...]:
    """Return the sort key of a chunk."""
    return chunk.chunk_id, chunk.doc_id


def refuse_duplicate_chunks(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of chunks that are sorted by id.

    Raises:
        DataError: Two have one id.
    """
    last, last_id = "", ""
    for line in lines:
        # In JSON, no string can hold the bare quotes that end the first field.
        chunk_id = line.partition('","doc_id":')[0]
        if chunk_id == last_id:
            raise _twice(Chunk.model_validate_json(last), Chunk.model_validate_json(line))
        last, last_id = line, chunk_id
        yield line


def no_text_error(documents: Sequence[Path]) -> DataError:
    """Return the error about documents without text."""
    return DataError(
        f"{', '.join(map(str, documents))}: no text to cut into chunks; every document is empty"
    )


def _make_room(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error


def _twice(first: Chunk, second: Chunk) -> DataError:
    return DataError(f"chunk {first.chunk_id} comes twice, in {first.doc_id} and {second.doc_id}")


def document_sha256(document: Document) -> str:
    """Return the digest of a document's title, format and the normalised text of its file."""
    head = f"{document.format}\n{len(document.title)}\n{document.title}\n"
    text = document.file_text or document.text
    return hashlib.sha256(f"{head}{text}".encode("utf-8", "surrogatepass")).hexdigest()


def document_row(document: Document, n_chunks: int) -> SourceDocument:
    """Return the record of a document that is new."""
    return SourceDocument(
        doc_id=document.doc_id,
        sha256=document_sha256(document),
        n_chars=len(document.text),
        n_chunks=n_chunks,
    )


def chunks_sha256(chunks: Iterable[Chunk]) -> str:
    """Return a digest of the texts and titles of chunks, whatever their order and ids."""
    return _joined(sorted(map(_content, chunks)))


def renames(removed: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return which documents are found under another id: the earlier one to the one now.

    Args:
        removed: Id to digest of documents that are gone.
        added: Likewise of those that came. Where several have one digest, the first is taken for
            the first in the order of their ids, and so on.
    """
    gone: defaultdict[str, list[str]] = defaultdict(list)
    for doc_id in sorted(removed, reverse=True):
        gone[removed[doc_id]].append(doc_id)
    found: dict[str, str] = {}
    for doc_id in sorted(added):
        if gone.get(added[doc_id]):
            found[gone[added[doc_id]].pop()] = doc_id
    return dict(sorted(found.items()))


def carry_history(
    now: SourceDocument, before: SourceDocument | None, version: int, *, is_changed: bool
) -> SourceDocument:
    """Return the row of a document with the aliases and versions of the row before.

    Args:
        now: As it was read, without a past.
        before: The same document in the version before, under the id that it had there; None
            where it is new.
        version: The version that the row is for.
        is_changed: Whether its text changed; another id is a change too.
    """
    if before is None:
        return now.model_copy(update={"first_version": version, "last_version": version})
    moved = before.doc_id != now.doc_id
    former = dict.fromkeys((*before.aliases, before.doc_id))
    past = {
        "aliases": tuple(name for name in former if name != now.doc_id),
        "first_version": before.first_version,
        "last_version": version if moved or is_changed else before.last_version,
    }
    return now.model_copy(update=past)


def carry_histories(
    now: Iterable[SourceDocument], before: Iterable[SourceDocument], version: int
) -> Iterator[SourceDocument]:
    """Yield rows with the aliases and versions of the rows before; both sorted by id."""
    aged = ((row.doc_id, 0, row) for row in before)
    fresh = ((row.doc_id, 1, row) for row in now)
    last: SourceDocument | None = None
    for doc_id, is_now, row in heapq.merge(aged, fresh, key=lambda item: item[:2]):
        if not is_now:
            last = row
            continue
        old = last if last is not None and last.doc_id == doc_id else None
        is_changed = old is None or old.sha256 != row.sha256
        yield carry_history(row, old, version, is_changed=is_changed)


def refuse_duplicate_documents(rows: Iterable[SourceDocument]) -> Iterator[SourceDocument]:
    """Yield rows that are sorted by id.

    Raises:
        DataError: Two have one id.
    """
    last = ""
    for row in rows:
        if row.doc_id == last:
            raise DataError(
                f"document {row.doc_id} comes twice; expected an id for each document: rename the "
                "file or the row"
            )
        last = row.doc_id
        yield row


def rows_of_chunks(chunks: Iterable[Chunk], folder: Path) -> Iterator[SourceDocument]:
    """Yield a row for each document that chunks name, sorted by id.

    Args:
        chunks: In any order. Their texts stand for the document: its digest is `chunks_sha256`.
        folder: Where to sort what memory should not hold.
    """
    with ExternalSorter(_part_key, folder) as spool:
        for chunk in chunks:
            spool.add(
                _Part(
                    doc_id=chunk.doc_id,
                    content=_content(chunk),
                    chunk_id=chunk.chunk_id,
                    n_chars=len(chunk.text),
                )
            )
        parts = map(_Part.model_validate_json, spool.lines())
        for doc_id, group in groupby(parts, key=lambda part: part.doc_id):
            n_chars = n_chunks = 0
            digest = hashlib.sha256()
            for part in group:
                digest.update(part.content.encode())
                n_chars += part.n_chars
                n_chunks += 1
            yield SourceDocument(
                doc_id=doc_id, sha256=digest.hexdigest(), n_chars=n_chars, n_chunks=n_chunks
            )


class _Part(Record):
    doc_id: str
    content: str
    chunk_id: str
    n_chars: int


def _part_key(part: _Part) -> tuple[str, ...]:
    return part.doc_id, part.content, part.chunk_id


def _content(chunk: Chunk) -> str:
    titles = "\n".join(chunk.heading_path)
    return text_sha256(f"{titles}\n\n{chunk.text}")


def _joined(contents: Iterable[str]) -> str:
    return hashlib.sha256("".join(contents).encode()).hexdigest()
