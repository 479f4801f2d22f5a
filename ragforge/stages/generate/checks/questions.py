"""The question without any text: is it clear what is asked, and who knows the answer anyway?"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

from ragforge.stages.answer.refusals import abstains
from ragforge.stages.asking import Asker, upto, visible
from ragforge.stages.generate.checks.batches import (
    MOST,
    Entry,
    Form,
    Item,
    at_most,
    names_something,
)
from ragforge.stages.quotes import has_content
from ragforge.stages.values import same_text
from ragforge.stages.words import words

LEAST_READINGS = 2
"""Of an ambiguous question."""
_TOKENS_EACH = 220


class QuestionVerdict(BaseModel):
    """Verdict on one question."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    question: Annotated[str, upto(600)]
    readings: Annotated[list[Annotated[str, upto(200)]], at_most(4)]
    missing: Annotated[str, upto(200)]
    clear: Literal["yes", "no"]
    answer: Annotated[str, upto(400)]


class QuestionsReply(BaseModel):
    """Reply schema: one verdict a question."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    questions: Annotated[list[QuestionVerdict], at_most(MOST)]


def question_form(asker: Asker) -> Form[QuestionsReply, QuestionVerdict]:
    """Return the form by which a batch of questions is asked about."""
    return Form(
        asker=asker,
        hole="questions",
        reply_type=QuestionsReply,
        verdicts=_verdicts,
        broken_rule=broken_rule,
        tokens_each=_TOKENS_EACH,
    )


def question_entry(item: Item) -> Entry:
    """Return a question as it is shown, without anything that it was written from."""
    fields: dict[str, object] = {
        "kind": "keywords" if item.type == "keyword" else "question",
        "question": visible(item.asked),
    }
    if item.history:
        fields["follow_up"] = visible(item.question)
        fields["said_before"] = [
            {"role": turn.role, "text": visible(turn.text)} for turn in item.history
        ]
    return Entry(item.asked, fields)


def broken_rule(verdict: QuestionVerdict) -> str | None:
    """Return the rule that a verdict breaks by itself, None where it breaks none."""
    if not any(has_content(reading) for reading in verdict.readings):
        return "readings is empty; every question can be taken in one way at least"
    is_missing = names_something(verdict.missing)
    if verdict.clear == "yes" and is_missing:
        return 'missing names something, but clear is "yes"'
    if verdict.clear == "no" and not is_missing:
        return 'clear is "no", but missing names nothing'
    if not has_content(verdict.answer):
        return 'answer is empty; write "unknown" where you do not know it'
    return None


def distinct_readings(verdict: QuestionVerdict, question: str) -> list[str]:
    """Return the readings that say something of their own: more than the question, and once."""
    found: dict[tuple[str, ...], str] = {tuple(words(question)): ""}
    for reading in verdict.readings:
        if has_content(reading):
            found.setdefault(tuple(words(reading)), reading)
    return [reading for reading in found.values() if reading]


def known_answer(verdict: QuestionVerdict, question: str) -> str:
    """Return the answer from general knowledge; "" where the model knows none."""
    is_none = same_text(verdict.answer, "unknown") or abstains(verdict.answer, question)
    return "" if is_none else verdict.answer


def _verdicts(reply: QuestionsReply) -> Sequence[QuestionVerdict]:
    return reply.questions
