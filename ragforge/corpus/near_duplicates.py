"""Repetition in a corpus: copies of chunks, near-duplicates, and paragraphs of many documents.

Of near-duplicates, MinHash finds candidates, and their word triples decide.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.deferred import dataclass, pattern, tempfile
from ragforge.deferred import numpy as np
from ragforge.files.array_files import Array, ArrayWriter, map_array, read_parts

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
_PART = 1 << 13
_SORTED_AT_ONCE = 1 << 21
"""Keys of a band, about, that are in memory while they are sorted: some 60 MB."""
_READ_AT_ONCE = 1 << 20
_MEMBERS_AT_ONCE = 1 << 16
_LEADERS_HELD = 1024

Numbers: TypeAlias = "npt.NDArray[np.uint64]"
Rows: TypeAlias = "npt.NDArray[np.int64]"
_CONTENTS: Final = ("contents", "<u8")
_ESTIMATORS: Final = ("estimators", "|u1")
_BAND_KEYS: Final = tuple((f"band{number:02}", "<u4") for number in range(_BANDS))
"""Names and types of the columns of sketches: of each chunk a number of its words, the lowest byte
of each digest, and a key of each band."""
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_MIX: Final = 0xD6E8FEB86659FD93
_HALF: Final = 32
_MOST_DOCUMENTS_SHARE: Final = 0.3
_FEWEST_DOCUMENTS = 5
_FEWEST_CHARS = 20
_SHOWN = 60
_BATCH = 1000
_PARAGRAPH_END = pattern(r"\n[^\S\n]*\n")
_WORD = pattern(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")


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


class Sketches(AbstractContextManager["Sketches"]):
    """Takes the words of all chunks in the order of their rows, and keeps what tells them apart.

    That is some 200 bytes a chunk, on disk. A context manager.

    Args:
        folder: Where they are put; made.

    Raises:
        OSError: They cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        with ExitStack() as opened:
            self._contents, self._estimators, *self._bands = [
                opened.enter_context(ArrayWriter(folder / name, dtype))
                for name, dtype in (_CONTENTS, _ESTIMATORS, *_BAND_KEYS)
            ]
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add(self, numbers: Numbers, lengths: Rows) -> None:
        """Take the next chunks, of any number; see `triples` for the arguments.

        Raises:
            OSError: There is no space.
        """
        digests = minhashes(numbers, lengths).astype(np.uint64)
        self._contents.add(_contents(numbers, lengths))
        self._estimators.add(digests.astype(np.uint8))
        keys = _band_keys(digests)
        for place, band in enumerate(self._bands):
            band.add(keys[:, place])


def representatives(
    sketches: Sequence[Path], words: Callable[[int], Numbers], scratch: Path
) -> npt.NDArray[np.uint32]:
    """Return for each row the row of the chunk that stands for it: the first of its group.

    Every chunk has the triples of the one that stands for it, but for a tenth. Chunks of the same
    words are always together. The work grows with the corpus, not with its square, however many
    chunks are alike. Memory grows by some twenty bytes a chunk.

    Args:
        sketches: Folders of sketches; the rows go on from one to the next.
        words: Returns the words of a row again, as numbers.
        scratch: A file that is made and removed.

    Raises:
        OSError: There is no space, or sketches are damaged.
    """
    sketched = _Sketched(sketches)
    stands = sketched.firsts()
    jaccard = _Jaccard(words)
    try:
        runs = _write_pairs(sketched, stands, scratch)
        for member, leaders in _by_member(scratch, runs, sketched.n_rows):
            for leader in sorted({int(stands[leader]) for leader in leaders})[:_MOST_TRIED]:
                if jaccard(leader, member) >= LEAST_JACCARD:
                    stands[member] = leader
                    break
    finally:
        scratch.unlink(missing_ok=True)
    return stands[stands]


class _Sketched:
    """Sketches on disk, one folder behind the other."""

    def __init__(self, folders: Sequence[Path]) -> None:
        name, dtype = _CONTENTS
        self._folders = folders
        self._ends = np.cumsum([len(map_array(folder / name, dtype)) for folder in folders])
        self.n_rows = int(self._ends[-1]) if folders else 0

    def firsts(self) -> npt.NDArray[np.uint32]:
        """Return for each row the first row of the same words."""
        firsts = np.zeros(self.n_rows, np.uint32)
        for contents, rows in self.sorted_by(_CONTENTS):
            heads = _heads(contents)
            firsts[rows] = rows[heads][np.cumsum(heads) - 1]
        return firsts

    def sorted_by(
        self, column: tuple[str, str], stands: npt.NDArray[np.uint32] | None = None
    ) -> Iterator[tuple[Array, Rows]]:
        """Yield keys, ascending, and their rows: a range of keys at once, equal ones together.

        Args:
            column: Name and type of the keys.
            stands: Leaves out the rows for which others stand.
        """
        name, dtype = column
        most = int(np.iinfo(dtype).max) + 1
        n_ranges = -(-self.n_rows // _SORTED_AT_ONCE)
        for number in range(n_ranges):
            low, behind = most * number // n_ranges, most * (number + 1) // n_ranges
            keys, rows, at = [], [], 0
            for block in self._blocks(name, dtype):
                chosen = np.flatnonzero((block >= low) & (block <= behind - 1))
                if stands is not None:
                    chosen = chosen[stands[at + chosen] == at + chosen]
                keys.append(block[chosen])
                rows.append(at + chosen)
                at += len(block)
            found = np.concatenate(keys)
            order = np.argsort(found, kind="stable")
            yield found[order], np.concatenate(rows)[order]

    def estimates(self, ones: Rows, others: Rows) -> npt.NDArray[np.float64]:
        """Return the share of equal digests of pairs, cut to a byte each."""
        parts = [
            (self._estimators(ones[at : at + _PART]) == self._estimators(others[at : at + _PART]))
            for at in range(0, len(ones), _PART)
        ]
        return np.concatenate([np.zeros(0), *(part.mean(axis=1) for part in parts)])

    def _blocks(self, name: str, dtype: str) -> Iterator[Array]:
        for folder in self._folders:
            yield from read_parts(folder / name, dtype, _READ_AT_ONCE)

    def _estimators(self, rows: Rows) -> npt.NDArray[np.uint8]:
        found = np.zeros((len(rows), PERMUTATIONS), np.uint8)
        name, dtype = _ESTIMATORS
        folders = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(folders).tolist():
            mine = folders == number
            first = int(self._ends[number - 1]) if number else 0
            # Mapped anew each time: what was looked at would stay in memory.
            table = map_array(self._folders[number] / name, dtype).reshape(-1, PERMUTATIONS)
            found[mine] = table[rows[mine] - first]
        return found


def _write_pairs(sketched: _Sketched, stands: npt.NDArray[np.uint32], path: Path) -> list[int]:
    """Write candidates in sorted runs, and return where each run ends.

    A candidate is one number, member x rows + leader; leaders have lower rows.
    """
    ends: list[int] = []
    with ArrayWriter(path, "<i8") as pairs:
        for column in _BAND_KEYS:
            for keys, rows in sketched.sorted_by(column, stands):
                run = [
                    members * sketched.n_rows + leaders
                    for members, leaders in _alike(keys, rows, sketched)
                ]
                found = np.unique(np.concatenate(run))
                pairs.add(found)
                ends.append((ends[-1] if ends else 0) + len(found))
    return ends


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
    keys: npt.NDArray[np.uint32], rows: Rows, sketched: _Sketched
) -> Iterator[tuple[Rows, Rows]]:
    """Yield members and leaders of a band's pairs: equal keys, estimators that nearly agree.

    The first of a bucket is compared with all others, then the first of those that were not like
    it with the rest, and so on for a few rounds.

    Args:
        keys: Of the band, sorted.
        rows: That have them, ascending where they are equal.
        sketched: Has the estimators.
    """
    for _ in range(_ROUNDS):
        heads = _heads(keys)
        leaders = rows[heads][np.cumsum(heads) - 1]
        members = ~heads
        alike = np.zeros(len(keys), np.bool_)
        alike[members] = sketched.estimates(leaders[members], rows[members]) >= _LEAST_ESTIMATE
        yield rows[alike], leaders[alike]
        keys, rows = keys[members & ~alike], rows[members & ~alike]


def _heads(keys: Array) -> npt.NDArray[np.bool_]:
    """Return which of sorted keys are the first of their kind."""
    heads = np.ones(len(keys), np.bool_)
    heads[1:] = keys[1:] != keys[:-1]
    return heads


def _by_member(path: Path, ends: Sequence[int], n_rows: int) -> Iterator[tuple[int, list[int]]]:
    """Yield each member, ascending, with its leaders, ascending, out of sorted runs."""
    at = [0, *ends][: len(ends)]
    for first in range(0, n_rows, _MEMBERS_AT_ONCE):
        runs = map_array(path, "<i8")
        limit = min(first + _MEMBERS_AT_ONCE, n_rows) * n_rows
        parts = []
        for number, (start, end) in enumerate(zip(at, ends, strict=True)):
            at[number] = start + int(np.searchsorted(runs[start:end], limit))
            parts.append(runs[start : at[number]])
        pairs, leaders = np.divmod(np.unique(np.concatenate(parts)), n_rows)
        members, starts = np.unique(pairs, return_index=True)
        for member, own in zip(members.tolist(), np.split(leaders, starts[1:]), strict=False):
            yield member, own.tolist()


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
        self._vocabulary = _Vocabulary()
        self._words = array("I")
        self._ends = array("Q", [0])
        self._firsts: dict[bytes, int] = {}
        self._copies: dict[int, int] = {}

    def add(self, text: str) -> None:
        """Take the text of the next chunk."""
        row = len(self._ends) - 1
        digest, words = _digest_and_words(text)
        first = self._firsts.setdefault(digest, row)
        if first != row:
            self._copies[row] = first
        self._words.extend(map(self._vocabulary.__getitem__, words))
        self._ends.append(len(self._words))

    def exact(self) -> Iterator[tuple[int, int]]:
        """Yield each chunk that has the text of an earlier one, blanks folded, with the first."""
        yield from self._copies.items()

    def near(self) -> Iterator[tuple[int, int]]:
        """Yield each chunk that is nearly the same as an earlier one, with that one."""
        with tempfile.TemporaryDirectory(prefix="ragforge-") as place:
            found = self._representatives(Path(place))
        for row, first in enumerate(found.tolist()):
            has_words = self._ends[row + 1] > self._ends[row]
            if first != row and row not in self._copies and has_words:
                yield row, first

    def numbers(self, row: int) -> npt.NDArray[np.uint64]:
        """Return the words of a row as numbers, equal for equal words."""
        words = self._words[self._ends[row] : self._ends[row + 1]]
        return np.asarray(words, np.uint64)

    def _representatives(self, place: Path) -> npt.NDArray[np.uint32]:
        with Sketches(place / "sketches") as sketches:
            for first in range(0, len(self._ends) - 1, _BATCH):
                ends = np.asarray(self._ends[first : first + _BATCH + 1], np.int64)
                words = np.asarray(self._words[int(ends[0]) : int(ends[-1])], np.uint64)
                sketches.add(words, np.diff(ends))
        return representatives([place / "sketches"], self.numbers, place / "pairs")


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


@lru_cache(maxsize=1)
def _digest_and_words(text: str) -> tuple[bytes, list[str]]:
    """Return what tells a text from others, and its words; several may ask for one in turn."""
    return _digest(text), _WORD.findall(text.casefold())


def _digest(text: str) -> bytes:
    folded = " ".join(text.split())
    return hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=8).digest()
