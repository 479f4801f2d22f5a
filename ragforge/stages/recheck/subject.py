"""What is checked again, and what comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ragforge.corpus.anchors import FoldedText, Location
from ragforge.records import Behaviour, Provenance
from ragforge.stages.quotes import find_proof

Verdict = Literal["same", "changed", "none"]
"""same: the passages give the expected answer. changed: they give another one. none: they give
none."""


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
    """What came of a check.

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


class Rechecker(Protocol):
    """Says whether passages still give an expected answer."""

    async def recheck(self, subject: Subject) -> Finding:
        """Return what is found; called concurrently on one instance.

        Raises:
            CallError: Nobody can say; the query is then neither right nor wrong.
            EndpointError, BudgetError: Nothing can be asked any more.
        """


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
