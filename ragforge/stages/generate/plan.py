"""Which chunk is asked about for which query, and which comes next where that led to nothing.

The chunks that can be asked about stand in an order by a seed, each part of the corpus with its
share.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from functools import partial
from hashlib import sha256
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.corpus.survey import ChunkCard
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.records import QueryType, Slot
from ragforge.stages.generate.quotas import Cell

if TYPE_CHECKING:
    import numpy.typing as npt

_Numbers: TypeAlias = "npt.NDArray[np.uint64]"

_SPECIAL: Final[frozenset[QueryType]] = frozenset(
    {
        "ambiguous",
        "comparison",
        "definition",
        "false_premise",
        "follow_up",
        "list",
        "multi_hop",
        "multi_hop_across",
        "procedure",
        "temporal",
        "troubleshooting",
        "two_in_one",
        "unanswerable",
        "why",
    }
)
"""Types that a corpus may not carry; a cell that cannot have its own asks for a fact instead."""
_TRIES_OF_A_TYPE: Final = 2
"""Sources that are tried for a special type before the cell asks for a fact."""
_WINDOW = 64
"""Sources that are compared when one is chosen out of turn."""


@dataclass(frozen=True, slots=True)
class Stock:
    """The chunks that can be asked about, one for each group of near-duplicates, as columns.

    A row is a chunk. Documents follow one another in an order that the seed decides by hashing;
    so do the chunks of a document. Neither order depends on what else there is.

    Args:
        chunk_ids: One a row.
        document, stratum: Their numbers, one a row.
        doc_ids: One a document.
        first: First row of each document; the number of rows at the end.
        strata: Group, level and topic, in words, sorted.
    """

    chunk_ids: list[str]
    document: Sequence[int]
    stratum: Sequence[int]
    doc_ids: list[str]
    first: list[int]
    strata: list[str]

    def size(self, row: int) -> int:
        """Return the number of rows of a row's document."""
        document = self.document[row]
        return self.first[document + 1] - self.first[document]


def take_stock(cards: Iterable[ChunkCard], seed: int) -> Stock:
    """Return what can be asked about; holds ids and numbers, and no card."""
    listed = _Listed()
    for card in _standing(cards):
        listed.add(card)
    doc_ids, ids = list(listed.documents), listed.chunk_ids
    document, stratum = np.asarray(listed.document), np.asarray(listed.stratum)
    order = np.argsort(_places(doc_ids, seed), kind="stable")
    turn_of = np.argsort(order)[document]
    rows = np.lexsort((_places(ids, seed), turn_of))
    keys = sorted(listed.strata)
    place_of = np.argsort([listed.strata[key] for key in keys])
    return Stock(
        chunk_ids=[ids[row] for row in rows.tolist()],
        document=_column(turn_of[rows]),
        stratum=_column(place_of[stratum[rows]]),
        doc_ids=[doc_ids[number] for number in order.tolist()],
        first=[0, *np.cumsum(np.bincount(turn_of, minlength=len(doc_ids))).tolist()],
        strata=[f"{group or '.'}/h{level}/topic {topic}" for group, level, topic in keys],
    )


def turns(stock: Stock, n: int, seed: int, uses: Sequence[int] = ()) -> MutableSequence[int]:
    """Return the rows that were not used, in the order in which they are asked about.

    The first n are a sample of the strata: documents take turns, and offer a chunk of a stratum
    that has not had its share. Every document is among them before any comes twice, whatever that
    does to the shares. The others follow as the documents' further turns.

    Args:
        stock: What there is.
        n: Size of the sample; what was used counts to the shares beside it.
        seed: Decides how the shares are rounded.
        uses: How often each row was used before; none was where it is empty.
    """
    sample = _Sample(stock, n, uses)
    sample.share_out(seed)
    everyone = list(range(len(stock.doc_ids)))
    for offered in (sample.within, sample.beyond):
        sample.turn([number for number in everyone if not sample.times[number]], offered)
    for offered in (sample.within, sample.beyond):
        waiting = everyone
        while waiting and len(sample.chosen) < n:
            waiting = sample.turn(waiting, offered)
    order = array("i", (row for *_, row in sorted(sample.chosen)))
    order.extend(_column(_rest(stock, sample)))
    return order


def _rest(stock: Stock, sample: _Sample) -> npt.NDArray[np.int64]:
    """Return the rows that the sample left, in the order of their documents' further turns."""
    rows = np.flatnonzero(np.frombuffer(sample.taken, dtype=np.uint8) == 0)
    document = np.asarray(stock.document)[rows]
    turn = np.arange(len(rows)) - np.searchsorted(document, document)
    turn += np.asarray(sample.times, dtype=np.int64)[document]
    return rows[np.lexsort((document, turn))]


class _Sample:
    """Documents take turns; each offers its first chunk that is wanted."""

    def __init__(self, stock: Stock, n: int, uses: Sequence[int]) -> None:
        self.chosen: list[tuple[int, int, int]] = []
        self.taken = bytearray(len(stock.chunk_ids))
        self.times = [0] * len(stock.doc_ids)
        self.within = stock.first[:-1]
        self.beyond = stock.first[:-1]
        self._stock = stock
        self._n = n
        self._quotas = [0] * len(stock.strata)
        for row, count in enumerate(uses):
            if count:
                self.taken[row] = 1
                self.times[stock.document[row]] += count
                self._quotas[stock.stratum[row]] -= 1

    def share_out(self, seed: int) -> None:
        """Give each stratum its share of the sample, and of what was used before.

        Rounded along the running total from a start that the seed decides, so that not only each
        stratum but each group, and each level of a group, is less than 1 from its share. Rounding
        the strata by remainder would leave out whole groups that fall into many small ones.
        """
        total = len(self._stock.chunk_ids)
        n = min(self._n + sum(self.taken), total)
        counts = Counter(self._stock.stratum)
        start = _place("strata", seed) % max(total, 1)
        seen, given = 0, 0
        for number in range(len(self._quotas)):
            seen += counts[number]
            reached = (seen * n + start) // total
            self._quotas[number] += reached - given
            given = reached

    def turn(self, documents: Sequence[int], offered: list[int]) -> list[int]:
        """Let documents give a chunk each, and return those that had one.

        Args:
            documents: By number, in the order of their turns.
            offered: Where each document is: `within` the quotas, or `beyond` them. Goes on only,
                as a stratum that is full stays so.
        """
        giving = []
        for document in documents:
            if len(self.chosen) == self._n:
                break
            row = self._next(document, offered)
            if row is not None:
                self._take(document, row)
                giving.append(document)
        return giving

    def _next(self, document: int, offered: list[int]) -> int | None:
        for row in range(offered[document], self._stock.first[document + 1]):
            offered[document] = row + 1
            if not self.taken[row] and (
                offered is self.beyond or self._quotas[self._stock.stratum[row]] > 0
            ):
                return row
        return None

    def _take(self, document: int, row: int) -> None:
        self.taken[row] = 1
        self._quotas[self._stock.stratum[row]] -= 1
        self.chosen.append((self.times[document], document, row))
        self.times[document] += 1


class _Listed:
    """Columns that grow; documents and strata are numbered as they come."""

    def __init__(self) -> None:
        self.chunk_ids: list[str] = []
        self.document = array("q")
        self.stratum = array("q")
        self.documents: dict[str, int] = {}
        self.strata: dict[tuple[str, int, int], int] = {}

    def add(self, card: ChunkCard) -> None:
        key = (card.group, card.level, card.topic)
        self.chunk_ids.append(card.chunk_id)
        self.document.append(self.documents.setdefault(card.doc_id, len(self.documents)))
        self.stratum.append(self.strata.setdefault(key, len(self.strata)))


def _standing(cards: Iterable[ChunkCard]) -> Iterator[ChunkCard]:
    """Yield the chunks that can be asked about, one for each group of near-duplicates.

    Where the one that should stand for a group is too short, another of the group does.
    """
    stand_ins: dict[str, ChunkCard] = {}
    too_short: set[str] = set()
    for card in cards:
        if card.is_askable and card.duplicate_of == card.chunk_id:
            yield card
        elif card.is_askable:
            known = stand_ins.setdefault(card.duplicate_of, card)
            stand_ins[card.duplicate_of] = min(known, card, key=lambda one: one.chunk_id)
        else:
            too_short.add(card.chunk_id)
    yield from (stand_ins[chunk_id] for chunk_id in sorted(stand_ins) if chunk_id in too_short)


def _column(numbers: npt.NDArray[np.int64]) -> array[int]:
    return array("i", numbers.astype(np.intc).tobytes())


def _places(names: Sequence[str], seed: int) -> _Numbers:
    return np.fromiter((_place(name, seed) for name in names), np.uint64, len(names))


def _place(name: str, seed: int) -> int:
    return int.from_bytes(sha256(f"{seed}\n{name}".encode()).digest()[:8])


@dataclass(frozen=True, slots=True)
class OpenCell:
    """A cell that still needs a query.

    Args:
        number: Of the cell.
        unsuited: Whether its last source gave nothing because it carries no query of that type,
            so that it was not really asked about.
    """

    number: int
    unsuited: bool = False


@dataclass(frozen=True, slots=True)
class _GivenSource:
    row: int
    type: QueryType


class Sources:
    """Gives the cells their sources, one after the other.

    The first source of each cell is settled at once: a sample of the strata in which every
    document comes before any comes twice. Further ones are taken as they are asked for, from the
    document asked about least often, in the same stratum where it has one. No chunk is a source
    more than `per_chunk` times, or twice before all were once; none again for a type it failed;
    and for one it has had only where no other is left.

    Args:
        cards: Of the whole corpus; read once, not kept.
        cells: What is to be delivered.
        per_chunk: How often a chunk is a source at most.
        seed: Decides the order of documents, and of the chunks of each.
        used: Id to how often a chunk was a source of earlier cells.
    """

    def __init__(
        self,
        cards: Iterable[ChunkCard],
        cells: Sequence[Cell],
        *,
        per_chunk: int,
        seed: int,
        used: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._stock = take_stock(cards, seed)
        self._cells = {cell.number: cell for cell in cells}
        self._per_chunk = per_chunk
        self._uses = array("L", (used.get(name, 0) for name in self._stock.chunk_ids))
        self._touched = [0] * len(self._stock.doc_ids)
        self._had: set[_GivenSource] = set()
        self._failed: set[_GivenSource] = set()
        self._dry: set[QueryType] = set()
        self._attempts = dict.fromkeys(self._cells, 0)
        self._last: dict[int, _GivenSource] = {}
        self._strata: dict[int, int] = {}
        order = turns(self._stock, len(cells), seed, self._uses if used else ())
        self._queues = _Queues(order[len(cells) :])
        for row in [row for row, uses in enumerate(self._uses) if uses]:
            self._touched[self._stock.document[row]] += self._uses[row]
            self._queue(row)
        self._first = self._plan(cells, deque(order[: len(cells)]))

    @property
    def n_chunks(self) -> int:
        """How many different chunks can be sources; a wave of as many has none twice."""
        return len(self._stock.chunk_ids)

    @property
    def n_documents(self) -> int:
        """How many documents they are of."""
        return len(self._stock.doc_ids)

    def take(self, open_cells: Sequence[OpenCell]) -> list[Slot | None]:
        """Return the next source of each cell; None where the corpus has no more for it.

        A cell that was given a source before is asking because that one failed. What is given
        depends on the calls and the order of the cells in them, and on nothing else. A slot names
        one chunk; `hops.partner` finds the second one of those that need it.
        """
        for cell in open_cells:
            self._note_failure(cell)
        return [self._slot(cell.number) for cell in open_cells]

    def _plan(self, cells: Sequence[Cell], rows: deque[int]) -> dict[int, _GivenSource]:
        planned: dict[int, _GivenSource] = {}
        for cell in cells:
            row = self._from_sample(cell.type, rows)
            if row is not None:
                planned[cell.number] = self._use(row, cell.type)
        for row in rows:
            self._queues.add(0, row)
        return planned

    def _from_sample(self, wanted: QueryType, rows: deque[int]) -> int | None:
        """Take the next row of the sample; for two hops the next with a document of two chunks."""
        if not rows:
            return self._choose(wanted)
        at = 0
        if wanted == "multi_hop":
            near = enumerate(islice(rows, _WINDOW))
            at = next((place for place, row in near if self._has_two(row)), -1)
        if at < 0:
            row = self._choose(wanted)
            if row is not None and self._has_two(row) and not self._uses[row]:
                return row
        row = rows[max(at, 0)]
        del rows[max(at, 0)]
        return row

    def _slot(self, number: int) -> Slot | None:
        attempt = self._attempts[number]
        given = self._first.pop(number, None) or self._further(number, attempt)
        if given is None:
            return None
        self._attempts[number] += 1
        cell, stock = self._cells[number], self._stock
        self._last[number] = given
        self._strata[number] = stock.stratum[given.row]
        return Slot(
            slot_id=f"{number:06d}-{attempt}",
            type=given.type,
            difficulty=cell.difficulty,
            persona=cell.persona,
            language=cell.language,
            stratum=stock.strata[stock.stratum[given.row]],
            chunk_ids=(stock.chunk_ids[given.row],),
            doc_ids=(stock.doc_ids[stock.document[given.row]],),
        )

    def _further(self, number: int, attempt: int) -> _GivenSource | None:
        own = self._cells[number].type
        types: list[QueryType] = [own] if own not in _SPECIAL or attempt < _TRIES_OF_A_TYPE else []
        if own in _SPECIAL:
            types.append("fact")
        for wanted in types:
            row = self._choose(wanted, self._strata.get(number))
            if row is not None:
                return self._use(row, wanted)
        return None

    def _note_failure(self, cell: OpenCell) -> None:
        last = self._last.pop(cell.number, None)
        if last is None:
            return
        self._failed.add(last)
        if cell.unsuited:
            self._uses[last.row] -= 1
            self._queue(last.row)
            self._dry.clear()

    def _use(self, row: int, wanted: QueryType) -> _GivenSource:
        given = _GivenSource(row, wanted)
        self._had.add(given)
        self._touched[self._stock.document[row]] += 1
        self._uses[row] += 1
        self._queue(row)
        return given

    def _queue(self, row: int) -> None:
        if self._uses[row] < self._per_chunk:
            self._queues.add(self._uses[row], row)

    def _choose(self, wanted: QueryType, stratum: int | None = None) -> int | None:
        """Return the best of the next sources; None where none is left for the type."""
        if wanted in self._dry:
            return None
        for uses in self._queues.levels():
            usable = partial(self._is_usable, uses, wanted)
            near = list(islice(self._queues.waiting(uses, wanted, usable), _WINDOW))
            if near:
                return min(near, key=lambda row: self._drawbacks(row, wanted, stratum))
        self._dry.add(wanted)
        return None

    def _is_usable(self, uses: int, wanted: QueryType, row: int) -> bool:
        return self._uses[row] == uses and _GivenSource(row, wanted) not in self._failed

    def _drawbacks(
        self, row: int, wanted: QueryType, stratum: int | None
    ) -> tuple[bool, bool, int, bool]:
        return (
            wanted == "multi_hop" and not self._has_two(row),
            _GivenSource(row, wanted) in self._had,
            self._touched[self._stock.document[row]],
            stratum is not None and self._stock.stratum[row] != stratum,
        )

    def _has_two(self, row: int) -> bool:
        return self._stock.size(row) > 1


class _Queues:
    """Rows that wait for their next use, by how often they were used.

    A row that was used stays where it waited: what is no use to a type now never is again at that
    place, so that each type skips it once.
    """

    def __init__(self, unused: MutableSequence[int]) -> None:
        self._rows = {0: unused}
        self._starts: dict[tuple[int, QueryType], int] = {}

    def add(self, uses: int, row: int) -> None:
        """Let a row wait."""
        self._rows.setdefault(uses, array("i")).append(row)

    def levels(self) -> list[int]:
        """Return the counts of uses of waiting rows, in rising order."""
        return sorted(self._rows)

    def waiting(
        self, uses: int, wanted: QueryType, is_usable: Callable[[int], bool]
    ) -> Iterator[int]:
        """Return the rows that are of use to a type, those first that have waited longest."""
        rows = self._rows[uses]
        start = self._starts.get((uses, wanted), 0)
        while start < len(rows) and not is_usable(rows[start]):
            start += 1
        self._starts[uses, wanted] = start
        return filter(is_usable, (rows[place] for place in range(start, len(rows))))
