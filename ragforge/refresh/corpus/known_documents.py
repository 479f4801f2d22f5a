"""Documents looked up by id on disk; of each, some tens of bytes are in memory."""

import hashlib
import mmap
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ragforge.errors import DataError
from ragforge.files.array_files import Array
from ragforge.files.set.sorted_records import each_document
from ragforge.records import SourceDocument

_BYTES = 16
_KIND = f"S{_BYTES}"


class KnownDocuments:
    """A table of documents, sorted by id. Rows are added first, then the table is sealed."""

    def __init__(self) -> None:
        self._ids, self._texts, self._begins = bytearray(), bytearray(), array("Q")
        self._order: Array = np.empty(0, np.int64)
        self._keys: Array = np.empty(0, _KIND)
        self._file: mmap.mmap | None = None

    @classmethod
    def of(cls, path: Path) -> "KnownDocuments":
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


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest()
