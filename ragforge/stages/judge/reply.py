"""What a judge says of a passage, and the rules that its reply must hold to."""

import re
from collections.abc import Mapping
from math import exp
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from ragforge.corpus.quote_locations import Location
from ragforge.llm.chat import ChatReply, Numeral
from ragforge.records import Grade
from ragforge.stages.asking import locate_shown, upto, visible
from ragforge.stages.judge.votes import GRADES
from ragforge.stages.quotes import find_proof, is_evidence

LEAST_MASS = 0.9
"""Probability that must lie on the four grades for a weighted grade to be made of them."""

_EVIDENCE_CHARS = 1000
"""How much evidence a grammar lets through; it cuts within a word as well."""
_MOST_MASS = 1.01
_LARGEST_LOGPROB = 100.0
"""More would overflow; it is far from any probability."""

_GRADE_AT = re.compile(r'"grade"\s*:\s*(\d)')
"""Within a string of the reply the quotes would be escaped."""


def _whole(value: object) -> object:
    """Return 2 for 2.0: to a JSON schema both are the same integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_GivenGrade = Annotated[
    Grade,
    BeforeValidator(_whole),
    WithJsonSchema({"type": "integer", "enum": [0, 1, 2, 3]}),
]
"""Not a Literal: that takes true for 1 even when strict."""


class RelevanceReply(BaseModel):
    """What the judge is asked for, reasoning first so that the grade can follow from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reasoning: Annotated[str, upto(500)]
    evidence: Annotated[str, upto(_EVIDENCE_CHARS)]
    contains_answer: bool
    grade: _GivenGrade


class GradeReply(BaseModel):
    """What a judge too small for reasons is asked for: nothing shows that it read the passage."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    grade: _GivenGrade


def broken_rule(reply: RelevanceReply, text: str) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none.

    Args:
        reply: Well-formed.
        text: The passage it is about.
    """
    if reply.contains_answer != (reply.grade >= 2):
        return (
            f"contains_answer is {str(reply.contains_answer).lower()} but grade is {reply.grade}; "
            "contains_answer is true exactly for grades 2 and 3"
        )
    if reply.grade == 0 and reply.evidence.strip():
        return "grade is 0 but evidence is given"
    if reply.contains_answer and not reply.evidence.strip():
        return "contains_answer is true but evidence is empty"
    if not reply.evidence.strip() or find_evidence(reply.evidence, text) is not None:
        return None
    if locate_shown(reply.evidence, text) is None:
        return "evidence does not occur in the passage; it must be copied exactly"
    return (
        "evidence does not stand in the passage as whole words that say something; copy a phrase "
        "that does, from where a word begins to where one ends"
    )


def find_evidence(evidence: str, text: str) -> Location | None:
    """Return where evidence proves something of a passage; see `is_evidence`.

    What is as long as a grammar lets through may be cut within its last word; that one is left out.
    """
    at = text.find(evidence)
    if at >= 0 and visible(text) == text:
        # Nearly all evidence is verbatim; folding a text takes a hundred times as long.
        place = Location(at, at + len(evidence))
        if is_evidence(evidence, place, text):
            return place
    found = find_proof(evidence, text, is_evidence)
    if found is not None or len(evidence) < _EVIDENCE_CHARS:
        return found
    whole_words = evidence.rsplit(maxsplit=1)[0]
    if locate_shown(evidence, text) is None:
        return None
    return find_proof(whole_words, text, is_evidence)


def evidence_in(reply: RelevanceReply, text: str) -> str:
    """Return the evidence in the passage's own characters, "" where there is none."""
    at = find_evidence(reply.evidence, text) if reply.evidence.strip() else None
    return text[at.start : at.end] if at else ""


def grade_odds(reply: ChatReply, grade: int) -> tuple[float, ...] | None:
    """Return the probability of each grade at the place where a reply gives its grade.

    None where the endpoint gave no probabilities, none to the grade it said, or less than
    LEAST_MASS to the grades: what is left without the rest would say little about the grade.

    Args:
        reply: A valid one.
        grade: What it says.
    """
    numeral = _at_grade(reply, grade)
    if numeral is None:
        return None
    mass = grade_mass(numeral)
    total = sum(mass.values())
    # What sums to more than all, but for rounding, are no probabilities.
    if not LEAST_MASS <= total <= _MOST_MASS or not mass[grade]:
        return None
    return tuple(mass[grade] / total for grade in GRADES)


def grade_mass(numeral: Numeral) -> Mapping[int, float]:
    """Return the probability that a model gave each grade, not normalised."""
    mass = dict.fromkeys(GRADES, 0.0)
    for token, logprob in numeral.logprobs:
        if token in {"0", "1", "2", "3"}:
            mass[int(token)] += exp(min(_LARGEST_LOGPROB, logprob))
    return mass


def _at_grade(reply: ChatReply, grade: int) -> Numeral | None:
    places = [found for found in _GRADE_AT.finditer(reply.text) if found[1] == str(grade)]
    if not places:
        return None
    at = places[-1].start(1)
    return next((numeral for numeral in reply.numerals if numeral.at == at), None)
