"""The offline baseline: an answer stands where a passage has all its words and numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final

from ragforge.corpus.quote_locations import FoldedText, Location, fold
from ragforge.records import Provenance
from ragforge.stages.recheck.subject import Finding, Proved, Subject, sentence_places, without
from ragforge.stages.words import all_entries, content_stems, numbers, words

_LEAST: Final = 8
"""Characters that tell that the text beside a quote is as it was."""

_NAME = "offline-recheck-1"


def is_turned(subject: Subject, proof: str) -> bool:
    """Whether a text that has an answer's words may say otherwise than the quotes did.

    Of quotes that stand verbatim, words count that came into their sentence or the one before; of
    others, words and numbers by which the new text differs from the old.

    Args:
        subject: With the quotes, what stood around them, and the text as it is now.
        proof: The text with the words of the answer.
    """
    pairs = zip_longest(subject.quotes, subject.around[: len(subject.quotes)], fillvalue=("", ""))
    known = [(str(quote), str(before), str(after)) for quote, (before, after) in pairs]
    spots = [
        (text, place, before, after)
        for passage in subject.passages
        for quote, before, after in known
        for text in [passage.text]
        for place in FoldedText(text).locations(quote)
    ]
    if spots:
        return any(_is_turned_at(*spot) for spot in spots)
    return bool(known) and _differs(known, proof)


def _is_turned_at(text: str, place: Location, before: str, after: str) -> bool:
    sentences = sentence_places(text)
    own = [one for one in sentences if one.start < place.end and place.start < one.end]
    if not own:
        return False
    first, last = own[0], own[-1]
    earlier = [one.start for one in sentences if one.end <= first.start]
    ahead = text[max(earlier, default=first.start) : place.start]
    behind = text[place.end : max(last.end, place.end)]
    is_same_ahead = _stood(before) and fold(text[: place.start]).endswith(fold(before))
    is_same_behind = _stood(after) and fold(text[place.end :]).startswith(fold(after))
    return (not is_same_ahead and bool(turns(ahead) - turns(before))) or (
        not is_same_behind and bool(turns(behind) - turns(after))
    )


def _stood(text: str) -> bool:
    return len(fold(text)) >= _LEAST


def _differs(known: Iterable[tuple[str, str, str]], proof: str) -> bool:
    """Whether a text has other turning words or numbers than old quotes had."""
    parts = list(known)
    quoted = " ".join(quote for quote, _, _ in parts)
    whole = " ".join(chain.from_iterable((before, quote, after) for quote, before, after in parts))
    lost = (turns(quoted) - turns(proof)) | (numbers(quoted) - numbers(proof))
    return bool(lost or (turns(proof) - turns(whole)) or (numbers(proof) - numbers(whole)))


def turns(text: str) -> set[str]:
    """Return the words of a text that turn or limit what it says."""
    turning = frozenset(all_entries("turning.words"))
    endings, beginnings = all_entries("turning.endings"), all_entries("turning.beginnings")
    return {
        word
        for word in words(text)
        if word in turning or word.endswith(endings) or word.startswith(beginnings)
    }


@dataclass(frozen=True, slots=True)
class LexicalRecheck:
    """Finds an expected answer by its words; what is said in other words it does not find.

    It never finds another answer, and its "none" is no proof that there is none. Where words such
    as "not" or "until" came or went with the quotes, or numbers, it confirms nothing.
    """

    @property
    def provenance(self) -> Provenance:
        """The baseline's name."""
        return Provenance(kind="baseline", model=_NAME)

    async def judge(self, subject: Subject) -> Finding:
        """Return the first passage with all content words and numbers, unless it was turned."""
        wanted = _telling(subject.expected)
        for number, passage in enumerate(subject.passages):
            text = without(passage.text, subject.others)
            if wanted and wanted <= _telling(text):
                place = _shortest(wanted, text)
                if not is_turned(subject, passage.text[place.start : place.end]):
                    return Finding("same", Proved(number, place), "", self.provenance)
        return Finding("none", None, "", self.provenance)


def _telling(text: str) -> set[str]:
    return set(content_stems(text)) | {f"#{number}" for number in numbers(text)}


def _shortest(wanted: set[str], text: str) -> Location:
    """Return the shortest run of sentences that has what is wanted, the first of equals."""
    places = sentence_places(text)
    words_of = [_telling(text[place.start : place.end]) for place in places]
    best, first = Location(0, len(text)), 0
    for last in range(len(places)):
        while first <= last and wanted <= set().union(*words_of[first : last + 1]):
            run = Location(places[first].start, places[last].end)
            best = min(best, run, key=lambda place: place.end - place.start)
            first += 1
    return best
