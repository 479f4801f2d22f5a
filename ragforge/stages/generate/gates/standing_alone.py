"""Whether a question stands on its own: it points at no text, copies none and gives no answer away.

A question about documents, tables or contexts is a good question; one that takes for granted which
document is meant is not. So a noun alone decides nothing: it is what a text is said to tell, or a
pointer ("this", "above") before or behind it.
"""

import re
from functools import cache, lru_cache
from typing import Final

from ragforge.deferred import pattern
from ragforge.scripts import has_unspaced
from ragforge.stages.generate.candidates import Brief, Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of
from ragforge.stages.words import (
    all_entries,
    content_stems,
    entries,
    function_words,
    pattern_of,
    stem,
    words,
)

_ARABIC_MARKS: Final = pattern("[\u064b-\u0652\u0640]")

_LONGEST_RUN: Final = 9.0
_LONGEST_SHARE: Final = 0.6
_LEAST_RUN: Final = 6.0
"""Shorter runs are names and terms, whatever their share of a short question."""
_CONTENT_WORDS: Final = 3
_IDEOGRAPH_WEIGHT: Final = 0.5
"""Words that a character of a script without blanks stands for; for an alphabet half of it."""
_IDENTIFIER: Final = pattern(
    r"(?<![\w.-])--?[A-Za-z][\w-]+|[A-Za-z]\w{0,60}(?:[_\\@]\w+)+|(?<!_)_+[A-Za-z]\w*|"
    r"(?:[A-Za-z_]\w{0,60}\.)+[A-Za-z_]\w*|\b[A-Za-z]*[a-z][A-Z]\w*"
)


def points_away(candidate: Candidate, language: str) -> Rejection | None:
    """Reject a question that points at a text; None where it does not.

    A follow-up may point at what was said before it; what it stands for may not.
    """
    for text in dict.fromkeys((candidate.question, candidate.asked)):
        pointer = _pointer(text, language, alone=text == candidate.asked)
        may = text != candidate.asked and pointer is not None and _said_before().search(pointer)
        if pointer is not None and not may:
            return Rejection("deictic", repr(pointer))
    return None


def given_away(candidate: Candidate, language: str) -> Rejection | None:
    """Reject a question that says its own answer; None where it does not.

    One of two things that the question offers is no answer given away, and neither is what an
    unanswerable question lacks.
    """
    if candidate.behaviour == "abstain":
        return None
    said = " ".join(words(candidate.answer))
    asked = candidate.asked
    if has_unspaced(said):
        bare = said.replace(" ", "")
        given = len(bare) > 1 and bare in "".join(words(asked))
        share = len(bare) / max(1, len("".join(words(asked))))
    else:
        answer = _content(candidate.answer, language)
        question = _content(asked, language)
        given = bool(answer) and answer <= question
        share = len(answer) / max(1, len(question))
    given = given and _names_all(candidate.answer, asked)
    if not given or (share <= 0.5 and pattern_of("questions.choice").search(asked)):
        return None
    return Rejection("answer_in_question", repr(candidate.answer.strip()[:60]))


def copied_run(candidate: Candidate, brief: Brief) -> Rejection | None:
    """Reject a question with a long run of words of its text; None where runs are short.

    Nine words in a row are too many, and so is more than half of a question, unless it is a name
    in capitals or a keyword query, which has nothing but the words of the text. An error message
    in quotation marks is what users paste.
    """
    question = candidate.asked
    if candidate.type == "troubleshooting":
        question = spoken_of(question)
    asked = words(question)
    weights = [_weight(word) for word in asked]
    for chunk in brief.chunks:
        run = _longest_run(asked, weights, _spaced_words(chunk.text))
        size = sum(weights[run.start : run.stop])
        shared = asked[run.start : run.stop]
        if size >= _LONGEST_RUN or (
            candidate.type != "keyword"
            and size >= max(_LEAST_RUN, _LONGEST_SHARE * sum(weights))
            and not _is_name(shared, question)
        ):
            return Rejection("copied", repr(" ".join(shared)[:80]))
    return None


def _pointer(text: str, language: str, *, alone: bool) -> str | None:
    prose = spoken_of(text.replace("\u2019", "'"))
    prose = " ".join(_ARABIC_MARKS.sub("", prose).split())
    patterns = _patterns(re.split(r"[-_]", language.lower())[0])
    for each in (*patterns, *(_backward() if alone else ())):
        match = each.search(prose)
        if match is not None:
            return match.group().strip()[:60]
    return None


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a language and of English, which models fall back to."""
    phrases = dict.fromkeys((*entries("en", "pointing.away"), *entries(language, "pointing.away")))
    return tuple(re.compile(phrase, re.IGNORECASE) for phrase in phrases)


@cache
def _backward() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of what points at something said before, which a follow-up may."""
    return tuple(re.compile(phrase, re.IGNORECASE) for phrase in all_entries("pointing.back"))


@cache
def _said_before() -> re.Pattern[str]:
    return re.compile("|".join(all_entries("pointing.said_before")), re.IGNORECASE)


def _names_all(answer: str, question: str) -> bool:
    """Whether the identifiers of an answer stand in a question whole: `NO_PROXY` is no proxy."""
    folded = question.casefold()
    return all(
        re.search(rf"(?<![\w.-]){re.escape(name)}(?!\w)", folded)
        for name in (found.group().casefold() for found in _IDENTIFIER.finditer(answer))
    )


def _content(text: str, language: str) -> set[str]:
    known = function_words(re.split(r"[-_]", language.lower())[0])
    return {found for found in content_stems(text) if found not in known}


def _weight(word: str) -> float:
    if not has_unspaced(word):
        return 1.0
    return _IDEOGRAPH_WEIGHT * (1.0 if word >= "\u3040" else len(word) / 2)


def _longest_run(asked: list[str], weights: list[float], text: str) -> range:
    """Return the heaviest run of words that stands in a text of words parted by blanks."""
    best, weight, end = range(0), 0.0, 0
    for start in range(len(asked)):
        end = max(end, start)
        while end < len(asked) and f" {' '.join(asked[start : end + 1])} " in text:
            end += 1
        size = sum(weights[start:end])
        if size > weight:
            best, weight = range(start, end), size
        if end == len(asked):
            break
    return best


@lru_cache(maxsize=256)
def _spaced_words(text: str) -> str:
    return f" {' '.join(words(text))} "


def _is_name(run: list[str], question: str) -> bool:
    """Whether a run is a title, or has too few words that carry content to be a copy."""
    if any(map(has_unspaced, run)):
        return False
    content = {word for word in run if content_stems(word)}
    written = re.findall(r"\w+", question)
    titled = {word.casefold() for word in written[1:] if not word.islower()}
    plain = {word.casefold() for word in written if word.islower() and content_stems(word)}
    return len({stem(word) for word in content}) < _CONTENT_WORDS or (
        content <= titled and bool(plain - content)
    )
