"""What a reviewer is shown beside a query: its evidence where it stands, or the nearest chunks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from ragforge.evaluating.formatting import Excerpt
from ragforge.evaluating.query_details import ChunkStart, chunk_start
from ragforge.files.set.dataset import Dataset
from ragforge.records import Chunk, Query
from ragforge.report.page.review import Passage

NEAREST: Final = 3
"""Chunks shown of a query that is said to have no answer."""
MOST_SEARCHED: Final = 100_000
"""Chunks up to which nearest ones are looked for: the index is made for one sheet."""


def passages(dataset: Dataset, queries: Sequence[Query]) -> dict[str, list[Passage]]:
    """Return passages by query: of answerable ones the evidence, of others the nearest chunks.

    Args:
        dataset: Whose chunks are read; twice where a query is said to be unanswerable.
        queries: Those of a sheet.
    """
    if not dataset.chunks_path.exists():
        return {}
    near = _nearest(dataset, [query for query in queries if not query.answerable])
    wanted = {item.chunk_id for query in queries for item in query.evidence}
    wanted.update(chunk_id for chunk_ids in near.values() for chunk_id in chunk_ids)
    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks() if chunk.chunk_id in wanted}
    found = {
        query.query_id: list(
            _of_chunks(near[query.query_id], chunks)
            if query.query_id in near
            else _of_evidence(query, chunks)
        )
        for query in queries
    }
    return {query_id: shown for query_id, shown in found.items() if shown}


def _nearest(dataset: Dataset, queries: Iterable[Query]) -> dict[str, list[str]]:
    """Return the ids of the chunks that share most with each query, the nearest first."""
    queries = list(queries)
    if not queries:
        return {}
    from ragforge.retrieval.bm25 import BM25Retriever

    chunks = list(islice(dataset.chunks(), MOST_SEARCHED + 1))
    if len(chunks) > MOST_SEARCHED:
        return {}
    index = BM25Retriever(chunks)
    return {
        query.query_id: [hit.chunk_id for hit in index.best(query.asked, NEAREST)]
        for query in queries
    }


def _of_evidence(query: Query, chunks: Mapping[str, Chunk]) -> Iterator[Passage]:
    quotes: dict[str, list[str]] = {}
    for item in query.evidence:
        quotes.setdefault(item.chunk_id, []).append(item.quote)
    for chunk_id, of_chunk in quotes.items():
        if chunk_id in chunks:
            yield Passage(chunk_start(chunks[chunk_id], of_chunk), tuple(of_chunk))
    for item in query.evidence:
        if item.chunk_id not in chunks:
            alone = Excerpt(item.quote, len(item.quote))
            yield Passage(ChunkStart(item.doc_id, "", alone), (item.quote,))


def _of_chunks(chunk_ids: Iterable[str], chunks: Mapping[str, Chunk]) -> Iterator[Passage]:
    for chunk_id in chunk_ids:
        yield Passage(chunk_start(chunks[chunk_id]))
