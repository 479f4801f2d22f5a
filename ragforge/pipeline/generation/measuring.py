"""How hard a query turns out to be: the rank of its evidence, as labels."""

from ragforge.records import Query
from ragforge.retrieval import Retriever
from ragforge.stages.generate.checks.agreement import measured_difficulty

RANKS = 20
"""Depth to which the evidence of a query is looked for, to tell how hard it is to find."""


async def with_rank(query: Query, retriever: Retriever) -> Query:
    """Return a query labelled with the rank of its evidence and how hard that is.

    One that no model checked, that has no answer, or that has the label stays as it is.

    Raises:
        CallError, RagforgeError: As the retriever raises them.
    """
    if query.measured is None or not query.answerable or query.measured.depth:
        return query
    wanted = {item.chunk_id for item in query.evidence}
    hits = await retriever.retrieve(query.asked, RANKS)
    ranks = (rank for rank, hit in enumerate(hits, start=1) if hit.chunk_id in wanted)
    rank = next(ranks, None)
    update = {
        "bm25_rank": rank,
        "depth": RANKS,
        "difficulty": measured_difficulty(rank, RANKS, query.measured.agreement),
    }
    return query.model_copy(update={"measured": query.measured.model_copy(update=update)})
