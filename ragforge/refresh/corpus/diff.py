"""How a corpus differs from the one that a version was made of, and what it is now."""

import contextlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from itertools import groupby
from pathlib import Path
from typing import Final

from ragforge.config import ChunkSettings
from ragforge.corpus.chunk_files import (
    CUT_BY,
    carry_history,
    describe_chunking,
    no_text_error,
    renames,
    rows_of_chunks,
    write_rows,
)
from ragforge.corpus.moved_documents import MovedDocuments
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.atomic import write_whole_bytes
from ragforge.files.manifest import FileEntry, digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import DocumentLines, each_chunk
from ragforge.files.text import escaped
from ragforge.observe import Event, Observer
from ragforge.records import Chunk, DocumentsDiff, RenamedDocument, SourceDocument
from ragforge.refresh.corpus.chunk_merge import ChunkFiles, Merged, merge_chunks
from ragforge.refresh.corpus.reading import CorpusReading, EarlierDocuments, KnownDocuments

READY_MADE: Final = "ready-made chunks"
"""In the place of what tells how documents are cut, where they are not."""
_CHUNKS, _DOCUMENTS = "chunks.jsonl", "documents.jsonl"
_ADDED, _REMOVED, _BEFORE = "added.jsonl", "removed.jsonl", "before.jsonl"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DocumentMove:
    """A document before and now.

    Args:
        before: None where it is new.
        now: None where it is gone.
    """

    before: SourceDocument | None
    now: SourceDocument | None


@dataclass(frozen=True, slots=True)
class CorpusDiff:
    """What changed, with the files of the corpus as it is now; they live as long as their folder.

    Args:
        documents: Ids of documents by what happened to them, and counts.
        moves: The documents that are not as they were, by each id that they have or had. With
            other chunk settings these are all documents. Rows are read from disk when asked for.
        chunks_path: All chunks as they are now, sorted by id.
        chunks: Digest and number of these.
        documents_path: All documents as they are now, sorted by id; the numbers of versions in
            it are those of the next version.
        documents_entry: Digest and number of these.
        added_path: Chunks that the version before does not have, sorted by id.
        removed_path: Chunks of the version before that are gone, sorted by id. A chunk from a
            ready-made file that kept its id and has other words is in both.
        chunking: What tells how documents are cut: settings and the version of the chunker.
        chunks_rewritten: Chunks with the id and words that they had, and other blanks or offsets.
        moved: Where the texts of documents stand now, by the folder of the version before, once
            that was looked for.
    """

    documents: DocumentsDiff
    moves: Mapping[str, DocumentMove]
    chunks_path: Path
    chunks: FileEntry
    documents_path: Path
    documents_entry: FileEntry
    added_path: Path
    removed_path: Path
    chunking: str
    chunks_rewritten: int = 0
    moved: dict[Path, MovedDocuments] = field(default_factory=dict, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether the chunks are as they were, to the byte, whatever is recorded of documents."""
        found = self.documents
        return not (found.chunks_added or found.chunks_removed or self.chunks_rewritten)

    def added(self) -> Iterator[Chunk]:
        """Yield the chunks that are new."""
        return _chunks(self.added_path, self.documents.chunks_added)

    def removed(self) -> Iterator[Chunk]:
        """Yield the chunks that are gone."""
        return _chunks(self.removed_path, self.documents.chunks_removed)


class Moves(Mapping[str, DocumentMove]):
    """The documents that are not as they were, read from disk one by one.

    Args:
        before, now: All documents, or those among them that are not as they were.
        renamed: Earlier to present id.
        ids: Which ids are asked for; None for all.
    """

    def __init__(
        self,
        before: KnownDocuments,
        now: KnownDocuments,
        renamed: Mapping[str, str],
        ids: frozenset[str] | None,
    ) -> None:
        self._before = before
        self._now = now
        self._to = renamed
        self._from = {after: earlier for earlier, after in renamed.items()}
        self._ids = ids

    def __getitem__(self, doc_id: str) -> DocumentMove:
        if self._ids is None or doc_id in self._ids:
            before = self._before.get(self._from.get(doc_id, doc_id))
            now = self._now.get(self._to.get(doc_id, doc_id))
            if before or now:
                return DocumentMove(before, now)
        raise KeyError(doc_id)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids, sorted."""
        if self._ids is not None:
            return iter(sorted(self._ids))
        both = heapq.merge(self._before.ids(), self._now.ids())
        return (doc_id for doc_id, _ in groupby(both))

    def __len__(self) -> int:
        return len(self._ids) if self._ids is not None else sum(1 for _ in self)


def _chunks(path: Path, count: int) -> Iterator[Chunk]:
    return (chunk for _, chunk in each_chunk(path)) if count else iter(())


class DocumentRows:
    """Writes the rows of the documents as they are now.

    Args:
        before: The documents before.
        renamed: Earlier to present id.
        changed: Ids of documents that say something else now.
        version: The version that the rows are for.
        cut_by: How documents were cut that stay as they are while the others are cut anew; ""
            where none are. Their digest tells it, so that they are cut once they can be read.
    """

    def __init__(
        self,
        before: KnownDocuments,
        renamed: Mapping[str, str],
        changed: frozenset[str],
        version: int,
        cut_by: str = "",
    ) -> None:
        self._before = before
        self._from = {after: earlier for earlier, after in renamed.items()}
        self._changed = changed
        self._version = version
        self._cut_by = cut_by

    def write(
        self,
        path: Path,
        kept: Iterable[int],
        fresh: Iterable[SourceDocument],
        ids: frozenset[str] | None,
    ) -> tuple[FileEntry, KnownDocuments]:
        """Write the rows, and return their digest and number and the table of those in `ids`.

        Args:
            path: The file.
            kept: Numbers of the rows that stay as they are, ascending.
            fresh: Rows of the other documents, sorted by id.
            ids: Which documents to have in the table; None for all.

        Raises:
            DataError: The file cannot be written.
        """
        table = KnownDocuments()
        n_rows = 0

        def lines() -> Iterator[bytes]:
            nonlocal n_rows
            at = 0
            both = (self._old(kept), self._new(fresh))
            for row, line in heapq.merge(*both, key=lambda item: item[0].doc_id):
                if ids is None or row.doc_id in ids:
                    table.add(at, row)
                at += len(line)
                n_rows += 1
                yield line

        write_whole_bytes(path, lines())
        table.seal(path)
        return FileEntry(sha256=digest_file(path), records=n_rows), table

    def _old(self, kept: Iterable[int]) -> Iterator[tuple[SourceDocument, bytes]]:
        for number in kept:
            line = self._before.line(number)
            row = SourceDocument.model_validate_json(line)
            if self._cut_by:
                digest = row.sha256.partition(CUT_BY)[0]
                row = row.model_copy(update={"sha256": f"{digest}{CUT_BY}{self._cut_by}"})
                line = f"{row.model_dump_json()}\n".encode()
            yield row, line

    def _new(self, fresh: Iterable[SourceDocument]) -> Iterator[tuple[SourceDocument, bytes]]:
        for row in fresh:
            before = self._before.get(self._from.get(row.doc_id, row.doc_id))
            is_changed = row.doc_id in self._changed
            full = carry_history(row, before, self._version, is_changed=is_changed)
            yield full, f"{full.model_dump_json()}\n".encode()


def diff_corpus(
    parent: Dataset,
    documents: Sequence[Path],
    settings: ChunkSettings,
    place: Path,
    observer: Observer,
    version: int,
) -> CorpusDiff:
    """Compare documents with those that a version was made of; only what changed is cut.

    A set that does not record its documents is compared by its chunks. A document that is known
    and cannot be read stays as it was.

    Args:
        parent: The version.
        documents: Files and folders.
        settings: How documents are cut.
        place: Folder for the files of the corpus as it is now; nothing is written where nothing
            changed, and nothing is left of what was interrupted.
        observer: Told of documents that are passed over, and of what stays.
        version: Number of the next version.

    Raises:
        DataError: The documents are missing, cannot be read or hold no text, two have one id, or
            a file cannot be written.
        UsageError: The chunker cannot be used.
    """
    chunking = describe_chunking(settings)
    with _all_or_nothing(place):
        comparison = _Comparison(
            parent, place, chunking, version, _earlier_documents(parent, chunking, place)
        )
        with CorpusReading(comparison.earlier, place) as reading:
            reading.read_documents(documents, settings, observer)
            found = comparison.diff(reading)
        if not found.chunks.records:
            raise no_text_error(documents)
    _note_result(comparison, found, observer)
    return found


def diff_chunks(
    parent: Dataset, chunk_file: Path, place: Path, observer: Observer, version: int
) -> CorpusDiff:
    """Compare ready-made chunks with those of a version, as `diff_corpus` does.

    Raises:
        DataError: A file cannot be read or written.
    """
    with _all_or_nothing(place):
        earlier = _earlier_documents(parent, READY_MADE, place)
        comparison = _Comparison(parent, place, READY_MADE, version, earlier)
        with CorpusReading(earlier, place) as reading:
            reading.read_chunks(chunk_file)
            found = comparison.diff(reading)
    _note_result(comparison, found, observer)
    return found


@dataclass(frozen=True, slots=True)
class _Comparison:
    parent: Dataset
    place: Path
    chunking: str
    version: int
    earlier: EarlierDocuments

    def diff(self, reading: CorpusReading) -> CorpusDiff:
        """Return what changed, written to the place unless it is nothing."""
        if reading.is_all_as_it_was:
            return self._nothing(reading)
        place = self.place
        files = ChunkFiles(place / _CHUNKS, place / _ADDED, place / _REMOVED)
        touched: set[str] = set()
        note = touched.add if not self.earlier.by_digest else lambda doc_id: None
        merged = merge_chunks(
            self.parent.chunks_path, reading.chunks(), reading.is_replaced(), files, note
        )
        return self._written(reading, merged, files, touched)

    def _written(
        self, reading: CorpusReading, merged: Merged, files: ChunkFiles, touched: set[str]
    ) -> CorpusDiff:
        removed, added = reading.removed(), reading.added()
        by_digest = self.earlier.by_digest
        changed = reading.reworded() if by_digest else frozenset(touched - {*removed, *added})
        renamed = renames(removed, added)
        ids = None if self.earlier.is_cut_anew else frozenset((*removed, *added, *changed))
        path = self.place / _DOCUMENTS
        cut_by = self.parent.manifest.cutting if self.earlier.is_cut_anew else ""
        rows = DocumentRows(self.earlier.known, renamed, changed, self.version, cut_by)
        entry, now = rows.write(path, reading.kept(), reading.rows(), ids)
        present = set(renamed.values())
        return CorpusDiff(
            documents=DocumentsDiff(
                added=tuple(sorted(added.keys() - present)),
                changed=tuple(sorted(changed)),
                removed=tuple(sorted(removed.keys() - renamed.keys())),
                renamed=tuple(RenamedDocument(before=a, after=b) for a, b in renamed.items()),
                unreadable=reading.unreadable(),
                n_before=len(self.earlier.known),
                n_now=reading.n_documents,
                chunks_kept=merged.kept,
                chunks_added=merged.added,
                chunks_removed=merged.removed,
                is_cut_anew=self.earlier.is_cut_anew,
            ),
            moves=Moves(self.earlier.known, now, renamed, ids),
            chunks_path=files.chunks,
            chunks=merged.entry,
            documents_path=path,
            documents_entry=entry,
            added_path=files.added,
            removed_path=files.removed,
            chunking=self.chunking,
            chunks_rewritten=merged.rewritten,
        )

    def _nothing(self, reading: CorpusReading) -> CorpusDiff:
        entries, n = self.parent.manifest.files, len(self.earlier.known)
        return CorpusDiff(
            documents=DocumentsDiff(
                unreadable=reading.unreadable(),
                n_before=n,
                n_now=n,
                chunks_kept=entries[_CHUNKS].records,
            ),
            moves={},
            chunks_path=self.parent.chunks_path,
            chunks=entries[_CHUNKS],
            documents_path=self.parent.files / _DOCUMENTS,
            documents_entry=entries[_DOCUMENTS],
            added_path=self.place / _ADDED,
            removed_path=self.place / _REMOVED,
            chunking=self.chunking,
        )


def _earlier_documents(parent: Dataset, chunking: str, place: Path) -> EarlierDocuments:
    before = parent.manifest.cutting
    if before and _is_recorded(parent):
        known = KnownDocuments.of(parent.files / _DOCUMENTS)
        is_alike, is_ready_made = before == chunking, chunking == READY_MADE
        return EarlierDocuments(
            known,
            by_digest=not (is_alike and is_ready_made),
            is_cut_alike=is_alike and not is_ready_made,
            is_cut_anew=not is_alike,
        )
    path = place / _BEFORE
    write_rows(path, rows_of_chunks((chunk for _, chunk in each_chunk(parent.chunks_path)), place))
    known = KnownDocuments.of(path)
    path.unlink()
    return EarlierDocuments(known, by_digest=False, is_cut_alike=False, is_cut_anew=False)


def _is_recorded(parent: Dataset) -> bool:
    """Whether the documents are recorded, and the chunks are those that were cut from them."""
    entries = parent.manifest.files
    return all(
        name in entries
        and (parent.files / name).exists()
        and digest_file(parent.files / name) == entries[name].sha256
        for name in (_CHUNKS, _DOCUMENTS)
    )


@contextlib.contextmanager
def _all_or_nothing(place: Path) -> Iterator[None]:
    try:
        place.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise DataError(f"{place}: cannot be written: {error.strerror or error}") from error
    except BaseException:
        for name in (_CHUNKS, _DOCUMENTS, _ADDED, _REMOVED, _BEFORE):
            (place / name).unlink(missing_ok=True)
        raise


def _note_result(comparison: _Comparison, diff: CorpusDiff, observer: Observer) -> None:
    unreadable = diff.documents.unreadable
    if unreadable:
        some = ", ".join(map(escaped, unreadable[:_SHOWN]))
        message = (
            f"{len(unreadable)} known documents cannot be read now and stay as they were: {some}"
        )
        observer(Event("note", message=message))
    if diff.documents.is_cut_anew:
        before = comparison.parent.manifest.cutting
        message = f"all documents are cut anew: {diff.chunking}, and before {before}"
        observer(Event("note", message=message))


class DocumentChunks(AbstractContextManager["DocumentChunks"]):
    """Indexes of the chunks of some documents, read from disk when they are needed.

    Args:
        path: Chunks sorted by id; read once, unless no document is wanted.
        doc_ids: The documents.

    Raises:
        DataError: The file cannot be read.
    """

    def __init__(self, path: Path, doc_ids: Collection[str]) -> None:
        self._lines = DocumentLines(path, doc_ids)
        self._last: tuple[frozenset[str], ChunkIndex] | None = None

    def __exit__(self, *_: object) -> None:
        self._lines.__exit__()

    def index(self, doc_ids: frozenset[str]) -> ChunkIndex:
        """Return the chunks of some documents in their order; the last index is held."""
        if self._last is None or self._last[0] != doc_ids:
            chunks = (chunk for one in sorted(doc_ids) for chunk in self._lines.chunks_of(one))
            self._last = doc_ids, ChunkIndex(chunks)
        return self._last[1]
