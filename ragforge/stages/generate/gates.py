"""Gates: what a candidate must pass. Each rejection has a code."""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from ragforge.records import Chunk, Evidence
from ragforge.stages.asking import locate_shown
from ragforge.stages.generate.candidates import Candidate
from ragforge.stages.words import content_stems, words

Code = Literal[
    "evidence_not_found",
    "question_length",
    "answer_empty",
    "answer_in_question",
    "deictic",
    "copied",
    "duplicate",
]

_DEICTIC = re.compile(
    r"\b(?:according to|in|from|by|of|does)\s+(?:the|this|that)\s+"
    r"(?:given\s+|above\s+|provided\s+)?"
    r"(?:passage|text|document|excerpt|paragraph|snippet|context|section|chunk|table)\b|"
    r"\b(?:the|this)\s+(?:passage|excerpt|snippet|chunk)\b|\bmentioned (?:above|below|here)\b",
    re.IGNORECASE,
)
_SHORTEST, _LONGEST = 6, 400
_COPIED_RUN = 9
"""Words in a row that a question may share with its chunk, less one."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A candidate that passed, with its evidence as it stands in the chunk."""

    candidate: Candidate
    evidence: Evidence


def check(candidate: Candidate, chunk: Chunk, taken: Container[str]) -> Passed | Code:
    """Return the candidate with its evidence anchored, or the code of the first gate it fails.

    Args:
        candidate: What was proposed.
        chunk: What it was proposed for.
        taken: Normalised questions that are accepted already.
    """
    found = locate_shown(candidate.evidence, chunk.text)
    if found is None:
        return "evidence_not_found"
    if not _SHORTEST <= len(candidate.question) <= _LONGEST:
        return "question_length"
    if not candidate.answer.strip():
        return "answer_empty"
    if _given_away(candidate):
        return "answer_in_question"
    if _DEICTIC.search(candidate.question):
        return "deictic"
    if _copied(candidate.question, chunk.text):
        return "copied"
    if normal_question(candidate.question) in taken:
        return "duplicate"
    known = chunk.end > chunk.start
    evidence = Evidence(
        doc_id=chunk.doc_id,
        chunk_id=chunk.chunk_id,
        quote=chunk.text[found.start : found.end],
        start=chunk.start + found.start if known else None,
        end=chunk.start + found.end if known else None,
    )
    return Passed(candidate, evidence)


def normal_question(question: str) -> str:
    """Return what two questions share when they are the same but for case and punctuation."""
    return " ".join(words(question))


def _given_away(candidate: Candidate) -> bool:
    answer = set(content_stems(candidate.answer)) or set(words(candidate.answer))
    return bool(answer) and answer <= set(content_stems(candidate.question))


def _copied(question: str, text: str) -> bool:
    asked, told = words(question), f" {' '.join(words(text))} "
    runs = range(max(1, len(asked) - _COPIED_RUN + 1))
    return len(asked) >= _COPIED_RUN and any(
        f" {' '.join(asked[start : start + _COPIED_RUN])} " in told for start in runs
    )
