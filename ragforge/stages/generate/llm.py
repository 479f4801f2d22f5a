"""A language model as writer of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

from ragforge.records import Difficulty
from ragforge.stages.asking import Asker, Way, locate_shown, quoted, quoted_list, upto
from ragforge.stages.generate.candidates import Candidate
from ragforge.stages.generate.plan import Seed


class GeneratedQuery(BaseModel):
    """What the writer is asked for; the evidence first, so that the question is about it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    evidence: Annotated[str, upto(800)]
    question: Annotated[str, upto(300)]
    answer: Annotated[str, upto(600)]
    difficulty: Difficulty
    type: Literal[
        "fact",
        "definition",
        "procedure",
        "comparison",
        "why",
        "list",
        "troubleshooting",
        "temporal",
        "keyword",
    ]


@dataclass(frozen=True, slots=True)
class LLMQueryWriter:
    """Writes queries by asking a model.

    Args:
        asker: The model and its prompt.
        language: ISO 639-1 code of the queries.
    """

    asker: Asker
    language: str

    async def write(self, seed: Seed, asked: Sequence[str]) -> Candidate:
        """Return a candidate; see `QueryWriter`."""
        other = f" It asks for something else than these: {quoted_list(list(asked))}."
        holes = {
            "section": quoted(" > ".join(seed.chunk.heading_path)),
            "passage": quoted(seed.chunk.text),
            "language": self.language,
            "avoid": other if asked else "",
        }
        text = seed.chunk.text
        found = await self.asker.ask(
            holes, GeneratedQuery, lambda reply: _broken_rule(reply, text), way=Way(vote=seed.round)
        )
        reply = found.value
        return Candidate(
            question=reply.question.strip(),
            answer=reply.answer.strip(),
            evidence=reply.evidence,
            difficulty=reply.difficulty,
            type=reply.type,
            lineage=self.asker.provenance(found.reply.key),
        )


def _broken_rule(reply: GeneratedQuery, text: str) -> str | None:
    for name in ("question", "answer", "evidence"):
        if not getattr(reply, name).strip():
            return f"{name} is empty"
    if locate_shown(reply.evidence, text) is None:
        return "evidence does not occur in the passage; copy one stretch of it exactly"
    return None
