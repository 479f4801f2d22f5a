"""Replies to the prompts that check generated queries; queries of the mock's own mostly pass."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragforge.mock.draws import Draws
from ragforge.mock.query_replies import NEVER, asked_about

_WORD = re.compile(r"\w+")
_KNOWN = 5
"""One question in so many is answered without any text."""


def checked_questions(questions: Iterable[object], draws: Draws) -> dict[str, Any]:
    """Return for each question that it is clear, can be taken in two ways, and is rarely known.

    Args:
        questions: Objects with id and question; others are passed over.
        draws: Advanced.
    """
    return {
        "questions": [
            {
                "id": item["id"],
                "question": item["question"],
                "readings": [f"the use of {item['question']}", f"the name of {item['question']}"],
                "missing": "",
                "clear": "yes",
                "answer": "unknown" if draws.below(_KNOWN) else f"Known is: {item['question']}",
            }
            for item in _objects(questions, "id", "question")
        ]
    }


def answered_from_quotes(question: str, quotes: Iterable[object]) -> dict[str, Any]:
    """Return the quotes as the answer, none where they lack a word that is asked about.

    A question of the mock's own that says "never" is one that takes something wrong for granted.
    """
    texts = [str(item["quote"]) for item in _objects(quotes, "quote")]
    telling = [text for text in texts if any(map(str.isalnum, text))]
    shown = " ".join(texts).lower()
    asked = asked_about(question)
    if not telling or not all(word.lower() in shown for word in asked):
        return {"quote": "", "premise": "ok", "answerable": "no", "answer": ""}
    return {
        "quote": telling[0],
        "premise": "wrong" if asked and NEVER in question else "ok",
        "answerable": "yes",
        "answer": f"It says: {' '.join(texts)}",
    }


def compared_answers(pairs: Iterable[object]) -> dict[str, Any]:
    """Return that two answers agree where they share a word; see `checked_questions`."""
    verdicts = []
    for item in _objects(pairs, "id", "question", "one answer", "other answer"):
        one, other = str(item["one answer"]), str(item["other answer"])
        agrees = one == other or _share_a_word(one, other)
        verdicts.append(
            {
                "id": item["id"],
                "question": item["question"],
                "difference": "" if agrees else "They share no word.",
                "verdict": "agrees" if agrees else "differs",
            }
        )
    return {"pairs": verdicts}


def _share_a_word(one: str, other: str) -> bool:
    """Whether they do; of a script without blanks a word may stand inside a clause."""
    words, others = set(_WORD.findall(one)), set(_WORD.findall(other))
    return bool(words & others) or any(not word.isascii() and word in other for word in words)


def no_answer_found() -> dict[str, Any]:
    """Return that no passage gives the answer."""
    return {"id": "", "quote": "", "found": "no"}


def _objects(items: Iterable[object], *names: str) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping) and set(names) <= item.keys()]
