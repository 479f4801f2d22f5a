"""BM25 over an index on disk, for corpora that are too large to be indexed at each start.

It is built in one pass: sorted blocks of postings, of one process or of several, merged at the end.
A posting says that a chunk, named by its row, has a term, and what BM25 gives it for that. Postings
are kept term by term, by ascending row, so that a query reads what its terms need and no more.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.array_files import (
    Array,
    ArrayWriter,
    is_ascending,
    map_array,
    read_part,
    require_sound,
    write_array,
)
from ragforge.records import Hit
from ragforge.retrieval.bm25 import changes, length_norms, term_weights
from ragforge.retrieval.tokens import tokenize, top_rows

_Numbers = npt.NDArray[np.uint64]

_BITS = 48
"""Two of two million terms share a number with a probability below 1 %."""

_MOST_KNOWN = 500_000

_TERMS, _STARTS, _ROWS, _WEIGHTS = "terms.bin", "starts.bin", "rows.bin", "weights.bin"
"""Files: sorted numbers of the terms; where the postings of each begin; the postings."""
_TERM, _START, _ROW, _WEIGHT = "<u8", "<i8", "<u4", "<f4"
"""Types of the numbers in these files."""
_COUNT = "<u2"
_LENGTHS, _LENGTH = "lengths", "<u4"
_MOST_COUNTED = 65_535
_ROW_BITS = 16
_BLOCK_ROWS = 1 << _ROW_BITS
_BLOCK_TERMS = 4_000_000
"""Terms held in memory before a block is put on disk: some 100 MB while it is sorted."""
_MERGED_AT_ONCE = 2_000_000
"""Postings merged at once, about."""
_TERMS_AT_ONCE = 1_000_000
"""Terms merged at once, about, each as often as blocks have it: some 60 MB."""
_Offsets = npt.NDArray[np.int64]
_MOST_POSTINGS = 16_000_000
"""Postings that one query reads: some 0.2 s. Its rarest terms come first."""
_LEAST_TERMS = 8
"""Terms of a query that are searched for, however common they are."""
_Scores = npt.NDArray[np.float32]
_Rows = npt.NDArray[np.uint32]
_Places = npt.NDArray[np.intp]
_ROUNDING: Final = 2.0**-23
"""What adding one more float32 number can change a sum of positive ones by, relative to it; twice
that."""


class TermNumbers:
    """Gives each term its number; remembers the commonest, whatever the vocabulary."""

    def __init__(self) -> None:
        self._known = _Known()

    def __call__(self, terms: Iterable[str]) -> _Numbers:
        """Return the numbers of the terms, in their order; each is below `2**_BITS`."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        return np.frombuffer(b"".join(map(self._known.__getitem__, terms)), "<u8")


class _Known(dict[str, bytes]):
    def __missing__(self, term: str) -> bytes:
        digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=_BITS // 8)
        number = self[term] = digest.digest().ljust(8, b"\0")
        return number


class PostingsWriter(AbstractContextManager["PostingsWriter"]):
    """Takes the terms of all chunks in the order of their rows, and writes sorted blocks of them.

    A context manager; at the end `write_index` makes an index of the blocks.

    Args:
        folder: Where the blocks are put; made.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._lengths = ArrayWriter(folder / _LENGTHS, _LENGTH)
        self._held: list[_Numbers] = []
        self._held_lengths: list[npt.NDArray[np.int64]] = []
        self._n_held = self._n_rows_held = self._n_rows = self._n_blocks = 0

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, numbers: _Numbers, lengths: npt.NDArray[np.int64]) -> None:
        """Take the next chunks.

        Args:
            numbers: The terms of all of them, one behind the other.
            lengths: How many of them each chunk has; at most 2**16 chunks at once.

        Raises:
            OSError: There is no space.
        """
        if self._n_rows_held and (
            self._n_held + len(numbers) > _BLOCK_TERMS
            or self._n_rows_held + len(lengths) > _BLOCK_ROWS
        ):
            self._put()
        self._held.append(numbers)
        self._held_lengths.append(lengths)
        self._n_held += len(numbers)
        self._n_rows_held += len(lengths)

    def close(self) -> None:
        """Write what is left.

        Raises:
            OSError: There is no space.
        """
        self._put()
        self._lengths.close()

    def _put(self) -> None:
        if not self._held_lengths:
            return
        lengths = np.concatenate(self._held_lengths)
        # A term and its row in one number: numpy sorts these ten times as fast as it finds orders.
        rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        keys = np.sort(np.concatenate(self._held) << np.uint64(_ROW_BITS) | rows)
        firsts = np.flatnonzero(changes(keys))
        counts = np.diff(firsts, append=len(keys))
        keys = keys[firsts]
        numbers = keys >> np.uint64(_ROW_BITS)
        heads = np.flatnonzero(changes(numbers))
        path = _block_path(self._folder, self._n_blocks)
        local = (keys & np.uint64(_BLOCK_ROWS - 1)).astype(_ROW)
        write_array(path.with_suffix(".rows"), [local + np.uint32(self._n_rows)])
        counted = np.minimum(counts, _MOST_COUNTED).astype(_COUNT)
        write_array(path.with_suffix(".counts"), [counted])
        write_array(path.with_suffix(".terms"), [numbers[heads]])
        write_array(path.with_suffix(".starts"), [np.append(heads, len(keys))])
        self._n_blocks += 1
        self._n_rows += len(lengths)
        self._lengths.add(lengths)
        self._held, self._held_lengths = [], []
        self._n_held = self._n_rows_held = 0


def write_index(folder: Path, parts: Sequence[Path]) -> None:
    """Write the index of all chunks out of sorted blocks.

    The terms are taken a range at a time, so that memory does not grow with the corpus but for 16
    bytes a chunk.

    Args:
        folder: Where the index is put; made.
        parts: What `PostingsWriter` wrote; the rows go on from one to the next.

    Raises:
        OSError: There is no space, or a block is damaged.
    """
    folder.mkdir()
    each = [read_part(part / _LENGTHS, _LENGTH, 0, -1) for part in parts]
    lengths = np.concatenate([np.zeros(0, _LENGTH), *each])
    norms = length_norms(lengths)
    firsts = np.cumsum([0, *map(len, each)]).tolist()
    blocks = [
        _Block(path, first)
        for part, first in zip(parts, firsts, strict=False)
        for path in _block_paths(part)
    ]
    n_postings = 0
    with ExitStack() as opened:
        files = [
            opened.enter_context(ArrayWriter(folder / name, dtype))
            for name, dtype in (
                (_TERMS, _TERM), (_STARTS, _START), (_ROWS, _ROW), (_WEIGHTS, _WEIGHT)
            )
        ]  # fmt: skip
        files[1].add(np.zeros(1, np.int64))
        for held in _ranges(blocks):
            terms, frequencies = _vocabulary(held)
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(frequencies)])
            files[0].add(terms)
            files[1].add(starts[1:] + n_postings)
            n_postings += int(starts[-1])
            for rows, weights in _merged(held, terms, starts, norms):
                files[2].add(rows)
                files[3].add(weights)


def _block_path(folder: Path, number: int) -> Path:
    return folder / f"block{number:06}.terms"


def _block_paths(folder: Path) -> list[Path]:
    """Return the files of terms of all blocks, in the order of their rows."""
    return sorted(folder.glob("block*.terms"))


@dataclass(frozen=True, slots=True)
class _Block:
    """A sorted block on disk.

    Args:
        path: Of its terms.
        first_row: What is added to its rows.
    """

    path: Path
    first_row: int

    def within(self, low: int, behind: int) -> "_Postings":
        """Return its terms of a range, in memory; their postings stay on disk."""
        all_terms = map_array(self.path, _TERM)
        first, end = np.searchsorted(all_terms, np.array([low, behind], np.uint64)).tolist()
        starts = read_part(self.path.with_suffix(".starts"), _START, first, end - first + 1)
        return _Postings(self, np.array(all_terms[first:end]), starts)


@dataclass(frozen=True, slots=True)
class _Postings:
    """Some neighbouring terms of a block, and where the postings of each begin."""

    block: _Block
    terms: _Numbers
    starts: _Offsets

    def read(self, start: int, behind: int) -> tuple[Array, Array]:
        """Return rows and counts of the postings [start, behind) of the block."""
        path, count = self.block.path, behind - start
        rows = read_part(path.with_suffix(".rows"), _ROW, start, count)
        counts = read_part(path.with_suffix(".counts"), _COUNT, start, count)
        return rows + np.uint32(self.block.first_row), counts


def _ranges(blocks: Sequence[_Block]) -> Iterator[list[_Postings]]:
    """Yield the terms of all blocks, a range of their numbers at a time.

    Terms are digests, so that ranges of one width have nearly as many.
    """
    n_terms = sum(block.path.stat().st_size for block in blocks) // np.dtype(_TERM).itemsize
    n_ranges = -(-n_terms // _TERMS_AT_ONCE)
    for number in range(n_ranges):
        low, behind = (at * 2**_BITS // n_ranges for at in (number, number + 1))
        yield [block.within(low, behind) for block in blocks]


def _vocabulary(held: Sequence[_Postings]) -> tuple[_Numbers, _Offsets]:
    """Return the terms of all blocks, sorted, and in how many chunks each is."""
    terms = np.unique(np.concatenate([block.terms for block in held]))
    frequencies = np.zeros(len(terms), np.int64)
    for block in held:
        frequencies[np.searchsorted(terms, block.terms)] += np.diff(block.starts)
    return terms, frequencies


def _merged(
    held: Sequence[_Postings], terms: _Numbers, starts: _Offsets, norms: npt.NDArray[np.float64]
) -> Iterator[tuple[Array, Array]]:
    """Yield rows and weights of the postings in the order of the index, part by part."""
    frequencies = np.diff(starts)
    first = 0
    while first < len(terms):
        behind = int(np.searchsorted(starts, starts[first] + _MERGED_AT_ONCE, side="right")) - 1
        behind = max(behind, first + 1)
        rows, counts = _part(held, terms[first:behind], starts[first : behind + 1])
        yield rows, term_weights(counts, norms[rows], frequencies[first:behind], len(norms))
        first = behind


def _part(held: Sequence[_Postings], terms: _Numbers, starts: _Offsets) -> tuple[Array, Array]:
    """Return rows and counts of some neighbouring terms, whose postings begin at `starts`."""
    size = int(starts[-1] - starts[0])
    rows, counts = np.empty(size, _ROW), np.empty(size, _COUNT)
    free = starts[:-1] - starts[0]
    for block in held:
        low = int(np.searchsorted(block.terms, terms[0]))
        high = int(np.searchsorted(block.terms, terms[-1], side="right"))
        begins = block.starts[low : high + 1]
        block_rows, block_counts = block.read(int(begins[0]), int(begins[-1]))
        term_places = np.searchsorted(terms, block.terms[low:high])
        n_each = np.diff(begins)
        shift = np.repeat(free[term_places] - (begins[:-1] - begins[0]), n_each)
        places = shift + np.arange(len(block_rows))
        rows[places] = block_rows
        counts[places] = block_counts
        free[term_places] += n_each
    return rows, counts


def term_frequencies(folder: Path) -> _Offsets:
    """Return in how many chunks each term of an index is."""
    return np.diff(map_array(folder / _STARTS, _START))


class StoredColumns:
    """The rows and the weights of some terms of an index.

    Each is mapped when it is asked for: what was looked at does not stay in memory.

    Args:
        folder: The index.
        places: The terms by their places in it.
    """

    def __init__(self, folder: Path, places: Sequence[int]) -> None:
        starts = map_array(folder / _STARTS, _START)
        self._folder = folder
        self._parts = [slice(int(starts[place]), int(starts[place + 1])) for place in places]

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: int) -> tuple[Array, Array]:
        part = self._parts[number]
        rows = map_array(self._folder / _ROWS, _ROW)[part]
        return rows, map_array(self._folder / _WEIGHTS, _WEIGHT)[part]


class StoredBM25:
    """Finds the chunks that share rare words with the query, as `BM25Retriever` does.

    The scores are the same to the last bit unless the terms of a query have more than
    `_MOST_POSTINGS` postings together; then its commonest terms, which weigh least, are left out.

    Args:
        folder: What `write_index` wrote.
        n_chunks: How many chunks there are.
        chunk_id: Gives the id of a row; rows are numbered in the order of the ids.

    Raises:
        OSError: The index cannot be read.
    """

    def __init__(self, folder: Path, n_chunks: int, chunk_id: Callable[[int], str]) -> None:
        self._folder = folder
        self._terms = map_array(folder / _TERMS, _TERM)
        self._starts = map_array(folder / _STARTS, _START)
        self._map()
        is_whole = is_ascending(self._starts, 0, len(self._rows))
        require_sound(_STARTS, is_whole and len(self._starts) == len(self._terms) + 1)
        require_sound(_WEIGHTS, len(self._weights) == len(self._rows))
        self._n_chunks = n_chunks
        self._chunk_id = chunk_id
        self._number = TermNumbers()

    def _map(self) -> None:
        """Map the postings anew: what was looked at before does not stay in memory."""
        self._rows = map_array(self._folder / _ROWS, _ROW)
        self._weights = map_array(self._folder / _WEIGHTS, _WEIGHT)
        self._n_read = 0

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks; the score is the BM25 sum over the words of the query."""
        terms = self.searched(query)
        if not terms:
            return []
        return await asyncio.to_thread(self._best, terms, k)

    def postings(self, place: int) -> tuple[_Rows, _Scores]:
        """Return the rows that have the term at a place of the index, ascending, and its scores.

        Raises:
            DataError: A row is that of no chunk.
        """
        part = slice(int(self._starts[place]), int(self._starts[place + 1]))
        if self._n_read > _MOST_POSTINGS:
            self._map()
        self._n_read += part.stop - part.start
        rows, weights = self._rows[part], self._weights[part]
        if int(rows.max(initial=0)) >= self._n_chunks:
            raise DataError(
                f"{self._folder / _ROWS}: is damaged; remove {self._folder.parent} to have it made "
                "again"
            )
        return rows, weights

    def weights_at(self, places: npt.NDArray[np.int64], rows: _Rows) -> _Scores:
        """Return the weight of each term in each row, [term, row]; 0 where a row lacks it.

        Args:
            places: Of the terms in the index.
            rows: In any order.
        """
        low, behind = self._starts[places][:, None], self._starts[places + 1][:, None]
        high = np.broadcast_to(behind, (len(places), len(rows)))
        low = np.broadcast_to(low, high.shape)
        last = len(self._rows) - 1
        for _ in range(int((behind - self._starts[places][:, None]).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            is_below = (self._rows[np.minimum(middle, last)] < rows) & (low < high)
            low, high = np.where(is_below, middle + 1, low), np.where(is_below, high, middle)
        at = np.minimum(low, last)
        held = (low < behind) & (self._rows[at] == rows)
        return np.where(held, self._weights[at], np.float32(0))

    def searched(self, query: str) -> list[int]:
        """Return the places of the query's terms in the index, in its order, repeated as there."""
        numbers = self._number(tokenize(query))
        places = np.searchsorted(self._terms, numbers)
        known = places[places < len(self._terms)]
        known = known[self._terms[known] == numbers[places < len(self._terms)]]
        distinct = np.unique(known)
        postings = self._starts[distinct + 1] - self._starts[distinct]
        rarest = np.argsort(postings, kind="stable")
        within = int(np.searchsorted(np.cumsum(postings[rarest]), _MOST_POSTINGS, side="right"))
        if within >= len(distinct):
            return [int(place) for place in known]
        kept = set(distinct[rarest[: max(within, _LEAST_TERMS)]].tolist())
        return [place for place in known.tolist() if place in kept]

    def _best(self, terms: list[int], k: int) -> list[Hit]:
        scores = self._scores(terms)
        last = len(scores) - 1
        return [
            Hit(chunk_id=self._chunk_id(last - row), score=float(scores[last - row]))
            for row in top_rows(scores[::-1], k, above=0).tolist()
        ]

    def _scores(self, terms: list[int]) -> _Scores:
        scores = np.zeros(self._n_chunks, np.float32)
        for place in terms:
            rows, weights = self.postings(place)
            np.add.at(scores, rows, weights)
        return scores


class NewChunks:
    """Some chunks of an index, and what BM25 gives them.

    Args:
        index: Of the whole corpus.
        rows: Of the chunks in question, ascending.
        row_of: Gives the row of a chunk by its id; None where there is none.
    """

    def __init__(
        self, index: StoredBM25, rows: Sequence[int], row_of: Callable[[str], int | None]
    ) -> None:
        self._index = index
        self._new: _Rows = np.array(rows, np.uint32)
        self._row_of = row_of
        self._is_new = frozenset(rows)
        self._rows: dict[str, int | None] = {}
        self._held: dict[int, tuple[_Places, _Scores]] = {}

    def may_enter(self, text: str, k: int, others: Iterable[str]) -> bool:
        """Whether one of the chunks may be among the best k for a text.

        It is never False where one is. _Scores that are nearly equal count as if it were before the
        others.

        Args:
            text: What is searched for.
            k: Ranks, from 1.
            others: Ids of chunks that may score higher, each once; those in question say nothing.
        """
        terms = self._index.searched(text)
        best = self._best_of_new(terms)
        if best == 0:
            return False
        found = self._scores(terms, np.array([*self._others(others)], np.uint32))
        error = len(terms) * _ROUNDING
        return int((found * (1 - error) > best * (1 + error)).sum()) < k

    def _others(self, chunk_ids: Iterable[str]) -> Iterable[int]:
        for chunk_id in chunk_ids:
            if chunk_id not in self._rows:
                self._rows[chunk_id] = self._row_of(chunk_id)
            row = self._rows[chunk_id]
            if row is not None and row not in self._is_new:
                yield row

    def _best_of_new(self, terms: Sequence[int]) -> float:
        parts = [self._held_by(term) for term in terms]
        places = [places for places, _ in parts if len(places)]
        if not places:
            return 0.0
        weights = np.concatenate([weights for places, weights in parts if len(places)])
        return float(np.bincount(np.concatenate(places), weights).max())

    def _scores(self, terms: Sequence[int], rows: _Rows) -> npt.NDArray[np.float64]:
        distinct, counts = np.unique(np.array(terms, np.int64), return_counts=True)
        return counts.astype(np.float64) @ self._index.weights_at(distinct, rows)

    def _held_by(self, term: int) -> tuple[_Places, _Scores]:
        """Return which of the chunks have a term, by their places, and what it gives them."""
        if term not in self._held:
            having, weights = self._index.postings(term)
            at = np.searchsorted(having, self._new)
            places = np.flatnonzero(having[np.minimum(at, len(having) - 1)] == self._new)
            self._held[term] = places, weights[at[places]]
        return self._held[term]
