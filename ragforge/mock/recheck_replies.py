"""Replies to the prompt that checks an answer again: read off the sentences that are shown."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragforge.mock.fact_replies import shortened
from ragforge.mock.query_replies import asked_about

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_WORD = re.compile(r"[^\W\d_]{4,}|\d+(?:[.,:]\d+)*")
_ALIKE: Final = 0.6
"""Share of common words from which on two sentences say something of the same."""
_ASKED: Final = 0.75
"""Share of the words of a question from which on a sentence is about it."""
_LEAST_ASKED: Final = 2
_LONGEST: Final = 400
_NONE: Final = {"quote": "", "verdict": "none", "answer": ""}


def rechecked(
    data: Mapping[str, Any], quotes: Iterable[object], others: Iterable[object]
) -> dict[str, Any]:
    """Return how an answer stands by the sentence that is most like what proved it, or is asked.

    It is the same where that sentence has all telling words of the expected answer that the old
    quotes had, numbers above all; another one where it has not.

    Args:
        data: The question, the expected answer and the passages.
        quotes: What proved it before.
        others: Quotes that prove something else.
    """
    old = [str(quote) for quote in quotes]
    left_out = {_folded(str(other)) for other in others}
    texts = [
        str(item["text"])
        for item in data.get("passages", [])
        if isinstance(item, Mapping) and "text" in item
    ]
    standing = [one for one in old if any(_folded(one) in _folded(text) for text in texts)]
    asked = _Asked(data.get("question", ""), data.get("expected answer", ""), old, standing)
    if standing:
        return asked.verdict(standing[0])
    sentences = [one for one in _sentences(texts) if _folded(one) not in left_out]
    best = max(sentences, key=asked.likeness, default="")
    if best and asked.likeness(best) >= _ALIKE:
        return asked.verdict(best)
    best = max(sentences, key=asked.nearness, default="")
    if best and asked.nearness(best) >= _ASKED:
        found = asked.verdict(best, is_alike=False)
        # A question of the mock's own is about three words, and has no answer but its quote.
        return dict(_NONE) if found["verdict"] == "changed" and asked.is_own else found
    return dict(_NONE)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is looked for."""

    question: str
    expected: str
    quotes: list[str]
    standing: list[str]

    @property
    def is_own(self) -> bool:
        """Whether the mock made up the question."""
        return bool(asked_about(self.question))

    def likeness(self, sentence: str) -> float:
        """Return the largest share of words that an old quote and a sentence have in common."""
        held = _words(sentence)
        known = [words for words in map(_words, self.quotes) if words]
        return max((len(one & held) / max(len(one), len(held)) for one in known), default=0.0)

    def nearness(self, sentence: str) -> float:
        """Return the share of the words of the question that a sentence has."""
        words = _words(" ".join(asked_about(self.question)) or self.question)
        return len(words & _words(sentence)) / len(words) if len(words) >= _LEAST_ASKED else 0.0

    def verdict(self, sentence: str, *, is_alike: bool = True) -> dict[str, Any]:
        """Return what a sentence says of the answer."""
        quote = shortened(sentence, _LONGEST)
        known = _words(" ".join(self.quotes))
        # A step of an answer may have no word of it: then its own figures must still be there.
        of_quotes = _words(self.expected) & known or {word for word in known if word[0].isdigit()}
        telling = of_quotes if is_alike else of_quotes or _words(self.expected)
        figures = {word for word in telling if word[0].isdigit()}
        if (figures or telling) <= _words(" ".join([sentence, *self.standing])):
            return {"quote": quote, "verdict": "same", "answer": ""}
        return {"quote": quote, "verdict": "changed", "answer": f"It says: {quote}"}


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (part for part in _SENTENCE.split(text) if part.strip())


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _folded(text: str) -> str:
    return " ".join(text.split())
