"""The survey of a corpus on disk: a card for each chunk, written once and read by row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from ragforge.corpus.survey import ChunkCard
from ragforge.deferred import numpy as np
from ragforge.deferred import pattern
from ragforge.errors import DataError
from ragforge.files.array_files import (
    Array,
    ArrayWriter,
    Strings,
    StringWriter,
    is_ascending,
    map_array,
    read_part,
    require_sound,
    write_array,
)
from ragforge.files.set.sorted_records import ChunkLines
from ragforge.records import Chunk

_IDS, _DOCUMENTS = "chunk_ids.txt", "doc_ids.txt"
_TYPES = {
    "begins": "<i8",
    "document": "<u4",
    "level": "|u1",
    "askable": "|u1",
    "topic": "<u2",
    "stands": "<u4",
    "order": "<u4",
    "place": "<u4",
    "document_starts": "<u4",
    "grouped": "<u4",
}
"""Arrays: of each row where its line begins, its document, level, whether it is askable, its topic,
the row that stands for it; the rows by document, the place of each row in that, and where each
document begins; the rows that have near-duplicates, by the one that stands for them."""
_TAKEN = {"begins": "<i8", "starts": "<i8", "document": "<u4", "level": "|u1", "askable": "|u1"}
"""Arrays of `CardWriter`: of each row where its line begins, where its text begins in the document,
its document in the order in which they come, its level, and whether it is askable."""
_NUMBER = pattern(r"0*([0-9]+)")
_FEWEST_WORDS = 12
_WIDE_CHARACTERS_A_WORD = 2
_HIGHEST_LEVEL = 255
_CARDS_AT_ONCE = 8192


def is_askable(text: str) -> bool:
    """Return whether a text has enough words to be asked about; wide characters count half."""
    words = len(text.split())
    if words >= _FEWEST_WORDS or text.isascii():
        return words >= _FEWEST_WORDS
    wide = sum(character > "\u2e7f" for character in text)
    return words + wide // _WIDE_CHARACTERS_A_WORD >= _FEWEST_WORDS


class CardWriter(AbstractContextManager["CardWriter"]):
    """Takes chunks in the order of their ids, and keeps on disk what cards are made of.

    A context manager; at the end `write_cards` makes the cards. Holds the ids of the documents.

    Args:
        folder: Where the files are put; made.

    Raises:
        OSError: They cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._documents: dict[str, int] = {}
        with ExitStack() as opened:
            self._ids, self._names = [
                opened.enter_context(StringWriter(folder / name)) for name in (_IDS, _DOCUMENTS)
            ]
            self._columns = [
                opened.enter_context(ArrayWriter(folder / name, dtype))
                for name, dtype in _TAKEN.items()
            ]
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add(self, chunks: Sequence[tuple[int, Chunk]]) -> None:
        """Take the next chunks, each with the byte at which its line begins.

        Raises:
            OSError: There is no space.
        """
        documents = []
        for _, chunk in chunks:
            self._ids.add(chunk.chunk_id)
            if chunk.doc_id not in self._documents:
                self._documents[chunk.doc_id] = len(self._documents)
                self._names.add(chunk.doc_id)
            documents.append(self._documents[chunk.doc_id])
        values: list[list[int]] = [
            [begin for begin, _ in chunks],
            [chunk.start for _, chunk in chunks],
            documents,
            [min(len(chunk.heading_path), _HIGHEST_LEVEL) for _, chunk in chunks],
            [is_askable(chunk.text) for _, chunk in chunks],
        ]
        for column, numbers in zip(self._columns, values, strict=True):
            column.add(np.array(numbers))


def line_begins(parts: Sequence[Path]) -> Array:
    """Return where the lines of all chunks begin, by row; see `write_cards`."""
    return _taken(parts, "begins")


def write_cards(folder: Path, parts: Sequence[Path], stands: Array, topics: Array) -> None:
    """Write the cards of all chunks.

    Args:
        folder: Where they are put; must exist.
        parts: What `CardWriter` wrote; the rows go on from one to the next.
        stands: Of each row the row that stands for it.
        topics: Of each row its topic.

    Raises:
        DataError: The ids of a part are not above those of the part before.
        OSError: There is no space.
    """
    last = ""
    with StringWriter(folder / _IDS) as ids:
        for name in _strings(parts, _IDS):
            if name <= last:
                raise DataError(f"the chunks are not sorted by id: {name!r} is behind {last!r}")
            ids.add(name)
            last = name
    names = sorted(set(_strings(parts, _DOCUMENTS)))
    with StringWriter(folder / _DOCUMENTS) as documents:
        for name in names:
            documents.add(name)
    document = _document_numbers(parts, names)
    order = _in_order(folder, document, _taken(parts, "starts"))
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    sizes = np.bincount(stands, minlength=len(stands))
    grouped = np.flatnonzero(sizes[stands] > 1)
    columns: dict[str, Array] = {
        **{name: _taken(parts, name) for name in ("begins", "level", "askable")},
        "document": document,
        "topic": topics,
        "stands": stands,
        "order": order,
        "place": place,
        "document_starts": np.searchsorted(document[order], np.arange(len(names) + 1)),
        "grouped": grouped[np.argsort(stands[grouped], kind="stable")],
    }
    for name, dtype in _TYPES.items():
        write_array(folder / name, [columns[name].astype(dtype)])


def _taken(parts: Sequence[Path], column: str) -> Array:
    dtype = _TAKEN[column]
    # Read and not mapped: a mapped file is an open one, and there may be thousands of parts.
    arrays = [read_part(part / column, dtype, 0, -1) for part in parts]
    return np.concatenate([np.zeros(0, dtype), *arrays])


def _strings(parts: Sequence[Path], name: str) -> Iterator[str]:
    for part in parts:
        with Strings(part / name) as strings:
            for first in range(0, len(strings), _CARDS_AT_ONCE):
                yield from strings.part(first, min(first + _CARDS_AT_ONCE, len(strings)))


def _document_numbers(parts: Sequence[Path], names: Sequence[str]) -> Array:
    """Return the document of each row by its place among all names, which are sorted."""
    place = {name: number for number, name in enumerate(names)}
    numbers = [np.zeros(0, np.uint32)]
    for part in parts:
        own = np.array([place[name] for name in _strings([part], _DOCUMENTS)], np.uint32)
        numbers.append(own[_taken([part], "document")])
    return np.concatenate(numbers)


def _in_order(folder: Path, document: Array, starts: Array) -> Array:
    """Return the rows by document and in the order of its text.

    Chunks of ready-made files lack offsets; their ids, counted as people count, must do.
    """
    order = np.lexsort((starts, document))
    tied = np.zeros(len(order) + 1, np.int8)
    tied[1:-1] = np.logical_not(np.diff(document[order]) | np.diff(starts[order]))
    changes = np.flatnonzero(np.diff(tied)).tolist()
    with Strings(folder / _IDS) as ids:
        for first, last in zip(changes[::2], changes[1::2], strict=True):
            rows = order[first : last + 1].tolist()
            order[first : last + 1] = sorted(rows, key=lambda row: _counted(ids[row]))
    return order


def _counted(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which 10 is behind 9."""
    parts = enumerate(_NUMBER.split(name))
    return [(len(part), part) if odd % 2 else (0, part) for odd, part in parts]


class CardReader(AbstractContextManager["CardReader"]):
    """Reads a survey from a folder; a context manager.

    Args:
        folder: What `write_cards` wrote.
        chunks: The file it was made of, unchanged.

    Raises:
        DataError: The chunks cannot be read.
        OSError: The survey cannot be read.
    """

    def __init__(self, folder: Path, chunks: Path) -> None:
        self._of = {name: map_array(folder / name, dtype) for name, dtype in _TYPES.items()}
        with ExitStack() as opened:
            self._ids = opened.enter_context(Strings(folder / _IDS))
            self._documents = opened.enter_context(Strings(folder / _DOCUMENTS))
            self._lines = opened.enter_context(ChunkLines(chunks))
            self._require_sound()
            self._opened = opened.pop_all()

    def _require_sound(self) -> None:
        """Check that no number leads beyond an array: a survey may have come with a set."""
        of, n_chunks, n_documents = self._of, self.n_chunks, self.n_documents
        for name in ("begins", "document", "level", "askable", "topic", "stands", "order", "place"):
            require_sound(name, len(of[name]) == n_chunks)
        for name in ("stands", "order", "place", "grouped"):
            require_sound(name, int(of[name].max(initial=0)) < max(n_chunks, 1))
        require_sound("begins", int(of["begins"].min(initial=0)) >= 0)
        require_sound("document", int(of["document"].max(initial=0)) < max(n_documents, 1))
        starts = of["document_starts"]
        is_whole = len(starts) == n_documents + 1 and is_ascending(starts, 0, n_chunks)
        require_sound("document_starts", is_whole)

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def n_chunks(self) -> int:
        """How many chunks there are."""
        return len(self._ids)

    @property
    def n_documents(self) -> int:
        """How many documents there are."""
        return len(self._documents)

    def cards(self) -> Iterator[ChunkCard]:
        """Yield the cards of all chunks, sorted by chunk id."""
        for first in range(0, self.n_chunks, _CARDS_AT_ONCE):
            yield from self._cards(first, min(first + _CARDS_AT_ONCE, self.n_chunks))

    def _cards(self, first: int, behind: int) -> Iterator[ChunkCard]:
        chunk_ids = self._ids.part(first, behind)
        of = {
            name: self._of[name][first:behind].tolist()
            for name in ("document", "level", "topic", "stands", "askable")
        }
        names = {number: self._documents[number] for number in set(of["document"])}
        for row, chunk_id in enumerate(chunk_ids):
            stands = of["stands"][row]
            doc_id = names[of["document"][row]]
            yield ChunkCard(
                chunk_id=chunk_id,
                doc_id=doc_id,
                group=doc_id.rpartition("/")[0],
                level=of["level"][row],
                topic=of["topic"][row],
                duplicate_of=chunk_id if stands == first + row else self._ids[stands],
                is_askable=bool(of["askable"][row]),
            )

    def chunk_id(self, row: int) -> str:
        """Return the id of the chunk that is at this place of the order of ids."""
        return self._ids[row]

    def chunk(self, chunk_id: str) -> Chunk:
        """Return a chunk.

        Raises:
            KeyError: There is none of that id.
            DataError: The chunks were written over in place.
        """
        return self._lines.at(int(self._of["begins"][self.row(chunk_id)]))

    def neighbours(self, chunk_id: str) -> list[str]:
        """Return the ids of the chunk before and the chunk behind in its document, if any."""
        row = self.row(chunk_id)
        place, first, behind = int(self._of["place"][row]), *self._span(self._of["document"][row])
        beside = [near for near in (place - 1, place + 1) if first <= near < behind]
        return [self._ids[int(self._of["order"][near])] for near in beside]

    def near_duplicates(self, chunk_id: str) -> list[str]:
        """Return the ids of the other chunks that are near-duplicates of this one, sorted."""
        row = self.row(chunk_id)
        grouped, stands = self._of["grouped"], self._of["stands"]
        low = _first(lambda at: bool(stands[grouped[at]] >= stands[row]), len(grouped))
        high = _first(lambda at: bool(stands[grouped[at]] > stands[row]), len(grouped))
        return [self._ids[other] for other in grouped[low:high].tolist() if other != row]

    def in_document(self, doc_id: str) -> list[str]:
        """Return the ids of a document's chunks in their order; [] where there is none."""
        number = self._documents.find(doc_id)
        if number is None:
            return []
        first, behind = self._span(number)
        return [self._ids[row] for row in self._of["order"][first:behind].tolist()]

    def row(self, chunk_id: str) -> int:
        """Return the place of a chunk in the order of ids.

        Raises:
            KeyError: There is none of that id.
        """
        row = self._ids.find(chunk_id)
        if row is None:
            raise KeyError(chunk_id)
        return row

    def _span(self, document: int) -> tuple[int, int]:
        first, behind = self._of["document_starts"][document : int(document) + 2].tolist()
        return first, behind


def _first(holds: Callable[[int], bool], size: int) -> int:
    """Return the first place of which it holds, as of all behind it; `size` where of none."""
    return bisect_left(range(size), True, key=holds)
