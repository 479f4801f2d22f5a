"""Replies to the prompt that takes an answer apart into claims."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SENTENCE = re.compile(
    r"(?<=[.!?])\s+|(?<=[.!?][*_\"')\]\u201d\u2019\u00bb])\s+|\n+"
    r"|(?<=\w[.!?])(?=[*_]*[A-Z])|(?<=[.!?][*_\"')\]\u201d\u2019\u00bb])(?=[*_\"'(]*[A-Z])"
    r"|(?<=[\u3002\uff01\uff1f\uff61\u0964\u061f\u06d4])"
)
"""Rather once too often: claims may be parts of sentences, but no two sentences one claim."""
_TELLING = re.compile(r"[^\W\d_]{7,}|\d+")
"""Words that are too long to be one of those which say nothing."""
_QUESTIONS = ("?", "\uff1f", "\u061f")
_MOST = 80


def checked_claims(answer: str, passages: Iterable[object]) -> dict[str, Any]:
    """Return each sentence of an answer as a claim, questions as none.

    A claim is supported by the line of the passages that shares the most long words with it.

    Args:
        answer: What is checked.
        passages: Objects with id and text; others are passed over.
    """
    parts = [part.strip() for part in _SENTENCE.split(answer)]
    distinct = [part for part in dict.fromkeys(parts) if any(map(str.isalnum, part))][:_MOST]
    lines = [
        (str(item["id"]), line)
        for item in passages
        if isinstance(item, Mapping) and {"id", "text"} <= item.keys()
        for line in str(item["text"]).split("\n")
    ]
    return {
        "claims": [_claim(part, lines) for part in distinct if not part.endswith(_QUESTIONS)],
        "no_claim": [part for part in distinct if part.endswith(_QUESTIONS)],
    }


def _claim(part: str, lines: list[tuple[str, str]]) -> dict[str, Any]:
    words = set(_TELLING.findall(part.lower()))
    shared = [len(words & set(_TELLING.findall(line.lower()))) for _, line in lines]
    most = max(shared, default=0)
    evidence = []
    if most:
        passage, line = lines[shared.index(most)]
        evidence = [{"passage": passage, "quote": line.strip()}]
    return {"claim": part, "evidence": evidence, "supported": bool(evidence)}
