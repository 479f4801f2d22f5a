"""Words in which a letter of one script passes for one of another."""

# ruff: noqa: RUF001 -- letters of one script look like those of another; these are meant.

import re
from itertools import pairwise
from typing import Final

_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f]")
_CYRILLIC: Final = re.compile("[\u0400-\u052f]")
_LOOKALIKES: Final = frozenset("аеорсухіјѕԁԛԝһАВЕКМНОРСТУХІЈЅԌ")
"""Cyrillic letters that look like Latin ones."""
_GREEK_BETWEEN: Final = re.compile("[A-Za-z][ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+[A-Za-z]")


def disguised_word(text: str) -> str:
    """Return a word that is spelt with letters of two scripts to look like one; "" if none is.

    Endings on a Latin name are none, in a text in Cyrillic, nor are signs such as a delta.
    """
    if text.isascii():
        return ""
    found: list[str] = _WORD.findall(text)
    mixed = [word for word in found if _LATIN.search(word) and _CYRILLIC.search(word)]
    if mixed:
        is_cyrillic = any(_CYRILLIC.search(word) and not _LATIN.search(word) for word in found)
        for word in mixed:
            if _is_disguised(word, is_cyrillic=is_cyrillic):
                return word
    return next((word for word in found if _GREEK_BETWEEN.search(word)), "")


def _is_disguised(word: str, *, is_cyrillic: bool) -> bool:
    scripts = ["C" if _CYRILLIC.match(letter) else "L" for letter in word]
    changes = sum(one != other for one, other in pairwise(scripts))
    foreign = {letter for letter in word if _CYRILLIC.match(letter)}
    return changes > 1 or (not is_cyrillic and foreign <= _LOOKALIKES)
