"""Repetition in a corpus: copies of chunks, near-duplicates, and paragraphs of many documents.

Of near-duplicates, MinHash finds candidates, and their word triples decide.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.deferred import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LEAST_JACCARD = 0.9
"""Share of the word triples of two chunks that both have, from which they are near-duplicates."""

PERMUTATIONS: Final = 128
_BANDS = 16
"""Of 8 rows: finds a pair of Jaccard 0.9 with a probability of 0.9999, one of 0.5 with 0.06."""
_LEAST_ESTIMATE = 0.82
"""Three standard deviations below 0.9, as 128 permutations estimate it."""
_ROUNDS = 4
_MOST_TRIED = 8
"""They bound the work on templates: chunks of a bucket with which the others of it are compared,
and candidates whose words are read again for one chunk."""
_SEED = 20_150
_PART = 1 << 16
_LEADERS_HELD = 1024

Numbers: TypeAlias = "npt.NDArray[np.uint64]"
Rows: TypeAlias = "npt.NDArray[np.int64]"
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_MIX: Final = 0xD6E8FEB86659FD93
_HALF: Final = 32
_MOST_DOCUMENTS_SHARE: Final = 0.3
_FEWEST_DOCUMENTS = 5
_FEWEST_CHARS = 20
_SHOWN = 60
_BATCH = 1000
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")


def triples(numbers: Numbers, lengths: Rows) -> tuple[Numbers, Rows]:
    """Return numbers of the runs of three words in each chunk, and how many each has.

    A chunk of fewer words is one run; one without words has none.

    Args:
        numbers: The words of all chunks as numbers, one chunk behind the other.
        lengths: How many of them each chunk has.
    """
    ends = np.cumsum(lengths)
    left = np.repeat(ends, lengths) - np.arange(len(numbers))
    padded = np.concatenate([numbers, np.zeros(2, np.uint64)])
    runs = numbers * np.uint64(_FACTORS[0])
    for step in (1, 2):
        following = (padded[step : step + len(numbers)] + np.uint64(1)) * np.uint64(_FACTORS[step])
        runs = runs + np.where(left > step, following, np.uint64(0))
    runs = (runs ^ (runs >> np.uint64(_HALF))) * np.uint64(_MIX)
    whole = left > 2
    whole[(ends - lengths)[lengths > 0]] = True
    runs ^= runs >> np.uint64(_HALF)
    return runs[whole], np.maximum(lengths - 2, np.minimum(lengths, 1))


def minhashes(numbers: Numbers, lengths: Rows) -> npt.NDArray[np.uint32]:
    """Return the MinHash digests of the word triples of chunks, [chunk, permutation].

    The share of equal digests of two chunks estimates the Jaccard similarity of their triples.
    See `triples` for the arguments.
    """
    from rensa import RMinHash  # It brings numpy.

    runs, counts = triples(numbers, lengths)
    offsets = np.concatenate([np.zeros(1, np.uint64), np.cumsum(counts).astype(np.uint64)])
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(runs, offsets, PERMUTATIONS, _SEED)
    return np.array(matrix.to_rows(), np.uint32).reshape(len(lengths), PERMUTATIONS)


class Sketches:
    """Takes the words of all chunks in the order of their rows, and finds the near-duplicates.

    Holds some 200 bytes a chunk.
    """

    def __init__(self) -> None:
        self._contents: list[Numbers] = []
        self._bands: list[npt.NDArray[np.uint32]] = []
        self._estimators: list[npt.NDArray[np.uint8]] = []

    def add(self, numbers: Numbers, lengths: Rows) -> None:
        """Take the next chunks, of any number; see `triples` for the arguments."""
        digests = minhashes(numbers, lengths).astype(np.uint64)
        self._contents.append(_contents(numbers, lengths))
        self._bands.append(_band_keys(digests))
        self._estimators.append(digests.astype(np.uint8))

    def representatives(self, words: Callable[[int], Numbers]) -> Rows:
        """Return for each row the row of the chunk that stands for it: the first of its group.

        Every chunk has the triples of the one that stands for it, but for a tenth. Chunks of the
        same words are always together. The work grows with the corpus, not with its square,
        however many chunks are alike.

        Args:
            words: Returns the words of a row again, as numbers.
        """
        contents = np.concatenate([np.zeros(0, np.uint64), *self._contents])
        _, firsts, group = np.unique(contents, return_index=True, return_inverse=True)
        stands = np.arange(len(contents))
        jaccard = _Jaccard(words)
        pairs = self._pairs(np.sort(firsts))
        for member, leaders in _by_member(pairs):
            for leader in sorted({int(stands[leader]) for leader in leaders})[:_MOST_TRIED]:
                if jaccard(leader, member) >= LEAST_JACCARD:
                    stands[member] = leader
                    break
        found: Rows = stands[firsts[group]]
        return found

    def _pairs(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return candidates among the rows as [member, leader], sorted; leaders have lower rows."""
        estimators = np.concatenate([np.zeros((0, PERMUTATIONS), np.uint8), *self._estimators])
        n_rows = len(estimators)
        pairs = np.zeros(0, np.int64)
        for band in range(_BANDS):
            keys = np.concatenate(
                [np.zeros(0, np.uint32), *(part[:, band] for part in self._bands)]
            )
            found = [
                members * n_rows + leaders
                for members, leaders in _alike(keys[rows], rows, estimators)
            ]
            pairs = np.unique(np.concatenate([pairs, *found]))
        return np.stack(np.divmod(pairs, max(n_rows, 1)), axis=1)


def _contents(numbers: Numbers, lengths: Rows) -> Numbers:
    """Return a number for the words of each chunk in their order; all chunks of none share one."""
    starts = np.cumsum(lengths) - lengths
    places = np.arange(len(numbers), dtype=np.uint64) - np.repeat(starts, lengths).astype(np.uint64)
    mixed = (numbers + places * np.uint64(_FACTORS[1])) * np.uint64(_FACTORS[0])
    mixed = (mixed ^ (mixed >> np.uint64(_HALF))) * np.uint64(_MIX)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed ^ (mixed >> np.uint64(_HALF)))])
    contents: Numbers = sums[starts + lengths] - sums[starts]
    return contents


def _band_keys(digests: Numbers) -> npt.NDArray[np.uint32]:
    rows = digests.reshape(len(digests), _BANDS, -1)
    keys = np.zeros(rows.shape[:2], np.uint64)
    for place in range(rows.shape[2]):
        keys = (keys ^ rows[:, :, place]) * np.uint64(_FACTORS[0])
        keys ^= keys >> np.uint64(_HALF)
    return keys.astype(np.uint32)


def _alike(
    keys: npt.NDArray[np.uint32], rows: Rows, estimators: npt.NDArray[np.uint8]
) -> Iterator[tuple[Rows, Rows]]:
    """Yield members and leaders of a band's pairs: equal keys, estimators that nearly agree.

    The first of a bucket is compared with all others, then the first of those that were not like
    it with the rest, and so on for a few rounds.
    """
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    for _ in range(_ROUNDS):
        heads = np.ones(len(keys), np.bool_)
        heads[1:] = keys[1:] != keys[:-1]
        leaders = rows[heads][np.cumsum(heads) - 1]
        members = ~heads
        alike = np.zeros(len(keys), np.bool_)
        alike[members] = _estimates(estimators, leaders[members], rows[members]) >= _LEAST_ESTIMATE
        yield rows[alike], leaders[alike]
        keys, rows = keys[members & ~alike], rows[members & ~alike]


def _estimates(
    estimators: npt.NDArray[np.uint8], ones: Rows, others: Rows
) -> npt.NDArray[np.float64]:
    parts = [
        (estimators[ones[at : at + _PART]] == estimators[others[at : at + _PART]]).mean(axis=1)
        for at in range(0, len(ones), _PART)
    ]
    return np.concatenate([np.zeros(0), *parts])


def _by_member(pairs: npt.NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
    """Yield each member, ascending, with its leaders, ascending."""
    members, starts = np.unique(pairs[:, 0], return_index=True)
    for member, leaders in zip(members.tolist(), np.split(pairs[:, 1], starts[1:]), strict=False):
        yield member, leaders.tolist()


class _Jaccard:
    def __init__(self, words: Callable[[int], Numbers]) -> None:
        self._words = words
        self._of_leader = lru_cache(_LEADERS_HELD)(self._triples)

    def __call__(self, leader: int, member: int) -> float:
        one, other = self._of_leader(leader), self._triples(member)
        shared = len(np.intersect1d(one, other, assume_unique=True))
        return shared / max(len(one) + len(other) - shared, 1)

    def _triples(self, row: int) -> Numbers:
        numbers = self._words(row)
        return np.unique(triples(numbers, np.array([len(numbers)]))[0])


class Repeats:
    """Finds chunks of the same words; holds four bytes of each word."""

    def __init__(self) -> None:
        self._sketches = Sketches()
        self._vocabulary = _Vocabulary()
        self._words = array("I")
        self._ends = array("Q", [0])
        self._sketched = 0
        self._firsts: dict[bytes, int] = {}
        self._copies: dict[int, int] = {}

    def add(self, text: str) -> None:
        """Take the text of the next chunk."""
        row = len(self._ends) - 1
        first = self._firsts.setdefault(_digest(text), row)
        if first != row:
            self._copies[row] = first
        numbers = self._vocabulary
        self._words.extend([numbers[word] for word in _WORD.findall(text.casefold())])
        self._ends.append(len(self._words))
        if row - self._sketched >= _BATCH:
            self._sketch()

    def exact(self) -> Iterator[tuple[int, int]]:
        """Yield each chunk that has the text of an earlier one, blanks folded, with the first."""
        yield from self._copies.items()

    def near(self) -> Iterator[tuple[int, int]]:
        """Yield each chunk that is nearly the same as an earlier one, with that one."""
        self._sketch()
        for row, first in enumerate(self._sketches.representatives(self.numbers).tolist()):
            has_words = self._ends[row + 1] > self._ends[row]
            if first != row and row not in self._copies and has_words:
                yield row, first

    def numbers(self, row: int) -> npt.NDArray[np.uint64]:
        """Return the words of a row as numbers, equal for equal words."""
        words = self._words[self._ends[row] : self._ends[row + 1]]
        return np.asarray(words, np.uint64)

    def _sketch(self) -> None:
        ends = np.asarray(self._ends[self._sketched :], np.int64)
        words = np.asarray(self._words[int(ends[0]) : int(ends[-1])], np.uint64)
        if len(ends) > 1:
            self._sketches.add(words, np.diff(ends))
        self._sketched = len(self._ends) - 1


class _Vocabulary(dict[str, int]):
    """Numbers words in the order in which they come."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]


@dataclass(slots=True)
class _Spread:
    """Where a paragraph stands that comes more than once."""

    documents: set[int]
    start: str
    rows: array[int] = field(default_factory=lambda: array("I"))


class Boilerplate:
    """Finds paragraphs that stand in many documents."""

    def __init__(self) -> None:
        self._documents: dict[str, int] = {}
        self._seen: dict[bytes, tuple[int, int] | _Spread] = {}

    def add(self, doc_id: str, row: int, text: str) -> None:
        """Take the next chunk."""
        document = self._documents.setdefault(doc_id, len(self._documents))
        for paragraph in _PARAGRAPH_END.split(text):
            if len(paragraph) < _FEWEST_CHARS or paragraph.startswith("#"):
                continue
            key = _digest(paragraph)
            seen = self._seen.get(key)
            if seen is None:
                self._seen[key] = (document, row)
                continue
            if not isinstance(seen, _Spread):
                first_document, first_row = seen
                if first_document == document:
                    continue
                seen = _Spread({first_document}, " ".join(paragraph[: 2 * _SHOWN].split())[:_SHOWN])
                seen.rows.append(first_row)
                self._seen[key] = seen
            seen.documents.add(document)
            seen.rows.append(row)

    def found(self, n_documents: int) -> Iterator[tuple[int, str, float]]:
        """Yield chunks with such a paragraph, its start, and the share of documents that have it.

        Nothing in a corpus of less than five documents.
        """
        if n_documents < _FEWEST_DOCUMENTS:
            return
        for seen in self._seen.values():
            if (
                isinstance(seen, _Spread)
                and len(seen.documents) > _MOST_DOCUMENTS_SHARE * n_documents
            ):
                share = len(seen.documents) / n_documents
                yield from ((row, seen.start, share) for row in seen.rows)


def _digest(text: str) -> bytes:
    folded = " ".join(text.split())
    return hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=8).digest()
