"""Words that are nearly one that was seen, found without comparing each with each."""

import re
from collections.abc import Iterator
from typing import Final

_FEWEST: Final = 6
"""Shorter words are too near each other: form and from, http and https."""
_WORD: Final = re.compile(r"(?<![\w.])[^\W\d_]{6,}(?![\w.]?\w)")

_VOWELS: Final = frozenset("aeiouyäöüéèáíóú")


class Spellings:
    """The long words that were seen, by what is left of them without one letter."""

    def __init__(self) -> None:
        """Start without any."""
        self._seen: set[str] = set()
        self._without: dict[str, str] = {}

    def add(self, question: str) -> None:
        """Take the words of a question."""
        for word in set(_words(question)) - self._seen:
            self._seen.add(word)
            for key in _keys(word):
                self._without.setdefault(key, word)

    def respelt(self, question: str) -> str:
        """Return a question with each unseen word that is a seen one but for a slip as that one.

        A slip is a vowel or one of two equal letters left out or put in, or two letters turned
        round, but not at the ends, where words are inflected. Any other letter makes another
        word too often: contact and contract.
        """
        return _WORD.sub(lambda found: self._meant(found.group()), question)

    def _meant(self, written: str) -> str:
        word = written.casefold()
        if word in self._seen:
            return written
        for key in _keys(word):
            seen = self._without.get(key)
            if seen is not None and _is_slip(word, seen):
                return seen
        return written


def _words(question: str) -> Iterator[str]:
    return (found.group().casefold() for found in _WORD.finditer(question))


def _keys(word: str) -> Iterator[str]:
    yield word
    yield from (word[:at] + word[at + 1 :] for at in range(1, len(word) - 1))


def _is_slip(one: str, other: str) -> bool:
    if len(one) == len(other):
        apart = [at for at in range(len(one)) if one[at] != other[at]]
        return len(apart) == 2 and one[apart[0]] == other[apart[1]] and one[-1] == other[-1]
    short, long = sorted((one, other), key=len)
    at = next(place for place in range(len(long)) if short[place : place + 1] != long[place])
    more = long[at]
    return 0 < at < len(long) - 1 and (more in _VOWELS or more == long[at - 1])
