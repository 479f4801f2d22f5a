"""The chunks that can be asked about, in which order, and how many of each part of the corpus."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from ragforge.corpus.survey import ChunkCard

_Numbers = npt.NDArray[np.uint64]


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


def _rest(stock: Stock, sample: "_Sample") -> npt.NDArray[np.int64]:
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
        if card.is_askable and card.twin_of == card.chunk_id:
            yield card
        elif card.is_askable:
            known = stand_ins.setdefault(card.twin_of, card)
            stand_ins[card.twin_of] = min(known, card, key=lambda one: one.chunk_id)
        else:
            too_short.add(card.chunk_id)
    yield from (stand_ins[twin_of] for twin_of in sorted(stand_ins) if twin_of in too_short)


def _column(numbers: npt.NDArray[np.int64]) -> "array[int]":
    return array("i", numbers.astype(np.intc).tobytes())


def _places(names: Sequence[str], seed: int) -> _Numbers:
    return np.fromiter((_place(name, seed) for name in names), np.uint64, len(names))


def _place(name: str, seed: int) -> int:
    return int.from_bytes(sha256(f"{seed}\n{name}".encode()).digest()[:8])
