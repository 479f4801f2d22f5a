"""Running the systems under test over queries, each call timed: retrievers and answerers.

A query that a system fails on is a counted failure, not a zero.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import CallError, DataError, EndpointError
from ragforge.records import Query, Ranking
from ragforge.retrieval import Answerer, Retriever, SystemAnswer
from ragforge.retrieval.waiting import counting_waits
from ragforge.stages.runner import Collected, Sink, Work, Workers, collect, pour

_DIGITS: Final = 4
_LEAST_S: Final = 0.0001
"""Latencies are told in tenths of a millisecond: what is shorter is the call itself."""

T = TypeVar("T")

_FAILURES_IN_A_ROW = 20
"""So many say that the system is down, and that asking on would only waste time."""


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
        with counting_waits() as waits:
            hits = await given_by("retriever", retriever.retrieve(query.asked, k))
        latency_s = max(0.0, time.perf_counter() - started - waits.waited_s)
        return Ranking(
            query_id=query.query_id, ranking=tuple(hits[:k]), latency_s=_rounded(latency_s)
        )

    work: Work[Query, Ranking] = Work(
        stage="retrieve",
        key=lambda query: f"{name}/{query.query_id}",
        do=rank,
        workers=workers,
    )
    return await collect(queries, work, keep=keep)


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query with what a system answered."""

    query: Query
    answer: SystemAnswer
    latency_s: float


async def ask_system(
    queries: Sequence[Query],
    answerer: Answerer,
    sink: Sink[AnsweredQuery],
    *,
    name: str,
    workers: Workers,
) -> None:
    """Ask each query, timing each answer.

    Args:
        queries: What to ask.
        answerer: Who answers.
        sink: Takes answers and failures as they come, also behind a stop.
        name: The system's name; part of the failure keys.
        workers: How many queries are in work at once; latencies are only those of the system alone
            at 1.

    Raises:
        EndpointError: The system failed on many queries in a row.
        RagforgeError: As the system raised it.
    """
    in_a_row = 0

    async def ask(query: Query) -> AnsweredQuery:
        nonlocal in_a_row
        started = time.perf_counter()
        try:
            with counting_waits() as waits:
                answer = await given_by("system", answerer.answer(query.asked))
        except Exception as error:
            in_a_row += 1
            if in_a_row >= _FAILURES_IN_A_ROW:
                raise EndpointError(
                    f"the system failed on {in_a_row} queries in a row; the last: {error}"
                ) from error
            raise
        in_a_row = 0
        latency_s = max(0.0, time.perf_counter() - started - waits.waited_s)
        return AnsweredQuery(query, answer, _rounded(latency_s))

    work: Work[Query, AnsweredQuery] = Work(
        stage="ask",
        key=lambda query: f"{name}/{query.query_id}",
        do=ask,
        workers=workers,
    )
    await pour(queries, work, sink, total=len(queries))


async def given_by(what: str, reply: Awaitable[T]) -> T:
    """Return what a system replies to one query.

    Args:
        what: The system is, such as a retriever.
        reply: Is waited for.

    Raises:
        CallError: The reply cannot be used, or the system's code called `exit`.
    """
    try:
        return await reply
    except DataError as error:
        raise CallError("error", str(error)) from error
    except SystemExit as error:
        raise CallError("error", f"the {what} called exit({error.code})") from error


def _rounded(latency_s: float) -> float:
    return max(round(latency_s, _DIGITS), _LEAST_S)
