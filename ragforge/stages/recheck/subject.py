"""A query whose answer is checked again, and the finding of that check."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ragforge.corpus.quote_locations import FoldedText, Location
from ragforge.records import Behaviour, Provenance
from ragforge.stages.quotes import find_proof

_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n+")
_LONGEST: Final = 400
"""Characters of whole sentences that are kept as a proof; a longer stretch is not widened."""

Verdict = Literal["same", "changed", "none"]
"""same: the passages give the expected answer. changed: they give another one. none: they give
none."""


def sentence_places(text: str) -> list[Location]:
    """Return where the sentences and lines of a text stand, blanks around them left out."""
    ends = [*_END.finditer(text)]
    starts = [0, *(end.end() for end in ends)]
    stops = [*(end.start() for end in ends), len(text)]
    places = []
    for start, stop in zip(starts, stops, strict=True):
        part = text[start:stop]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            places.append(Location(begin, begin + len(part.strip())))
    return places


def widened(place: Location, text: str) -> Location:
    """Return the whole sentences around a place, the place itself where these are long.

    A few words such as "5 seconds" prove nothing without what they are said of, and stand in too
    many places to be found again.
    """
    around = touching(place, text)
    return around if around.end - around.start <= _LONGEST else place


def touching(place: Location, text: str) -> Location:
    """Return the stretch of whole sentences that a place touches; itself where it touches none."""
    touched = [
        one for one in sentence_places(text) if one.start < place.end and place.start < one.end
    ]
    if not touched:
        return place
    return Location(min(place.start, touched[0].start), max(place.end, touched[-1].end))


@dataclass(frozen=True, slots=True)
class Passage:
    """A text of the documents as they are now, and the titles above it, the outermost first."""

    text: str
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """A query whose answer is checked again.

    Args:
        key: Its id.
        question: As it stands on its own.
        expected: The expected answer.
        expects: What that answer does.
        language: Of the question.
        quotes: What proved the answer, or the part of it that is to be proved again.
        others: Quotes that still stand and prove the rest; none of them proves that part.
        passages: The documents as they are now, as far as they matter.
        around: What stood right before and behind each of the quotes when it was checked last;
            () where that is not known.
    """

    key: str
    question: str
    expected: str
    expects: Behaviour
    language: str
    quotes: tuple[str, ...]
    others: tuple[str, ...]
    passages: tuple[Passage, ...]
    around: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Proved:
    """Where a proof stands: text[start:end] of a passage, counted from 0."""

    passage: int
    place: Location


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of checking an answer again.

    Args:
        verdict: How the answer stands.
        proof: Where the words stand that prove it; None for none.
        answer: The other answer; "" where there is none.
        by: Who says so.
    """

    verdict: Verdict
    proof: Proved | None
    answer: str
    by: Provenance


def prove(quote: str, subject: Subject) -> Proved | None:
    """Return where a quote first stands in a passage as a proof, the other quotes left out."""
    for number, passage in enumerate(subject.passages):
        place = find_proof(quote, without(passage.text, subject.others))
        if place is not None:
            return Proved(number, place)
    return None


def without(text: str, quotes: Sequence[str]) -> str:
    """Return a text with blanks in the place of quotes, as long as before."""
    for quote in quotes:
        for place in FoldedText(text).locations(quote):
            text = f"{text[: place.start]}{' ' * (place.end - place.start)}{text[place.end :]}"
    return text
