"""Replies to the prompts about answers: facts, which of them an answer has, and its claims."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragforge.mock.query_replies import shortened

_FACT_SENTENCE = re.compile(r"(?<=[.!?\u3002])\s+|\n+")
_MOST_FACTS = 8
_LONGEST_PART = 300
_WORD = re.compile(r"[^\W\d_]{4,}")
_CLAIM_END = re.compile(
    r"(?<=[.!?])\s+|(?<=[.!?][*_\"')\]\u201d\u2019\u00bb])\s+|\n+"
    r"|(?<=\w[.!?])(?=[*_]*[A-Z])|(?<=[.!?][*_\"')\]\u201d\u2019\u00bb])(?=[*_\"'(]*[A-Z])"
    r"|(?<=[\u3002\uff01\uff1f\uff61\u0964\u061f\u06d4])"
)
"""Rather once too often: claims may be parts of sentences, but no two sentences one claim."""
_LONG_WORD = re.compile(r"[^\W\d_]{7,}|\d+")
"""Words that are too long to be one of those which say nothing."""
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_MOST_CLAIMS = 80


def drawn_facts(expected: str) -> dict[str, Any]:
    """Return the sentences of an expected answer as facts: the first half of them vital."""
    distinct = {
        " ".join(part.split()).casefold().rstrip("."): part
        for part in _parts(expected)
        if any(character.isalnum() for character in part)
    }
    statements = list(distinct.values())[:_MOST_FACTS] or ["It has an answer"]
    vital = (len(statements) + 1) // 2
    return {
        "facts": [
            {"statement": text, "importance": "vital" if number < vital else "okay"}
            for number, text in enumerate(statements)
        ]
    }


def fact_statuses(
    facts: Iterable[object], answer: str, passages: Iterable[object]
) -> dict[str, Any]:
    """Return a status for each fact by the words that the answer shares with it.

    The first part of the answer that shares no word with any fact is a claim.

    Args:
        facts: Objects with id and fact; others are passed over.
        answer: What is graded.
        passages: Texts that a claim may be copied from.
    """
    parts = [part for part in _parts(answer) if any(map(str.isalnum, part))]
    known = [item for item in facts if isinstance(item, Mapping) and "id" in item]
    texts = [str(item.get("fact", "")) for item in known]
    factual_parts = [part for part in parts if any(_shared(part, text) for text in texts)]
    claims = [part for part in parts if part not in factual_parts][:1]
    return {
        "facts": [
            {"id": item["id"], **_status(text, parts)}
            for item, text in zip(known, texts, strict=True)
        ],
        "claims": [
            _fact_claim(part, [text for text in passages if isinstance(text, str)])
            for part in claims
        ],
    }


def _status(fact: str, parts: list[str]) -> dict[str, str]:
    wanted = set(_WORD.findall(fact.lower()))
    best = max(parts, key=lambda part: _shared(part, fact), default="")
    shared = _shared(best, fact)
    same = any(part == fact for part in parts)
    if not shared and not same:
        return {"quote": "", "status": "missing"}
    whole = same or shared == len(wanted)
    return {"quote": fact if same else best, "status": "supported" if whole else "partial"}


def _fact_claim(part: str, passages: list[str]) -> dict[str, Any]:
    held = any(part in text for text in passages)
    return {"claim": part, "quote": part if held else "", "supported": held}


def _shared(part: str, fact: str) -> int:
    return len(set(_WORD.findall(part.lower())) & set(_WORD.findall(fact.lower())))


def _parts(text: str) -> list[str]:
    return [
        shortened(part.strip(), _LONGEST_PART)
        for part in _FACT_SENTENCE.split(text)
        if part.strip()
    ]


def checked_claims(answer: str, passages: Iterable[object]) -> dict[str, Any]:
    """Return each sentence of an answer as a claim, questions as none.

    A claim is supported by the line of the passages that shares the most long words with it.

    Args:
        answer: What is checked.
        passages: Objects with id and text; others are passed over.
    """
    parts = [part.strip() for part in _CLAIM_END.split(answer)]
    distinct = [part for part in dict.fromkeys(parts) if any(map(str.isalnum, part))][:_MOST_CLAIMS]
    lines = [
        (str(item["id"]), line)
        for item in passages
        if isinstance(item, Mapping) and {"id", "text"} <= item.keys()
        for line in str(item["text"]).split("\n")
    ]
    return {
        "claims": [_claim(part, lines) for part in distinct if not part.endswith(_QUESTION_MARKS)],
        "no_claim": [part for part in distinct if part.endswith(_QUESTION_MARKS)],
    }


def _claim(part: str, lines: list[tuple[str, str]]) -> dict[str, Any]:
    words = set(_LONG_WORD.findall(part.lower()))
    shared = [len(words & set(_LONG_WORD.findall(line.lower()))) for _, line in lines]
    most = max(shared, default=0)
    evidence = []
    if most:
        passage, line = lines[shared.index(most)]
        evidence = [{"passage": passage, "quote": line.strip()}]
    return {"claim": part, "evidence": evidence, "supported": bool(evidence)}
