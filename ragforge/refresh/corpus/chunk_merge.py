"""The chunks of a corpus as they are now: old lines copied as they stand, and new ones between."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from ragforge.corpus.chunking import text_sha256
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.atomic import write_whole_bytes
from ragforge.files.manifest import FileEntry
from ragforge.files.set.sorted_records import each_line, not_sorted
from ragforge.records import Chunk

_HEAD = b'{"chunk_id":"'
_DOCUMENT = b'","doc_id":"'
_TEXT = b'","text":"'


@dataclass(frozen=True, slots=True)
class ChunkFiles:
    """Where chunks are put.

    Args:
        chunks: All as they are now.
        added: Those that the version before does not have.
        removed: Those of the version before that are gone.
    """

    chunks: Path
    added: Path
    removed: Path


@dataclass(slots=True)
class Merged:
    """What a merge came to.

    Args:
        entry: Digest and number of the chunks as they are now.
        kept: Chunks that are in both.
        added: Chunks that are new.
        removed: Chunks that are gone.
        rewritten: Kept ones whose blanks, offsets or document are others.
    """

    entry: FileEntry
    kept: int = 0
    added: int = 0
    removed: int = 0
    rewritten: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    chunk_id: str
    doc_id: str
    raw: bytes
    """With its line end."""


def merge_chunks(
    old: Path,
    new: Iterable[str],
    is_replaced: Callable[[str], bool],
    files: ChunkFiles,
    touched: Callable[[str], object] = lambda doc_id: None,
) -> Merged:
    """Write the chunks as they are now, sorted by id, and apart those that came and went.

    A chunk of which an id stayed and the words did not is gone, and another one came.

    Args:
        old: The chunks of the version before, sorted by id.
        new: Lines of the chunks of documents that are new or replaced, sorted by id.
        is_replaced: Whether the old chunks of a document are no longer valid.
        files: What is written.
        touched: Told the id of each document of which a chunk came, went or was rewritten.

    Raises:
        DataError: A file cannot be read or written, is not sorted, or two chunks have one id.
    """
    with ExitStack() as stack:
        try:
            added, removed = (
                stack.enter_context(path.open("wb")) for path in (files.added, files.removed)
            )
        except OSError as error:
            raise DataError(f"{files.added}: cannot be written: {error.strerror}") from error
        merge = _Merge(is_replaced, touched, added, removed)
        write_whole_bytes(files.chunks, merge.lines(_old_lines(old), map(_new_line, new)))
    return merge.found()


class _Merge:
    def __init__(
        self,
        is_replaced: Callable[[str], bool],
        touched: Callable[[str], object],
        added: IO[bytes],
        removed: IO[bytes],
    ) -> None:
        self._is_replaced = is_replaced
        self._touched = touched
        self._added = added
        self._removed = removed
        self._digest = hashlib.sha256()
        self._counts = Merged(FileEntry(sha256="", records=0))

    def lines(self, old: Iterator[_Line], new: Iterator[_Line]) -> Iterator[bytes]:
        """Yield the lines as they are now."""
        before, now = next(old, None), next(new, None)
        while before or now:
            if now is None or (before and before.chunk_id < now.chunk_id):
                assert before is not None
                yield from self._only_before(before)
                before = next(old, None)
            elif before is None or now.chunk_id < before.chunk_id:
                yield from self._put(self._added, now)
                now = next(new, None)
            else:
                yield from self._both(before, now)
                before, now = next(old, None), next(new, None)

    def found(self) -> Merged:
        """Return what it came to, when all is written."""
        n_now = self._counts.kept + self._counts.added
        self._counts.entry = FileEntry(sha256=self._digest.hexdigest(), records=n_now)
        return self._counts

    def _only_before(self, line: _Line) -> Iterator[bytes]:
        if self._is_replaced(line.doc_id):
            self._drop(line)
        else:
            yield self._keep(line.raw)

    def _both(self, before: _Line, now: _Line) -> Iterator[bytes]:
        if before.raw == now.raw:
            yield self._keep(now.raw)
            return
        if not self._is_replaced(before.doc_id):
            raise DataError(
                f"chunk {now.chunk_id} comes twice, in {before.doc_id} and {now.doc_id}"
            )
        if _words(before.raw) != _words(now.raw):
            self._drop(before)
            yield from self._put(self._added, now)
            return
        self._counts.rewritten += 1
        self._touched(before.doc_id)
        self._touched(now.doc_id)
        yield self._keep(now.raw)

    def _keep(self, raw: bytes) -> bytes:
        self._counts.kept += 1
        self._digest.update(raw)
        return raw

    def _put(self, file: IO[bytes], line: _Line) -> Iterator[bytes]:
        self._counts.added += 1
        self._touched(line.doc_id)
        file.write(line.raw)
        self._digest.update(line.raw)
        yield line.raw

    def _drop(self, line: _Line) -> None:
        self._counts.removed += 1
        self._touched(line.doc_id)
        self._removed.write(line.raw)


def _old_lines(path: Path) -> Iterator[_Line]:
    last = ""
    for number, _, raw in each_line(path):
        line = _line(raw, f"{path}:{number}")
        if line.chunk_id <= last:
            raise not_sorted(path, number, "chunk_id", last, line.chunk_id)
        last = line.chunk_id
        yield line


def _new_line(text: str) -> _Line:
    return _line(text.encode(), "a new chunk")


def _line(raw: bytes, where: str) -> _Line:
    """Return a line with its ids, which most often stand in front as they are written here."""
    if not raw.endswith(b"\n") or raw.endswith(b"\r\n"):
        raw = b"%b\n" % raw.rstrip(b"\r\n")
    behind_id = raw.find(_DOCUMENT)
    begin = behind_id + len(_DOCUMENT)
    end = raw.find(_TEXT, begin)
    if raw.startswith(_HEAD) and behind_id > 0 and end > 0 and b"\\" not in raw[:end]:
        return _Line(raw[len(_HEAD) : behind_id].decode(), raw[begin:end].decode(), raw)
    try:
        fields = json.loads(raw)
        return _Line(str(fields["chunk_id"]), str(fields["doc_id"]), raw)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{where}: expected a chunk with chunk_id, doc_id and text") from error


def _words(raw: bytes) -> str:
    return text_sha256(Chunk.model_validate_json(raw).text)
