"""A language model as judge of answers: one call an answer; the score is computed here."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ragforge.records import AnswerGrade, Provenance, Verdict
from ragforge.stages.answer.stage import Case
from ragforge.stages.asking import Asker, quoted, quoted_list, upto
from ragforge.stages.quotes import proves

SCORES: dict[Verdict, float] = {
    "correct": 1.0,
    "partial": 0.5,
    "incorrect": 0.0,
    "not_attempted": 0.0,
}

_UNANSWERABLE = "This question cannot be answered from the documents."


class AnswerReply(BaseModel):
    """What the judge is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    explanation: Annotated[str, upto(500)]
    unsupported: Annotated[list[Annotated[str, upto(400)]], Field(max_length=20)]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LLMAnswerJudge:
    """Grades answers by asking a model."""

    asker: Asker

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, case: Case) -> AnswerGrade:
        """Return the grade of an answer; see `Judge`."""
        holes = {
            "question": quoted(case.query.asked),
            "expected": quoted(case.query.expected_answer or _UNANSWERABLE),
            "answer": quoted(case.answer),
            "passages": quoted_list(list(case.contexts)),
        }
        answered = await self.asker.ask(
            holes, AnswerReply, lambda reply: _broken_rule(reply, case.answer)
        )
        reply = answered.value
        abstained = reply.verdict == "not_attempted" and not case.query.answerable
        verdict: Verdict = "correct" if abstained else reply.verdict
        return AnswerGrade(
            query_id=case.query.query_id,
            verdict=verdict,
            score=SCORES[verdict],
            has_hallucination=bool(reply.unsupported) if case.contexts else None,
            explanation=_explanation(reply),
            provenance=self.asker.provenance(answered.reply),
        )


def _broken_rule(reply: AnswerReply, answer: str) -> str | None:
    for quote in reply.unsupported:
        if not proves(quote, answer):
            return (
                f"unsupported holds {quote!r}, which does not occur in the answer as whole words "
                "that say something; copy exactly"
            )
    return None


def _explanation(reply: AnswerReply) -> str:
    if not reply.unsupported:
        return reply.explanation
    quotes = "; ".join(repr(quote) for quote in reply.unsupported)
    return f"{reply.explanation} (not in the chunks: {quotes})"
