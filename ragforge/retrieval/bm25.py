"""BM25 as Lucene computes it: what a term gives a chunk, and ranking in memory by it.

Source: Kamphuis et al. 2020, "Which BM25 do you mean?", the variant "Lucene (accurate)".
"""

import math
from array import array
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from ragforge.records import Chunk, Hit
from ragforge.retrieval.tokens import in_tie_order, searched_text, tokenize, top_hits

_Scores = npt.NDArray[np.float32]
_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.integer]

_K1, _B = 1.5, 0.75
_ROW_BITS: Final = np.uint64(32)


def changes(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return for each value whether it differs from the one before; the first does."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs


def length_norms(lengths: _Integers) -> _Floats:
    """Return for each chunk what its length adds to the count of a term, shape (chunks,).

    Args:
        lengths: Terms of each chunk, with repetitions.
    """
    return _K1 * ((1 - _B) + _B * lengths / (lengths.mean() if lengths.any() else 1.0))


def term_weights(counts: _Integers, norms: _Floats, frequencies: _Integers, n: int) -> _Scores:
    """Return what each posting gives to the score of its chunk, shape (postings,).

    Args:
        counts: How often the chunk of each posting has its term.
        norms: By `length_norms`, of the chunk of each posting.
        frequencies: Of each term, in the order of the postings: how many chunks have it.
        n: Chunks of the corpus.
    """
    distinct, place = np.unique(frequencies, return_inverse=True)
    rarity = [math.log(1 + (n - each + 0.5) / (each + 0.5)) for each in distinct.tolist()]
    idf = np.repeat(np.array(rarity, np.float32)[place], frequencies)
    return (idf * (counts / (norms + counts))).astype(np.float32)


class BM25Retriever:
    """Finds the chunks that share rare words with the query; k1 = 1.5, b = 0.75.

    A chunk without any word of the query is never returned, so an empty query finds nothing.

    Args:
        chunks: What is searched, headings included. Indexed here; the texts are not kept.

    Raises:
        DataError: Two chunks have one id.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._ids: list[str] = []
        self._terms: dict[str, int] = {}
        terms, lengths = array("I"), array("I")
        for chunk in in_tie_order(chunks):
            self._ids.append(chunk.chunk_id)
            words = tokenize(searched_text(chunk))
            terms.extend(self._terms.setdefault(word, len(self._terms)) for word in words)
            lengths.append(len(words))
        n_terms = np.array(lengths)
        # A term and its row in one number: numpy sorts these ten times as fast as it finds orders.
        keys = np.array(terms, np.uint64) << _ROW_BITS
        keys |= np.repeat(np.arange(len(self._ids), dtype=np.uint64), n_terms)
        keys.sort()
        firsts = np.flatnonzero(changes(keys))
        counts = np.diff(firsts, append=len(keys))
        keys = keys[firsts]
        self._rows = keys.astype(np.uint32)
        of_terms = np.arange(len(self._terms) + 1, dtype=np.uint64) << _ROW_BITS
        starts = np.searchsorted(keys, of_terms)
        norms = length_norms(n_terms)[self._rows]
        self._starts = starts.tolist()
        self._weights = term_weights(counts, norms, np.diff(starts), len(self._ids))

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks; the score is the BM25 sum over the words of the query."""
        return self.best(query, k)

    def best(self, query: str, k: int) -> list[Hit]:
        """Return the same at once."""
        scores = np.zeros(len(self._ids), np.float32)
        for word in tokenize(query):
            if (term := self._terms.get(word)) is not None:
                postings = slice(self._starts[term], self._starts[term + 1])
                np.add.at(scores, self._rows[postings], self._weights[postings])
        return top_hits(self._ids, scores, k, above=0)
