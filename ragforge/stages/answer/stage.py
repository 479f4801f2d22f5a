"""Grading many answers: concurrent, and whatever is done is kept when it is stopped."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ragforge.errors import CallError, DataError, EndpointError
from ragforge.records import AnswerGrade, Failure, Provenance, Query
from ragforge.retrieval import Answerer, SystemAnswer
from ragforge.stages.answer.cases import Case
from ragforge.stages.answer.rules import graded_by_rule
from ragforge.stages.runner import Collected, Judge, Sink, Work, Workers, collect, pour

_FAILURES_IN_A_ROW = 20
"""So many say that the system is down, and that asking on would only waste time."""


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
            answer = await _answer(answerer, query)
        except Exception as error:
            in_a_row += 1
            if in_a_row >= _FAILURES_IN_A_ROW:
                raise EndpointError(
                    f"the system failed on {in_a_row} queries in a row; the last: {error}"
                ) from error
            raise
        in_a_row = 0
        return AnsweredQuery(query, answer, round(time.perf_counter() - started, 6))

    work: Work[Query, AnsweredQuery] = Work(
        stage="ask",
        key=lambda query: f"{name}/{query.query_id}",
        do=ask,
        workers=workers,
    )
    await pour(queries, work, sink, total=len(queries), blank=None)


async def _answer(answerer: Answerer, query: Query) -> SystemAnswer:
    try:
        return await answerer.answer(query.asked)
    except DataError as error:
        raise CallError("error", str(error)) from error
    except SystemExit as error:
        raise CallError("error", f"the system called exit({error.code})") from error


async def grade_answers(
    cases: Sequence[Case],
    judge: Judge[Case, AnswerGrade],
    *,
    system: str,
    workers: Workers,
    keep: Callable[[Collected[AnswerGrade]], None],
) -> Collected[AnswerGrade]:
    """Grade answers; those with a failure get a grade without verdict.

    Args:
        cases: Answers with what they are compared to, one a query.
        judge: Asked where no rule decides.
        system: Name of the system that answered; part of the failure keys.
        workers: How many answers are in work at once, and who is told.
        keep: Called once, at the end or at a stop, with everything done so far.

    Raises:
        EndpointError, BudgetError: As the judge raises them, after `keep`.
    """

    async def grade(case: Case) -> AnswerGrade:
        return graded_by_rule(case) or await judge.judge(case)

    work: Work[Case, AnswerGrade] = Work(
        stage="answer",
        key=lambda case: f"{system}/{case.query.query_id}",
        do=grade,
        workers=workers,
    )
    return await collect(cases, work, blank=partial(_ungraded, judge.provenance), keep=keep)


def _ungraded(judge: Provenance, case: Case, failure: Failure) -> AnswerGrade:
    return AnswerGrade(
        query_id=case.query.query_id,
        verdict=None,
        score=None,
        has_hallucination=None,
        failure=failure.kind,
        provenance=judge,
    )
