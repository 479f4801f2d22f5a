"""Answers that people bring to questions which were said to have none."""

from typing import Final

from ragforge.records import Query
from ragforge.stages.answer.refusals import speaks_of_absence

ANSWERED: Final[dict[str, object]] = {"answerable": True, "expected_behaviour": "answer"}


def is_answered_now(old: Query, expected_answer: str | None) -> bool:
    """Whether an expected answer tells what a question asks that was to be refused.

    One that says that something is not so, or not told, may be another wording of the refusal.
    """
    return _is_new(old, expected_answer) and not speaks_of_absence(expected_answer or "")


def is_refused_still(old: Query, expected_answer: str | None) -> bool:
    """Whether another expected answer of a question that was to be refused may be a refusal too."""
    return _is_new(old, expected_answer) and speaks_of_absence(expected_answer or "")


def answered(old: Query) -> dict[str, object]:
    """Return what changes of a question that was to be refused, and that has an answer now."""
    is_of_type = old.type == "unanswerable"
    return {**ANSWERED, "type": None} if is_of_type else ANSWERED


def _is_new(old: Query, expected_answer: str | None) -> bool:
    return not old.answerable and expected_answer not in (None, "", old.expected_answer)
