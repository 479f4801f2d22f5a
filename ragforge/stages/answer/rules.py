"""What is decided about an answer without a judge: only what is certain."""

import re
import unicodedata
from functools import cache
from typing import Final

from ragforge.files.text import normalize
from ragforge.records import AnswerGrade, Provenance, Query
from ragforge.stages.answer.cases import Case
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.asking import visible
from ragforge.stages.values import Kind, read_value
from ragforge.stages.words import all_entries

_NAME: Final = "answer-rules-1"
_ARTICLES = frozenset({"a", "an", "the"})
_QUANTIFIERS = frozenset({"few", "little"})
"""A few is not few."""
_SHORT = 3
"""Letters of a word whose capitals may tell it from another: US and us, MB and Mb, IT and it."""
_AS_WRITTEN = ("<super>", "<sub>", "<fraction>")
"""Compatibility forms that change what is said when they are folded: 10⁶ is not 106."""
_QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019", '"' * 5 + "''")
_DASHES = str.maketrans({"\u2212": "-", "\u2010": "-", "\u2011": "-", "\u2013": "-"})
_ENDS = re.compile(r"(?<![\s.,;:\u3002])[\s.,;:\u3002]+$|(?<=[^\W\d_]{2})[\s.,;:!\u3002]+$")


@cache
def _absence() -> re.Pattern[str]:
    words, beginnings, within = (
        "|".join(map(re.escape, all_entries(f"absence.{name}")))
        for name in ("words", "beginnings", "within")
    )
    return re.compile(rf"\b(?:{words})\b|\b(?:{beginnings})|{within}", re.IGNORECASE)


def speaks_of_absence(text: str) -> bool:
    """Whether a text may say that something is not so, not said or not known."""
    folded = normalize("NFKC", text).replace("\u2019", "'")
    return _absence().search(folded) is not None


def graded_by_rule(case: Case) -> AnswerGrade | None:
    """Return the grade that needs no judge; None where a judge must read.

    Decided are empty answers, abstentions, and answers that equal the expected one up to how it is
    written. To abstain is correct where the question cannot be answered, else it is no attempt.
    Where the expected answer itself speaks of what is not, not said or not known, a judge
    decides on abstentions. An answer that
    differs from the expected one is left to the judge, however far it is off.
    """
    rule = _matched(case)
    if rule is not None:
        return _grade(case, rule, f"{rule} with the expected answer", is_right=True)
    expected = case.query.expected_answer
    if _is_empty(case.answer, expected):
        rule, what = "empty answer", "is empty"
    elif abstains(case.answer, case.query.asked) and not _reads_alike(case.query, expected):
        rule, what = "abstention", "says that it does not know"
    else:
        return None
    negation = "" if case.query.answerable else " not"
    explanation = f"the answer {what}; the question is{negation} answerable"
    return _grade(case, rule, explanation, is_right=not case.query.answerable)


def same_text(text: str, other: str) -> bool:
    """Whether two texts are the same but for how they are written.

    Compatibility forms, blanks, articles, the capitals of longer words, quotes around and
    punctuation behind it make no difference. Signs do (-5, C++, 1.5), and so does punctuation
    within, which may change what is said: "No, access is free". Texts without a word or number
    are never the same.
    """
    words = _words(text)
    telling = [word for word in words if word not in _ARTICLES and any(map(str.isalnum, word))]
    return bool(telling) and words == _words(other)


def equal_values(expected: str, answer: str, language: str) -> Kind | None:
    """Return what two texts both are, if they are one number, date or quantity, and equal."""
    value = read_value(_folded(expected), language)
    if value is None or read_value(_folded(answer), language) != value:
        return None
    return value.kind


def _matched(case: Case) -> str | None:
    expected = case.query.expected_answer
    if expected is None or not case.query.answerable:
        return None
    if same_text(expected, case.answer):
        return "exact match"
    kind = equal_values(expected, case.answer, case.query.language)
    return None if kind is None else f"equal {kind}"


def _grade(case: Case, rule: str, explanation: str, *, is_right: bool) -> AnswerGrade:
    abstained = rule in ("abstention", "empty answer")
    return AnswerGrade(
        query_id=case.query.query_id,
        verdict="correct" if is_right else "not_attempted",
        score=1.0 if is_right else 0.0,
        has_hallucination=False if abstained else None,
        explanation=explanation,
        rule=rule,
        provenance=Provenance(kind="rule", model=_NAME),
    )


def _reads_alike(query: Query, expected: str | None) -> bool:
    if not query.answerable or expected is None:
        return False
    return speaks_of_absence(expected) or abstains(expected, query.asked)


def _is_empty(answer: str, expected: str | None) -> bool:
    """Whether an answer has nothing to read: blanks, hidden characters and punctuation.

    Where the expected answer is punctuation, that of the answer may be right.
    """
    shown = visible(answer).strip()
    if not shown:
        return True
    marks_count = bool(expected) and not any(map(str.isalnum, expected or ""))
    return not marks_count and all(unicodedata.category(sign)[0] in "PZC" for sign in shown)


def _folded(text: str) -> str:
    """Return a text with its ends, blanks and compatibility forms folded, and case as it is."""
    composed = normalize("NFC", text)
    plain = "".join(
        character
        if unicodedata.decomposition(character).startswith(_AS_WRITTEN)
        else normalize("NFKC", character)
        for character in composed
    )
    spaced = " ".join(plain.translate(_QUOTES).translate(_DASHES).split())
    bare = _ENDS.sub("", spaced)
    if len(bare) > 2 and bare[0] == bare[-1] and bare[0] in "\"'" and bare.count(bare[0]) == 2:
        bare = _ENDS.sub("", bare[1:-1].strip())
    return bare


def _words(text: str) -> list[str]:
    words = [_without_case(word, at) for at, word in enumerate(_folded(text).split())]
    return [word for at, word in enumerate(words) if not _is_mere_article(words, at)]


def _is_mere_article(words: list[str], at: int) -> bool:
    """Whether leaving a word out changes nothing; the A of "vitamin A deficiency" does."""
    follows = words[at + 1] if at + 1 < len(words) else None
    if follows is None or follows in _QUANTIFIERS:
        return False
    return words[at] == "the" or (at == 0 and words[at] in _ARTICLES)


def _without_case(word: str, at: int) -> str:
    """Return a word in small letters where its capitals cannot matter."""
    letters = sum(character.isalpha() for character in word)
    folded = word.casefold()
    if letters > _SHORT and not any(map(str.isdigit, word)):
        return folded
    begins_sentence = at == 0 and letters > 1 and word.istitle()
    return folded if begins_sentence or folded in ("yes", "no", "the") else word
