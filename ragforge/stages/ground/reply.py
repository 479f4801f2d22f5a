"""What a judge says of the claims of an answer, and the rules that its reply must hold to."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ragforge.corpus.anchors import FoldedText, Location, fold
from ragforge.stages.asking import locate_shown, upto
from ragforge.stages.ground.parts import is_statement, left_out, spans
from ragforge.stages.words import content_stems

MOST_PARTS = 80
"""Claims that a reply may have, and parts that claim nothing."""
_WHOLE_SENTENCE = 3
"""Content words from which a sentence counts as one."""


class EvidenceReply(BaseModel):
    """Words of a passage that say the same as a claim."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    passage: str
    quote: Annotated[str, upto(300)]


class CheckedClaim(BaseModel):
    """A claim of the answer; the evidence first, so that the finding follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    claim: Annotated[str, upto(400)]
    evidence: Annotated[list[EvidenceReply], Field(max_length=3)]
    supported: bool


class ClaimsReply(BaseModel):
    """What the judge is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    claims: Annotated[list[CheckedClaim], Field(max_length=MOST_PARTS)]
    no_claim: Annotated[list[Annotated[str, upto(400)]], Field(max_length=MOST_PARTS)]


def broken_rule(reply: ClaimsReply, answer: str, passages: Mapping[str, str]) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none.

    Args:
        reply: Well-formed.
        answer: As it was shown.
        passages: The texts by the ids under which they were shown.
    """
    folded = FoldedText(answer)
    parts = [claim.claim for claim in reply.claims] + list(reply.no_claim)
    return (
        next(filter(None, (_broken_part(part, folded) for part in parts)), None)
        or next(filter(None, (_broken_claim(item, passages) for item in reply.claims)), None)
        or _broken_claims(reply.claims)
        or _broken_cover(reply, answer, folded)
    )


def _broken_part(part: str, answer: FoldedText) -> str | None:
    if not any(character.isalnum() for character in part):
        return f"{part!r} has no words; leave it out"
    if not any(answer.locations(part)):
        return f"{part!r} does not occur in the answer; copy exactly"
    return None


def _broken_claim(item: CheckedClaim, passages: Mapping[str, str]) -> str | None:
    if item.supported != bool(item.evidence):
        given = "given" if item.evidence else "empty"
        return (
            f"the claim {item.claim!r}: supported is {str(item.supported).lower()} but its "
            f"evidence is {given}"
        )
    for one in item.evidence:
        if one.passage not in passages:
            known = ", ".join(passages)
            return f"evidence names the unknown passage {one.passage!r}; the ids are {known}"
        if not content_stems(one.quote):
            return f"the quote {one.quote!r} says nothing; quote the words that make the statement"
        if locate_shown(one.quote, passages[one.passage]) is None:
            return (
                f"the quote {one.quote!r} does not occur in passage {one.passage}; copy exactly, "
                "from that passage"
            )
    return None


def _broken_claims(claims: Sequence[CheckedClaim]) -> str | None:
    found: dict[str, bool] = {}
    for item in claims:
        if found.setdefault(fold(item.claim), item.supported) != item.supported:
            return f"the claim {item.claim!r} is both supported and not"
    return None


def _broken_cover(reply: ClaimsReply, answer: str, folded: FoldedText) -> str | None:
    """Return the rule that is broken where a judge passes over, or lumps together, sentences."""
    sentences = [part for part in spans(answer) if is_statement(part, answer)]
    claimed = [list(folded.locations(item.claim)) for item in reply.claims]
    whole = [
        part
        for part in sentences
        if len(set(content_stems(answer[part.start : part.end]))) >= _WHOLE_SENTENCE
    ]
    for item, places in zip(reply.claims, claimed, strict=True):
        if sum(_holds(places[0], part) for part in whole) > 1:
            return f"the claim {item.claim!r} holds several sentences; give each its own claim"
    passed_over = [place for part in reply.no_claim for place in folded.locations(part)]
    told = [place for places in claimed for place in places] + passed_over
    missing = next((part for part in sentences if left_out(part, answer, told)), None)
    if missing is None:
        return None
    return (
        f"{answer[missing.start : missing.end]!r} of the answer is found neither in claims nor in "
        "no_claim; every sentence has to be"
    )


def _holds(place: Location, part: Location) -> bool:
    return place.start <= part.start and part.end - 1 <= place.end


def locations(parts: Iterable[str], answer: str) -> list[tuple[Location, ...]]:
    """Return where each part stands in an answer; parts that stand in the same place once."""
    folded = FoldedText(answer)
    found = (tuple(folded.locations(part)) for part in parts)
    return list(dict.fromkeys(places for places in found if places))
