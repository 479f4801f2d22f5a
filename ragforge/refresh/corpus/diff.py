"""How a corpus differs from the one that a version of a set was made of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragforge.files.manifest import FileEntry
from ragforge.files.set.sorted_records import each_chunk
from ragforge.records import Chunk, DocumentsDiff, SourceDocument


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
        cutting: What tells how documents are cut: settings and the version of the chunker.
        chunks_rewritten: Chunks with the id and words that they had, and other blanks or offsets.
    """

    documents: DocumentsDiff
    moves: Mapping[str, DocumentMove]
    chunks_path: Path
    chunks: FileEntry
    documents_path: Path
    documents_entry: FileEntry
    added_path: Path
    removed_path: Path
    cutting: str
    chunks_rewritten: int = 0

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


def _chunks(path: Path, count: int) -> Iterator[Chunk]:
    return (chunk for _, chunk in each_chunk(path)) if count else iter(())
