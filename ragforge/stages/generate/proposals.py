"""What a model replies when it is asked for queries.

The quotes come first, so that the question is about what is there. One malformed proposal does not
spoil those beside it: it is taken for a blank one, which the gates stop and count.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)
from pydantic.fields import FieldInfo

from ragforge.records import Difficulty
from ragforge.stages.asking import upto, visible
from ragforge.stages.generate.kinds import FOLLOW_UPS, QUERIES, UNANSWERABLE, Missing

_MOST_QUOTES = 4


def _most(items: int) -> FieldInfo:
    """Return a list whose length a grammar may bound; a longer one is no broken rule."""
    found: FieldInfo = Field(json_schema_extra={"maxItems": items})
    return found


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SaidQuote(_Said):
    """Words that are said to stand in a passage; passages are numbered from 1."""

    passage: int
    quote: Annotated[str, upto(300)]


SaidQuotes = Annotated[list[SaidQuote], _most(_MOST_QUOTES)]


class Proposal(_Said):
    """A query."""

    quotes: SaidQuotes
    question: Annotated[str, upto(240)]
    answer: Annotated[str, upto(500)]
    difficulty: Difficulty


class FollowUp(_Said):
    """A query that is put after another one."""

    quotes: SaidQuotes
    first_question: Annotated[str, upto(240)]
    first_answer: Annotated[str, upto(240)]
    standalone: Annotated[str, upto(240)]
    question: Annotated[str, upto(240)]
    answer: Annotated[str, upto(500)]
    difficulty: Difficulty


class NearMiss(_Said):
    """A query that the passage does not answer."""

    quotes: SaidQuotes
    missing: Missing
    question: Annotated[str, upto(240)]
    answer: Annotated[str, upto(500)]
    difficulty: Difficulty


AnyProposal: TypeAlias = Proposal | FollowUp | NearMiss
_P = TypeVar("_P", Proposal, FollowUp, NearMiss)

_BLANK = Proposal(quotes=[], question="", answer="", difficulty="easy")
_BLANK_FOLLOW_UP = FollowUp(
    **_BLANK.model_dump(), first_question="", first_answer="", standalone=""
)
_BLANK_NEAR_MISS = NearMiss(**_BLANK.model_dump(), missing="detail")


def _salvaging(blank: _P) -> WrapValidator:
    """Return what takes malformed proposals for blank ones, unless all of them are malformed."""

    def salvage(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        if not isinstance(value, list):
            return handler(value)
        taken = [_one(item, handler) for item in value]
        if value and not any(taken):
            return handler(value)
        return [
            well_formed or blank.model_copy(update={"question": _question_of(item)})
            for item, well_formed in zip(value, taken, strict=True)
        ]

    return WrapValidator(salvage)


class QueriesReply(_Said):
    """What `generate_queries` asks for."""

    candidates: Annotated[list[Proposal], _salvaging(_BLANK)]

    @property
    def proposals(self) -> Sequence[AnyProposal]:
        """The best first."""
        return self.candidates


class FollowUpsReply(_Said):
    """What `generate_follow_ups` asks for."""

    follow_ups: Annotated[list[FollowUp], _salvaging(_BLANK_FOLLOW_UP)]

    @property
    def proposals(self) -> Sequence[AnyProposal]:
        """The best first."""
        return self.follow_ups


class NearMissesReply(_Said):
    """What `generate_unanswerable` asks for."""

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
    """Return what a prompt asks for, with as many proposals as a grammar may let through.

    A small model would else go on proposing until its tokens run out.
    """
    plain = _REPLIES[prompt]
    [(name, field)] = plain.model_fields.items()
    bounded: Any = {name: (field.rebuild_annotation(), _most(most))}
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


def _one(item: object, handler: ValidatorFunctionWrapHandler) -> object:
    try:
        [found] = handler([item])
    except ValidationError:
        return None
    return found


def _question_of(item: object) -> str:
    question = item.get("question") if isinstance(item, dict) else None
    return question if isinstance(question, str) else ""
