"""Quotes that prove something: whole words of a text, and words that say something."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from ragforge.corpus.anchors import FoldedText, Location, fold
from ragforge.files.unicode_forms import normalize
from ragforge.stages.asking import as_shown
from ragforge.stages.substance import cuts_token, has_plain_word, has_substance
from ragforge.stages.values import CURRENCIES, is_unit
from ragforge.stages.words import content_stems, words

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts whose words are not parted by blanks, or carry their particles (Korean): any two
characters of them may be parted, and one says too little."""
_LEAST_UNSPACED: Final = 2
_NUMBER: Final = re.compile(r"[+-]?\d+(?:[.,:/]\d+)*")
_NEXT_WORD: Final = re.compile(r"[ \u00a0\u202f]?([^\W\d_]+|[%°][^\W\d_]*|[$€£])")
_IN_NUMBERS: Final = ".,:/"
_OPENS: Final = " \t\"'*_(\u201c\u2018\u00ab"
_CLOSES: Final = " \t\"'*_)\u201d\u2019\u00bb"
_SENTENCE_ENDS: Final = frozenset(".!?;:\n\u3002\uff01\uff1f\uff1b")


def is_proof(quote: str, place: Location, text: str) -> bool:
    """Whether a quote proves something at a place where it stands; see `find_proof`.

    Args:
        quote: The quote.
        place: Where it stands, blanks and compatibility forms folded.
        text: What a model sees of a text.
    """
    return _is_whole(place, text) and _is_telling(quote, place, text)


def is_evidence(quote: str, place: Location, text: str) -> bool:
    """Whether a quote that stands at a place of a passage can prove that it is relevant.

    It is stricter than `is_proof`, for a passage is longer than an answer and holds almost any
    scrap: "T", "00" or "www" prove nothing here, nor does "com" of "redis.com".
    """
    if cuts_token(place, text) or not is_proof(quote, place, text):
        return False
    if _is_unspaced(quote) or has_substance(quote, text) or not words(quote):
        return True
    plain = has_plain_word(quote) or _UNSPACED.search(quote) is not None
    return plain and _is_sentence(place, text)


def proves(quote: str, text: str) -> bool:
    """Whether a quote stands in a text and can prove what is said of it; see `find_proof`."""
    return find_proof(quote, text) is not None


def find_proof(
    quote: str, text: str, accepts: Callable[[str, Location, str], bool] = is_proof
) -> Location | None:
    """Return where a quote first stands in a text as whole words that say something.

    It begins and ends where words do ("lph" is no quote of "Alpha", "40" none of "1.40" or
    "40.5"), and holds a content word, a number or, in scripts without blanks, two characters. A
    bare number is no quote of an amount: of "7 kg" it is "7 kg". What holds only words such as
    "no" or "it is" proves something as a whole sentence, and what holds only signs as the whole
    text.

    Args:
        quote: What is said to stand in the text; blanks and compatibility forms do not matter.
        text: As it is; what a model did not see of it (`visible`) is passed over.
        accepts: What a quote must be at its place; `is_evidence` for grades of passages.

    Returns:
        The place in `text`; None where the quote stands nowhere, or proves nothing anywhere.
    """
    shown = as_shown(text)
    for place in FoldedText(shown.text).locations(quote):
        if accepts(quote, place, shown.text):
            return Location(shown.places[place.start], shown.places[place.end - 1] + 1)
    return None


def has_content(text: str) -> bool:
    """Whether a text holds a content word, a number or two characters of a script without blanks.

    A single small letter is none; a single capital is, as in "vitamin C".
    """
    if _is_unspaced(text):
        return True
    folded = normalize("NFKC", text)
    stems = [stem for stem in content_stems(folded) if not _UNSPACED.search(stem)]
    if any(len(stem) > 1 or not stem.islower() for stem in stems):
        return True
    capitals = re.findall(r"(?<!\w)[^\W\d_](?!\w)", folded)
    return any(letter.isupper() and content_stems(letter) for letter in capitals)


def _is_unspaced(text: str) -> bool:
    folded = normalize("NFKC", text)
    return len(_UNSPACED.findall(folded)) >= _LEAST_UNSPACED


def _is_whole(place: Location, text: str) -> bool:
    return not (_binds(text, place.start) or _binds(text, place.end))


def _binds(text: str, at: int) -> bool:
    """Whether the characters before and behind a place belong to one word or number."""
    before, behind = text[max(0, at - 2) : at], text[at : at + 2]
    if not before or not behind:
        return False
    inner, outer = before[-1], behind[0]
    if _UNSPACED.match(normalize("NFKC", inner)):
        return False
    if _UNSPACED.match(normalize("NFKC", outer)):
        return False
    if _in_word(inner) and _in_word(outer):
        return True
    if outer.isdigit():
        signed = inner in "-\u2212" and not _in_word(before[:-1])
        return signed or (inner in _IN_NUMBERS and before[:-1].isdigit())
    return inner.isdigit() and outer in _IN_NUMBERS and behind[1:].isdigit()


def _in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character or " ")[0] in "LNM"


def _is_telling(quote: str, place: Location, text: str) -> bool:
    bare = quote.strip().strip(".,;:!?")
    if _NUMBER.fullmatch(bare):
        return not _counts(place, text)
    if has_content(quote):
        return True
    if words(quote):
        return _is_sentence(place, text)
    signs = any(unicodedata.category(sign)[0] == "S" for sign in quote)
    return signs and fold(quote) == fold(text)


def _counts(place: Location, text: str) -> bool:
    """Whether a number stands with what it counts or measures."""
    if text[: place.start].rstrip(" \u00a0").endswith(CURRENCIES):
        return True
    follows = _NEXT_WORD.match(text, place.end)
    return follows is not None and is_unit(follows[1])


def _is_sentence(place: Location, text: str) -> bool:
    """Whether nothing else stands between the ends of sentences, or a comma behind a "no"."""
    before = text[: place.start].rstrip(_OPENS)[-1:]
    behind = text[place.end :].lstrip(_CLOSES)[:1]
    said = text[place.start : place.end]
    ends = _SENTENCE_ENDS | {","} if words(said) == ["no"] else _SENTENCE_ENDS
    closed = not behind or behind in ends or said.rstrip()[-1:] in ends
    return closed and (not before or before in _SENTENCE_ENDS)
