"""A language model as writer of queries: several candidates from one call.

What a reply proposes is handed on as it is, also a quote that stands nowhere: the gates stop and
count it. To have it mended would cost a call, and so does another source, whose reply is not
longer by a conversation about the first.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)
from pydantic.fields import FieldInfo

from ragforge.deferred import dataclass
from ragforge.records import Difficulty, Lineage, Turn
from ragforge.stages.asking import Asker, Way, quoted, quoted_list, repeats_data
from ragforge.stages.generate.candidates import Brief, Candidate, Quoted
from ragforge.stages.generate.kinds import (
    FOLLOW_UPS,
    KINDS,
    QUERIES,
    UNANSWERABLE,
    Missing,
    degree_of,
    focus_of,
    length_of,
    persona_of,
)
from ragforge.stages.visible_text import locate_shown, visible

_MOST_QUOTES = 4

MOST_EXAMPLES: Final = 8
"""Real queries that are shown."""
_LONGEST_EXAMPLE: Final = 300
_LONGEST_PASSAGE: Final = 16_000
"""Characters of a passage that are shown; what is one table or listing can be of any length."""
_TOKENS_EACH: Final = 256
"""Room in the reply for each candidate beyond the first."""


def _bounded(**bounds: JsonValue) -> FieldInfo:
    """Return a field that a grammar may bound; what goes beyond is no broken rule (see `upto`)."""
    found: FieldInfo = Field(json_schema_extra=bounds)
    return found


class _StrictReply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)


class SaidQuote(_StrictReply):
    """Words that are said to stand in a passage; passages are numbered from 1."""

    passage: int
    quote: Annotated[str, _bounded(maxLength=300)]


SaidQuotes = Annotated[list[SaidQuote], _bounded(maxItems=_MOST_QUOTES)]


class Proposal(_StrictReply):
    """A query."""

    quotes: SaidQuotes
    question: Annotated[str, _bounded(maxLength=240)]
    answer: Annotated[str, _bounded(maxLength=500)]
    difficulty: Difficulty


class FollowUp(_StrictReply):
    """A query that is put after another one."""

    quotes: SaidQuotes
    first_question: Annotated[str, _bounded(maxLength=240)]
    first_answer: Annotated[str, _bounded(maxLength=240)]
    standalone: Annotated[str, _bounded(maxLength=240)]
    question: Annotated[str, _bounded(maxLength=240)]
    answer: Annotated[str, _bounded(maxLength=500)]
    difficulty: Difficulty


class NearMiss(_StrictReply):
    """A query that the passage does not answer."""

    quotes: SaidQuotes
    missing: Missing
    question: Annotated[str, _bounded(maxLength=240)]
    answer: Annotated[str, _bounded(maxLength=500)]
    difficulty: Difficulty


AnyProposal: TypeAlias = Proposal | FollowUp | NearMiss
_P = TypeVar("_P", Proposal, FollowUp, NearMiss)

_BLANK = Proposal(quotes=[], question="", answer="", difficulty="easy")
_BLANK_FOLLOW_UP = FollowUp(
    **_BLANK.model_dump(), first_question="", first_answer="", standalone=""
)
_BLANK_NEAR_MISS = NearMiss(**_BLANK.model_dump(), missing="detail")


def _salvaging(blank: _P) -> WrapValidator:
    """Return a validator that takes malformed proposals for blank ones, unless all are."""

    def salvage(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        if not isinstance(value, list):
            return handler(value)
        taken = [_whole_or_blank(item, handler) for item in value]
        if value and not any(taken):
            return handler(value)
        return [
            well_formed or blank.model_copy(update={"question": _question_of(item)})
            for item, well_formed in zip(value, taken, strict=True)
        ]

    return WrapValidator(salvage)


class QueriesReply(_StrictReply):
    """Reply schema of `generate_queries`."""

    candidates: Annotated[list[Proposal], _salvaging(_BLANK)]

    @property
    def proposals(self) -> Sequence[AnyProposal]:
        """The best first."""
        return self.candidates


class FollowUpsReply(_StrictReply):
    """Reply schema of `generate_follow_ups`."""

    follow_ups: Annotated[list[FollowUp], _salvaging(_BLANK_FOLLOW_UP)]

    @property
    def proposals(self) -> Sequence[AnyProposal]:
        """The best first."""
        return self.follow_ups


class NearMissesReply(_StrictReply):
    """Reply schema of `generate_unanswerable`."""

    near_misses: Annotated[list[NearMiss], _salvaging(_BLANK_NEAR_MISS)]

    @property
    def proposals(self) -> Sequence[AnyProposal]:
        """The best first."""
        return self.near_misses


AnyReply: TypeAlias = QueriesReply | FollowUpsReply | NearMissesReply
_REPLIES: Final[Mapping[str, type[AnyReply]]] = {
    QUERIES: QueriesReply,
    FOLLOW_UPS: FollowUpsReply,
    UNANSWERABLE: NearMissesReply,
}


@cache
def reply_type(prompt: str, most: int) -> type[AnyReply]:
    """Return the reply schema of a prompt, with as many proposals as a grammar may let through.

    A small model would else go on proposing until its tokens run out.
    """
    plain = _REPLIES[prompt]
    [(name, field)] = plain.model_fields.items()
    bounded: Any = {name: (field.rebuild_annotation(), _bounded(maxItems=most))}
    return create_model(plain.__name__, __base__=plain, **bounded)


def lacking(proposal: AnyProposal) -> str | None:
    """Return which part of a proposal is missing, None where it is whole."""
    if not any(visible(said.quote).strip() for said in proposal.quotes):
        return "quotes is empty"
    names = ["question", "answer"]
    if isinstance(proposal, FollowUp):
        names += ["first_question", "first_answer", "standalone"]
    blank = next((name for name in names if not visible(getattr(proposal, name)).strip()), None)
    return f"{blank} is empty" if blank else None


def _whole_or_blank(item: object, handler: ValidatorFunctionWrapHandler) -> object:
    try:
        [found] = handler([item])
    except ValidationError:
        return None
    return found


def _question_of(item: object) -> str:
    question = item.get("question") if isinstance(item, dict) else None
    return question if isinstance(question, str) else ""


@dataclass(frozen=True, slots=True)
class LLMQueryWriter:
    """Writes queries by asking a model.

    Args:
        askers: The model with each of `kinds.PROMPTS`, by name.
        seed: Of the plan, for the lineage.
        per_call: Candidates asked for in one call.
        style: Real queries, whose manner is taken on; of the first `MOST_EXAMPLES` the first 300
            characters are shown.
        usual_words: Words that a question should have; 0 for what people usually need.
    """

    askers: Mapping[str, Asker]
    seed: int
    per_call: int = 3
    style: tuple[str, ...] = ()
    usual_words: int = 0

    async def write(self, brief: Brief, asked: Sequence[str]) -> list[Candidate]:
        """Return candidates; see `QueryWriter`.

        A proposal that lacks a part becomes a candidate without quotes.
        """
        prompt = KINDS[brief.slot.type].prompt
        asker = self.askers[prompt]
        holes = self._holes(brief, asked)

        def broken_rule(reply: AnyReply) -> str | None:
            if any(repeats_data(each, holes) for each in reply.proposals):
                return "a proposal repeats an object that stands in the data; write your own"
            return _all_lacking(reply.proposals)

        way = Way(_vote(brief.slot.slot_id), more_tokens=_TOKENS_EACH * (self.per_call - 1))
        written = await asker.ask(holes, reply_type(prompt, self.per_call), broken_rule, way)
        lineage = Lineage(
            **asker.provenance(written.reply).model_dump(),
            seed=self.seed,
            slot=brief.slot.slot_id,
        )
        proposals = written.value.proposals[: self.per_call]
        return [_candidate(proposal, brief, lineage) for proposal in proposals]

    def _holes(self, brief: Brief, asked: Sequence[str]) -> dict[str, str]:
        slot = brief.slot
        return {
            "passages": _passages(brief),
            "asked": quoted_list(list(asked)),
            "style": quoted_list([text[:_LONGEST_EXAMPLE] for text in self.style[:MOST_EXAMPLES]]),
            "type": quoted(slot.type),
            "meaning": KINDS[slot.type].meaning,
            "difficulty": quoted(slot.difficulty),
            "degree": degree_of(slot.difficulty, slot.type),
            "persona": quoted(persona_of(slot.persona)),
            "language": quoted(slot.language),
            "length": length_of(slot.type, self.usual_words),
            "focus": focus_of(slot.type, slot.slot_id, self.per_call),
            "count": str(self.per_call),
        }


def _passages(brief: Brief) -> str:
    listed = [
        {
            "passage": number,
            "document": visible(chunk.doc_id),
            "section": visible(" > ".join(chunk.heading_path)),
            "text": visible(chunk.text[:_LONGEST_PASSAGE]),
        }
        for number, chunk in enumerate(brief.chunks, start=1)
    ]
    return json.dumps(listed, ensure_ascii=False)


def _vote(slot_id: str) -> int:
    """Return a number by which slots that ask the very same get replies of their own."""
    return int.from_bytes(hashlib.sha256(slot_id.encode()).digest()[:3])


def _all_lacking(proposals: Sequence[AnyProposal]) -> str | None:
    """Return the part that the first proposal lacks where none of them is whole."""
    rules = [lacking(proposal) for proposal in proposals]
    return rules[0] if rules and all(rules) else None


def _candidate(proposal: AnyProposal, brief: Brief, lineage: Lineage) -> Candidate:
    whole = lacking(proposal) is None
    quotes = [each for each in proposal.quotes if each.quote.strip()] if whole else []
    history: tuple[Turn, ...] = ()
    standalone = ""
    if isinstance(proposal, FollowUp):
        history = _history(proposal)
        standalone = _one_line(proposal.standalone)
    return Candidate(
        question=_one_line(proposal.question),
        answer=visible(proposal.answer).strip(),
        quotes=tuple(_quoted(each, brief) for each in quotes),
        difficulty=proposal.difficulty,
        type=brief.slot.type,
        lineage=lineage,
        behaviour=KINDS[brief.slot.type].behaviour,
        standalone=standalone,
        history=history,
    )


def _history(proposal: FollowUp) -> tuple[Turn, ...]:
    first, told = _one_line(proposal.first_question), visible(proposal.first_answer).strip()
    turns = [Turn(role="user", text=first)] if first else []
    turns += [Turn(role="assistant", text=told)] if told else []
    return tuple(turns)


def _quoted(named: SaidQuote, brief: Brief) -> Quoted:
    """Return a quote with the passage that it stands in, be it another than is said."""
    if len(brief.chunks) == 1:
        return Quoted(named.quote)
    stated = named.passage - 1
    places = sorted(range(len(brief.chunks)), key=lambda place: place != stated)
    there = (
        place for place in places if locate_shown(named.quote, brief.chunks[place].text) is not None
    )
    return Quoted(named.quote, next(there, places[0]))


def _one_line(text: str) -> str:
    return " ".join(visible(text).split())
