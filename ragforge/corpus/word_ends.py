"""Where words and numbers end: which places of a text lie within one."""

import unicodedata
from typing import Final

from ragforge.deferred import pattern
from ragforge.files.text import normalize
from ragforge.scripts import has_syllabic

APOSTROPHES: Final = "'\u2019"
_HYPHENS: Final = "-\u2010\u2011"
JOINERS: Final = frozenset(f"{APOSTROPHES}{_HYPHENS}.&+#@/")
"""What binds words and letters that are written without a blank."""
_ENDINGS: Final = frozenset("s t d m ll re ve".split())
"""What follows the apostrophe of "it's"; in "l'eau" a word of its own does."""
_PART: Final = pattern(r"[^\W_]+")
_IN_NUMBERS: Final = ".,:/"


def binds(text: str, at: int) -> bool:
    """Whether the characters before and behind a place belong to one word or number."""
    before, behind = text[max(0, at - 2) : at], text[at : at + 2]
    if not before or not behind:
        return False
    inner, outer = before[-1], behind[0]
    if has_syllabic(normalize("NFKC", inner)[:1]):
        return False
    if has_syllabic(normalize("NFKC", outer)[:1]):
        return False
    if _in_word(inner) and _in_word(outer):
        return True
    if outer.isdigit():
        signed = inner in "-\u2212" and not _in_word(before[:-1])
        return signed or (inner in _IN_NUMBERS and before[:-1].isdigit())
    return inner.isdigit() and outer in _IN_NUMBERS and behind[1:].isdigit()


def _in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character or " ")[0] in "LNM"


def joins(text: str, at: int, *, opens: bool) -> bool:
    """Whether a place lies within what is written without a blank, as in "redis.com" and "C++".

    Args:
        text: As it is.
        at: The place.
        opens: Whether a stretch begins there, not ends: "eau" of "l'eau" is a word of its own.
    """
    before, behind = text[max(0, at - 3) : at], text[at : at + 2]
    if not before or not behind:
        return False
    if behind[0] in "+#" and _is_signed(before, behind[0]):
        return True
    if behind[0] in JOINERS:
        return _is_joined(before, behind[0], behind[1:])
    if before[-1] not in JOINERS or not _is_joined(before[:-1], before[-1], behind[:1]):
        return False
    if before[-1] not in APOSTROPHES or not opens:
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
