"""The deictic gate: questions that point at a text which their reader does not see.

A question about documents, tables or contexts is a good question; one that takes for granted which
document is meant is not. So a noun alone decides nothing: it is what a text is said to tell, or a
pointer ("this", "above") before or behind it.
"""

import re
from functools import cache
from typing import Final

from ragforge.stages.generate.candidates import Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of
from ragforge.stages.lexicon import all_entries, entries

_ARABIC_MARKS: Final = re.compile("[\u064b-\u0652\u0640]")


def points_away(candidate: Candidate, language: str) -> Rejection | None:
    """Return what of a question points at a text, None where nothing does.

    A follow-up may point at what was said before it; what it stands for may not.
    """
    for text in dict.fromkeys((candidate.question, candidate.asked)):
        found = _pointer(text, language, alone=text == candidate.asked)
        may = text != candidate.asked and found is not None and _said_before().search(found)
        if found is not None and not may:
            return Rejection("deictic", repr(found))
    return None


def _pointer(text: str, language: str, *, alone: bool) -> str | None:
    said = spoken_of(text.replace("\u2019", "'"))
    said = " ".join(_ARABIC_MARKS.sub("", said).split())
    patterns = _patterns(re.split(r"[-_]", language.lower())[0])
    for pattern in (*patterns, *(_backward() if alone else ())):
        found = pattern.search(said)
        if found is not None:
            return found.group().strip()[:60]
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
