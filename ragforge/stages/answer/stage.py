"""Grading many answers: concurrent, and whatever is done is kept when it is stopped."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from ragforge.deferred import dataclass
from ragforge.records import Answer, AnswerGrade, Chunk, Failure, Provenance, Query
from ragforge.stages.answer.refusals import abstains, speaks_of_absence
from ragforge.stages.quotes import find_proof
from ragforge.stages.runner import Collected, Judge, Work, Workers, collect
from ragforge.stages.values import equal_values, same_text
from ragforge.stages.visible_text import visible

_NAME: Final = "answer-rules-1"


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to be graded."""

    query: Query
    answer: str
    contexts: tuple[str, ...]
    """Texts of the chunks the system had before it; empty where it does not tell, or not all of
    them are known: what the others say would look made up."""


def cases(
    queries: Iterable[Query], answers: Sequence[Answer], chunks: Mapping[str, Chunk]
) -> Iterator[Case]:
    """Yield the answers whose query is known and has an expected answer, in the order given."""
    by_id = {query.query_id: query for query in queries}
    for answer in answers:
        query = by_id.get(answer.query_id)
        if query is not None and (query.expected_answer or not query.answerable):
            complete = not unknown_passages(answer, chunks)
            texts = (chunks[name].text for name in answer.chunk_ids if complete)
            yield Case(query, answer.answer, tuple(texts))


def unknown_passages(answer: Answer, chunks: Mapping[str, Chunk]) -> int:
    """Return how many of the passages before a system are in no chunk."""
    return answer.n_unknown_passages + sum(name not in chunks for name in answer.chunk_ids)


def graded_by_rule(case: Case) -> AnswerGrade | None:
    """Return the grade that needs no judge; None where a judge must read.

    Decided are empty answers, abstentions, and answers that equal the expected one up to how it is
    written; of these, one that stands in a chunk is not made up. To abstain is correct where the
    question cannot be answered, else it is no attempt. Where the expected answer itself speaks of
    what is not, not said or not known, a judge decides on abstentions. An answer that differs from
    the expected one is left to the judge, however far it is off.
    """
    rule = _matched(case)
    if rule is not None:
        return _grade(case, rule, f"{rule} with the expected answer", is_right=True)
    expected = case.query.expected_answer
    if _is_empty(case.answer, expected):
        rule, what = "empty answer", "is empty"
    elif abstains(case.answer, case.query.asked) and not _reads_alike(case.query, expected):
        rule, what = "abstention", "says that it does not know"
    else:
        return None
    negation = "" if case.query.answerable else " not"
    explanation = f"the answer {what}; the question is{negation} answerable"
    return _grade(case, rule, explanation, is_right=not case.query.answerable)


def _matched(case: Case) -> str | None:
    expected = case.query.expected_answer
    if expected is None or not case.query.answerable:
        return None
    if same_text(expected, case.answer):
        return "exact match"
    kind = equal_values(expected, case.answer, case.query.language)
    return None if kind is None else f"equal {kind}"


def _grade(case: Case, rule: str, explanation: str, *, is_right: bool) -> AnswerGrade:
    claims_nothing = rule in ("abstention", "empty answer")
    is_held = claims_nothing or any(
        find_proof(said, text)
        for said in (case.answer, case.query.expected_answer or "")
        for text in case.contexts
    )
    return AnswerGrade(
        query_id=case.query.query_id,
        verdict="correct" if is_right else "not_attempted",
        score=1.0 if is_right else 0.0,
        # Elsewhere the chunks may say it in other words, or not at all.
        has_hallucination=False if is_held else None,
        explanation=explanation,
        rule=rule,
        provenance=Provenance(kind="rule", model=_NAME),
    )


def _reads_alike(query: Query, expected: str | None) -> bool:
    return query.answerable and expected is not None and speaks_of_absence(expected)


def _is_empty(answer: str, expected: str | None) -> bool:
    """Whether an answer has nothing to read: blanks, hidden characters and punctuation.

    Where the expected answer is punctuation, that of the answer may be right.
    """
    shown = visible(answer).strip()
    if not shown:
        return True
    marks_count = bool(expected) and not any(map(str.isalnum, expected or ""))
    return not marks_count and all(unicodedata.category(sign)[0] in "PZC" for sign in shown)


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
        blank=partial(_ungraded, judge.provenance),
    )
    return await collect(cases, work, keep=keep)


def _ungraded(judge: Provenance, case: Case, failure: Failure) -> AnswerGrade:
    return AnswerGrade(
        query_id=case.query.query_id,
        verdict=None,
        score=None,
        has_hallucination=None,
        failure=failure.kind,
        provenance=judge,
    )
