"""Replies to the prompts of ragforge's own stages that pass the checks of those stages.

A stage is known by the fields of its schema; what it asks about is read from the lines of the
prompt that hold data.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ragforge.mock.answer_replies import checked_claims, drawn_facts, fact_statuses
from ragforge.mock.draws import Draws
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

_DATUM = re.compile(
    r"^(query|passage|expected answer|answer|facts|passages|type|difficulty|question|questions"
    r"|quotes|other quotes|pairs): (.+)$",
    re.MULTILINE,
)
_LISTS = frozenset({"facts", "passages", "questions", "quotes", "other quotes", "pairs"})
_DECODER = json.JSONDecoder()
_WORD = re.compile(r"[^\W\d_]{4,}")
_LONGEST_QUOTE = 400
Data = Mapping[str, Any]
Reply = dict[str, Any]


def stage_reply(names: Iterable[str], texts: Iterable[str], draws: Draws) -> Reply | None:
    """Return the reply of a stage, None where the fields are those of no stage.

    Args:
        names: The fields of the reply's schema.
        texts: The user's turns; data is read from the last one that holds any.
        draws: Decides what the prompt does not; advanced.
    """
    there = set(names)
    for fields, reply in _STAGES:
        if fields <= there:
            return reply(_data(texts), draws)
    return None


def _data(texts: Iterable[str]) -> Data:
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


def _relevance(data: Data, draws: Draws) -> Reply:
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


def _grade(data: Data, draws: Draws) -> Reply:
    return {"grade": _relevance(data, draws)["grade"]}


def _batch(data: Data, draws: Draws) -> Reply:
    verdicts = []
    for shown in data.get("passages", []):
        if isinstance(shown, dict):
            one = {"query": data.get("query", ""), "passage": str(shown.get("passage", ""))}
            verdicts.append({"id": str(shown.get("id", "")), **_relevance(one, draws)})
    return {"verdicts": verdicts}


def _verdict(data: Data, draws: Draws) -> Reply:
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


def _facts(data: Data, draws: Draws) -> Reply:
    return drawn_facts(data.get("expected answer", ""))


def _statuses(data: Data, draws: Draws) -> Reply:
    return fact_statuses(data.get("facts", []), data.get("answer", ""), data.get("passages", []))


def _claims(data: Data, draws: Draws) -> Reply:
    return checked_claims(data.get("answer", ""), data.get("passages", []))


def _questions(data: Data, draws: Draws) -> Reply:
    return checked_questions(data.get("questions", []), draws)


def _from_quotes(data: Data, draws: Draws) -> Reply:
    return answered_from_quotes(data.get("question", ""), data.get("quotes", []))


def _pairs(data: Data, draws: Draws) -> Reply:
    return compared_answers(data.get("pairs", []))


def _search(data: Data, draws: Draws) -> Reply:
    return no_answer_found()


def _recheck(data: Data, draws: Draws) -> Reply:
    return rechecked(data, data.get("quotes", []), data.get("other quotes", []))


_STAGES: tuple[tuple[set[str], Callable[[Data, Draws], Reply]], ...] = (
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
)


def _quote(text: str, draws: Draws) -> str:
    """Return one of the lines of a text as it stands there, "" where all are blank."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return shortened(lines[draws.below(len(lines))], _LONGEST_QUOTE) if lines else ""
