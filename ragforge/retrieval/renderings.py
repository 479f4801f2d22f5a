"""Texts that differ in how they are shown alone: list numbers, footnote marks, accents, groups.

A service may show `1. Pay 1,250 € to Müller.[1]` as `Pay 1250 EUR to Mueller.`
"""

import unicodedata
from collections.abc import Iterator
from re import IGNORECASE, MULTILINE, Match, Pattern
from typing import Final

from ragforge.deferred import pattern
from ragforge.retrieval.object_fields import fold_text

_SUP: Final = pattern(r"<sup\b[^<>]*>(?:<a\b[^<>]*>)?\[?(\d{1,3})\]?(?:</a>)?</sup>", IGNORECASE)
_SUB: Final = pattern(r"<sub\b[^<>]*>(\d{1,3})</sub>", IGNORECASE)
_RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED: Final = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_TICKS: Final = str.maketrans({"☐": "[ ]", "☑": "[x]"})
_RIGHTS: Final = pattern(r"[®™©]|\((?:R|TM|C)\)", IGNORECASE)
_BEHIND_A_WORD: Final = r"(?:(?<=[.,;:!?)\"'”\u2019»])|(?<=[^\W\d_]{4}))"
_MARKS: Final = (
    (pattern(r"\\r\\n|\\[nrt]"), "\n"),
    (pattern(r"^([ \t>]*(?:[-+*•][ \t]+)?)(?:\[[ xX]\]|[☒✓✔✅])(?=\s)", MULTILINE), r"\1"),
    (pattern(r"^([ \t>]*)\d{1,3}[.)](?=[ \t])", MULTILINE), r"\1"),
    (pattern(r"^([ \t>]*(?:`{3,}|~{3,}))[ \t]*[^\s`~][^\n`]*$", MULTILINE), r"\1"),
    (pattern(r"\[\^\d{1,3}\]:?"), ""),
    (pattern(rf"{_BEHIND_A_WORD}[ ]?\[\d{{1,3}}(?:[-\u2013, ]+\d{{1,3}})*\]"), ""),
    (pattern(rf"{_BEHIND_A_WORD}[⁰¹²³⁴-⁹]{{1,3}}"), ""),
    (pattern(r"(?:https?://|\bwww\.)[^\s<>()\[\]]+"), ""),
    (pattern("€"), " EUR "),
    (pattern(r"\$"), " USD "),
    (pattern("£"), " GBP "),
    (pattern("%"), " percent "),
    (pattern("\u00d7"), "x"),
    (pattern("[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?"), ""),
)
"""What is shown otherwise or not at all, with what it is compared by where one text alone has it:
line ends, tick boxes, list numbers, languages of code, footnote marks, addresses, and symbols."""
_GROUPED: Final = pattern(
    r"(?<![\d.,])[1-9]\d{0,2}(?:([.,' \u2019\u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?!\1?\d)"
)
_NUMBER: Final = pattern(r"(?<![\d.,])\d{4,}")
_ACCENT: Final = pattern("[\u0300-\u036f\u0640]")
_AS_TWO: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_AS_ONE: Final = str.maketrans({"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe"})


def alike(text: str, original: str) -> Iterator[tuple[str, str]]:
    """Yield two texts in forms that are equal where they differ in how they are shown alone.

    What both have is compared: another address or list number says something else.
    """
    text, original = _plain(text), _plain(original)
    for mark, left in _MARKS:
        if _shows(text, mark, original) != _shows(original, mark, text):
            text, original = mark.sub(left, text), mark.sub(left, original)
    text, original = _ungrouped(text, original), _ungrouped(original, text)
    text, original = text.lower(), original.lower()
    yield _bare(text), _bare(original)
    yield _bare(text.translate(_AS_TWO)), _bare(original.translate(_AS_TWO))


def _shows(text: str, mark: Pattern[str], other: str) -> bool:
    """Whether a text has a mark, or one of another text, be it in one line with what is before."""
    if mark.search(text):
        return True
    words = f" {fold_text(text)} "
    return any(f" {fold_text(found[0])} " in words for found in mark.finditer(other))


def _plain(text: str) -> str:
    """Return a text with raised digits and those of other scripts as characters, without rights."""
    text = unicodedata.normalize("NFC", text).translate(_TICKS)
    text = _SUP.sub(lambda found: found[1].translate(_RAISED), text)
    text = _SUB.sub(lambda found: found[1].translate(_LOWERED), text)
    return "".join(
        str(unicodedata.decimal(char)) if char.isdecimal() else char
        for char in _RIGHTS.sub("", text)
    )


def _ungrouped(text: str, other: str) -> str:
    """Return a text without the marks between groups of digits that another text has none in."""
    numbers = set(_NUMBER.findall(other))

    def left(found: Match[str]) -> str:
        number = found[0].replace(found[1], "")
        return number if number in numbers else found[0]

    return _GROUPED.sub(left, text)


def _bare(text: str) -> str:
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", text.translate(_AS_ONE)))
    return unicodedata.normalize("NFC", bare)
