"""Quotes that prove something: whole words of a text, and words that say something."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ragforge.corpus.quote_locations import FoldedText, Location, fold
from ragforge.corpus.word_ends import APOSTROPHES, JOINERS, binds, joins
from ragforge.deferred import pattern
from ragforge.files.text import normalize
from ragforge.scripts import count_syllabic, has_syllabic
from ragforge.stages.values import CURRENCIES, is_unit
from ragforge.stages.visible_text import visible_text
from ragforge.stages.words import (
    content_stems,
    each_content_stem,
    function_words,
    is_stop_word,
    languages_by_word,
    words,
)

_TOKEN: Final = pattern(rf"[^\W_]+(?:[_{re.escape(''.join(sorted(JOINERS)))}][^\W_]+)*[+#]*")
_PART: Final = pattern(r"[^\W_]+")
_TELLING_NUMBER: Final = pattern(r"\d+(?:[.,:/]\d+)*")
_MEASURED: Final = pattern(r"\d[ \u00a0\u202f]?([^\W\d_]+|[%\u00b0][^\W\d_]*|[$\u20ac\u00a3])")
_PRICED: Final = pattern(r"[$\u20ac\u00a3][ \u00a0\u202f]?\d")
_OF_ADDRESSES: Final = frozenset(("http", "https", "ftp", "www", "WWW"))
"""HTTP in capitals is a protocol, and may be an answer."""
_LEAST_LISTED: Final = 3
"""So many function words of a language tell that a passage is written in it."""

_LEAST_SYLLABIC: Final = 2
"""Any two characters of such scripts may be parted, and one says too little."""
_NUMBER: Final = pattern(r"[+-]?\d+(?:[.,:/]\d+)*")
_NEXT_WORD: Final = pattern(r"[ \u00a0\u202f]?([^\W\d_]+|[%°][^\W\d_]*|[$€£])")
_OPENS: Final = " \t\"'*_(\u201c\u2018\u00ab"
_CLOSES: Final = " \t\"'*_)\u201d\u2019\u00bb"
_SENTENCE_ENDS: Final = frozenset(".!?;:\n\u3002\uff01\uff1f\uff1b")


def _cuts_token(place: Location, text: str) -> bool:
    """Whether a stretch of a text begins or ends within what is written without a blank.

    That is what apostrophes, dots, hyphens and signs such as & and / join: "com" of "redis.com",
    "C" of "C++". Between numbers a hyphen parts ("30-40"), before a word so does an apostrophe
    ("l'eau"), and a full stop does that lacks its blank ("by default.The next").
    """
    return joins(text, place.start, opens=True) or joins(text, place.end, opens=False)


def _has_substance(quote: str, text: str) -> bool:
    """Whether a quote holds a word, number or amount that not any passage holds.

    Nothing are single letters, function words of English and of the passage's language, "www" and
    the like, single digits that measure nothing, and zeros. Scripts without blanks are not looked
    at here.

    Args:
        quote: As it is.
        text: The passage, which shows the language.
    """
    folded = normalize("NFKC", quote)
    if any(_is_telling_number(number) for number in _TELLING_NUMBER.findall(folded)):
        return True
    if any(_is_telling_token(token, text) for token in _TOKEN.findall(folded)):
        return True
    measured = any(is_unit(unit) for unit in _MEASURED.findall(folded))
    return measured or _PRICED.search(folded) is not None


def _has_plain_word(quote: str) -> bool:
    """Whether a quote holds a word of two letters or more, be it "no"."""
    folded = normalize("NFKC", quote)
    parts = [part for part in _PART.findall(folded) if part not in _OF_ADDRESSES]
    return any(part.isalpha() and not _is_letter(part) for part in parts)


def _is_telling_number(number: str) -> bool:
    digits = [int(digit) for digit in number if digit.isdecimal()]
    return len(digits) > 1 and any(digits)


def _is_telling_token(token: str, text: str) -> bool:
    parts = _PART.findall(token)
    if any(_is_telling_word(part, text) for part in parts):
        return True
    letters = "".join(parts)
    if token[-1] in "+#":
        return letters[-1].isalpha()
    spelled = len(parts) > 1 and letters.isalpha() and letters.isupper()
    return spelled and not any(sign in token for sign in APOSTROPHES)


def _is_telling_word(word: str, text: str) -> bool:
    if word.isdigit() or _is_letter(word) or word in _OF_ADDRESSES:
        return False
    lower = word.casefold()
    if is_stop_word(lower) or lower in function_words("en"):
        return False
    if lower not in languages_by_word() or word.isupper():
        return True
    return not any(lower in function_words(code) for code in _languages(text))


def _is_letter(word: str) -> bool:
    """Whether it is one letter of a script that has capitals; others write words with one."""
    return len(word) == 1 and word.lower() != word.upper()


@lru_cache(maxsize=8)
def _languages(text: str) -> frozenset[str]:
    """Return the languages of which a text holds most function words; none where it holds few."""
    listed = languages_by_word()
    counts = Counter(code for word in set(words(text)) for code in listed.get(word, ()))
    most = max(counts.values(), default=0)
    if most < _LEAST_LISTED:
        return frozenset()
    return frozenset(code for code, count in counts.items() if count == most)


def _is_proof(quote: str, place: Location, text: str) -> bool:
    """Whether a quote proves something at a place where it stands; see `find_proof`.

    Args:
        quote: The quote.
        place: Where it stands, blanks and compatibility forms folded.
        text: What a model sees of a text.
    """
    return _is_whole(place, text) and _is_telling(quote, place, text)


def is_evidence(quote: str, place: Location, text: str) -> bool:
    """Whether a quote that stands at a place of a passage can prove that it is relevant.

    It is stricter than `_is_proof`, for a passage is longer than an answer and holds almost any
    scrap: "T", "00" or "www" prove nothing here, nor does "com" of "redis.com".
    """
    if _cuts_token(place, text) or not _is_proof(quote, place, text):
        return False
    if _is_syllabic(quote) or _has_substance(quote, text) or not words(quote):
        return True
    plain = _has_plain_word(quote) or has_syllabic(quote)
    return plain and _is_sentence(place, text)


def proves(quote: str, text: str) -> bool:
    """Whether a quote stands in a text and can prove what is said of it; see `find_proof`."""
    return find_proof(quote, text) is not None


def find_proof(
    quote: str, text: str, accepts: Callable[[str, Location, str], bool] = _is_proof
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
    shown = visible_text(text)
    for place in FoldedText(shown.text).locations(quote):
        if accepts(quote, place, shown.text):
            return Location(shown.places[place.start], shown.places[place.end - 1] + 1)
    return None


def has_content(text: str) -> bool:
    """Whether a text holds a content word, a number or two characters of a script without blanks.

    A single small letter is none; a single capital is, as in "vitamin C".
    """
    if _is_syllabic(text):
        return True
    folded = normalize("NFKC", text)
    stems = (stem for stem in each_content_stem(folded) if not has_syllabic(stem))
    if any(len(stem) > 1 or not stem.islower() for stem in stems):
        return True
    capitals = re.findall(r"(?<!\w)[^\W\d_](?!\w)", folded)
    return any(letter.isupper() and content_stems(letter) for letter in capitals)


def _is_syllabic(text: str) -> bool:
    return count_syllabic(normalize("NFKC", text)) >= _LEAST_SYLLABIC


def _is_whole(place: Location, text: str) -> bool:
    return not (binds(text, place.start) or binds(text, place.end))


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
