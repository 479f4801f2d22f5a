"""Running a retriever over the queries; a query it fails on is a counted failure, not a zero."""

import time
from collections.abc import Callable, Sequence

from ragforge.errors import CallError, DataError
from ragforge.records import Query, Ranking
from ragforge.retrieval import Retriever
from ragforge.stages.runner import Collected, Work, Workers, collect


async def retrieve(
    queries: Sequence[Query],
    retriever: Retriever,
    *,
    name: str,
    k: int,
    workers: Workers,
    keep: Callable[[Collected[Ranking]], None],
) -> Collected[Ranking]:
    """Retrieve for each query, timing each call.

    Args:
        queries: What to retrieve for.
        retriever: Who retrieves.
        name: The run's name; part of the failure keys.
        k: Chunks a query.
        workers: How many queries are in work at once; latencies are only those of the system alone
            at 1.
        keep: Called once, at the end or at a stop, with everything done so far.

    Raises:
        EndpointError: The endpoint the retriever needs cannot be used.
    """

    async def rank(query: Query) -> Ranking:
        started = time.perf_counter()
        try:
            hits = await retriever.retrieve(query.asked, k)
        except DataError as error:
            raise CallError("error", str(error)) from error
        except SystemExit as error:
            raise CallError("error", f"the retriever called exit({error.code})") from error
        latency_s = time.perf_counter() - started
        return Ranking(
            query_id=query.query_id, ranking=tuple(hits[:k]), latency_s=round(latency_s, 6)
        )

    work: Work[Query, Ranking] = Work(
        stage="retrieve",
        key=lambda query: f"{name}/{query.query_id}",
        do=rank,
        workers=workers,
    )
    return await collect(queries, work, blank=None, keep=keep)
