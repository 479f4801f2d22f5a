"""What the texts of a few chunks say about rankings: repeats, and evidence that is cut in two."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from ragforge.corpus.anchors import fold
from ragforge.records import Chunk

_LEAST_HALF_CHARS: Final = 12
"""A shorter half of a quote may stand anywhere by chance."""
_NEAR_CHARS: Final = 200
"""Between the end of a chunk and the start of the next there may be a title."""


@dataclass(frozen=True, slots=True)
class _Place:
    doc_id: str
    start: int
    end: int


class ChunkMarks:
    """Keeps what is needed of the chunks that were asked for, not their texts."""

    def __init__(self) -> None:
        from ragforge.corpus.repeats import Repeats  # It takes numpy, which few callers need.

        self._compared: set[str] = set()
        self._quotes: dict[str, set[str]] = {}
        self._halves: dict[str, tuple[str, str, str]] = {}
        self._rows: list[str] = []
        self._repeats = Repeats()
        self._placed: set[str] = set()
        self._places: dict[str, _Place] = {}
        self._holds: dict[tuple[str, str], bool] = {}

    def compare(self, chunk_ids: Iterable[str]) -> None:
        """Ask for chunks to be compared with each other."""
        self._compared.update(chunk_ids)

    def look_for(self, quote: str, chunk_ids: Iterable[str]) -> None:
        """Ask for a quote to be looked for in chunks."""
        if quote not in self._halves:
            whole = fold(quote)
            middle = len(whole) // 2
            self._halves[quote] = whole, whole[:middle].strip(), whole[middle:].strip()
        for chunk_id in chunk_ids:
            self._quotes.setdefault(chunk_id, set()).add(quote)

    def place(self, chunk_ids: Iterable[str]) -> None:
        """Ask for where chunks stand in their documents."""
        self._placed.update(chunk_ids)

    def take(self, chunk: Chunk) -> None:
        """Take a chunk; one that nobody asked for is of no account."""
        chunk_id = chunk.chunk_id
        if chunk_id in self._compared:
            self._rows.append(chunk_id)
            self._repeats.add(chunk.text)
        if chunk_id in self._placed:
            self._places[chunk_id] = _Place(chunk.doc_id, chunk.start, chunk.end)
        rest = []
        for quote in self._quotes.get(chunk_id, ()):
            if quote in chunk.text:
                self._holds[quote, chunk_id] = True
            else:
                rest.append(quote)
        if rest:
            folded = fold(chunk.text)
            for quote in rest:
                self._look(quote, chunk_id, folded)

    def repeated(self, chunk_ids: Sequence[str]) -> list[int]:
        """Return the places, from 0, of chunks that say nearly what an earlier one says."""
        seen, found = set(), []
        for place, chunk_id in enumerate(chunk_ids):
            first = self._first.get(chunk_id, chunk_id)
            if first in seen:
                found.append(place)
            seen.add(first)
        return found

    def cut(self, quote: str, chunk_ids: Iterable[str]) -> bool:
        """Whether none of these chunks has a quote whole, and some has a half of it."""
        held = [self._holds.get((quote, chunk_id)) for chunk_id in chunk_ids]
        return True not in held and False in held

    def neighbours(self, chunk_ids: Collection[str]) -> bool:
        """Whether these chunks, two or more, stand one behind the other in one document."""
        known = [self._places.get(chunk_id) for chunk_id in chunk_ids]
        placed = sorted((p.doc_id, p.start, p.end) for p in known if p is not None and p.end)
        return len(placed) == len(known) > 1 and all(
            one[0] == other[0] and other[1] - one[2] <= _NEAR_CHARS
            for one, other in pairwise(placed)
        )

    def _look(self, quote: str, chunk_id: str, folded: str) -> None:
        whole, *halves = self._halves[quote]
        if whole in folded:
            self._holds[quote, chunk_id] = True
        elif any(len(half) >= _LEAST_HALF_CHARS and half in folded for half in halves):
            self._holds[quote, chunk_id] = False

    @cached_property
    def _first(self) -> dict[str, str]:
        """The first chunk of each group of repeats, by each other of it."""
        pairs = dict(self._repeats.near()) | dict(self._repeats.exact()) if self._rows else {}
        return {self._rows[row]: self._rows[first] for row, first in pairs.items()}
