"""BM25 over an index on disk, for corpora that are too large to be indexed at each start."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ragforge.errors import DataError
from ragforge.files.array_files import is_ascending, map_array, require_sound
from ragforge.records import Hit
from ragforge.retrieval.index_writer import (
    ROW,
    ROWS,
    START,
    STARTS,
    TERM,
    TERMS,
    WEIGHT,
    WEIGHTS,
    TermNumbers,
)
from ragforge.retrieval.tokens import tokenize, top_rows

MOST_POSTINGS = 16_000_000
"""Postings that one query reads: some 0.2 s. Its rarest terms come first."""

LEAST_TERMS = 8
"""Terms of a query that are searched for, however common they are."""

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.uint32]

Places = npt.NDArray[np.intp]
_ROUNDING: Final = 2.0**-23
"""What adding one more float32 number can change a sum of positive ones by, relative to it; twice
that."""


class StoredBM25:
    """Finds the chunks that share rare words with the query, as `BM25Retriever` does.

    The scores are the same to the last bit unless the terms of a query have more than
    `MOST_POSTINGS` postings together; then its commonest terms, which weigh least, are left out.

    Args:
        folder: What `IndexWriter` wrote.
        n_chunks: How many chunks there are.
        chunk_id: Gives the id of a row; rows are numbered in the order of the ids.

    Raises:
        OSError: The index cannot be read.
    """

    def __init__(self, folder: Path, n_chunks: int, chunk_id: Callable[[int], str]) -> None:
        self._folder = folder
        self._terms = map_array(folder / TERMS, TERM)
        self._starts = map_array(folder / STARTS, START)
        self._rows = map_array(folder / ROWS, ROW)
        self._weights = map_array(folder / WEIGHTS, WEIGHT)
        is_whole = is_ascending(self._starts, 0, len(self._rows))
        require_sound(STARTS, is_whole and len(self._starts) == len(self._terms) + 1)
        require_sound(WEIGHTS, len(self._weights) == len(self._rows))
        self._n_chunks = n_chunks
        self._chunk_id = chunk_id
        self._number = TermNumbers()

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks; the score is the BM25 sum over the words of the query."""
        terms = self.searched(query)
        if not terms:
            return []
        return await asyncio.to_thread(self._best, terms, k)

    def postings(self, place: int) -> tuple[Rows, Scores]:
        """Return the rows that have the term at a place of the index, ascending, and its scores.

        Raises:
            DataError: A row is that of no chunk.
        """
        part = slice(int(self._starts[place]), int(self._starts[place + 1]))
        rows = self._rows[part]
        if int(rows.max(initial=0)) >= self._n_chunks:
            raise DataError(
                f"{self._folder / ROWS}: is damaged; remove {self._folder.parent} to have it made "
                "again"
            )
        return rows, self._weights[part]

    def weights_at(self, places: npt.NDArray[np.int64], rows: Rows) -> Scores:
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
        within = int(np.searchsorted(np.cumsum(postings[rarest]), MOST_POSTINGS, side="right"))
        if within >= len(distinct):
            return [int(place) for place in known]
        kept = set(distinct[rarest[: max(within, LEAST_TERMS)]].tolist())
        return [place for place in known.tolist() if place in kept]

    def _best(self, terms: list[int], k: int) -> list[Hit]:
        scores = self._scores(terms)
        last = len(scores) - 1
        return [
            Hit(chunk_id=self._chunk_id(last - row), score=float(scores[last - row]))
            for row in top_rows(scores[::-1], k, above=0).tolist()
        ]

    def _scores(self, terms: list[int]) -> Scores:
        scores = np.zeros(self._n_chunks, np.float32)
        for place in terms:
            rows, weights = self.postings(place)
            scores[rows] += weights
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
        self._new: Rows = np.array(rows, np.uint32)
        self._row_of = row_of
        self._is_new = frozenset(rows)
        self._rows: dict[str, int | None] = {}
        self._held: dict[int, tuple[Places, Scores]] = {}

    def may_enter(self, text: str, k: int, others: Iterable[str]) -> bool:
        """Whether one of the chunks may be among the best k for a text.

        It is never False where one is. Scores that are nearly equal count as if it were before the
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

    def _scores(self, terms: Sequence[int], rows: Rows) -> npt.NDArray[np.float64]:
        distinct, counts = np.unique(np.array(terms, np.int64), return_counts=True)
        return counts.astype(np.float64) @ self._index.weights_at(distinct, rows)

    def _held_by(self, term: int) -> tuple[Places, Scores]:
        """Return which of the chunks have a term, by their places, and what it gives them."""
        if term not in self._held:
            having, weights = self._index.postings(term)
            at = np.searchsorted(having, self._new)
            places = np.flatnonzero(having[np.minimum(at, len(having) - 1)] == self._new)
            self._held[term] = places, weights[at[places]]
        return self._held[term]
