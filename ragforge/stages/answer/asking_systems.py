"""Asking a RAG system the queries; one it fails on is a counted failure, not an empty answer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ragforge.errors import CallError, DataError, EndpointError
from ragforge.observe import Observer
from ragforge.records import Query
from ragforge.stages.pouring import Sink, pour
from ragforge.stages.runner import Work
from ragforge.systems import Answerer, SystemAnswer

_FAILURES_IN_A_ROW = 20
"""So many say that the system is down, and that asking on would only waste time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with what a system answered."""

    query: Query
    answer: SystemAnswer
    latency_s: float


async def ask_system(
    queries: Sequence[Query],
    answerer: Answerer,
    sink: Sink[Asked],
    *,
    name: str,
    concurrency: int,
    observer: Observer,
) -> None:
    """Ask each query, timing each answer.

    Args:
        queries: What to ask.
        answerer: Who answers.
        sink: Takes answers and failures as they come, also behind a stop.
        name: The system's name; part of the failure keys.
        concurrency: Queries in work at once; latencies are only those of the system alone at 1.
        observer: Told of progress.

    Raises:
        EndpointError: The system failed on many queries in a row.
        RagforgeError: As the system raised it.
    """
    in_a_row = 0

    async def ask(query: Query) -> Asked:
        nonlocal in_a_row
        started = time.perf_counter()
        try:
            answer = await _answer(answerer, query)
        except Exception as error:
            in_a_row += 1
            if in_a_row >= _FAILURES_IN_A_ROW:
                raise EndpointError(
                    f"the system failed on {in_a_row} queries in a row; the last: {error}"
                ) from error
            raise
        in_a_row = 0
        return Asked(query, answer, round(time.perf_counter() - started, 6))

    work: Work[Query, Asked] = Work(
        stage="ask",
        key=lambda query: f"{name}/{query.query_id}",
        do=ask,
        concurrency=concurrency,
        observer=observer,
    )
    await pour(queries, work, sink, total=len(queries), blank=None)


async def _answer(answerer: Answerer, query: Query) -> SystemAnswer:
    try:
        return await answerer.answer(query.asked)
    except DataError as error:
        raise CallError("error", str(error)) from error
    except SystemExit as error:
        raise CallError("error", f"the system called exit({error.code})") from error
