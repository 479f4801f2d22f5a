"""Replies to the prompts of ragforge's own stages that pass the checks of those stages.

A stage is known by the fields of its schema; what it asks about is read from the lines of the
prompt that hold data.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragforge.mock.draws import Draws
from ragforge.mock.query_replies import (
    NEVER,
    asked_about,
    drawn_facts,
    fact_statuses,
    shortened,
    written_follow_ups,
    written_near_misses,
    written_queries,
)

_SENTENCE_OR_LINE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_WORD_OR_NUMBER = re.compile(r"[^\W\d_]{4,}|\d+(?:[.,:]\d+)*")
_ALIKE: Final = 0.6
"""Share of common words from which on two sentences say something of the same."""
_ASKED: Final = 0.75
"""Share of the words of a question from which on a sentence is about it."""
_LEAST_ASKED: Final = 2
_LONGEST: Final = 400
_NONE: Final = {"quote": "", "verdict": "none", "answer": ""}

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
_ANY_WORD = re.compile(r"\w+")
_KNOWN = 5
"""One question in so many is answered without any text."""
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


def rechecked(
    data: Mapping[str, Any], quotes: Iterable[object], others: Iterable[object]
) -> dict[str, Any]:
    """Return how an answer stands by the sentence that is most like what proved it, or is asked.

    It is the same where that sentence has all telling words of the expected answer that the old
    quotes had, numbers above all; another one where it has not.

    Args:
        data: The question, the expected answer and the passages.
        quotes: What proved it before.
        others: Quotes that prove something else.
    """
    old = [str(quote) for quote in quotes]
    left_out = {_folded(str(other)) for other in others}
    texts = [
        str(item["text"])
        for item in data.get("passages", [])
        if isinstance(item, Mapping) and "text" in item
    ]
    standing = [one for one in old if any(_folded(one) in _folded(text) for text in texts)]
    asked = _Asked(data.get("question", ""), data.get("expected answer", ""), old, standing)
    if standing:
        return asked.verdict(standing[0])
    sentences = [one for one in _sentences(texts) if _folded(one) not in left_out]
    best = max(sentences, key=asked.likeness, default="")
    if best and asked.likeness(best) >= _ALIKE:
        return asked.verdict(best)
    best = max(sentences, key=asked.nearness, default="")
    if best and asked.nearness(best) >= _ASKED:
        verdict = asked.verdict(best, is_alike=False)
        # A question of the mock's own is about three words, and has no answer but its quote.
        return dict(_NONE) if verdict["verdict"] == "changed" and asked.is_own else verdict
    return dict(_NONE)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is looked for."""

    question: str
    expected: str
    quotes: list[str]
    standing: list[str]

    @property
    def is_own(self) -> bool:
        """Whether the mock made up the question."""
        return bool(asked_about(self.question))

    def likeness(self, sentence: str) -> float:
        """Return the largest share of words that an old quote and a sentence have in common."""
        held = _words(sentence)
        known = [words for words in map(_words, self.quotes) if words]
        return max((len(one & held) / max(len(one), len(held)) for one in known), default=0.0)

    def nearness(self, sentence: str) -> float:
        """Return the share of the words of the question that a sentence has."""
        words = _words(" ".join(asked_about(self.question)) or self.question)
        return len(words & _words(sentence)) / len(words) if len(words) >= _LEAST_ASKED else 0.0

    def verdict(self, sentence: str, *, is_alike: bool = True) -> dict[str, Any]:
        """Return the verdict on the answer by a sentence."""
        quote = shortened(sentence, _LONGEST)
        known = _words(" ".join(self.quotes))
        # A step of an answer may have no word of it: then its own figures must still be there.
        of_quotes = _words(self.expected) & known or {word for word in known if word[0].isdigit()}
        telling = of_quotes if is_alike else of_quotes or _words(self.expected)
        figures = {word for word in telling if word[0].isdigit()}
        if (figures or telling) <= _words(" ".join([sentence, *self.standing])):
            return {"quote": quote, "verdict": "same", "answer": ""}
        return {"quote": quote, "verdict": "changed", "answer": f"It says: {quote}"}


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (part for part in _SENTENCE_OR_LINE.split(text) if part.strip())


def _words(text: str) -> set[str]:
    return set(_WORD_OR_NUMBER.findall(text.lower()))


def _folded(text: str) -> str:
    return " ".join(text.split())


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
    words, others = set(_ANY_WORD.findall(one)), set(_ANY_WORD.findall(other))
    return bool(words & others) or any(not word.isascii() and word in other for word in words)


def no_answer_found() -> dict[str, Any]:
    """Return that no passage gives the answer."""
    return {"id": "", "quote": "", "found": "no"}


def _objects(items: Iterable[object], *names: str) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping) and set(names) <= item.keys()]


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
