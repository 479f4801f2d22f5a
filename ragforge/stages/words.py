"""The words of a text, and which of them carry no content and give its language away.

The lists of function words hold the commonest of questions and short answers. A word that several
languages share tells little and counts for each of them; technical words of English are in none.
"""

import re
from functools import cache

from ragforge.files.text import normalize
from ragforge.stages.lexicon import entries, languages

_IDEOGRAPH = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
_WORD = re.compile(
    rf"{_IDEOGRAPH}|(?:(?!{_IDEOGRAPH})[^\W_])+(?:['\u2019.](?:(?!{_IDEOGRAPH})[^\W_])+)*"
)
"""Scripts without blanks between words are compared character by character."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ies", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3


def words(text: str) -> list[str]:
    """Return the words of a text, case and compatibility forms folded, in order."""
    folded = normalize("NFKC", text).casefold()
    return [match.group().replace("\u2019", "'") for match in _WORD.finditer(folded)]


def content_stems(text: str) -> list[str]:
    """Return the stems of the words that carry content, in order."""
    stop_words = _stop_words()
    return [stem(word) for word in words(text) if word not in stop_words]


def is_stop_word(word: str) -> bool:
    """Whether a word, its case folded, is one that `content_stems` leaves out."""
    return word in _stop_words()


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


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the words of a language that carry no content; empty where no list is kept.

    For Chinese and Japanese these are single characters.

    Args:
        language: ISO 639-1 code.
    """
    lists = ("words.function", "words.characters", "words.elided")
    return frozenset(word for name in lists for word in entries(language, name))


@cache
def languages_by_word() -> dict[str, tuple[str, ...]]:
    """Return for each word the languages that use it as a function word."""
    by_word: dict[str, tuple[str, ...]] = {}
    for language in languages():
        for word in dict.fromkeys(entries(language, "words.function")):
            by_word[word] = (*by_word.get(word, ()), language)
    return by_word


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(entries("en", "words.stop"))
