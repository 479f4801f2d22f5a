from heapq import nsmallest

import pytest

from ragforge.files.formats.runs import read_run
from ragforge.measures.hit_table import JudgedHits, RunHits


def hits_of(rankings, qrels):
    """Do the obvious: order every ranking, by score and then by id, and look up every chunk."""
    by_query = {}
    for query_id in rankings.keys() & qrels.keys():
        scores, judged = rankings[query_id], qrels[query_id]
        ordered = sorted(scores, key=lambda chunk_id: (scores[chunk_id], chunk_id), reverse=True)
        ranks = [rank for rank, chunk_id in enumerate(ordered, start=1) if chunk_id in judged]
        by_query[query_id] = JudgedHits(
            len(ordered), ranks, [judged[ordered[rank - 1]] for rank in ranks]
        )
    others = rankings.keys() - qrels.keys()
    first = min((q for q in rankings if qrels.get(q) and len(rankings[q])), default=None)
    example = None if first is None else (first, nsmallest(4, rankings[first]))
    return RunHits(by_query, len(others), tuple(nsmallest(4, others)), example)


@pytest.fixture(scope="session")
def hits_in():
    """Read a file line by line, and find the hits in the obvious way."""
    return lambda path, qrels: hits_of(read_run(path).rankings, qrels)


@pytest.fixture(scope="session")
def hits():
    """Find the hits of rankings in the obvious way."""
    return hits_of
