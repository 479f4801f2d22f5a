"""Files of records sorted by key: the keys, streams that check the order, merging of two.

Of chunks, one is also read by where its line begins, so that their texts need no memory.
"""

import heapq
import json
import threading
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO, Any, TypeVar

from ragforge.deferred import pattern
from ragforge.errors import DataError
from ragforge.files.record_files import explain, read_records
from ragforge.records import (
    Chunk,
    DormantGrade,
    ItemChange,
    Judgment,
    PoolEntry,
    Query,
    Rejected,
    SourceDocument,
)
from ragforge.records.model import Model, pydantic

T = TypeVar("T")

R = TypeVar("R", bound=Model)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Key = tuple[str, str]
_HEAD = pattern(rb'\{"chunk_id":"[^"\\]*","doc_id":"([^"\\]*)"')
_PAIR = pattern(rb'\{"query_id":"([^"\\]*)","chunk_id":"([^"\\]*)"')
"""How lines of chunks and of judgments begin as ragforge writes them; others are read in full."""


def key_of(judgment: Judgment) -> Key:
    """Return the ids of the query and the chunk of a judgment, by which files are sorted."""
    return judgment.query_id, judgment.chunk_id


def pair_and_judge(judgment: Judgment) -> tuple[str, ...]:
    """Return the pair of a judgment and its judge: the key where several judges graded a pair."""
    by = judgment.provenance
    judge = (by.model, by.prompt_sha256, by.protocol) if by else ()
    return (judgment.query_id, judgment.chunk_id, *judge)


def query_and_chunk(entry: PoolEntry) -> tuple[str, str]:
    """Return the ids of a query and a chunk in its pool."""
    return entry.query_id, entry.chunk_id


def pair_of(grade: DormantGrade) -> tuple[str, str]:
    """Return the ids of the query and the chunk that a person graded."""
    return grade.judgment.query_id, grade.judgment.chunk_id


def id_and_revision(query: Query) -> tuple[str, str]:
    """Return the id of a query and its revision, as a text that sorts like the number."""
    return query.query_id, f"{query.revision:06d}"


def slot_and_place(rejected: Rejected) -> tuple[str, str]:
    """Return the slot of a candidate and its place there, as a text that sorts like the number."""
    return rejected.slot_id, f"{rejected.place:06d}"


def change_key(change: ItemChange) -> tuple[str, str, str]:
    """Return when a query changed, which, and how: a version does nothing twice to a query."""
    return f"{change.version:06d}", change.query_id, change.action


def _each_sorted(path: Path, kind: type[R], field: str) -> Iterator[tuple[int, R]]:
    """Yield where each line begins, in bytes, and the record that it holds.

    Args:
        path: With the records sorted by id; empty lines are passed over.
        kind: What each line must be.
        field: Name of its id.

    Raises:
        DataError: The file cannot be read, a line is no such record, or an id is not above the
            one before.
    """
    last = ""
    for number, at, line in each_line(path):
        try:
            record = kind.model_validate_json(line)
        except pydantic.ValidationError as error:
            raise DataError(f"{path}:{number}: {explain(error)}") from error
        key: str = getattr(record, field)
        if key <= last:
            raise not_sorted(path, number, field, last, key)
        last = key
        yield at, record


def each_document(path: Path) -> Iterator[tuple[int, SourceDocument]]:
    """Yield where each line of a `documents.jsonl` begins, and the document, as `each_chunk`."""
    return _each_sorted(path, SourceDocument, "doc_id")


def each_line(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of each line that is not empty, where it begins, and the line.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            yield from _lines_of(stream)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _lines_of(stream: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    for number, line in enumerate(stream, start=1):
        is_marked = number == 1 and line.startswith(_BYTE_ORDER_MARK)
        mark = len(_BYTE_ORDER_MARK) if is_marked else 0
        if line.strip():
            yield number, at + mark, line[mark:]
        at += len(line)


def not_sorted(path: Path, number: int, field: str, last: str, found: str) -> DataError:
    """Return the error about an id that is not above the one before."""
    return DataError(
        f"{path}:{number}: {field}: expected one above {last!r}, as the file is sorted by id, "
        f"got {found!r}"
    )


def side_by_side(
    old: Iterator[T], new: Iterator[T], key: Callable[[T], str | tuple[str, ...]]
) -> Iterator[tuple[T | None, T | None]]:
    """Yield the items of both in order, those of one key together; one of a pair may be missing.

    Args:
        old: Sorted by key, each once.
        new: Sorted likewise.
        key: Of the same type for all.
    """
    before, now = next(old, None), next(new, None)
    while before is not None or now is not None:
        at = min(key(item) for item in (before, now) if item is not None)
        has_old = before is not None and key(before) == at
        has_new = now is not None and key(now) == at
        yield (before if has_old else None), (now if has_new else None)
        before = next(old, None) if has_old else before
        now = next(new, None) if has_new else now


def each_judgment(path: Path) -> Iterator[Judgment]:
    """Yield the judgments of a file, sorted by query and chunk; none where it does not exist.

    Files that ragforge wrote are sorted and read as a stream; one that was edited out of order is
    sorted in memory.

    Raises:
        DataError: A line is no judgment, or a pair comes twice.
    """
    if not path.exists():
        return
    judgments = read_records(path, Judgment)
    if not _is_sorted(path):
        judgments = iter(sorted(read_records(path, Judgment), key=key_of))
    last: Key | None = None
    for judgment in judgments:
        if key_of(judgment) == last:
            raise DataError(f"{path}: {last} comes twice")
        last = key_of(judgment)
        yield judgment


def merged(old: Iterator[Judgment], new: Iterator[Judgment]) -> Iterator[Judgment]:
    """Yield old and new judgments in order: new ones replace old ones of the same pair.

    What a query's own evidence says is not given up for a judgment that failed.

    Args:
        old: Sorted by query and chunk.
        new: Sorted likewise.
    """
    kept: Judgment | None = None
    # Of equal keys, those of the first come first.
    for judgment in heapq.merge(old, new, key=key_of):
        if kept is not None and key_of(kept) != key_of(judgment):
            yield kept
        elif kept is not None and judgment.is_failed and _says_more(kept):
            continue
        kept = judgment
    if kept is not None:
        yield kept


def _says_more(kept: Judgment) -> bool:
    """Whether what stands is worth more than another failure: evidence, or votes that were cast."""
    return kept.source == "evidence" or (kept.grade is None and bool(kept.votes))


def _is_sorted(path: Path) -> bool:
    last = b"", b""
    with path.open("rb") as stream:
        for line in stream:
            pair = _pair_of(line.removeprefix(_BYTE_ORDER_MARK))
            if pair is None:
                continue
            if pair < last:
                return False
            last = pair
    return True


def _pair_of(line: bytes) -> tuple[bytes, bytes] | None:
    """Return query and chunk of a judgment, in UTF-8, which sorts as its characters do.

    None where the line is empty, or none that the reader will take.
    """
    found = _PAIR.match(line)
    if found is not None:
        return found.group(1), found.group(2)
    try:
        row = json.loads(line)
        return row["query_id"].encode(), row["chunk_id"].encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class ChunkTexts(AbstractContextManager["ChunkTexts"]):
    """Where the wanted texts stand in files of chunks; they are never all in memory.

    Args:
        paths: A `chunks.jsonl`, and files of other texts with ids; the first that has an id counts.
        wanted: Ids; those that the files lack are not held.

    Raises:
        DataError: A file cannot be read, or a line is no chunk.
    """

    def __init__(self, paths: Sequence[Path], wanted: Collection[str]) -> None:
        self._at: dict[str, tuple[IO[bytes], int]] = {}
        with ExitStack() as opened:
            for path in paths:
                try:
                    stream = opened.enter_context(path.open("rb"))
                except OSError as error:
                    raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
                self._find(path, stream, wanted)
            self._opened = opened.pop_all()

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._at

    def __getitem__(self, chunk_id: str) -> str:
        """Return the text of a chunk that is held."""
        text: str = self._row(chunk_id)["text"]
        return text

    def place(self, chunk_id: str) -> tuple[str, int] | None:
        """Return the document of a text that is held, and where it begins; None where it has none.

        A chunk of which nobody knows where it begins is at the start.
        """
        row = self._row(chunk_id)
        doc_id, start = row.get("doc_id"), row.get("start")
        if not isinstance(doc_id, str):
            return None
        return doc_id, start if isinstance(start, int) else 0

    def _row(self, chunk_id: str) -> dict[str, Any]:
        stream, at = self._at[chunk_id]
        stream.seek(at)
        row: dict[str, Any] = json.loads(stream.readline())
        return row

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _find(self, path: Path, stream: IO[bytes], wanted: Collection[str]) -> None:
        for number, at, line in _lines_of(stream):
            try:
                row = json.loads(line.decode())
                chunk_id, text = row["chunk_id"], row["text"]
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"{path}:{number}: is no chunk: {error}") from error
            if not isinstance(text, str):
                raise DataError(f"{path}:{number}: text: expected text, got {text!r}")
            if chunk_id in wanted:
                self._at.setdefault(chunk_id, (stream, at))


def each_chunk(path: Path) -> Iterator[tuple[int, Chunk]]:
    """Yield where each line begins, in bytes, and the chunk that it holds.

    Args:
        path: With the chunks sorted by id; empty lines are passed over.

    Raises:
        DataError: The file cannot be read, a line is no chunk, or an id is not above the one
            before.
    """
    return _each_sorted(path, Chunk, "chunk_id")


class ChunkLines(AbstractContextManager["ChunkLines"]):
    """Reads chunks by where their lines begin; a context manager, and safe between threads.

    Raises:
        DataError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._stream = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def at(self, begin: int) -> Chunk:
        """Return the chunk of the line that begins at this byte.

        Raises:
            DataError: There is none: the file was written over in place.
        """
        with self._lock:
            self._stream.seek(begin)
            line = self._stream.readline()
        try:
            return Chunk.model_validate_json(line)
        except pydantic.ValidationError as error:
            raise DataError(f"{self._path}: was changed while it was read") from error


class DocumentLines(AbstractContextManager["DocumentLines"]):
    """Finds where the chunks of documents are in one pass; reads them document by document.

    Of a million chunks it holds eight bytes for each chunk of these documents, and no text.

    Args:
        path: With chunks, sorted by id.
        doc_ids: Of the documents; unknown ones have no chunks.

    Raises:
        DataError: The file cannot be read, or a line that may be of these documents is no chunk.
    """

    def __init__(self, path: Path, doc_ids: Collection[str]) -> None:
        self._begins: dict[str, array[int]] = {}
        wanted = {doc_id.encode(): doc_id for doc_id in doc_ids}
        for number, begin, line in each_line(path) if wanted else ():
            head = _HEAD.match(line)
            doc_id = wanted.get(head[1] if head else _doc_id(path, number, line).encode())
            if doc_id is not None:
                self._begins.setdefault(doc_id, array("Q")).append(begin)
        self._lines = ChunkLines(path)

    def __exit__(self, *_: object) -> None:
        self._lines.__exit__()

    def chunks_of(self, doc_id: str) -> list[Chunk]:
        """Return the chunks of a document in its order; [] where it has none."""
        chunks = [self._lines.at(begin) for begin in self._begins.get(doc_id, ())]
        return sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id))


def _doc_id(path: Path, number: int, line: bytes) -> str:
    try:
        return Chunk.model_validate_json(line).doc_id
    except pydantic.ValidationError as error:
        raise DataError(f"{path}:{number}: {explain(error)}") from error
