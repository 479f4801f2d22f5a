"""Building an index on disk in one pass: sorted blocks of postings, merged at the end.

A posting says that a chunk, named by its row, has a term, and what BM25 gives it for that. They
are kept term by term, by ascending row, so that a query reads what its terms need and no more.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ragforge.files.array_files import Array, map_array, read_part, write_array

Numbers = npt.NDArray[np.uint64]

BITS = 48
"""Two of two million terms share a number with a probability below 1 %."""

_MOST_KNOWN = 500_000

TERMS, STARTS, ROWS, WEIGHTS = "terms.bin", "starts.bin", "rows.bin", "weights.bin"
"""Files: sorted numbers of the terms; where the postings of each begin; the postings."""
TERM, START, ROW, WEIGHT = "<u8", "<i8", "<u4", "<f4"
"""Types of the numbers in these files."""
_K1, _B = 1.5, 0.75
_COUNT = "<u2"
_MOST_COUNTED = 65_535
_ROW_BITS = 16
_BLOCK_ROWS = 1 << _ROW_BITS
_BLOCK_TERMS = 4_000_000
"""Terms held in memory before a block is put on disk: some 100 MB while it is sorted."""
_PART = 2_000_000
"""Postings merged at once, about."""
Places = npt.NDArray[np.int64]


class TermNumbers:
    """Gives each term its number; remembers the commonest, whatever the vocabulary."""

    def __init__(self) -> None:
        self._known = _Known()

    def __call__(self, terms: Iterable[str]) -> Numbers:
        """Return the numbers of the terms, in their order; each is below `2**BITS`."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        return np.frombuffer(b"".join(map(self._known.__getitem__, terms)), "<u8")


class _Known(dict[str, bytes]):
    def __missing__(self, term: str) -> bytes:
        digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=BITS // 8)
        number = self[term] = digest.digest().ljust(8, b"\0")
        return number


@dataclass(frozen=True, slots=True)
class _Block:
    path: Path
    terms: Numbers
    starts: Places

    def postings(self, start: int, behind: int) -> tuple[Array, Array]:
        """Return rows and counts of the postings [start, behind)."""
        count = behind - start
        return (
            read_part(self.path.with_suffix(".rows"), ROW, start, count),
            read_part(self.path.with_suffix(".counts"), _COUNT, start, count),
        )


class IndexWriter:
    """Takes the terms of all chunks in the order of their rows, and writes the index.

    Memory does not grow with the corpus but for 4 bytes a chunk and 32 bytes a distinct term.

    Args:
        folder: Where the index is put; made. Blocks are put there too, and removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._held: list[Numbers] = []
        self._held_lengths: list[npt.NDArray[np.int64]] = []
        self._n_held = self._n_rows_held = self._n_rows = 0
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._blocks: list[_Block] = []

    def add(self, numbers: Numbers, lengths: npt.NDArray[np.int64]) -> None:
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

    def finish(self) -> None:
        """Write the index.

        Raises:
            OSError: There is no space.
        """
        self._put()
        lengths = np.concatenate([np.zeros(0, np.int64), *self._lengths])
        terms, frequencies = _vocabulary(self._blocks)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(frequencies)])
        write_array(self._folder / TERMS, [terms])
        write_array(self._folder / STARTS, [starts])
        with (
            (self._folder / ROWS).open("wb") as rows_file,
            (self._folder / WEIGHTS).open("wb") as weights_file,
        ):
            for rows, weights in _merged(self._blocks, terms, starts, lengths):
                rows_file.write(rows.data)
                weights_file.write(weights.data)
        for number in range(len(self._blocks)):
            for file in self._folder.glob(f"block{number}.*"):
                file.unlink()

    def _put(self) -> None:
        if not self._held_lengths:
            return
        lengths = np.concatenate(self._held_lengths)
        # A term and its row in one number: numpy sorts these ten times as fast as it finds orders.
        rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        keys = np.sort(np.concatenate(self._held) << np.uint64(_ROW_BITS) | rows)
        firsts = np.flatnonzero(_changes(keys))
        counts = np.diff(firsts, append=len(keys))
        keys = keys[firsts]
        numbers = keys >> np.uint64(_ROW_BITS)
        heads = np.flatnonzero(_changes(numbers))
        path = self._folder / f"block{len(self._blocks)}"
        local = (keys & np.uint64(_BLOCK_ROWS - 1)).astype(ROW)
        write_array(path.with_suffix(".rows"), [local + np.uint32(self._n_rows)])
        counted = np.minimum(counts, _MOST_COUNTED).astype(_COUNT)
        write_array(path.with_suffix(".counts"), [counted])
        write_array(path.with_suffix(".terms"), [numbers[heads]])
        write_array(path.with_suffix(".starts"), [np.append(heads, len(keys))])
        terms = map_array(path.with_suffix(".terms"), TERM)
        starts = map_array(path.with_suffix(".starts"), START)
        self._blocks.append(_Block(path, terms, starts))
        self._n_rows += len(lengths)
        self._lengths.append(lengths)
        self._held, self._held_lengths = [], []
        self._n_held = self._n_rows_held = 0


def _changes(values: Numbers) -> npt.NDArray[np.bool_]:
    """Return for each value whether it differs from the one before; the first does."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs


def _vocabulary(blocks: Sequence[_Block]) -> tuple[Numbers, Places]:
    """Return the terms of all blocks, sorted, and in how many chunks each is."""
    terms: Numbers = np.zeros(0, np.uint64)
    for block in blocks:
        terms = np.union1d(terms, block.terms)
    frequencies = np.zeros(len(terms), np.int64)
    for block in blocks:
        frequencies[np.searchsorted(terms, block.terms)] += np.diff(block.starts)
    return terms, frequencies


def _merged(
    blocks: Sequence[_Block], terms: Numbers, starts: Places, lengths: Places
) -> Iterator[tuple[Array, Array]]:
    """Yield rows and weights of the postings in the order of the index, part by part."""
    n_chunks = len(lengths)
    norms = _K1 * ((1 - _B) + _B * lengths / (lengths.mean() if lengths.any() else 1.0))
    frequencies = np.diff(starts)
    first = 0
    while first < len(terms):
        behind = int(np.searchsorted(starts, starts[first] + _PART, side="right")) - 1
        behind = max(behind, first + 1)
        rows, counts = _part(blocks, terms[first:behind], starts[first : behind + 1])
        idf = np.array([_idf(n, n_chunks) for n in frequencies[first:behind].tolist()], "<f4")
        weights = np.repeat(idf, frequencies[first:behind]) * (counts / (norms[rows] + counts))
        yield rows, weights.astype(WEIGHT)
        first = behind


def _part(blocks: Sequence[_Block], terms: Numbers, starts: Places) -> tuple[Array, Array]:
    """Return rows and counts of some neighbouring terms, whose postings begin at `starts`."""
    size = int(starts[-1] - starts[0])
    rows, counts = np.empty(size, ROW), np.empty(size, _COUNT)
    free = starts[:-1] - starts[0]
    for block in blocks:
        low = int(np.searchsorted(block.terms, terms[0]))
        high = int(np.searchsorted(block.terms, terms[-1], side="right"))
        begins = block.starts[low : high + 1]
        block_rows, block_counts = block.postings(int(begins[0]), int(begins[-1]))
        term_places = np.searchsorted(terms, block.terms[low:high])
        n_each = np.diff(begins)
        shift = np.repeat(free[term_places] - (begins[:-1] - begins[0]), n_each)
        places = shift + np.arange(len(block_rows))
        rows[places] = block_rows
        counts[places] = block_counts
        free[term_places] += n_each
    return rows, counts


def _idf(frequency: int, n_chunks: int) -> float:
    return math.log(1 + (n_chunks - frequency + 0.5) / (frequency + 0.5))


def term_frequencies(folder: Path) -> Places:
    """Return in how many chunks each term of an index is."""
    return np.diff(map_array(folder / STARTS, START))


def read_columns(folder: Path, places: Sequence[int]) -> list[tuple[Array, Array]]:
    """Return the rows and the weights of some terms of an index, read when they are looked at.

    Args:
        folder: The index.
        places: The terms by their places in it.
    """
    starts = map_array(folder / STARTS, START)
    rows, weights = map_array(folder / ROWS, ROW), map_array(folder / WEIGHTS, WEIGHT)
    parts = [slice(int(starts[place]), int(starts[place + 1])) for place in places]
    return [(rows[part], weights[part]) for part in parts]
