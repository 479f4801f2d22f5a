"""Replies to the prompts of ragforge's own stages that pass the checks of those stages.

A stage is known by the fields of its schema; what it asks about is read from the lines of the
prompt that hold data.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ragforge.mock.query_replies import (
    answered_from_quotes,
    checked_questions,
    compared_answers,
    no_answer_found,
    rechecked,
    shortened,
    written_follow_ups,
    written_near_misses,
    written_queries,
)
from ragforge.mock.script import Draws
from ragforge.mock.weaknesses import Weakness, fooled_reply

_FACT_SENTENCE = re.compile(r"(?<=[.!?\u3002])\s+|\n+")
_MOST_FACTS = 8
_LONGEST_PART = 300
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
_DATUM = re.compile(
    r"^(query|passage|expected answer|answer|facts|passages|type|difficulty|question|questions"
    r"|quotes|other quotes|pairs): (.+)$",
    re.MULTILINE,
)
_LISTS = frozenset({"facts", "passages", "questions", "quotes", "other quotes", "pairs"})
_DECODER = json.JSONDecoder()
_WORD = re.compile(r"[^\W\d_]{4,}")
_SHORT_WORD = re.compile(r"[^\W\d_]{2}|\d\d")
_LEAST_LONG = 4
_LONGEST_QUOTE = 400
_Data = Mapping[str, Any]
Reply = dict[str, Any]


def stage_reply(
    names: Iterable[str],
    texts: Iterable[str],
    draws: Draws,
    weaknesses: Collection[Weakness] = (),
) -> Reply | None:
    """Return the reply of a stage, None where the fields are those of no stage.

    Args:
        names: The fields of the reply's schema.
        texts: The user's turns; data is read from the last one that holds any.
        draws: Decides what the prompt does not; advanced.
        weaknesses: What a judge of single passages falls for.
    """
    there = set(names)
    for fields, reply in _STAGES:
        if fields <= there:
            data = _data(texts)
            found = reply(data, draws)
            if not weaknesses:
                return found
            return fooled_reply(found, data.get("query", ""), data.get("passage", ""), weaknesses)
    return None


def _data(texts: Iterable[str]) -> _Data:
    for text in reversed(list(texts)):
        data = {}
        for name, value in _DATUM.findall(text):
            try:
                data[name] = _DECODER.decode(value)
            except (ValueError, RecursionError):
                continue
        if data:
            return {
                name: value
                for name, value in data.items()
                if isinstance(value, list if name in _LISTS else str)
            }
    return {}


def _relevance(data: _Data, draws: Draws) -> Reply:
    passage = data.get("passage", "")
    folded = passage.lower()
    asked = set(_WORD.findall(data.get("query", "").lower()))
    shared = sum(word in folded for word in asked)
    quote = _quote(passage, draws)
    # As sparse as relevance is: a chunk that shares a word or two is on the topic at most.
    most = 3 if quote else 1
    grade = min(most, max(int(4 * shared / max(1, len(asked))), int(shared > 0)))
    return {
        "reasoning": f"The passage holds {shared} of {len(asked)} words of the query.",
        "evidence": quote if grade >= 2 else "",
        "contains_answer": grade >= 2,
        "grade": grade,
    }


def _grade(data: _Data, draws: Draws) -> Reply:
    return {"grade": _relevance(data, draws)["grade"]}


def _batch(data: _Data, draws: Draws) -> Reply:
    verdicts = []
    for shown in data.get("passages", []):
        if isinstance(shown, dict):
            one = {"query": data.get("query", ""), "passage": str(shown.get("passage", ""))}
            verdicts.append({"id": str(shown.get("id", "")), **_relevance(one, draws)})
    return {"verdicts": verdicts}


def _verdict(data: _Data, draws: Draws) -> Reply:
    expected, answer = data.get("expected answer", ""), data.get("answer", "")
    wanted, given = set(_WORD.findall(expected.lower())), set(_WORD.findall(answer.lower()))
    unsupported = []
    if expected == answer:
        verdict = "correct"
    elif not answer.strip():
        verdict = "not_attempted"
    elif wanted & given:
        verdict = "partial"
    else:
        verdict = "incorrect"
        quote = _quote(answer, draws)
        unsupported = [quote] if any(map(str.isalnum, quote)) else []
    return {
        "explanation": f"The answer holds {len(wanted & given)} of {len(wanted)} expected words.",
        "unsupported": unsupported,
        "verdict": verdict,
    }


def _facts(data: _Data, draws: Draws) -> Reply:
    return _drawn_facts(data.get("expected answer", ""))


def _statuses(data: _Data, draws: Draws) -> Reply:
    return _fact_statuses(data.get("facts", []), data.get("answer", ""), data.get("passages", []))


def _claims(data: _Data, draws: Draws) -> Reply:
    return _checked_claims(data.get("answer", ""), data.get("passages", []))


def _questions(data: _Data, draws: Draws) -> Reply:
    return checked_questions(data.get("questions", []), draws)


def _from_quotes(data: _Data, draws: Draws) -> Reply:
    return answered_from_quotes(data.get("question", ""), data.get("quotes", []))


def _pairs(data: _Data, draws: Draws) -> Reply:
    return compared_answers(data.get("pairs", []))


def _search(data: _Data, draws: Draws) -> Reply:
    return no_answer_found()


def _read(data: _Data, draws: Draws) -> Reply:
    """Answer by the line that shares the most words with the question."""
    asked = data.get("question", "")
    lines = [line for text in data.get("passages", []) for line in str(text).splitlines()]
    best = max(lines, key=lambda line: _shared(line, asked), default="")
    found = best.strip() if _shared(best, asked) else ""
    return {"answer": shortened(found, _LONGEST_QUOTE) or "I do not know."}


def _recheck(data: _Data, draws: Draws) -> Reply:
    return rechecked(data, data.get("quotes", []), data.get("other quotes", []))


_STAGES: tuple[tuple[set[str], Callable[[_Data, Draws], Reply]], ...] = (
    ({"grade", "evidence", "contains_answer"}, _relevance),
    ({"grade"}, _grade),
    ({"verdicts"}, _batch),
    ({"candidates"}, written_queries),
    ({"follow_ups"}, written_follow_ups),
    ({"near_misses"}, written_near_misses),
    ({"verdict", "unsupported"}, _verdict),
    ({"questions"}, _questions),
    ({"premise", "answerable"}, _from_quotes),
    ({"pairs"}, _pairs),
    ({"found", "quote"}, _search),
    ({"quote", "verdict", "answer"}, _recheck),
    ({"claims", "no_claim"}, _claims),
    ({"facts", "claims"}, _statuses),
    ({"facts"}, _facts),
    ({"answer"}, _read),
)


def _quote(text: str, draws: Draws) -> str:
    """Return one of the lines of a text as it stands there, "" where none has a word.

    Where the one that is drawn says nothing, as "```" and "..." do, it is the next that does: a
    judge refuses such evidence.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    first = draws.below(len(lines)) if lines else 0
    quotes = [shortened(line, _LONGEST_QUOTE) for line in (*lines[first:], *lines[:first])]
    for is_telling in (_tells, _SHORT_WORD.search):
        found = next(filter(is_telling, quotes), "")
        if found:
            return found
    return ""


def _tells(quote: str) -> bool:
    """Whether a quote has a word that is hardly one of grammar alone: a long one, or two."""
    words = set(_WORD.findall(quote.lower()))
    return len(words) > 1 or any(len(word) > _LEAST_LONG for word in words)


def _drawn_facts(expected: str) -> dict[str, Any]:
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


def _fact_statuses(
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


def _checked_claims(answer: str, passages: Iterable[object]) -> dict[str, Any]:
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
