"""Words that turn or limit what a sentence says: where they came or went, words prove nothing."""

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import Final

from ragforge.corpus.anchors import FoldedText, Location, fold
from ragforge.stages.recheck.sentences import sentence_places
from ragforge.stages.recheck.subject import Subject
from ragforge.stages.words import numbers, words

_TURNS: Final = frozenset(
    "not no never none nor neither cannot without unless except until only formerly previously "
    "deprecated obsolete removed discontinued "
    "nicht kein keine keinen keinem keiner keines nie niemals ohne ausser bis nur fr\u00fcher "
    "ehemals veraltet entfernt "
    "ne pas jamais sans sauf aucun aucune seulement anciennement obsol\u00e8te supprim\u00e9 "
    "supprim\u00e9e "
    "nunca jam\u00e1s sin salvo excepto hasta ning\u00fan ninguna ninguno solo s\u00f3lo "
    "solamente anteriormente antiguamente obsoleto obsoleta eliminado eliminada".split()
)
_ENDS: Final = ("n't",)
_STARTS: Final = ("n'", "jusqu")
_LEAST: Final = 8
"""Characters that tell that the text beside a quote is as it was."""


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
    return {
        word
        for word in words(text)
        if word in _TURNS or word.endswith(_ENDS) or word.startswith(_STARTS)
    }
