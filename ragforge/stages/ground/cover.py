"""Whether a judge has accounted for every sentence of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragforge.corpus.anchors import Location
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.ground.marks import CitedText
from ragforge.stages.ground.parts import is_statement, left_out, spans
from ragforge.stages.words import content_stems, numbers

_WHOLE_SENTENCE = 3
"""Content words from which a sentence counts as one."""


@dataclass(frozen=True, slots=True)
class Told:
    """Where in an answer stands what a reply says of it.

    Args:
        claimed: The places of each claim; at least one each.
        passed_over: The places of each part that claims nothing.
    """

    claimed: Sequence[Sequence[Location]]
    passed_over: Sequence[Sequence[Location]]


def broken_cover(claims: Sequence[str], cited: CitedText, told: Told) -> str | None:
    """Return the rule that is broken where a judge passes over, or lumps together, sentences.

    Args:
        claims: Their words as the judge gives them.
        cited: The answer.
        told: Where the claims stand, and the rest.
    """
    words = cited.words
    sentences = [part for part in spans(cited.text) if is_statement(part, words)]
    whole = [part for part in sentences if _n_words(part, words) >= _WHOLE_SENTENCE]
    for claim, places in zip(claims, told.claimed, strict=True):
        if sum(_holds(places[0], part) for part in whole) > 1:
            return f"the claim {claim!r} holds several sentences; give each its own claim"
    claimed = [place for places in told.claimed for place in places]
    either = claimed + [place for places in told.passed_over for place in places]
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
