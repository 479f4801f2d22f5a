"""The corpus that a set is generated from, put on disk before anything is asked about it."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragforge.config import ChunkSettings
from ragforge.errors import DataError
from ragforge.files.manifest import FileEntry, digest_file
from ragforge.observe import Observer
from ragforge.pipeline.corpus import write_corpus


@dataclass(frozen=True, slots=True)
class Prepared:
    """A corpus as a file of chunks, sorted by id.

    Args:
        path: The file; gone when it is closed, unless it was taken.
        entry: Its digest, and how many chunks it has.
    """

    path: Path
    entry: FileEntry

    @property
    def digest(self) -> str:
        """The sha256 of its bytes."""
        return self.entry.sha256


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """Where chunks come from.

    Args:
        documents: Files and folders to cut into chunks.
        chunk_file: Ready-made chunks instead; None where there are none.
        settings: How documents are cut.
        observer: Told of documents that are passed over.
    """

    documents: Sequence[Path]
    chunk_file: Path | None
    settings: ChunkSettings
    observer: Observer

    @contextmanager
    def prepared(self, folder: Path) -> Iterator[Prepared]:
        """Lend the chunks as a file.

        Args:
            folder: Where to put it; made if need be, and on the disk that the set is on.

        Raises:
            DataError: The corpus cannot be read or written, or has no text.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            place = tempfile.TemporaryDirectory(prefix="chunks-", dir=folder)
        except OSError as error:
            raise DataError(f"{folder}: cannot be made: {error.strerror or error}") from error
        with place as name:
            path = Path(name) / "chunks.jsonl"
            count = write_corpus(
                self.documents, self.chunk_file, self.settings, self.observer, path
            )
            yield Prepared(path, FileEntry(sha256=digest_file(path), records=count))
