"""Words as the offline baselines compare them: folded, lightly stemmed, stop words apart."""

import re

from ragforge.files.unicode_forms import normalize

_IDEOGRAPH = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
_WORD = re.compile(
    rf"{_IDEOGRAPH}|(?:(?!{_IDEOGRAPH})[^\W_])+(?:['\u2019.](?:(?!{_IDEOGRAPH})[^\W_])+)*"
)
"""Scripts without blanks between words are compared character by character."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_STOP = frozenset(
    "a about after all also an and any are as at be been being but by can could did do does doing "
    "for from get had has have he her his how i if in into is it its me my no not of on or our "
    "out shall she should so some than that the their them then there these they this those to up "
    "us was we were what when where which who whom whose why will with would you your".split()
)
_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ies", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3


def words(text: str) -> list[str]:
    """Return the words of a text, case and compatibility forms folded, in order."""
    folded = normalize("NFKC", text).casefold()
    return [match.group().replace("\u2019", "'") for match in _WORD.finditer(folded)]


def content_stems(text: str) -> list[str]:
    """Return the stems of the words that carry content, in order."""
    return [stem(word) for word in words(text) if word not in _STOP]


def is_stop_word(word: str) -> bool:
    """Whether a word, its case folded, is one that `content_stems` leaves out."""
    return word in _STOP


def stem(word: str) -> str:
    """Cut one common English ending off a word of a baseline; other languages pass unchanged."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)]
    return word


def numbers(text: str) -> set[str]:
    """Return the numbers of a text, thousands separators aside."""
    found = _NUMBER.findall(text)
    return {re.sub(r",(?=\d{3}\b)", "", number).rstrip(".,") for number in found}


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, stripped, empty ones left out."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]
