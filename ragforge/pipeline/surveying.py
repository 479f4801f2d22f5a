"""Looking through a corpus once: cards, near-duplicates, topics and an index, kept on disk."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from pathlib import Path

from ragforge.corpus.chunk_cards import CardReader, CardWriter, line_begins, write_cards
from ragforge.corpus.near_duplicates import Sketches, representatives
from ragforge.corpus.survey import ChunkCard
from ragforge.corpus.topics import topic_words, topics
from ragforge.deferred import dataclass, shutil
from ragforge.deferred import numpy as np
from ragforge.errors import DataError
from ragforge.files.array_files import Array
from ragforge.files.atomic import remove_whole, whole_folder
from ragforge.files.set.sorted_records import ChunkLines, each_chunk
from ragforge.observe import Event, Observer
from ragforge.records import Chunk
from ragforge.retrieval import Retriever
from ragforge.retrieval.bm25_index import (
    NewChunks,
    PostingsWriter,
    StoredBM25,
    StoredColumns,
    TermNumbers,
    term_frequencies,
    write_index,
)
from ragforge.retrieval.tokens import tokenize

INDEX = "bm25"
"""Folder of the index within a survey."""

STAGE = "survey"
FORMAT = 1
"""Goes up when the same chunks give another survey."""
_PREFIX = "survey-"
_CARDS, _SKETCHES, _POSTINGS = "cards", "sketches", "postings"
"""Folders of what was read."""
_AT_ONCE = 1000
_READ_BYTES = 1 << 20


class StoredSurvey(AbstractContextManager["StoredSurvey"]):
    """A survey on disk; fulfils `corpus.survey.Survey`. A context manager.

    Args:
        folder: The survey.
        chunks_path: The chunks it was made of.

    Raises:
        DataError: The chunks cannot be read.
        OSError: The survey cannot be read.
    """

    def __init__(self, folder: Path, chunks_path: Path) -> None:
        with ExitStack() as opened:
            self._cards = opened.enter_context(CardReader(folder, chunks_path))
            self._bm25 = StoredBM25(folder / INDEX, self._cards.n_chunks, self._cards.chunk_id)
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        # What is mapped holds a file open each; whoever still has the survey must not keep them.
        del self._cards, self._bm25

    @property
    def bm25(self) -> Retriever:
        """Searches the whole corpus, headings included."""
        return self._bm25

    @property
    def n_chunks(self) -> int:
        """How many chunks there are."""
        return self._cards.n_chunks

    @property
    def n_documents(self) -> int:
        """How many documents there are."""
        return self._cards.n_documents

    def cards(self) -> Iterator[ChunkCard]:
        """Yield the cards of all chunks, sorted by chunk id."""
        return self._cards.cards()

    def chunk(self, chunk_id: str) -> Chunk:
        """Return a chunk.

        Raises:
            KeyError: There is none of that id.
            DataError: The chunks were written over in place.
        """
        return self._cards.chunk(chunk_id)

    def newcomers(self, chunk_ids: Collection[str]) -> NewChunks:
        """Return a test whether some chunks can be among the best that BM25 finds.

        Those that the corpus does not have are passed over.
        """
        rows = (self._row(chunk_id) for chunk_id in chunk_ids)
        return NewChunks(self._bm25, sorted(row for row in rows if row is not None), self._row)

    def _row(self, chunk_id: str) -> int | None:
        try:
            return self._cards.row(chunk_id)
        except KeyError:
            return None

    def neighbours(self, chunk_id: str) -> Sequence[str]:
        """Return the ids of the chunk before and the chunk behind in its document, if any."""
        return self._cards.neighbours(chunk_id)

    def near_duplicates(self, chunk_id: str) -> Sequence[str]:
        """Return the ids of the other chunks that are near-duplicates of this one, sorted."""
        return self._cards.near_duplicates(chunk_id)

    def in_document(self, doc_id: str) -> Sequence[str]:
        """Return the ids of a document's chunks in their order; [] where there is none."""
        return self._cards.in_document(doc_id)


def open_survey(
    chunks_path: Path, place: Path, observer: Observer, *, seed: int = 0
) -> StoredSurvey:
    """Return the survey of a corpus, from disk where one was made before.

    What a survey of other chunks left is removed. A kill leaves nothing that is taken for one.

    Args:
        chunks_path: A `chunks.jsonl`, sorted by id.
        place: Folder of the dataset's own files; made where it is missing.
        observer: Told how far it is.
        seed: Decides topics.

    Raises:
        DataError: The chunks cannot be read or are not sorted, or there is no space.
    """
    digest, n_lines = _digest(chunks_path)
    folder = _folder(place, digest, seed)
    if not folder.is_dir():
        observer(Event("stage.start", STAGE, numbers={"total": n_lines}))
        try:
            with whole_folder(folder) as temporary:
                _look_through(chunks_path, temporary, observer, seed)
        finally:
            observer(Event("stage.end", STAGE))
    _remove_stale(folder)
    try:
        return StoredSurvey(folder, chunks_path)
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be read: {error.strerror or error}; remove it to have it made again"
        ) from error


@dataclass(frozen=True, slots=True)
class SurveyPart:
    """What was read of some chunks, before a survey is made of it.

    Args:
        chunks_path: The file of these chunks.
        begin: Where in the file of all chunks they begin.
        folder: What `read` puts there.
    """

    chunks_path: Path
    begin: int
    folder: Path

    def read(self, observer: Observer) -> Iterator[None]:
        """Read the chunks; yields after every thousand.

        Memory does not grow with them, but by the ids of their documents.

        Args:
            observer: Told how far it is.

        Raises:
            DataError: They cannot be read, or are not sorted.
            OSError: There is no space.
        """
        number = TermNumbers()
        self.folder.mkdir()
        with (
            CardWriter(self.folder / _CARDS) as cards,
            Sketches(self.folder / _SKETCHES) as sketches,
            PostingsWriter(self.folder / _POSTINGS) as postings,
        ):
            for read in _parts(each_chunk(self.chunks_path)):
                heads = [number(tokenize("\n".join(chunk.heading_path))) for _, chunk in read]
                texts = [number(tokenize(chunk.text)) for _, chunk in read]
                cards.add([(self.begin + begin, chunk) for begin, chunk in read])
                sketches.add(np.concatenate(texts), _lengths(texts))
                postings.add(*_joined(heads, texts))
                observer(Event("unit", STAGE, "done", numbers={"count": len(read)}))
                observer(Event("tick", STAGE))
                yield


def merge_survey(parts: Sequence[SurveyPart], place: Path, *, seed: int, sha256: str) -> Path:
    """Write the survey that `open_survey` would make out of parts that were read elsewhere.

    Args:
        parts: Of all chunks, in their order; they may be of any size.
        place: Folder of the dataset's own files; made where it is missing.
        seed: Decides topics.
        sha256: Of the file of all chunks.

    Returns:
        The folder of the survey.

    Raises:
        DataError: Parts cannot be read, or there is no space.
    """
    folder = _folder(place, sha256, seed)
    if not folder.is_dir():
        with whole_folder(folder) as temporary:
            _put_together(parts, temporary, seed)
    _remove_stale(folder)
    return folder


def _folder(place: Path, digest: str, seed: int) -> Path:
    key = hashlib.sha256(f"{FORMAT}\n{seed}\n{digest}".encode()).hexdigest()[:32]
    return place / f"{_PREFIX}{key}"


def _remove_stale(folder: Path) -> None:
    """Remove what surveys of other chunks left beside one."""
    for stale in folder.parent.glob(f"{_PREFIX}*"):
        if stale != folder:
            remove_whole(stale)


def _digest(path: Path) -> tuple[str, int]:
    """Return the sha256 of a file and how many lines it has."""
    digest, n_lines = hashlib.sha256(), 0
    try:
        with path.open("rb") as stream:
            while part := stream.read(_READ_BYTES):
                digest.update(part)
                n_lines += part.count(b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return digest.hexdigest(), n_lines


def _look_through(chunks_path: Path, folder: Path, observer: Observer, seed: int) -> None:
    part = SurveyPart(chunks_path, 0, folder / "part")
    for _ in part.read(observer):
        pass
    _put_together([part], folder, seed)
    shutil.rmtree(part.folder)


def _put_together(parts: Sequence[SurveyPart], folder: Path, seed: int) -> None:
    write_index(folder / INDEX, [part.folder / _POSTINGS for part in parts])
    stands = _representatives(parts, folder / "pairs")
    cards = [part.folder / _CARDS for part in parts]
    write_cards(folder, cards, stands, _topics(folder, len(stands), seed))


def _representatives(parts: Sequence[SurveyPart], scratch: Path) -> Array:
    number = TermNumbers()
    begins = line_begins([part.folder / _CARDS for part in parts])
    files = [part.begin for part in parts]

    def words(row: int) -> Array:
        begin = int(begins[row])
        at = bisect_right(files, begin) - 1
        # Opened each time: there may be thousands of parts.
        with ChunkLines(parts[at].chunks_path) as lines:
            return number(tokenize(lines.at(begin - files[at]).text))

    return representatives([part.folder / _SKETCHES for part in parts], words, scratch)


def _parts(
    chunks: Iterator[tuple[int, Chunk]],
) -> Iterator[list[tuple[int, Chunk]]]:
    while part := list(islice(chunks, _AT_ONCE)):
        yield part


def _lengths(texts: Sequence[Array]) -> Array:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _joined(heads: Sequence[Array], texts: Sequence[Array]) -> tuple[Array, Array]:
    """Return the terms of each chunk, titles first, one chunk behind the other, and how many."""
    both = [part for pair in zip(heads, texts, strict=True) for part in pair]
    return np.concatenate(both), _lengths(heads) + _lengths(texts)


def _topics(folder: Path, n_chunks: int, seed: int) -> Array:
    words = topic_words(term_frequencies(folder / INDEX), n_chunks)
    return topics(StoredColumns(folder / INDEX, words), n_chunks, seed)
