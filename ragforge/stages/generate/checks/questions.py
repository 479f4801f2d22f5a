"""Checks of a question: without any text, with its evidence alone, and of the answer to it.

Without a text: is it clear what is asked, and who knows the answer anyway? With the evidence: does
it give the answer, and which? There the checker sees the quotes and the titles above them, not the
paragraphs around: an item's truth is its quotes, and relevant chunks are found by them in later
versions of the corpus. An answer that needs the sentence before would be called answerable there by
a quote that does not answer. Titles are shown because every chunk has its own, and nobody reads
"The default is 5 seconds" without them. Of that answer and the expected one: do they say the same?
A rule tells where that is certain.
"""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from ragforge.deferred import dataclass, pattern
from ragforge.errors import CallError
from ragforge.records import Difficulty, Provenance, QueryType
from ragforge.records.model import ConfigDict, Model
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.asking import Asker, quoted, upto
from ragforge.stages.generate.checks.batches import (
    MOST,
    Entry,
    Form,
    Item,
    Proof,
    at_most,
    names_something,
)
from ragforge.stages.quotes import find_proof, has_content
from ragforge.stages.values import same_text, say_the_same
from ragforge.stages.visible_text import visible
from ragforge.stages.words import words

Agreement = Literal["agrees", "in part", "differs"]
_MANY_PARTS: frozenset[QueryType] = frozenset(
    {
        "list",
        "procedure",
        "comparison",
        "two_in_one",
        "why",
        "definition",
        "troubleshooting",
        "keyword",
        "ambiguous",
    }
)
"""Types whose answers have parts, or no fixed extent: there "in part" is no sign of a wrong answer.

Of the others the expected answer is one thing. If it says more than the evidence gave an
independent reader, or less, then a right answer of a system would be graded down for it.
"""
_TOKENS_A_PAIR = 120
_NEAR, _FAR = 3, 10
"""Ranks up to which evidence is found at once, and where most retrievers stop."""
_DISTANCE = {"agrees": 0, "in part": 1, "differs": 2}
_BY_POINTS: tuple[Difficulty, ...] = ("easy", "medium", "hard")
LEAST_READINGS = 2
"""Of an ambiguous question."""
_TOKENS_EACH = 220
_QUOTES = pattern(r"\b(?:quotes?|quotations?|evidence)\b", re.IGNORECASE)


class QuestionVerdict(Model):
    """Verdict on one question."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    id: str
    question: Annotated[str, upto(600)]
    readings: Annotated[list[Annotated[str, upto(200)]], at_most(4)]
    missing: Annotated[str, upto(200)]
    clear: Literal["yes", "no"]
    answer: Annotated[str, upto(400)]


class QuestionsReply(Model):
    """Reply schema: one verdict a question."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    questions: Annotated[list[QuestionVerdict], at_most(MOST)]


def question_form(asker: Asker) -> Form[QuestionsReply, QuestionVerdict]:
    """Return the form by which a batch of questions is asked about."""
    return Form(
        asker=asker,
        hole="questions",
        reply_type=QuestionsReply,
        verdicts=lambda reply: reply.questions,
        broken_rule=broken_question,
        tokens_each=_TOKENS_EACH,
    )


def question_entry(item: Item) -> Entry:
    """Return a question as it is shown, without anything that it was written from."""
    fields: dict[str, object] = {
        "kind": "keywords" if item.type == "keyword" else "question",
        "question": visible(item.asked),
    }
    if item.history:
        fields["follow_up"] = visible(item.question)
        fields["said_before"] = [
            {"role": turn.role, "text": visible(turn.text)} for turn in item.history
        ]
    return Entry(item.asked, fields)


def broken_question(verdict: QuestionVerdict) -> str | None:
    """Return the rule that a verdict breaks by itself, None where it breaks none."""
    if not any(has_content(reading) for reading in verdict.readings):
        return "readings is empty; every question can be taken in one way at least"
    is_missing = names_something(verdict.missing)
    if verdict.clear == "yes" and is_missing:
        return 'missing names something, but clear is "yes"'
    if verdict.clear == "no" and not is_missing:
        return 'clear is "no", but missing names nothing'
    if not has_content(verdict.answer):
        return 'answer is empty; write "unknown" where you do not know it'
    return None


def distinct_readings(verdict: QuestionVerdict, question: str) -> list[str]:
    """Return the readings that say something of their own: more than the question, and once."""
    found: dict[tuple[str, ...], str] = {tuple(words(question)): ""}
    for reading in verdict.readings:
        if has_content(reading):
            found.setdefault(tuple(words(reading)), reading)
    return [reading for reading in found.values() if reading]


def known_answer(verdict: QuestionVerdict, question: str) -> str:
    """Return the answer from general knowledge; "" where the model knows none."""
    is_none = same_text(verdict.answer, "unknown") or abstains(verdict.answer, question)
    return "" if is_none else verdict.answer


class EvidenceReply(Model):
    """Reply schema: the quote first, so that the answer follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    quote: Annotated[str, upto(800)]
    premise: Literal["ok", "wrong"]
    answerable: Literal["yes", "no"]
    answer: Annotated[str, upto(800)]

    @property
    def answers(self) -> bool:
        """Whether it says something to the question: an answer, or a correction."""
        return self.answerable == "yes" or self.premise == "wrong"


@dataclass(frozen=True, slots=True)
class Reading:
    """Answer that a checker read from the evidence.

    Args:
        reply: What it said.
        by: Who said it.
    """

    reply: EvidenceReply
    by: Provenance


async def read_evidence(item: Item, proofs: Sequence[Proof], asker: Asker) -> Reading:
    """Return a model's answer from quotes alone.

    Args:
        item: What is asked.
        proofs: What it is asked from; not all of the item's where one is left out.
        asker: A model with the prompt for it.

    Raises:
        CallError: It gave no usable reply, or there is nothing to read.
        EndpointError, BudgetError: Nothing can be asked any more.
    """
    if not proofs:
        raise CallError("error", "the query has no evidence to read")
    quotes = [
        {"titles": [visible(title) for title in proof.titles], "quote": visible(proof.text)}
        for proof in proofs
    ]
    holes = {
        "question": quoted(item.asked),
        "quotes": json.dumps(quotes, ensure_ascii=False),
    }
    found = await asker.ask(
        holes, EvidenceReply, lambda reply: broken_reading(reply, item.asked, proofs)
    )
    return Reading(found.value, asker.provenance(found.reply))


def steps_left_out(proofs: Sequence[Proof]) -> list[tuple[str, list[Proof]]]:
    """Return for each step what it is called and the proofs without it; [] where there is one step.

    Steps are the hops, and where all quotes are of one hop, the quotes.
    """
    hops = sorted({proof.hop for proof in proofs})
    if len(hops) > 1:
        return [(f"hop {hop}", [chunk for chunk in proofs if chunk.hop != hop]) for hop in hops]
    texts = list(dict.fromkeys(proof.text for proof in proofs))
    if len(texts) < 2:
        return []
    return [
        (f"quote {number}", [chunk for chunk in proofs if chunk.text != text])
        for number, text in enumerate(texts, start=1)
    ]


def broken_reading(reply: EvidenceReply, question: str, proofs: Sequence[Proof]) -> str | None:
    """Return the rule that a reply breaks; an answer needs a quote that gives it."""
    # What is known of abstentions speaks of passages.
    told = _QUOTES.sub("passages", reply.answer)
    says_nothing = not has_content(reply.answer) or abstains(told, question)
    if not reply.answers:
        if not says_nothing:
            return 'answer is given, but answerable is "no"'
        return 'quote is given, but answerable is "no"' if reply.quote.strip() else None
    if says_nothing:
        return 'answer gives none, but answerable is "yes" or premise is "wrong"'
    if words(reply.answer) == words(question):
        return "answer repeats the question"
    if not any(find_proof(reply.quote, proof.text) for proof in proofs):
        return "quote does not stand in the quotes as whole words that say something; copy it"
    return None


class PairVerdict(Model):
    """Verdict on one pair of answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    id: str
    question: Annotated[str, upto(600)]
    difference: Annotated[str, upto(300)]
    verdict: Agreement


class PairsReply(Model):
    """Reply schema: one verdict a pair."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    pairs: Annotated[list[PairVerdict], at_most(MOST)]


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that is held against the expected one of its item."""

    item: Item
    answer: str


def pair_form(asker: Asker) -> Form[PairsReply, PairVerdict]:
    """Return the form by which a batch of pairs is asked about."""
    return Form(
        asker=asker,
        hole="pairs",
        reply_type=PairsReply,
        verdicts=lambda reply: reply.pairs,
        broken_rule=_broken_pair,
        tokens_each=_TOKENS_A_PAIR,
    )


def pair_entry(given: GivenAnswer) -> Entry:
    """Return a pair of answers as it is shown; neither is called the expected one."""
    item = given.item
    return Entry(
        item.asked,
        {
            "question": visible(item.asked),
            "one answer": visible(item.expected),
            "other answer": visible(given.answer),
        },
    )


def agrees_by_rule(given: GivenAnswer) -> bool:
    """Whether an answer is the expected one for certain: the same text, or an equal value."""
    return say_the_same(given.item.expected, given.answer, given.item.language)


def _broken_pair(verdict: PairVerdict) -> str | None:
    """Return the rule that a verdict breaks by itself, None where it breaks none."""
    differs = names_something(verdict.difference)
    if verdict.verdict == "agrees" and differs:
        return 'difference names something, but verdict is "agrees"'
    if verdict.verdict != "agrees" and not differs:
        return f'verdict is "{verdict.verdict}", but difference names nothing'
    return None


def is_enough(agreement: Agreement, kind: QueryType | None) -> bool:
    """Whether an independent answer confirms the expected one; see _MANY_PARTS."""
    return agreement == "agrees" or (agreement == "in part" and kind in _MANY_PARTS)


def measured_difficulty(rank: int | None, depth: int, agreement: str) -> Difficulty | None:
    """Return the measured difficulty of a query.

    Two things make a query hard: its evidence is hard to find, and its answer is hard to read off
    the evidence. Evidence in the first 3 ranks counts 0, in the first 10 counts 1, below that 2;
    an independent answer that agrees counts 0, in part 1, one that differs 2. A sum of 0 is easy,
    1 is medium, 2 and more is hard.

    Args:
        rank: Best rank of a chunk with evidence, from 1; None where it is below `depth`.
        depth: Ranks that were looked at; 0 where none were.
        agreement: As in `Measured`.

    Returns:
        None where one of the two is not known: no agreement, or a depth of less than 10 in which
        the evidence was not found.
    """
    distance = _DISTANCE.get(agreement)
    if distance is None or depth < 1 or (rank is None and depth < _FAR):
        return None
    place = _FAR + 1 if rank is None else rank
    points = (place > _NEAR) + (place > _FAR) + distance
    return _BY_POINTS[min(points, 2)]
