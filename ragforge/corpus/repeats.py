"""Repetition in a corpus: copies of chunks, near-duplicates, and paragraphs of many documents."""

import hashlib
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

MOST_DOCUMENTS: Final = 0.3
_FEWEST_DOCUMENTS = 5
_FEWEST_CHARS = 20
_SHOWN = 60
_BATCH = 1000
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")


class Repeats:
    """Finds chunks of the same words; holds four bytes of each word."""

    def __init__(self) -> None:
        from ragforge.corpus.near_duplicates import Sketches

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
    rows: "array[int]" = field(default_factory=lambda: array("I"))


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
            if isinstance(seen, _Spread) and len(seen.documents) > MOST_DOCUMENTS * n_documents:
                share = len(seen.documents) / n_documents
                yield from ((row, seen.start, share) for row in seen.rows)


def _digest(text: str) -> bytes:
    folded = " ".join(text.split())
    return hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=8).digest()
