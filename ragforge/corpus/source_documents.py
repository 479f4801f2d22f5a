"""The records of the documents that a set was cut from: the rows of `documents.jsonl`."""

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from ragforge.corpus.chunking import text_sha256
from ragforge.corpus.documents import Document
from ragforge.errors import DataError
from ragforge.files.record_files import ExternalSorter
from ragforge.records import Chunk, SourceDocument
from ragforge.records.record import Record


def document_sha256(document: Document) -> str:
    """Return the digest of a document's title, format and normalised text."""
    head = f"{document.format}\n{len(document.title)}\n{document.title}\n"
    return hashlib.sha256(f"{head}{document.text}".encode("utf-8", "surrogatepass")).hexdigest()


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
