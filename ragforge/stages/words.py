"""The words of a text, and the words and phrases of many languages that rules look for.

`languages/de.toml` holds those of German; who speaks a language can read its file and add to it. A
text is a list of words parted by blanks. An array is a list of phrases, which are regular
expressions in which `(a|b)` is a choice that captures nothing, and `{nouns}` one of the entries of
that name in the section's `lists`. Letters match in either case. A file is read when needed.

Function words carry no content and give the language of a text away; the lists hold the commonest
of questions and short answers. A word that several languages share tells little and counts for each
of them; technical words of English are in none.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from ragforge.deferred import pattern, tomllib
from ragforge.errors import DataError
from ragforge.files.text import normalize, read_text
from ragforge.scripts import HAN_AND_KANA

Language = Mapping[str, tuple[str, ...]]
"""Words and phrases by section and name: `questions.asking`."""

_SECTIONS: Final = {
    "words": "function characters elided stop not_in_japanese",
    "questions": "asking indirect joining joining_signs paired choice choice_within "
    "statement_openings statements",
    "duplicates": "decisive interchangeable optional",
    "values": "yes_or_no small_numbers months",
    "absence": "words beginnings within phrases",
    "turning": "words beginnings endings",
    "abstaining": "phrases openings links courtesies contrast contrast_within",
    "pointing": "away back said_before",
    "talk": "openings labels labels_within",
    "orders": "overriding reported grading asking with_answer demands",
    "injection": "claims claims_have bids bids_have orders orders_have notes notes_have",
}
NAMES: Final = tuple(f"{each}.{name}" for each in _SECTIONS for name in _SECTIONS[each].split())
"""Of all lists that there may be."""
_LISTS: Final = "lists"
_GROUP: Final = pattern(r"\\.|\((?!\?)", re.DOTALL)
_NAMED: Final = pattern(r"\{([a-z_]+)\}")

_ASCII_WORD = pattern(r"[^\W_]+(?:['.][^\W_]+)*")
_LETTER = rf"[^\W_{HAN_AND_KANA}]"
_WORD = pattern(rf"[{HAN_AND_KANA}]|{_LETTER}+(?:['\u2019.]{_LETTER}+)*")
"""Chinese and Japanese are compared character by character."""
_NUMBER = pattern(r"\d+(?:[.,]\d+)*")
_SENTENCE = pattern(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
SENTENCE_END = pattern(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n+")
"""Between two sentences or lines of any script; that of Chinese and Japanese needs no blank."""
_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ies", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3


@cache
def languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a file, English first."""
    codes = sorted(path.stem for path in _folder().glob("*.toml"))
    return tuple(sorted(codes, key=lambda code: code != "en"))


def entries(language: str, name: str) -> tuple[str, ...]:
    """Return the words or phrases of a language, phrases as regular expressions.

    Args:
        language: ISO 639-1 code.
        name: Section and list, such as "questions.asking".

    Returns:
        In the order of the file; () where the language has no file or the file no such list.

    Raises:
        DataError: The language's file does not hold to the format.
    """
    if language not in languages() or name.partition(".")[0] not in _text(language):
        return ()
    return _language(language).get(name, ())


@cache
def all_entries(name: str) -> tuple[str, ...]:
    """Return the words or phrases of all languages, each once, those of English first.

    Raises:
        DataError: As for `entries`.
    """
    of_all = (entry for language in languages() for entry in entries(language, name))
    return tuple(dict.fromkeys(of_all))


@cache
def pattern_of(name: str) -> re.Pattern[str]:
    """Return the pattern of whole words of all languages, or of what may stand within a word.

    Args:
        name: Of the list of words; that of the others has `_within` behind it.
    """
    words, within = "|".join(all_entries(name)), "|".join(all_entries(f"{name}_within"))
    return re.compile(rf"\b(?:{words})\b|{within}", re.IGNORECASE)


def read_language(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the words and phrases that a file lists.

    Raises:
        DataError: The file cannot be read or does not hold to the format.
    """
    try:
        sections = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: is not TOML: {error}") from error
    listed: dict[str, tuple[str, ...]] = {}
    for section, content in sections.items():
        _check_known(f"{path}", section, _SECTIONS)
        if not isinstance(content, dict):
            raise DataError(f"{path}: {section}: expected a section, got {content!r}")
        lists = content.pop(_LISTS, {})
        for name, value in content.items():
            where = f"{path}: [{section}]"
            _check_known(where, name, _SECTIONS[section].split())
            listed[f"{section}.{name}"] = _entries(f"{where} {name}", value, lists)
    return listed


def _folder() -> Path:
    return Path(__file__).parent / "languages"


@cache
def _text(code: str) -> str:
    """Return the file of a language; to read it is far quicker than to parse it."""
    return read_text(_folder() / f"{code}.toml")


@cache
def _language(code: str) -> Language:
    return read_language(_folder() / f"{code}.toml")


def _check_known(where: str, name: str, known: Mapping[str, str] | list[str]) -> None:
    if name not in known:
        raise DataError(f"{where}: {name}: expected one of {', '.join(known)}")


def _entries(where: str, value: object, lists: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return words as they are and phrases as regular expressions."""
    if isinstance(value, str):
        return tuple(value.split())
    if not isinstance(value, list) or not all(isinstance(phrase, str) for phrase in value):
        raise DataError(f"{where}: expected words in one text or a list of phrases, got {value!r}")
    return tuple(_regex(where, phrase, lists) for phrase in value)


def _regex(where: str, phrase: str, lists: Mapping[str, list[str]]) -> str:
    def listed(name: re.Match[str]) -> str:
        if name[1] not in lists:
            known = ", ".join(lists) or "none"
            raise DataError(f"{where}: {phrase!r}: expected a list of {known}, got {name[0]}")
        choices = [_regex(where, choice, lists) for choice in lists[name[1]]]
        return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"

    ungrouped = _GROUP.sub(lambda found: "(?:" if found[0] == "(" else found[0], phrase)
    return _NAMED.sub(listed, ungrouped)


def words(text: str) -> list[str]:
    """Return the words of a text, case and compatibility forms folded, in order."""
    folded = _folded(text)
    found: list[str] = _pattern_for(folded).findall(folded)
    return found


def _each_word(text: str) -> Iterator[str]:
    folded = _folded(text)
    return (match.group() for match in _pattern_for(folded).finditer(folded))


def _pattern_for(folded: str) -> re.Pattern[str]:
    """Return the pattern of words; that of the scripts takes milliseconds to compile."""
    return _ASCII_WORD if folded.isascii() else _WORD


def _folded(text: str) -> str:
    return normalize("NFKC", text).casefold().replace("\u2019", "'")


def content_stems(text: str) -> list[str]:
    """Return the stems of the words that carry content, in order."""
    return list(each_content_stem(text))


def each_content_stem(text: str) -> Iterator[str]:
    """Yield the stems of the words that carry content, in order: who needs one reads no more."""
    stop_words = _stop_words()
    return (stem(word) for word in _each_word(text) if word not in stop_words)


def is_stop_word(word: str) -> bool:
    """Whether a word, its case folded, is one that `content_stems` leaves out."""
    return word in _stop_words()


@lru_cache(maxsize=1 << 16)
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
