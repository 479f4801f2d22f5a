"""A language model as judge: one call a pair, checked in code."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, WithJsonSchema

from ragforge.records import Grade, Judgment, Provenance
from ragforge.stages.asking import Asker, locate_shown, quoted, upto
from ragforge.stages.judge.pairs import Pair

SCHEMA = "relevance"


class RelevanceReply(BaseModel):
    """What the judge is asked for, reasoning first so that the grade can follow from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reasoning: Annotated[str, upto(500)]
    evidence: Annotated[str, upto(1000)]
    contains_answer: bool
    grade: Annotated[Grade, WithJsonSchema({"type": "integer", "enum": [0, 1, 2, 3]})]
    """Not a Literal: that takes true for 1 even when strict."""


@dataclass(frozen=True, slots=True)
class LLMJudge:
    """Judges pairs by asking a model."""

    asker: Asker

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance("")

    async def judge(self, pair: Pair) -> Judgment:
        """Return the judgment of a pair; see `Judge`."""
        holes = {"query": quoted(pair.query), "passage": quoted(pair.text)}
        found = await self.asker.ask(
            holes, RelevanceReply, lambda reply: broken_rule(reply, pair.text)
        )
        reply = found.value
        at = locate_shown(reply.evidence, pair.text)
        return Judgment(
            query_id=pair.query_id,
            chunk_id=pair.chunk_id,
            grade=reply.grade,
            contains_answer=reply.contains_answer,
            evidence=pair.text[at.start : at.end] if at else "",
            reasoning=reply.reasoning,
            provenance=self.asker.provenance(found.reply.key),
        )


def broken_rule(reply: RelevanceReply, text: str) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none.

    Args:
        reply: Well-formed.
        text: The chunk it is about.
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
    if reply.evidence.strip() and locate_shown(reply.evidence, text) is None:
        return "evidence does not occur in the passage; it must be copied exactly"
    return None
