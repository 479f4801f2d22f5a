"""The corpus that a set is generated from, put on disk before anything is asked about it."""

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragforge.config import ChunkSettings
from ragforge.corpus.chunk_files import (
    carry_histories,
    describe_chunking,
    write_corpus,
    write_ready_made,
    write_rows,
)
from ragforge.corpus.origins.fetching import fetch_documents
from ragforge.deferred import dataclass, tempfile
from ragforge.errors import DataError
from ragforge.files.atomic import MIRRORS, make_own_place
from ragforge.files.manifest import FileEntry, digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import each_document
from ragforge.observe import Observer


def real_queries(dataset: Dataset, like: str) -> tuple[str, ...]:
    """Return the queries of users, each once, in the order of the file, then of the set.

    Args:
        dataset: Whose log may have been imported; need not exist.
        like: Path of a file: JSON Lines of strings or of objects with `query` or `question`, or
            plain text, a query a line; "" for none.

    Raises:
        DataError: The file cannot be read, or holds no query.
    """
    found = list(_of_file(Path(like))) if like else []
    if like and not found:
        raise DataError(f"{like}: holds no query")
    found += [item.query for item in dataset.real_queries()]
    return tuple(dict.fromkeys(found))


def _of_file(path: Path) -> Iterator[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text: {error.reason} at {error.start}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith(("{", '"')):
            text = _of_json(text, f"{path}:{number}")
        if text:
            yield text


def _of_json(line: str, where: str) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: is no JSON: {error}") from error
    found = row if isinstance(row, str) else row.get("query", row.get("question"))
    if not isinstance(found, str):
        raise DataError(f"{where}: expected a text under query, got {found!r:.80}")
    return found.strip()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A corpus as a file of chunks, sorted by id.

    Args:
        path: The file; gone when it is closed, unless it was taken.
        entry: Its digest, and how many chunks it has.
        rows: Likewise a file with a row for each document; None for ready-made chunks.
        chunking: What tells how the documents were cut; "" for ready-made chunks.
    """

    path: Path
    entry: FileEntry
    rows: Path | None = None
    chunking: str = ""

    @property
    def digest(self) -> str:
        """The sha256 of its bytes."""
        return self.entry.sha256


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """Where chunks come from.

    Args:
        documents: Files, folders and origins to cut into chunks; see `fetch_documents`.
        chunk_file: Ready-made chunks instead; None where there are none.
        settings: How documents are cut.
        observer: Told of documents that are passed over.
    """

    documents: Sequence[str | Path]
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
            make_own_place(folder)
            place = tempfile.TemporaryDirectory(prefix="chunks-", dir=folder)
        except OSError as error:
            raise DataError(f"{folder}: cannot be made: {error.strerror or error}") from error
        with place as name:
            yield self._prepared(Path(name), folder / MIRRORS)

    def _prepared(self, folder: Path, origins: Path) -> Prepared:
        path, rows = folder / "chunks.jsonl", folder / "rows.jsonl"
        if self.chunk_file is not None:
            count = write_ready_made(self.chunk_file, self.observer, path)
            return Prepared(path, FileEntry(sha256=digest_file(path), records=count))
        with fetch_documents(self.documents, origins, self.observer, self.settings) as documents:
            told = documents.observer_naming_origins(self.observer)
            count = write_corpus(documents, self.settings, told, path, rows)
        entry = FileEntry(sha256=digest_file(path), records=count)
        return Prepared(path, entry, rows, describe_chunking(self.settings))


def take_corpus(dataset: Dataset, prepared: Prepared) -> None:
    """Make a corpus the set's own: its chunks, its documents, and how these were cut.

    Documents that the set knew keep their past. Taking the same again changes nothing.

    Raises:
        DataError: A file cannot be written.
    """
    dataset.take_chunks(prepared.path, prepared.entry)
    if prepared.rows is None:
        dataset.drop_documents()
        return
    path = prepared.rows.with_name("documents.jsonl")
    count = itertools.count()
    rows = (row for _, row in each_document(prepared.rows))
    renewed = carry_histories(rows, dataset.documents(), dataset.manifest.version)
    write_rows(path, (row for row, _ in zip(renewed, count, strict=False)))
    entry = FileEntry(sha256=digest_file(path), records=next(count))
    dataset.take_documents(path, entry)
    manifest = dataset.manifest
    if manifest.cutting != prepared.chunking:
        dataset.write_manifest(manifest.model_copy(update={"cutting": prepared.chunking}))
