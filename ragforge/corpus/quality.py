"""The quality of chunks: what retrieval and questions will stumble over, kind by kind."""

import hashlib
import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ragforge.corpus.chunk_edges import Cut, Edge, cuts, edge_of
from ragforge.corpus.passages import (
    FEWEST_WORDS,
    headings_only,
    reading_fault,
    size_fault,
    word_count,
)
from ragforge.corpus.repeats import Boilerplate, Repeats
from ragforge.corpus.staleness import Staleness
from ragforge.records import Chunk

Kind = Literal[
    "too_small", "too_large", Cut, "heading_alone", "duplicate", "near_duplicate", "stale",
    "boilerplate", "unreadable",
]  # fmt: skip
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Example:
    """A chunk with a fault: which, what is wrong with it, and some of its text."""

    chunk_id: str
    doc_id: str
    heading_path: tuple[str, ...]
    note: str
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of one kind."""

    kind: Kind
    n_chunks: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Quartiles, each the size of a chunk."""

    least: int
    lower_quartile: int
    median: int
    upper_quartile: int
    most: int


@dataclass(frozen=True, slots=True)
class ChunkQuality:
    """All findings about the chunks of a corpus."""

    n_documents: int
    n_chunks: int
    n_flagged: int
    """Chunks with at least one finding."""
    chars: Sizes
    words: Sizes
    found: tuple[Found, ...]
    """Of each kind, in the order of `KINDS`."""


class Inspector:
    """Takes chunks one by one, in any order, and holds of each no more than some 600 bytes."""

    def __init__(self, max_chars: int) -> None:
        """Look at chunks that were meant to have at most max_chars characters."""
        self._max_chars = max_chars
        self._edges: list[Edge] = []
        self._chars = array("I")
        self._words = array("I")
        self._tally = _Tally()
        self._repeats = Repeats()
        self._boilerplate = Boilerplate()
        self._staleness = Staleness()

    def add(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        row = len(self._edges)
        edge = edge_of(chunk)
        self._edges.append(edge)
        words = word_count(chunk.text)
        self._chars.append(len(chunk.text))
        self._words.append(words)
        self._tally.grow()
        for kind, note in self._alone(chunk.text, words):
            self._tally.add(kind, row, edge, note)
        self._repeats.add(chunk.text)
        self._boilerplate.add(chunk.doc_id, row, chunk.text)
        self._staleness.add(row, chunk)

    def quality(self) -> ChunkQuality | None:
        """Return what was found, None of no chunk; to be called once, behind the last chunk."""
        if not self._edges:
            return None
        documents = self._by_document()
        for rows in documents.values():
            self._add_cuts(rows)
        for row, first in self._repeats.exact():
            self._add("duplicate", row, f"the same text as {self._name(first)}")
        for row, first in self._repeats.near():
            self._add("near_duplicate", row, f"nearly the same text as {self._name(first)}")
        for row, newer, why in self._staleness.stale(self._repeats.numbers):
            self._add("stale", row, f"{why} {self._name(newer)}")
        for row, start, share in self._boilerplate.found(len(documents)):
            self._add("boilerplate", row, f"in {share:.0%} of documents: {start}")
        found = tuple(self._tally.found(kind) for kind in KINDS)
        n_flagged = self._tally.n_flagged
        sizes = _sizes(self._chars), _sizes(self._words)
        return ChunkQuality(len(documents), len(self._edges), n_flagged, *sizes, found)

    def _alone(self, text: str, words: int) -> Iterator[tuple[Kind, str]]:
        if words < FEWEST_WORDS:
            yield "too_small", f"{words} word{'s' * (words != 1)}"
        if fault := size_fault(text, self._max_chars):
            yield "too_large", fault
        if headings_only(text):
            yield "heading_alone", "nothing below the heading"
        if fault := reading_fault(text):
            yield "unreadable", fault

    def _by_document(self) -> dict[str, list[int]]:
        documents: dict[str, list[int]] = defaultdict(list)
        for row, edge in enumerate(self._edges):
            documents[edge.doc_id].append(row)
        return documents

    def _add_cuts(self, rows: list[int]) -> None:
        if all(self._edges[row].end for row in rows):
            rows.sort(key=lambda row: (self._edges[row].start, self._edges[row].end))
        by_id = {self._edges[row].chunk_id: row for row in rows}
        for cut in cuts([self._edges[row] for row in rows]):
            self._tally.add(cut.kind, by_id[cut.edge.chunk_id], cut.edge, cut.note, cut.text)

    def _add(self, kind: Kind, row: int, note: str) -> None:
        self._tally.add(kind, row, self._edges[row], note)

    def _name(self, row: int) -> str:
        edge = self._edges[row]
        return f"{edge.chunk_id} in {edge.doc_id}"


class _Tally:
    """Which chunk has which faults, and for each kind the examples that are shown."""

    def __init__(self) -> None:
        self._flags = array("H")
        self._examples: dict[Kind, list[tuple[int, Example]]] = {kind: [] for kind in KINDS}

    def grow(self) -> None:
        """Make room for one more chunk."""
        self._flags.append(0)

    def add(self, kind: Kind, row: int, edge: Edge, note: str, text: str = "") -> None:
        """Note a fault; of two of one kind in one chunk the first is told."""
        bit = 1 << KINDS.index(kind)
        if self._flags[row] & bit:
            return
        self._flags[row] |= bit
        digest = hashlib.sha256(f"{kind} {edge.chunk_id}".encode()).digest()
        # The lowest digests: spread over the corpus, and the same in any order of the chunks.
        place = -int.from_bytes(digest[:8], "big")
        heap = self._examples[kind]
        if len(heap) == EXAMPLES and place <= heap[0][0]:
            return
        shown = Example(edge.chunk_id, edge.doc_id, edge.path, note, text or edge.first)
        (heapq.heappush if len(heap) < EXAMPLES else heapq.heapreplace)(heap, (place, shown))

    def found(self, kind: Kind) -> Found:
        """Return what was found of a kind, examples sorted by document."""
        bit = 1 << KINDS.index(kind)
        examples = sorted(
            (example for _, example in self._examples[kind]),
            key=lambda example: (example.doc_id, example.chunk_id),
        )
        return Found(kind, sum(bool(flags & bit) for flags in self._flags), tuple(examples))

    @property
    def n_flagged(self) -> int:
        """How many chunks have a fault."""
        return sum(map(bool, self._flags))


def _sizes(found: Sequence[int]) -> Sizes:
    ordered = sorted(found)
    last = len(ordered) - 1
    return Sizes(*(ordered[last * quarter // 4] for quarter in range(5)))
