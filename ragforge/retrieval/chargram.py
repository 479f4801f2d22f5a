"""Ranking in memory by shared spelling: the cosine of hashed character n-grams.

It survives typing errors.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ragforge.records import Chunk, Hit
from ragforge.retrieval.tokens import in_tie_order, searched_text, tokenize, top_hits

_Ints = npt.NDArray[np.int32]
_Floats = npt.NDArray[np.float64]
_SIZES = (3, 4)
_BUCKETS = 1 << 20
"""The some 100,000 n-grams of a corpus of prose seldom share a bucket."""


class ChargramRetriever:
    """Finds the chunks whose words are spelt like those of the query.

    Words are padded with a blank on both sides and cut into n-grams of 3 and 4 characters. A word
    that occurs tf times gives each of its n-grams 1 + ln tf; an n-gram that df of the N chunks
    contain weighs 1 + ln((1 + N) / (1 + df)). Scores are cosines in (0, 1]; a chunk that shares no
    n-gram with the query is not returned.

    Args:
        chunks: What is searched, headings included. Indexed here; the texts are not kept.

    Raises:
        DataError: Two chunks have one id.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        ordered = in_tie_order(chunks)
        self._ids = [chunk.chunk_id for chunk in ordered]
        numbers: dict[str, int] = {}
        terms: list[_Ints] = []
        weights: list[_Floats] = []
        for chunk in ordered:
            times = Counter(tokenize(searched_text(chunk)))
            found = (numbers.setdefault(word, len(numbers)) for word in times)
            terms.append(np.fromiter(found, np.int32))
            weights.append(_damped(times))
        grams = [_grams(word) for word in numbers]
        self._idf = _rarity(terms, grams)
        self._norms = _norms(terms, weights, grams, self._idf)
        # Chunks keep words, and words keep n-grams: a tenth of the memory of chunks x n-grams.
        self._grams = _joined(grams)
        self._gram_terms = _owners(grams)
        self._terms = _joined(terms)
        self._term_rows = _owners(terms)
        self._weights = np.concatenate([np.empty(0), *weights])
        self._term_count = len(numbers)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks; the score is the cosine between query and chunk."""
        times = Counter(tokenize(query))
        if not times or not self._ids:
            return []
        grams = [_grams(word) for word in times]
        weights = _damped(times)
        buckets = np.unique(_joined(grams))
        asked = np.zeros(_BUCKETS)
        np.add.at(asked, _joined(grams), weights[_owners(grams)])
        asked[buckets] *= self._idf[buckets]
        asked[buckets] *= self._idf[buckets] / np.linalg.norm(asked[buckets])
        alike = np.bincount(self._gram_terms, asked[self._grams], self._term_count)
        scores = np.bincount(self._term_rows, self._weights * alike[self._terms], len(self._ids))
        return top_hits(self._ids, scores / self._norms, k, above=0)


def _grams(word: str) -> _Ints:
    """Return the bucket of each n-gram of a word."""
    padded = f" {word} "
    # crc32, as hash() of a str differs from one process to the next.
    buckets = (
        zlib.crc32(padded[start : start + size].encode("utf-8", "surrogatepass")) % _BUCKETS
        for size in _SIZES
        for start in range(len(padded) - size + 1)
    )
    return np.fromiter(buckets, np.int32)


def _damped(times: Counter[str]) -> _Floats:
    return 1 + np.log(np.fromiter(times.values(), np.float64, len(times)))


def _rarity(terms: Sequence[_Ints], grams: Sequence[_Ints]) -> _Floats:
    """Return the inverse document frequency of each bucket."""
    frequency = np.zeros(_BUCKETS)
    last = np.zeros(_BUCKETS, dtype=np.int32)
    for row in terms:
        buckets = _joined([grams[term] for term in row])
        places = np.arange(len(buckets), dtype=np.int32)
        last[buckets] = places
        # One place of each bucket, as np.unique gives it at ten times the cost.
        frequency[buckets[last[buckets] == places]] += 1
    return 1 + np.log((1 + len(terms)) / (1 + frequency))


def _norms(
    terms: Sequence[_Ints], weights: Sequence[_Floats], grams: Sequence[_Ints], idf: _Floats
) -> _Floats:
    """Return the length of each chunk's vector, 1 for a chunk without words."""
    norms = np.ones(len(terms))
    sums = np.zeros(_BUCKETS)
    for row, (term_numbers, term_weights) in enumerate(zip(terms, weights, strict=True)):
        parts = [grams[term] for term in term_numbers]
        buckets = _joined(parts)
        values = term_weights[_owners(parts)] * idf[buckets]
        np.add.at(sums, buckets, values)
        # The sum of v[g] ** 2 over n-grams g, taken over occurrences: no need to know the set.
        norms[row] = np.sqrt(values @ sums[buckets]) or 1.0
        sums[buckets] = 0
    return norms


def _joined(parts: Sequence[_Ints]) -> _Ints:
    return np.concatenate([np.empty(0, np.int32), *parts])


def _owners(parts: Sequence[_Ints]) -> _Ints:
    """Return, for each element of the joined parts, the number of its part."""
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    return np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
