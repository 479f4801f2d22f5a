"""What drawn facts must hold to: each stands on its own, and says what the expected answer says."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict

from ragforge.corpus.anchors import fold
from ragforge.records import Query
from ragforge.stages.asking import upto, visible
from ragforge.stages.values import SMALL_NUMBERS
from ragforge.stages.words import content_stems, numbers, words

_SHARED_LETTERS: Final = 4
"""Words that begin alike are taken for forms of one: most languages inflect behind."""
_YES_OR_NO: Final = frozenset(
    "yes no true false correct incorrect right wrong ja nein oui non si sí sim não nee tak nie nej "
    "evet да нет 是 否 对 不 有 没 无 네 예 아니요".split()
)
"""What answers a question without a word of what is asked about."""
_GROUPS: Final = re.compile(r"[0-9]{1,3}(?:[.,][0-9]{3})+")


class StatedFact(BaseModel):
    """One fact as a model states it; its id is assigned by who asks."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    statement: Annotated[str, upto(300)]
    importance: Literal["vital", "okay"]


def tidy(statement: str) -> str:
    """Return a statement as it is kept."""
    return visible(statement).strip()


def broken_rule(facts: Sequence[StatedFact], query: Query) -> str | None:
    """Return the rule that a well-formed list of facts breaks, None where it breaks none.

    Args:
        facts: What a model found in the expected answer.
        query: Has the expected answer.
    """
    seen: set[str] = set()
    for stated in facts:
        text = tidy(stated.statement)
        folded = _plain(text)
        if not any(character.isalnum() for character in folded):
            return "a statement is empty; each fact is a sentence"
        if folded in seen:
            return f"the statement {text!r} comes twice; state each fact once"
        seen.add(folded)
        broken = _broken_statement(text, query)
        if broken is not None:
            return broken
    if all(stated.importance == "okay" for stated in facts):
        return "no fact is vital; at least one must be, for else nothing answers the question"
    return None


def _broken_statement(text: str, query: Query) -> str | None:
    expected = query.expected_answer or ""
    if _plain(text) == _plain(query.asked) != _plain(expected):
        return f"the statement {text!r} is the question; state what the expected answer says"
    known = _amounts(expected) | _amounts(query.asked)
    foreign = sorted(number for number in numbers(text) if known.isdisjoint(_spellings(number)))
    if foreign:
        return (
            f"the statement {text!r} has the number {foreign[0]}, which is not in the expected "
            "answer; state only what it says"
        )
    if not _is_about(text, query.asked, expected):
        return (
            f"the statement {text!r} shares no word with the expected answer; state only what it "
            "says, in its words"
        )
    return None


def _plain(text: str) -> str:
    return fold(text).casefold().rstrip(".?!\u3002\uff1f\uff01 ")


def _is_about(text: str, question: str, expected: str) -> bool:
    """Whether a statement has a content word or number of the expected answer.

    One of the question is enough where the expected answer says yes or no, or has no such words.
    Nothing can be said where the two are in different scripts.
    """
    wanted, spoken = _keys(expected), set(words(expected))
    if not wanted or not spoken.isdisjoint(_YES_OR_NO):
        wanted |= _keys(question)
    given = _keys(text)
    if not wanted or not given or _scripts(text).isdisjoint(_scripts(f"{expected} {question}")):
        return True
    return not wanted.isdisjoint(given)


def _keys(text: str) -> set[str]:
    stems = {stem[:_SHARED_LETTERS] for stem in content_stems(text)}
    return stems - _YES_OR_NO | _amounts(text)


def _amounts(text: str) -> set[str]:
    """Return the numbers of a text in all their readings, small ones also if spelled out."""
    spelled = {str(SMALL_NUMBERS.index(word)) for word in words(text) if word in SMALL_NUMBERS}
    return {reading for number in numbers(text) for reading in _spellings(number)} | spelled


def _spellings(number: str) -> set[str]:
    """Return what a number may be: 1.000 is a thousand or one, 2,50 is 2.5, 03 is 3."""
    readings = {number.replace(",", ".")}
    if _GROUPS.fullmatch(number):
        readings.add(re.sub("[.,]", "", number))
    return {_short(reading) for reading in readings}


def _short(number: str) -> str:
    whole, point, rest = number.partition(".")
    rest = rest.rstrip("0") if "." not in rest else rest
    return (whole.lstrip("0") or "0") + (f"{point}{rest}" if rest else "")


def _scripts(text: str) -> set[str]:
    return {unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha()}
