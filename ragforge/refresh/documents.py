"""Comparing a corpus with the one that a version was made of, and writing what it is now."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragforge.config import ChunkSettings
from ragforge.corpus.cutting import cutting_of, nothing_in, write_rows
from ragforge.corpus.document_rows import rows_of_chunks
from ragforge.errors import DataError
from ragforge.files.chunk_lines import each_chunk
from ragforge.files.dataset import Dataset
from ragforge.files.manifest import digest_file
from ragforge.files.values import escaped
from ragforge.observe import Event, Observer
from ragforge.records import DocumentsDiff, RenamedDocument
from ragforge.refresh.chunk_merge import ChunkFiles, Merged, merge_chunks
from ragforge.refresh.corpus_diff import CorpusDiff
from ragforge.refresh.document_moves import DocumentRows, Moves, renames
from ragforge.refresh.known_documents import KnownDocuments
from ragforge.refresh.reading import Past, Reading

READY_MADE: Final = "ready-made chunks"
"""In the place of what tells how documents are cut, where they are not."""
_CHUNKS, _DOCUMENTS = "chunks.jsonl", "documents.jsonl"
_ADDED, _REMOVED, _BEFORE = "added.jsonl", "removed.jsonl", "before.jsonl"
_SHOWN = 3


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
    cutting = cutting_of(settings)
    with _all_or_nothing(place):
        comparison = _Comparison(parent, place, cutting, version, _past(parent, cutting, place))
        with Reading(comparison.past, place) as reading:
            reading.read_documents(documents, settings, observer)
            found = comparison.diff(reading)
        if not found.chunks.records:
            raise nothing_in(documents)
    _tell(comparison, found, observer)
    return found


def diff_chunks(
    parent: Dataset, chunk_file: Path, place: Path, observer: Observer, version: int
) -> CorpusDiff:
    """Compare ready-made chunks with those of a version, as `diff_corpus` does.

    Raises:
        DataError: A file cannot be read or written.
    """
    with _all_or_nothing(place):
        past = _past(parent, READY_MADE, place)
        comparison = _Comparison(parent, place, READY_MADE, version, past)
        with Reading(past, place) as reading:
            reading.read_chunks(chunk_file)
            found = comparison.diff(reading)
    _tell(comparison, found, observer)
    return found


@dataclass(frozen=True, slots=True)
class _Comparison:
    parent: Dataset
    place: Path
    cutting: str
    version: int
    past: Past

    def diff(self, reading: Reading) -> CorpusDiff:
        """Return what changed, written to the place unless it is nothing."""
        if reading.is_all_as_it_was:
            return self._nothing(reading)
        place = self.place
        files = ChunkFiles(place / _CHUNKS, place / _ADDED, place / _REMOVED)
        touched: set[str] = set()
        note = touched.add if not self.past.by_digest else lambda doc_id: None
        merged = merge_chunks(
            self.parent.chunks_path, reading.chunks(), reading.is_replaced(), files, note
        )
        return self._written(reading, merged, files, touched)

    def _written(
        self, reading: Reading, merged: Merged, files: ChunkFiles, touched: set[str]
    ) -> CorpusDiff:
        removed, added = reading.removed(), reading.added()
        by_digest = self.past.by_digest
        changed = reading.reworded() if by_digest else frozenset(touched - {*removed, *added})
        renamed = renames(removed, added)
        ids = None if self.past.is_cut_anew else frozenset((*removed, *added, *changed))
        path = self.place / _DOCUMENTS
        cut_by = self.parent.manifest.cutting if self.past.is_cut_anew else ""
        rows = DocumentRows(self.past.known, renamed, changed, self.version, cut_by)
        entry, now = rows.write(path, reading.kept(), reading.rows(), ids)
        present = set(renamed.values())
        return CorpusDiff(
            documents=DocumentsDiff(
                added=tuple(sorted(added.keys() - present)),
                changed=tuple(sorted(changed)),
                removed=tuple(sorted(removed.keys() - renamed.keys())),
                renamed=tuple(RenamedDocument(before=a, after=b) for a, b in renamed.items()),
                unreadable=reading.unreadable(),
                n_before=len(self.past.known),
                n_now=reading.n_documents,
                chunks_kept=merged.kept,
                chunks_added=merged.added,
                chunks_removed=merged.removed,
                is_cut_anew=self.past.is_cut_anew,
            ),
            moves=Moves(self.past.known, now, renamed, ids),
            chunks_path=files.chunks,
            chunks=merged.entry,
            documents_path=path,
            documents_entry=entry,
            added_path=files.added,
            removed_path=files.removed,
            cutting=self.cutting,
            chunks_rewritten=merged.rewritten,
        )

    def _nothing(self, reading: Reading) -> CorpusDiff:
        entries, n = self.parent.manifest.files, len(self.past.known)
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
            cutting=self.cutting,
        )


def _past(parent: Dataset, cutting: str, place: Path) -> Past:
    before = parent.manifest.cutting
    if before and _is_recorded(parent):
        known = KnownDocuments.of(parent.files / _DOCUMENTS)
        is_alike, is_ready_made = before == cutting, cutting == READY_MADE
        return Past(
            known,
            by_digest=not (is_alike and is_ready_made),
            is_cut_alike=is_alike and not is_ready_made,
            is_cut_anew=not is_alike,
        )
    path = place / _BEFORE
    write_rows(path, rows_of_chunks((chunk for _, chunk in each_chunk(parent.chunks_path)), place))
    known = KnownDocuments.of(path)
    path.unlink()
    return Past(known, by_digest=False, is_cut_alike=False, is_cut_anew=False)


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


def _tell(comparison: _Comparison, found: CorpusDiff, observer: Observer) -> None:
    unreadable = found.documents.unreadable
    if unreadable:
        some = ", ".join(map(escaped, unreadable[:_SHOWN]))
        told = f"{len(unreadable)} known documents cannot be read now and stay as they were: {some}"
        observer(Event("note", message=told))
    if found.documents.is_cut_anew:
        before = comparison.parent.manifest.cutting
        told = f"all documents are cut anew: {found.cutting}, and before {before}"
        observer(Event("note", message=told))
