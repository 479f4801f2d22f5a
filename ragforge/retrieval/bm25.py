"""Ranking by shared words: BM25 as Lucene computes it."""

from collections.abc import Iterable

import bm25s

from ragforge.records import Chunk, Hit
from ragforge.retrieval.tokens import in_tie_order, searched_text, tokenize, top_hits


class BM25Retriever:
    """Finds the chunks that share rare words with the query; k1 = 1.5, b = 0.75.

    A chunk without any word of the query is never returned, so an empty query finds nothing.

    Args:
        chunks: What is searched, headings included. Indexed here; the texts are not kept.

    Raises:
        DataError: Two chunks have one id.

    Source: Kamphuis et al. 2020, "Which BM25 do you mean?", the variant "Lucene (accurate)".
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._ids: list[str] = []
        self._terms: dict[str, int] = {}
        rows: list[list[int]] = []
        for chunk in in_tie_order(chunks):
            self._ids.append(chunk.chunk_id)
            terms = tokenize(searched_text(chunk))
            rows.append([self._terms.setdefault(term, len(self._terms)) for term in terms])
        self._index = bm25s.BM25(k1=1.5, b=0.75, method="lucene", backend="numpy")
        if self._terms:  # bm25s divides by the mean length, which is 0 without any term
            self._index.index((rows, self._terms), create_empty_token=False, show_progress=False)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks; the score is the BM25 sum over the words of the query."""
        terms = [self._terms[term] for term in tokenize(query) if term in self._terms]
        if not terms:
            return []
        return top_hits(self._ids, self._index.get_scores_from_ids(terms), k, above=0)
