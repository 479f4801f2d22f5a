"""What a quote must hold to be evidence of relevance: more than any passage holds."""

import re
from collections import Counter
from functools import lru_cache
from typing import Final

from ragforge.corpus.anchors import Location
from ragforge.files.unicode_forms import normalize
from ragforge.stages.function_words import function_words, languages_by_word
from ragforge.stages.values import is_unit
from ragforge.stages.words import is_stop_word, words

_APOSTROPHES: Final = "'\u2019"
_HYPHENS: Final = "-\u2010\u2011"
_JOINERS: Final = frozenset(f"{_APOSTROPHES}{_HYPHENS}.&+#@/")
_ENDINGS: Final = frozenset("s t d m ll re ve".split())
"""What follows the apostrophe of "it's"; in "l'eau" a word of its own does."""
_TOKEN: Final = re.compile(rf"[^\W_]+(?:[_{re.escape(''.join(sorted(_JOINERS)))}][^\W_]+)*[+#]*")
_PART: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"\d+(?:[.,:/]\d+)*")
_MEASURED: Final = re.compile(r"\d[ \u00a0\u202f]?([^\W\d_]+|[%\u00b0][^\W\d_]*|[$\u20ac\u00a3])")
_PRICED: Final = re.compile(r"[$\u20ac\u00a3][ \u00a0\u202f]?\d")
_OF_ADDRESSES: Final = frozenset(("http", "https", "ftp", "www", "WWW"))
"""HTTP in capitals is a protocol, and may be an answer."""
_LEAST_LISTED: Final = 3
"""So many function words of a language tell that a passage is written in it."""


def cuts_token(place: Location, text: str) -> bool:
    """Whether a stretch of a text begins or ends within what is written without a blank.

    That is what apostrophes, dots, hyphens and signs such as & and / join: "com" of "redis.com",
    "C" of "C++". Between numbers a hyphen parts ("30-40"), before a word so does an apostrophe
    ("l'eau"), and a full stop does that lacks its blank ("by default.The next").
    """
    return _joins(text, place.start, opens=True) or _joins(text, place.end, opens=False)


def has_substance(quote: str, text: str) -> bool:
    """Whether a quote holds a word, number or amount that not any passage holds.

    Nothing are single letters, function words of English and of the passage's language, "www" and
    the like, single digits that measure nothing, and zeros. Scripts without blanks are not looked
    at here.

    Args:
        quote: As it is.
        text: The passage, which shows the language.
    """
    folded = normalize("NFKC", quote)
    if any(_is_telling_number(number) for number in _NUMBER.findall(folded)):
        return True
    if any(_is_telling_token(token, text) for token in _TOKEN.findall(folded)):
        return True
    measured = any(is_unit(unit) for unit in _MEASURED.findall(folded))
    return measured or _PRICED.search(folded) is not None


def has_plain_word(quote: str) -> bool:
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
    return spelled and not any(sign in token for sign in _APOSTROPHES)


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


def _joins(text: str, at: int, *, opens: bool) -> bool:
    before, behind = text[max(0, at - 3) : at], text[at : at + 2]
    if not before or not behind:
        return False
    if behind[0] in "+#" and _is_signed(before, behind[0]):
        return True
    if behind[0] in _JOINERS:
        return _is_joined(before, behind[0], behind[1:])
    if before[-1] not in _JOINERS or not _is_joined(before[:-1], before[-1], behind[:1]):
        return False
    if before[-1] not in _APOSTROPHES or not opens:
        return True
    word = _PART.match(text, at)
    return word is not None and word[0].casefold() in _ENDINGS


def _is_joined(left: str, joiner: str, right: str) -> bool:
    if not (left[-1:].isalnum() and right.isalnum()):
        return False
    if left[-1].isdigit() and right.isdigit():
        return joiner not in _HYPHENS
    return joiner != "." or not _ends_sentence(left, right)


def _is_signed(before: str, sign: str) -> bool:
    """Whether a sign belongs to the letter before it, as in C++ and C#."""
    return before.rstrip(sign)[-1:].isalpha()


def _ends_sentence(left: str, right: str) -> bool:
    """Whether a full stop without a blank parts sentences, or a word and its footnote."""
    if right.isdigit():
        return left[-1].isalpha()
    return right.isupper() and left[-1].islower() and left[-2:-1].isalpha()
