"""Replies to the prompts that draw facts from expected answers, and look for them in answers."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SENTENCE = re.compile(r"(?<=[.!?\u3002])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]{4,}")
_MOST_FACTS = 8
_LONGEST = 300


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
    told = [part for part in parts if any(_shared(part, text) for text in texts)]
    claims = [part for part in parts if part not in told][:1]
    return {
        "facts": [
            {"id": item["id"], **_status(text, parts)}
            for item, text in zip(known, texts, strict=True)
        ],
        "claims": [
            _claim(part, [text for text in passages if isinstance(text, str)]) for part in claims
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


def _claim(part: str, passages: list[str]) -> dict[str, Any]:
    held = any(part in text for text in passages)
    return {"claim": part, "quote": part if held else "", "supported": held}


def _shared(part: str, fact: str) -> int:
    return len(set(_WORD.findall(part.lower())) & set(_WORD.findall(fact.lower())))


def _parts(text: str) -> list[str]:
    return [shortened(part.strip(), _LONGEST) for part in _SENTENCE.split(text) if part.strip()]


def shortened(text: str, longest: int) -> str:
    """Return the start of a text up to the end of a word; a longer first word stays whole."""
    found = re.match(rf".{{1,{longest}}}(?!\S)", text, re.DOTALL) or re.match(r"\S*", text)
    assert found is not None
    return found[0].strip()
