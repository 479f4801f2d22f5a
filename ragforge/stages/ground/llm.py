"""A language model as judge of groundedness: one call an answer; all shares are computed here."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated

from ragforge.corpus.quote_locations import Location, fold
from ragforge.deferred import dataclass
from ragforge.records import Grounding, Provenance
from ragforge.records.model import ConfigDict, Field, Model
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.asking import Asker, Way, quoted, quoted_by_id, upto
from ragforge.stages.ground.citations import CitedText, read_marks
from ragforge.stages.ground.parts import (
    Exchange,
    Wording,
    find_evidence,
    is_statement,
    left_out,
    spans,
)
from ragforge.stages.ground.settling import (
    PlacedClaim,
    contradiction,
    counted_once,
    lay_out,
    settle,
    settled_by_rule,
)
from ragforge.stages.judge.tripwires import flags
from ragforge.stages.words import content_stems, numbers

_WHOLE_SENTENCE = 3
"""Content words from which a sentence counts as one."""

_MOST_PARTS = 80
"""Claims that a reply may have, and parts that claim nothing."""

_TOKENS_A_SENTENCE = 120
_MOST_MORE_TOKENS = 6000


class EvidenceReply(Model):
    """Words of a passage that say the same as a claim."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    passage: str
    quote: Annotated[str, upto(300)]


class CheckedClaim(Model):
    """A claim of the answer; the evidence first, so that the finding follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    claim: Annotated[str, upto(400)]
    evidence: Annotated[list[EvidenceReply], Field(max_length=3)]
    supported: bool


class ClaimsReply(Model):
    """Reply schema of the judge: claims with their evidence, and parts that claim nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    claims: Annotated[list[CheckedClaim], Field(max_length=_MOST_PARTS)]
    no_claim: Annotated[list[Annotated[str, upto(400)]], Field(max_length=_MOST_PARTS)]


@dataclass(frozen=True, slots=True)
class _ClaimPlaces:
    """Places in an answer of its claims and of the parts that claim nothing.

    Args:
        claimed: The places of each claim; at least one each.
        passed_over: The places of each part that claims nothing.
    """

    claimed: Sequence[Sequence[Location]]
    passed_over: Sequence[Sequence[Location]]


@dataclass(frozen=True, slots=True)
class LLMGrounder:
    """Checks answers by asking a model.

    The judge sees the answer without its marks of citation: what a sentence cites must not move it
    to find support there.
    """

    asker: Asker

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, exchange: Exchange) -> Grounding:
        """Return the grounding of an answer; see `Judge`."""
        cited = read_marks(exchange.answer, [passage.chunk_id for passage in exchange.passages])
        grounding = settled_by_rule(exchange, cited)
        if grounding is not None:
            return grounding
        passages = opaque(exchange)
        holes = {
            "question": quoted(exchange.question),
            "answer": quoted(cited.text),
            "passages": quoted_by_id(passages.items(), "text"),
        }
        more = min(_MOST_MORE_TOKENS, _TOKENS_A_SENTENCE * len(spans(cited.text)))
        answered = await self.asker.ask(
            holes,
            ClaimsReply,
            lambda reply: broken_rule(reply, cited, passages),
            Way(more_tokens=more),
        )
        grounding = settle(
            exchange,
            cited,
            counted_once(_checked(answered.value, cited, passages), cited.words),
            _texts(answered.value.no_claim, cited),
            self.asker.provenance(answered.reply),
        )
        return grounding.model_copy(update={"flags": _flags([exchange.answer, *passages.values()])})


def opaque(exchange: Exchange) -> dict[str, str]:
    """Return the texts of the passages by ids that tell a model nothing, in their order."""
    return {f"p{number}": passage.text for number, passage in enumerate(exchange.passages, start=1)}


def _flags(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({flag for text in texts for flag in flags(text)}))


def _checked(
    reply: ClaimsReply, cited: CitedText, passages: Mapping[str, str]
) -> list[PlacedClaim]:
    names, wording = list(passages), cited.wording
    checked = []
    for item in reply.claims:
        evidence = [(one.passage, one.quote) for one in item.evidence]
        quote = ""
        if evidence:
            text = passages[evidence[0][0]]
            at = find_evidence(evidence[0][1], text)
            assert at is not None
            quote = text[at.start : at.end]
        places = dict.fromkeys(names.index(name) for name, _ in evidence)
        checked.append(PlacedClaim(tuple(wording.locations(item.claim)), tuple(places), quote))
    return checked


def _texts(parts: list[str], cited: CitedText) -> list[str]:
    """Return the answer's own words for parts of it; those that stand in the same place once."""
    wording = cited.wording
    places = dict.fromkeys(wording.locations(part)[0] for part in parts)
    return [cited.text[place.start : place.end] for place in places]


def broken_rule(reply: ClaimsReply, cited: CitedText, passages: Mapping[str, str]) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none.

    Args:
        reply: Well-formed.
        cited: The answer; its text is what was shown.
        passages: The texts by the ids under which they were shown.
    """
    wording = cited.wording
    parts = [claim.claim for claim in reply.claims] + list(reply.no_claim)
    broken = chain(
        (_broken_part(part, wording) for part in parts),
        (_broken_claim(item, passages) for item in reply.claims),
    )
    first = next(filter(None, broken), None)
    if first is not None:
        return first
    located = _ClaimPlaces(
        [wording.locations(item.claim) for item in reply.claims],
        [wording.locations(part) for part in reply.no_claim],
    )
    return _broken_claims(reply, cited, located) or _broken_cover(
        [item.claim for item in reply.claims], cited, located
    )


def _broken_part(part: str, answer: Wording) -> str | None:
    if not any(character.isalnum() for character in part):
        return f"{part!r} has no words; leave it out"
    if not answer.locations(part):
        return f"{part!r} does not occur in the answer; copy exactly"
    return None


def _broken_claim(item: CheckedClaim, passages: Mapping[str, str]) -> str | None:
    if item.supported != bool(item.evidence):
        given = "given" if item.evidence else "empty"
        return (
            f"the claim {item.claim!r}: supported is {str(item.supported).lower()} but its "
            f"evidence is {given}"
        )
    for evidence in item.evidence:
        if evidence.passage not in passages:
            known = ", ".join(passages)
            return f"evidence names the unknown passage {evidence.passage!r}; the ids are {known}"
        if find_evidence(evidence.quote, passages[evidence.passage]) is None:
            return (
                f"the quote {evidence.quote!r} does not occur in passage {evidence.passage} as "
                "whole words that make a statement; copy exactly, from that passage"
            )
    return None


def _broken_claims(reply: ClaimsReply, cited: CitedText, located: _ClaimPlaces) -> str | None:
    """Return the rule that is broken where words are claimed twice, with two findings."""
    words = cited.words
    layout = lay_out(located.claimed, words)
    pair = contradiction(layout, [item.supported for item in reply.claims], words)
    if pair is not None:
        one, other = (reply.claims[number] for number in pair)
        if fold(one.claim) == fold(other.claim):
            return f"the claim {one.claim!r} is both supported and not"
        return (
            f"the claims {one.claim!r} and {other.claim!r} share words, and only one of them is "
            "supported; give each claim words of its own"
        )
    claimed = {at for place in _claimed_alone(located) for at in _range(place)}
    for part, places in zip(reply.no_claim, located.passed_over, strict=True):
        if all(_shares_content(place, words, claimed) for place in places):
            return f"{part!r} is both in claims and in no_claim; it is one or the other"
    return None


def _claimed_alone(located: _ClaimPlaces) -> Iterator[Location]:
    """Yield the places of claims; those in parts that claim nothing only where there is no other.

    A question may hold the very words of its answer.
    """
    passed = [place for places in located.passed_over for place in places]
    for places in located.claimed:
        outside = [
            one
            for one in places
            if not any(place.start <= one.start and one.end <= place.end for place in passed)
        ]
        yield from outside or places


def _range(place: Location) -> range:
    return range(place.start, place.end)


def _shares_content(place: Location, words: str, claimed: set[int]) -> bool:
    shared = "".join(words[at] if at in claimed else " " for at in _range(place))
    return bool(content_stems(shared))


def _broken_cover(claims: Sequence[str], cited: CitedText, located: _ClaimPlaces) -> str | None:
    """Return the rule that is broken where a judge passes over, or lumps together, sentences.

    Args:
        claims: Their words as the judge gives them.
        cited: The answer.
        located: Where the claims stand, and the rest.
    """
    words = cited.words
    sentences = [part for part in spans(cited.text) if is_statement(part, words)]
    whole = [part for part in sentences if _n_words(part, words) >= _WHOLE_SENTENCE]
    for claim, places in zip(claims, located.claimed, strict=True):
        if sum(_holds(places[0], part) for part in whole) > 1:
            return f"the claim {claim!r} holds several sentences; give each its own claim"
    claimed = [place for places in located.claimed for place in places]
    either = claimed + [place for places in located.passed_over for place in places]
    missing = next((part for part in sentences if left_out(part, words, either)), None)
    if missing is not None:
        return (
            f"{_text(missing, cited)!r} of the answer is found neither in claims nor in no_claim; "
            "every sentence has to be"
        )
    for part in sentences:
        if _claims_by_citing(part, cited, words) and left_out(part, words, claimed):
            return (
                f"{_text(part, cited)!r} of the answer makes a statement; it belongs in claims, "
                "not in no_claim"
            )
    return None


def _claims_by_citing(part: Location, cited: CitedText, words: str) -> bool:
    """Whether a sentence cites a source for something: a greeting does not."""
    if not any(mark.scope == part for mark in cited.marks):
        return False
    said = words[part.start : part.end]
    says = bool(numbers(said)) or _n_words(part, words) >= _WHOLE_SENTENCE
    return says and not abstains(said)


def _n_words(part: Location, words: str) -> int:
    return len(set(content_stems(words[part.start : part.end])))


def _text(part: Location, cited: CitedText) -> str:
    return cited.text[part.start : part.end]


def _holds(place: Location, part: Location) -> bool:
    return place.start <= part.start and part.end - 1 <= place.end
