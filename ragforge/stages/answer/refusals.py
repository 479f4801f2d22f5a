"""Answers that only say that they have no answer, in many languages, and words of absence.

A false hit hides a right answer from the judge, and a miss costs one call. So an answer abstains
only if each of its sentences says that the speaker does not know, or that the sources do not tell,
or is a courtesy; "is not covered" can be the answer itself.
"""

import re
from functools import cache

from ragforge.deferred import pattern
from ragforge.files.text import normalize
from ragforge.stages.words import SENTENCE_END, all_entries, pattern_of

_MOST_WORDS = 40
"""A longer answer that holds such words says something as well."""
_MOST_CHARS = 300
"""The same for scripts without blanks between words."""

_ENDS = " \t\r\n.!?…\"'*`()[]\u3002\uff01\uff1f"
_NUMBER = pattern(r"\d+")


_ANY = pattern(r"(?<!\\)\.(?=[*+{])")
_CLAUSE = "[^,;:\uff0c\u3001\uff1b\uff1a]"
"""What any text may be in a pattern: behind a comma something else may be said."""


def abstains(answer: str, query: str = "") -> bool:
    """Whether an answer says that it does not know and nothing else, or is empty.

    Args:
        answer: What the system said.
        query: What it was asked; a number that does not come from there is a statement.
    """
    folded = normalize("NFC", answer).replace("\u2019", "'")
    parts = [part.strip(_ENDS) for part in SENTENCE_END.split(folded)]
    sentences = [part for part in parts if part]
    if not sentences:
        return not answer.strip()
    if len(folded.split()) > _MOST_WORDS or len(folded) > _MOST_CHARS:
        return False
    if not speaks_of_absence(folded):
        return False
    if not set(_NUMBER.findall(folded)) <= set(_NUMBER.findall(query)):
        return False
    rests = [_opening().sub("", sentence, count=1) for sentence in sentences]
    if any(pattern_of("abstaining.contrast").search(rest) for rest in rests):
        return False
    silent = [any(pattern.fullmatch(rest) for pattern in _saying_nothing()) for rest in rests]
    polite = [_courtesy().fullmatch(sentence) is not None for sentence in sentences]
    return any(silent) and all(map(max, silent, polite))


@cache
def _saying_nothing() -> tuple[re.Pattern[str], ...]:
    """Return what says nothing; compiled when first needed, which takes a while."""
    return tuple(
        re.compile(_ANY.sub(lambda _: _CLAUSE, phrase), re.IGNORECASE)
        for phrase in all_entries("abstaining.phrases")
    )


@cache
def _opening() -> re.Pattern[str]:
    links = "|".join(all_entries("abstaining.links"))
    return re.compile(rf"{_openings()}[\s,;:.!,。、!\u2013\u2014-]*(?:{links})?", re.IGNORECASE)


@cache
def _courtesy() -> re.Pattern[str]:
    return re.compile("|".join((_openings(), *all_entries("abstaining.courtesies"))), re.IGNORECASE)


def _openings() -> str:
    return f"(?:{'|'.join(all_entries('abstaining.openings'))})"


def speaks_of_absence(text: str) -> bool:
    """Whether a text may say that something is not so, not said or not known.

    All that abstains does, unless it is empty.
    """
    folded = normalize("NFKC", text).replace("\u2019", "'")
    return _absence().search(folded) is not None


@cache
def _absence() -> re.Pattern[str]:
    words, beginnings, within = (
        "|".join(map(re.escape, all_entries(f"absence.{name}")))
        for name in ("words", "beginnings", "within")
    )
    return re.compile(rf"\b(?:{words})\b|\b(?:{beginnings})|{within}", re.IGNORECASE)
