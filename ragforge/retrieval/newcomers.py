"""Whether a search needs to be made: can one of some chunks be among the best for a text?

A full search reads all postings of the terms of its text. To rule out that a few chunks are among
the best k, it is enough that k others score higher; those that were found before mostly do.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ragforge.retrieval.stored import Rows, Scores, StoredBM25

Places = npt.NDArray[np.intp]
_ROUNDING: Final = 2.0**-23
"""What adding one more float32 number can change a sum of positive ones by, relative to it; twice
that."""


class Newcomers:
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
