"""What is graded: an answer beside the expected one and the chunks it was written from."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ragforge.records import Answer, AnswerGrade, Chunk, Provenance, Query

_SOURCES = (
    r"(?:passages?|documents?|documentation|contexts?|texts?|sources?|articles?|"
    r"(?:provided|given|retrieved|available) \w+)"
)
_NOT = r"(?:do(?:es)? not|don't|doesn't|did not|didn't|could not|couldn't|cannot|can't|can not)"
_ABSTAINS = re.compile(
    rf"\b(?:I|we) (?:{_NOT}|(?:am|are|was|were) (?:unable|not able) to) "
    r"(?:know|find|say|tell|answer|help|determine|have (?:any |enough |that )?information)\b|"
    rf"\bI'm (?:unable|not able) to (?:find|say|tell|answer|help|determine)\b|"
    rf"\b{_SOURCES}\b[^.!?]{{0,40}} {_NOT} (?:contain|provide|mention|say|state|specify|cover)\b|"
    rf"\b(?:no (?:information|answer|mention)|not (?:mentioned|specified|stated|covered|available))"
    rf"\b[^.!?]{{0,60}}\b{_SOURCES}\b|"
    r"^\W*(?:unknown|no (?:information|answer)(?: available| found)?|"
    r"not (?:mentioned|specified|stated|available))\W*$|"
    r"\bweiß (?:ich )?(?:es )?nicht\b|\bkeine (?:angabe|information|antwort)|"
    r"\bje ne (?:sais|trouve) pas\b|\bno (?:lo )?sé\b|不知道|没有(?:提到|找到|相关)",
    re.IGNORECASE,
)
"""Only what speaks of the speaker or the sources: "is not covered" can be the answer itself."""
_ABSTENTION_WORDS = 40
"""A longer answer that holds such words says something as well."""


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to be graded."""

    query: Query
    answer: str
    contexts: tuple[str, ...]
    """Texts of the chunks the system had before it; empty where it does not tell."""


class AnswerJudge(Protocol):
    """Grades answers."""

    @property
    def provenance(self) -> Provenance:
        """Who grades, for the answers that get no grade."""

    async def grade(self, case: Case) -> AnswerGrade:
        """Return a grade whose verdict is not None.

        Called concurrently from one event loop; must not block it.

        Raises:
            CallError: This answer cannot be graded.
            EndpointError, BudgetError: No answer can be graded any more.
        """


def cases(
    queries: Iterable[Query], answers: Sequence[Answer], chunks: Mapping[str, Chunk]
) -> Iterator[Case]:
    """Yield the answers whose query is known and has an expected answer, in the order given."""
    by_id = {query.query_id: query for query in queries}
    for answer in answers:
        query = by_id.get(answer.query_id)
        if query is not None and (query.expected_answer or not query.answerable):
            known = (chunks[name].text for name in answer.chunk_ids if name in chunks)
            yield Case(query, answer.answer, tuple(known))


def abstains(answer: str) -> bool:
    """Whether an answer says that it does not know, or says nothing."""
    short = len(answer.split()) <= _ABSTENTION_WORDS
    return not answer.strip() or (
        short and _ABSTAINS.search(answer.replace("\u2019", "'")) is not None
    )


def graded_by_rule(case: Case) -> AnswerGrade | None:
    """Return the grade that needs no judge: an abstention; None where a judge must read.

    To abstain is correct where the question cannot be answered, else it is no attempt. Where the
    expected answer itself reads like an abstention, a judge decides.
    """
    if not abstains(case.answer) or (case.answer.strip() and _reads_alike(case.query)):
        return None
    right = not case.query.answerable
    said = "is empty" if not case.answer.strip() else "says that it does not know"
    return AnswerGrade(
        query_id=case.query.query_id,
        verdict="correct" if right else "not_attempted",
        score=1.0 if right else 0.0,
        has_hallucination=False,
        explanation=f"the answer {said}; the question is{'' if case.query.answerable else ' not'} "
        "answerable",
        provenance=Provenance(kind="rule", model="abstention-1"),
    )


def _reads_alike(query: Query) -> bool:
    return (
        query.answerable and query.expected_answer is not None and abstains(query.expected_answer)
    )
