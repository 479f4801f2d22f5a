"""Grading many answers: concurrent, and whatever is done is kept when it is stopped."""

from collections.abc import Callable, Sequence
from functools import partial

from ragforge.records import AnswerGrade, Failure, Provenance
from ragforge.stages.answer.cases import Case
from ragforge.stages.answer.rules import graded_by_rule
from ragforge.stages.runner import Collected, Judge, Work, Workers, collect


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
