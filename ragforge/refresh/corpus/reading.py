"""Reading a corpus against the documents that are known: only what is new is cut and kept."""

from __future__ import annotations

import hashlib
import mmap
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from ragforge.config import ChunkSettings
from ragforge.corpus.chunk_files import (
    EmptyDocuments,
    chunk_sort_key,
    chunks_sha256,
    configured_chunker,
    corpus_documents,
    document_row,
    document_sha256,
    document_sort_key,
    refuse_duplicate_chunks,
    refuse_duplicate_documents,
    rows_of_chunks,
    spooled_rows,
)
from ragforge.corpus.documents import Document
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError
from ragforge.files.array_files import Array
from ragforge.files.formats.chunks import read_chunks
from ragforge.files.record_files import ExternalSorter
from ragforge.files.set.sorted_records import each_document
from ragforge.observe import Event, Observer
from ragforge.records import Chunk, SourceDocument

_BYTES = 16
_KIND = f"S{_BYTES}"
STAGE = "documents"
_AT_ONCE = 1000
_UNMET, _SAME, _FRESH, _UNREAD = range(4)


class KnownDocuments:
    """A table of documents, sorted by id. Rows are added first, then the table is sealed."""

    def __init__(self) -> None:
        self._ids, self._texts, self._begins = bytearray(), bytearray(), array("Q")
        self._order: Array = np.empty(0, np.int64)
        self._keys: Array = np.empty(0, _KIND)
        self._file: mmap.mmap | None = None

    @classmethod
    def of(cls, path: Path) -> KnownDocuments:
        """Return the table of all documents of a `documents.jsonl`.

        Raises:
            DataError: It cannot be read, or does not hold to the format.
        """
        table = cls()
        for begin, row in each_document(path):
            table.add(begin, row)
        table.seal(path)
        return table

    def __len__(self) -> int:
        return len(self._begins)

    def add(self, begin: int, row: SourceDocument) -> None:
        """Take a row.

        Args:
            begin: Where its line begins in the file.
            row: With an id above those that were added before.
        """
        self._ids += _digest(row.doc_id)
        self._texts += _digest(row.sha256)
        self._begins.append(begin)

    def seal(self, path: Path) -> None:
        """Open the file of the rows, which is read from then on, also under another name.

        Raises:
            DataError: It cannot be read.
        """
        keys = np.frombuffer(bytes(self._ids), _KIND)
        self._ids.clear()
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        if not self._begins:
            return
        try:
            with path.open("rb") as stream:
                # A map needs no closing by hand.
                self._file = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error

    def find(self, doc_id: str) -> int | None:
        """Return the number of a document's row, None where it is not known."""
        # The array drops zeros at the end; all digests have one length, so they stay apart.
        key = _digest(doc_id).rstrip(b"\0")
        at = int(np.searchsorted(self._keys, np.bytes_(key)))
        found = at < len(self._keys) and bytes(self._keys[at]) == key
        return int(self._order[at]) if found else None

    def says(self, number: int, sha256: str) -> bool:
        """Whether a row has this digest."""
        return self._texts[number * _BYTES : (number + 1) * _BYTES] == _digest(sha256)

    def line(self, number: int) -> bytes:
        """Return a row as it stands in the file, with its line end."""
        assert self._file is not None
        begin = self._begins[number]
        end = self._file.find(b"\n", begin)
        line = self._file[begin:end] if end >= 0 else self._file[begin:]
        return b"%b\n" % line.rstrip()

    def row(self, number: int) -> SourceDocument:
        """Return a row."""
        return SourceDocument.model_validate_json(self.line(number))

    def get(self, doc_id: str) -> SourceDocument | None:
        """Return the row of a document, None where it is not known."""
        number = self.find(doc_id)
        return None if number is None else self.row(number)

    def ids(self) -> Iterator[str]:
        """Yield all ids, sorted."""
        return (self.row(number).doc_id for number in range(len(self)))


@dataclass(frozen=True, slots=True)
class EarlierDocuments:
    """What a version knows of its documents.

    Args:
        known: The documents.
        by_digest: Whether equal digests mean equal documents; else their chunks are compared.
        is_cut_alike: Whether an equal document has the chunks that it had.
        is_cut_anew: Whether all are known to be cut otherwise now.
    """

    known: KnownDocuments
    by_digest: bool
    is_cut_alike: bool
    is_cut_anew: bool


class CorpusReading(AbstractContextManager["CorpusReading"]):
    """What was read: which known documents are as they were, and all that the others are now.

    Args:
        earlier: What is known.
        folder: Where to sort what memory should not hold.
    """

    def __init__(self, earlier: EarlierDocuments, folder: Path) -> None:
        self._earlier = earlier
        self._folder = folder
        self._states = bytearray(len(earlier.known))
        self._unread: set[str] = set()
        self._contents: dict[str, str] = {}
        self._stack = ExitStack()
        self._chunks = self._stack.enter_context(ExternalSorter(chunk_sort_key, folder))
        self._rows = self._stack.enter_context(ExternalSorter(document_sort_key, folder))

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read_documents(
        self, documents: Sequence[Path], settings: ChunkSettings, observer: Observer
    ) -> None:
        """Read documents, and cut those that are not as they were.

        Raises:
            DataError: They cannot be read, one that is given by name cannot, or two have one id.
            UsageError: The chunker cannot be used.
        """
        chunker = configured_chunker(settings)
        empty = EmptyDocuments(settings, observer)
        every = corpus_documents(documents, settings, observer, self._unread.add, named_must=True)
        for document in _watched(every, len(self._earlier.known), observer):
            if self._is_as_it_was(document):
                continue
            chunks = chunker(document)
            empty.count(document, chunks)
            if self._take(document_row(document, len(chunks))):
                self._contents[document.doc_id] = chunks_sha256(chunks)
            for chunk in chunks:
                self._chunks.add(chunk)
        self._note_unread()
        empty.report(any_kept=_SAME in self._states)

    def read_chunks(self, chunk_file: Path) -> None:
        """Read ready-made chunks.

        Raises:
            DataError: They cannot be read.
        """
        for chunk in read_chunks(chunk_file):
            self._chunks.add(chunk)
        chunks = map(Chunk.model_validate_json, self._chunks.lines())
        for row in rows_of_chunks(chunks, self._folder):
            if self._take(row):
                self._contents[row.doc_id] = row.sha256

    @property
    def is_all_as_it_was(self) -> bool:
        """Whether nothing came, went or changed."""
        return not self._rows.count and _UNMET not in self._states

    @property
    def n_documents(self) -> int:
        """How many documents there are now, with those that cannot be read."""
        return self._rows.count + self._states.count(_SAME) + self._states.count(_UNREAD)

    def chunks(self) -> Iterator[str]:
        """Yield the lines of the chunks that were cut, sorted by id.

        Raises:
            DataError: Two have one id.
        """
        return refuse_duplicate_chunks(self._chunks.lines())

    def rows(self) -> Iterator[SourceDocument]:
        """Yield the rows of the documents that were cut, sorted by id.

        Raises:
            DataError: Two have one id.
        """
        return refuse_duplicate_documents(spooled_rows(self._rows))

    def kept(self) -> Iterator[int]:
        """Yield the numbers of the known rows that stay, ascending."""
        return (at for at, state in enumerate(self._states) if state in (_SAME, _UNREAD))

    def removed(self) -> dict[str, str]:
        """Return the ids of the known documents that are gone, with their digests."""
        return {row.doc_id: row.sha256 for row in self._known(_UNMET)}

    def unreadable(self) -> tuple[str, ...]:
        """Return the ids of the known documents that cannot be read now, sorted."""
        return tuple(row.doc_id for row in self._known(_UNREAD))

    def added(self) -> dict[str, str]:
        """Return the ids of the documents that are new, with digests as those of removed ones."""
        known = self._earlier.known
        if not self._earlier.by_digest:
            return self._contents
        return {row.doc_id: row.sha256 for row in self.rows() if known.find(row.doc_id) is None}

    def reworded(self) -> frozenset[str]:
        """Return the ids of the known documents whose digest is another now."""
        return frozenset(row.doc_id for row in self.rows() if self._is_reworded(row))

    def is_replaced(self) -> Callable[[str], bool]:
        """Return what tells whether the chunks that a known document had are no longer valid."""
        if self._earlier.is_cut_alike:
            stale = frozenset(row.doc_id for row in self._known(_UNMET, _FRESH))
            return stale.__contains__
        unread = frozenset(self.unreadable())
        return lambda doc_id: doc_id not in unread

    def _known(self, *states: int) -> Iterator[SourceDocument]:
        found = (at for at, state in enumerate(self._states) if state in states)
        return map(self._earlier.known.row, found)

    def _is_reworded(self, row: SourceDocument) -> bool:
        number = self._earlier.known.find(row.doc_id)
        return number is not None and not self._earlier.known.says(number, row.sha256)

    def _is_as_it_was(self, document: Document) -> bool:
        """Take note of a document that is known and says what it said."""
        number = self._earlier.known.find(document.doc_id)
        if number is None:
            return False
        if self._states[number] != _UNMET:
            raise DataError(
                f"document {document.doc_id} comes twice; expected an id for each document: "
                "rename the file or the row"
            )
        digest = document_sha256(document)
        is_same = self._earlier.is_cut_alike and self._earlier.known.says(number, digest)
        self._states[number] = _SAME if is_same else _FRESH
        return is_same

    def _take(self, row: SourceDocument) -> bool:
        """Take a row, and say whether it is of a new document that its chunks tell apart."""
        number = self._earlier.known.find(row.doc_id)
        if number is not None:
            self._states[number] = _FRESH
        self._rows.add(row)
        return number is None and not self._earlier.by_digest

    def _note_unread(self) -> None:
        if not self._unread:
            return
        for number, state in enumerate(self._states):
            if state == _UNMET and _is_of(self._earlier.known.row(number).doc_id, self._unread):
                self._states[number] = _UNREAD


def _watched(documents: Iterable[Document], total: int, observer: Observer) -> Iterator[Document]:
    """Yield documents, and tell how many were read."""
    observer(Event("stage.start", STAGE, numbers={"total": total}))
    try:
        for number, document in enumerate(documents, start=1):
            yield document
            if number % _AT_ONCE == 0:
                observer(Event("unit", STAGE, "done", numbers={"count": _AT_ONCE}))
                observer(Event("tick", STAGE))
    finally:
        observer(Event("stage.end", STAGE))


def _is_of(doc_id: str, files: Iterable[str]) -> bool:
    """Whether a document is one of the files, or a row of one."""
    ends = [at for at, letter in enumerate(doc_id) if letter == "#"]
    return any(doc_id[:end] in files for end in (*ends, len(doc_id)))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest()
