"""What a corpus is about, in a few clusters of chunks: k-means over weighted words, no model.

All sums are of whole numbers that fit a float32 exactly, so that no order of adding, no number of
threads and no processor changes a cluster.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_MOST_TOPICS = 64
_MOST_WORDS = 1024
"""Words that topics are told by."""

_FEWEST_CHUNKS = 30
_COMMONEST_SHARE = 10
"""A word in more than one of ten chunks says nothing of their topic."""
_SAMPLE = 8192
_PASSES = 20
_WEIGHT_STEPS = 32
_CHUNK_LENGTH = 256
_CENTRE_LENGTH = 1024
"""A product of two such vectors is below 2**19: exact in float32, whose whole numbers reach 2**24.
"""
_ROWS_READ = 1 << 17
_ROWS_AT_ONCE = 8192
_VALUES_AT_ONCE = 1 << 16

_Matrix: TypeAlias = "npt.NDArray[np.float32]"
Rows: TypeAlias = "npt.NDArray[np.int64]"
Column: TypeAlias = "tuple[npt.NDArray[np.integer], npt.NDArray[np.floating]]"
"""The rows that have a word, ascending, and what it weighs in each."""


class Columns(Protocol):
    """Columns by number; each may be read from disk when it is asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Column: ...


def n_topics(n_chunks: int) -> int:
    """Return how many clusters are looked for: 1 for a handful, 10 for 1,000, 64 at most."""
    if n_chunks < _FEWEST_CHUNKS:
        return 1
    return min(_MOST_TOPICS, round(math.pow(n_chunks, 1 / 3)))


def topic_words(frequencies: npt.NDArray[np.int64], n_chunks: int) -> list[int]:
    """Return which words topics are told by: the commonest that are in few enough chunks.

    Args:
        frequencies: In how many chunks each word is.
        n_chunks: Of all chunks.
    """
    telling = np.flatnonzero(
        (frequencies > 1) & (frequencies <= max(n_chunks // _COMMONEST_SHARE, 3))
    )
    best = np.argsort(-frequencies[telling], kind="stable")[:_MOST_WORDS]
    found: list[int] = np.sort(telling[best]).tolist()
    return found


def topics(columns: Columns, n_chunks: int, seed: int) -> Rows:
    """Return the cluster of each chunk, from 0, the largest cluster first.

    Clusters are found on a sample that the seed decides; every chunk then goes to the nearest.
    Chunks without any of the words go to the one that was found first.

    Args:
        columns: Of the words that `topic_words` names.
        n_chunks: How many rows there are.
        seed: Decides sample and first centres.
    """
    wanted = n_topics(n_chunks)
    if wanted == 1 or not len(columns):
        return np.zeros(n_chunks, np.int64)
    centres = _centres(_sampled(columns, n_chunks, seed), len(columns), wanted, seed)
    return _by_size(_nearest(columns, centres, n_chunks))


def _sampled(columns: Columns, n_chunks: int, seed: int) -> _Vectors:
    """Return the rows that clusters are found on."""
    order = np.argsort(_scrambled(np.arange(n_chunks, dtype=np.uint64), seed), kind="stable")
    place = np.full(n_chunks, -1, np.int64)
    place[np.sort(order[:_SAMPLE])] = np.arange(min(n_chunks, _SAMPLE))
    chosen = [_chosen(columns[word], place) for word in range(len(columns))]
    return _vectors(chosen, min(n_chunks, _SAMPLE))


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Rows of whole numbers, of one length each, with the zeros left out.

    Numpy's own product of matrices would be as fast, but where other programs run beside this one
    its threads wait for each other and take ten times as long.
    """

    n_rows: int
    rows: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]
    words: npt.NDArray[np.intp]
    values: npt.NDArray[np.float32]

    def products(self, centres: _Matrix) -> _Matrix:
        """Return the product of each row with each centre."""
        products = np.zeros((self.n_rows, len(centres)), np.float32)
        table = np.ascontiguousarray(centres.T)
        bounds = np.append(self.starts, len(self.values))
        cuts = np.searchsorted(self.starts, np.arange(0, len(self.values), _VALUES_AT_ONCE))
        for first, behind in pairwise(np.unique([*cuts, len(self.rows)]).tolist()):
            start, end = bounds[first], bounds[behind]
            terms = table[self.words[start:end]] * self.values[start:end, None]
            sums = np.add.reduceat(terms, self.starts[first:behind] - start, axis=0)
            products[self.rows[first:behind]] = sums
        return products

    def sums(self, labels: Rows, n_labels: int, n_words: int) -> npt.NDArray[np.float64]:
        """Return the sum of the rows of each label."""
        sizes = np.diff(self.starts, append=len(self.values))
        places = np.repeat(labels[self.rows], sizes) * n_words + self.words
        found = np.bincount(places, weights=self.values, minlength=n_labels * n_words)
        return found.reshape(n_labels, n_words).astype(np.float64)


def _vectors(columns: Sequence[Column], n_rows: int) -> _Vectors:
    """Return the rows of some columns, at most 2**16, in proportion to their weights."""
    rows = np.concatenate([rows for rows, _ in columns])
    order = np.argsort(rows.astype(np.uint16), kind="stable")
    rows = rows[order]
    words = np.repeat(np.arange(len(columns)), [len(rows) for rows, _ in columns])[order]
    weights = np.concatenate([weights for _, weights in columns])[order]
    steps = np.rint(weights * _WEIGHT_STEPS)
    starts = np.flatnonzero(np.diff(rows.astype(np.int64), prepend=-1))
    if not len(starts):
        return _Vectors(n_rows, starts, starts, words, steps.astype(np.float32))
    lengths = np.sqrt(np.maximum(np.add.reduceat(np.square(steps, dtype=np.float64), starts), 1))
    scales = np.repeat(_CHUNK_LENGTH / lengths, np.diff(starts, append=len(rows)))
    values = np.rint(steps * scales).astype(np.float32)
    return _Vectors(n_rows, rows[starts].astype(np.intp), starts, words, values)


def _chosen(column: Column, place: Rows) -> Column:
    rows, weights = column
    places = place[rows]
    return places[places >= 0], weights[places >= 0]


def _centres(sample: _Vectors, n_words: int, wanted: int, seed: int) -> _Matrix:
    centres = _first_centres(sample, n_words, wanted, seed)
    labels = np.full(sample.n_rows, -1)
    for _ in range(_PASSES):
        found = np.argmax(sample.products(centres), axis=1)
        if np.array_equal(found, labels):
            break
        labels = found
        sums = sample.sums(labels, len(centres), n_words)
        filled = sums.any(axis=1)
        centres[filled] = _of_length(sums[filled])
    return centres


def _first_centres(sample: _Vectors, n_words: int, wanted: int, seed: int) -> _Matrix:
    """Return chunks that are far from one another, as k-means++ draws them.

    Source: Arthur & Vassilvitskii 2007, "k-means++: The Advantages of Careful Seeding".
    """
    far = np.zeros(sample.n_rows, np.int64)
    far[sample.rows] = _CHUNK_LENGTH * _CENTRE_LENGTH
    centres = np.zeros((0, n_words), np.float32)
    for number in range(wanted):
        total = int(far.sum())
        if total == 0:
            break
        drawn = hashlib.sha256(f"{seed}\ntopic\n{number}".encode()).digest()
        place = int.from_bytes(drawn[:8], "big") * total >> 64
        row = int(np.searchsorted(np.cumsum(far), place, side="right"))
        alone = np.where(np.arange(sample.n_rows) == row, 0, 1)
        centre = _of_length(sample.sums(alone, 2, n_words)[:1])
        centres = np.concatenate([centres, centre])
        near = sample.products(centre)[:, 0].astype(np.int64)
        far = np.minimum(far, np.maximum(_CHUNK_LENGTH * _CENTRE_LENGTH - near, 0))
        far[row] = 0
    return centres if len(centres) else np.zeros((1, n_words), np.float32)


def _nearest(columns: Columns, centres: _Matrix, n_chunks: int) -> Rows:
    labels = np.zeros(n_chunks, np.int64)
    for first in range(0, n_chunks, _ROWS_READ):
        behind = min(first + _ROWS_READ, n_chunks)
        read = [_between(columns[word], first, behind) for word in range(len(columns))]
        labels[first:behind] = _nearest_read(read, centres, behind - first)
    return labels


def _between(column: Column, first: int, behind: int) -> Column:
    """Return a part of a column in memory, its rows counted from the first."""
    rows, weights = column
    start, end = np.searchsorted(rows, [first, behind]).tolist()
    return rows[start:end] - first, np.array(weights[start:end])


def _nearest_read(columns: Sequence[Column], centres: _Matrix, n_chunks: int) -> Rows:
    bounds = np.append(np.arange(0, n_chunks, _ROWS_AT_ONCE), n_chunks)
    cuts = [np.searchsorted(rows, bounds).tolist() for rows, _ in columns]
    labels = np.zeros(n_chunks, np.int64)
    for part, (first, behind) in enumerate(pairwise(bounds.tolist())):
        own = [
            (rows[cut[part] : cut[part + 1]] - first, weights[cut[part] : cut[part + 1]])
            for (rows, weights), cut in zip(columns, cuts, strict=True)
        ]
        products = _vectors(own, behind - first).products(centres)
        labels[first:behind] = np.argmax(products, axis=1)
    return labels


def _of_length(sums: npt.NDArray[np.float64]) -> _Matrix:
    """Return whole numbers in the proportions of others, all rows of the length of a centre."""
    lengths = np.sqrt(np.square(sums).sum(axis=1, keepdims=True))
    found: _Matrix = np.rint(sums * (_CENTRE_LENGTH / np.maximum(lengths, 1))).astype(np.float32)
    return found


def _by_size(labels: Rows) -> Rows:
    sizes = np.bincount(labels)
    order = np.argsort(-sizes, kind="stable")
    number = np.empty(len(sizes), np.int64)
    number[order] = np.arange(len(sizes))
    found: Rows = number[labels]
    return found


def _scrambled(numbers: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Return numbers in an order that tells nothing of theirs, as SplitMix64 makes them."""
    start = int.from_bytes(hashlib.sha256(f"{seed}\nsample".encode()).digest()[:8], "big")
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
