"""Whether two answers to a question say the same, by rule where that is certain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

from ragforge.records import Difficulty, QueryType
from ragforge.stages.asking import Asker, upto, visible
from ragforge.stages.generate.checks.batches import (
    MOST,
    Entry,
    Form,
    Item,
    at_most,
    names_something,
)
from ragforge.stages.values import say_the_same

Agreement = Literal["agrees", "in part", "differs"]

MANY_PARTS: frozenset[QueryType] = frozenset(
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
_TOKENS_EACH = 120
_NEAR, _FAR = 3, 10
"""Ranks up to which evidence is found at once, and where most retrievers stop."""
_DISTANCE = {"agrees": 0, "in part": 1, "differs": 2}
_BY_POINTS: tuple[Difficulty, ...] = ("easy", "medium", "hard")


class PairVerdict(BaseModel):
    """Verdict on one pair of answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    question: Annotated[str, upto(600)]
    difference: Annotated[str, upto(300)]
    verdict: Agreement


class PairsReply(BaseModel):
    """Reply schema: one verdict a pair."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

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
        verdicts=_verdicts,
        broken_rule=broken_rule,
        tokens_each=_TOKENS_EACH,
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


def broken_rule(verdict: PairVerdict) -> str | None:
    """Return the rule that a verdict breaks by itself, None where it breaks none."""
    differs = names_something(verdict.difference)
    if verdict.verdict == "agrees" and differs:
        return 'difference names something, but verdict is "agrees"'
    if verdict.verdict != "agrees" and not differs:
        return f'verdict is "{verdict.verdict}", but difference names nothing'
    return None


def is_enough(agreement: Agreement, kind: QueryType | None) -> bool:
    """Whether an independent answer confirms the expected one; see MANY_PARTS."""
    return agreement == "agrees" or (agreement == "in part" and kind in MANY_PARTS)


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


def _verdicts(reply: PairsReply) -> Sequence[PairVerdict]:
    return reply.pairs
