"""A language model as judge: one call a pair, whose reply is checked in code.

It may be shown graded pairs of other queries before, and be asked for several votes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from math import exp
from typing import TYPE_CHECKING, Annotated

from ragforge.corpus.quote_locations import Location, fold
from ragforge.deferred import dataclass
from ragforge.errors import CallError, ConfigError, UsageError
from ragforge.files.text import shown
from ragforge.llm.chat import ChatReply, Message, Numeral
from ragforge.records import Grade, Judgment, Provenance, Vote
from ragforge.records.model import BeforeValidator, ConfigDict, Model, WithJsonSchema
from ragforge.stages.asking import Asker, Way, quoted, together, upto, user_turn
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.judge.tripwires import flags
from ragforge.stages.judge.votes import (
    GRADES,
    Ballot,
    lost_vote,
    refuse_below_quorum,
    settle,
    weighted,
)
from ragforge.stages.quotes import find_proof, is_evidence
from ragforge.stages.visible_text import locate_shown, visible
from ragforge.stages.words import languages_by_word

if TYPE_CHECKING:
    from ragforge.files.formats.pairs import Example
    from ragforge.llm.structured import Structured
    from ragforge.prompts import Prompt

SCHEMA = "relevance"
BARE_SCHEMA = "relevance_grade"
"""Of a prompt that asks for the grade alone."""
ALTERNATIVES = 10
"""Tokens whose probabilities are asked for: the four grades, and room for what is none."""
_LEAST_MASS = 0.9
"""Probability that must lie on the four grades for a weighted grade to be made of them."""
_EVIDENCE_CHARS = 1000
"""How much evidence a grammar lets through; it cuts within a word as well."""
_MOST_MASS = 1.01
_LARGEST_LOGPROB = 100.0
"""More would overflow; it is far from any probability."""

_GRADE_AT = re.compile(r'"grade"\s*:\s*(\d)')
"""Within a string of the reply the quotes would be escaped."""


def _whole(value: object) -> object:
    """Return 2 for 2.0: to a JSON schema both are the same integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_GivenGrade = Annotated[
    Grade,
    BeforeValidator(_whole),
    WithJsonSchema({"type": "integer", "enum": [0, 1, 2, 3]}),
]
"""Not a Literal: that takes true for 1 even when strict."""


class RelevanceReply(Model):
    """What the judge is asked for, reasoning first so that the grade can follow from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    reasoning: Annotated[str, upto(500)]
    evidence: Annotated[str, upto(_EVIDENCE_CHARS)]
    contains_answer: bool
    grade: _GivenGrade


class GradeReply(Model):
    """What a judge too small for reasons is asked for: nothing shows that it read the passage."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    grade: _GivenGrade


def broken_rule(reply: RelevanceReply, text: str) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none.

    Args:
        reply: Well-formed.
        text: The passage it is about.
    """
    if reply.contains_answer != (reply.grade >= 2):
        return (
            f"contains_answer is {str(reply.contains_answer).lower()} but grade is {reply.grade}; "
            "contains_answer is true exactly for grades 2 and 3"
        )
    if reply.grade == 0 and reply.evidence.strip():
        return "grade is 0 but evidence is given"
    if reply.contains_answer and not reply.evidence.strip():
        return "contains_answer is true but evidence is empty"
    if not reply.evidence.strip() or find_evidence(reply.evidence, text) is not None:
        return None
    if locate_shown(reply.evidence, text) is None:
        return "evidence does not occur in the passage; it must be copied exactly"
    return (
        "evidence does not stand in the passage as whole words that say something; copy a phrase "
        "that does, from where a word begins to where one ends"
    )


@lru_cache(maxsize=64)
def find_evidence(evidence: str, text: str) -> Location | None:
    """Return where evidence proves something of a passage; see `is_evidence`.

    What is as long as a grammar lets through may be cut within its last word; that one is left out.
    The last ones are kept: a reply is checked, and then the place of its evidence is asked for.
    """
    at = text.find(evidence)
    if at >= 0 and visible(text) == text:
        # Nearly all evidence is verbatim; folding a text takes a hundred times as long.
        place = Location(at, at + len(evidence))
        if is_evidence(evidence, place, text):
            return place
    found = find_proof(evidence, text, is_evidence)
    if found is not None or len(evidence) < _EVIDENCE_CHARS:
        return found
    whole_words = evidence.rsplit(maxsplit=1)[0]
    if locate_shown(evidence, text) is None:
        return None
    return find_proof(whole_words, text, is_evidence)


def evidence_in(reply: RelevanceReply, text: str) -> str:
    """Return the evidence in the passage's own characters, "" where there is none."""
    at = find_evidence(reply.evidence, text) if reply.evidence.strip() else None
    return text[at.start : at.end] if at else ""


def grade_odds(reply: ChatReply, grade: int) -> tuple[float, ...] | None:
    """Return the probability of each grade at the place where a reply gives its grade.

    None where the endpoint gave no probabilities, none to the grade it said, or less than
    _LEAST_MASS to the grades: what is left without the rest would say little about the grade.

    Args:
        reply: A valid one.
        grade: What it says.
    """
    numeral = _at_grade(reply, grade)
    if numeral is None:
        return None
    mass = _grade_mass(numeral)
    total = sum(mass.values())
    # What sums to more than all, but for rounding, are no probabilities.
    if not _LEAST_MASS <= total <= _MOST_MASS or not mass[grade]:
        return None
    return tuple(mass[grade] / total for grade in GRADES)


def _grade_mass(numeral: Numeral) -> Mapping[int, float]:
    """Return the probability that a model gave each grade, not normalised."""
    mass = dict.fromkeys(GRADES, 0.0)
    for token, logprob in numeral.logprobs:
        if token in {"0", "1", "2", "3"}:
            mass[int(token)] += exp(min(_LARGEST_LOGPROB, logprob))
    return mass


def _at_grade(reply: ChatReply, grade: int) -> Numeral | None:
    places = [found for found in _GRADE_AT.finditer(reply.text) if found[1] == str(grade)]
    if not places:
        return None
    at = places[-1].start(1)
    return next((numeral for numeral in reply.numerals if numeral.at == at), None)


def flagged(judgment: Judgment, pair: Pair) -> Judgment:
    """Return a judgment with the flags of its chunk."""
    found = flags(pair.text)
    return judgment.model_copy(update={"flags": found}) if found else judgment


def holes_of(pair: Pair) -> dict[str, str]:
    """Return the values for the holes of the prompt for a pair."""
    return {"query": quoted(pair.query), "passage": quoted(pair.text)}


@dataclass(frozen=True, slots=True)
class LLMJudge:
    """Judges pairs by asking a model once.

    Args:
        asker: The model with its prompt.
        vote: Which of several independent replies is asked for.
        logprobs: Alternatives to ask for at each token; 0 for none.
    """

    asker: Asker
    vote: int = 0
    logprobs: int = 0

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, pair: Pair) -> Judgment:
        """Return the judgment of a pair; see `Judge`."""
        ballot = await self.ballot(pair)
        provenance = self.provenance.model_copy(update={"call_key": ballot.vote.call_key})
        return flagged(settle(pair, [ballot], (), provenance), pair)

    async def ballot(self, pair: Pair) -> Ballot:
        """Return one vote on a pair.

        Raises:
            CallError, EndpointError, BudgetError: As for `Judge.judge`.
        """
        answered = await self._reply(pair)
        reply = answered.value
        odds = grade_odds(answered.reply, reply.grade)
        vote = Vote(
            model=self.asker.name,
            grade=reply.grade,
            vote=self.vote,
            grade_mean=weighted(odds),
            call_key=answered.reply.key,
        )
        if isinstance(reply, GradeReply):
            return Ballot(vote, "", "", odds, answered.reply.is_mock)
        evidence = evidence_in(reply, pair.text)
        return Ballot(vote, reply.reasoning, evidence, odds, answered.reply.is_mock)

    async def _reply(self, pair: Pair) -> Structured[RelevanceReply] | Structured[GradeReply]:
        holes, way = holes_of(pair), Way(vote=self.vote, logprobs=self.logprobs)
        if self.asker.prompt.schema == BARE_SCHEMA:
            return await self.asker.ask(holes, GradeReply, lambda reply: None, way)
        return await self.asker.ask(
            holes, RelevanceReply, lambda reply: broken_rule(reply, pair.text), way
        )


def build_ahead() -> None:
    """Build what every judgment needs and a process builds once, ahead of the first.

    Processes that are forked then share it.
    """
    from ragforge.llm.structured import reply_schema

    reply_schema(RelevanceReply)
    flags("")
    languages_by_word()


@dataclass(frozen=True, slots=True)
class PollingJudge:
    """Judges pairs by several votes: of several models, or of one that is asked several times.

    Args:
        judges: One a vote; at least two.
        name: What stands for all of them in provenance.
    """

    judges: tuple[LLMJudge, ...]
    name: str

    @property
    def provenance(self) -> Provenance:
        """All models under one name, with the prompt they share."""
        return self.judges[0].provenance.model_copy(update={"model": self.name})

    async def judge(self, pair: Pair) -> Judgment:
        """Return the judgment of a pair, more than half of the votes cast; see `Judge`."""
        outcomes = await together([judge.ballot(pair) for judge in self.judges])
        ballots = [one for one in outcomes if isinstance(one, Ballot)]
        errors = [one for one in outcomes if isinstance(one, CallError)]
        lost = [
            lost_vote(judge.asker.name, outcome, vote=judge.vote)
            for judge, outcome in zip(self.judges, outcomes, strict=True)
            if isinstance(outcome, CallError)
        ]
        refuse_below_quorum(ballots, errors, lost)
        return flagged(settle(pair, ballots, lost, self.provenance), pair)


def example_turns(prompt: Prompt, examples: Iterable[Example]) -> tuple[Message, ...]:
    """Return a user and an assistant turn for each example, to stand behind the system's turn.

    The user's turn is what the judge would be asked about that pair, the assistant's a reply that
    would be accepted, its fields in the order of the schema.

    Raises:
        ConfigError: The prompt does not ask for one pair at a time.
        UsageError: The text of an example holds its own fence.
    """
    if prompt.schema != SCHEMA:
        raise ConfigError(
            f"prompt {prompt.name!r}: has the schema {prompt.schema!r}; examples go with prompts "
            f"for {SCHEMA!r} only"
        )
    return tuple(turn for example in examples for turn in _turns(prompt, example))


def refuse_shared_queries(examples: Iterable[Example], queries: Mapping[str, str]) -> None:
    """Check that no query of the examples is among those to be judged.

    A judge that was shown the grades of a query would be measured on what it was told.

    Args:
        examples: What will be shown.
        queries: Text by id of what is judged.

    Raises:
        UsageError: They share a query: the same id, or the same text but for blanks, case,
            punctuation and compatibility forms.
    """
    by_text = {_folded(text): query_id for query_id, text in queries.items()}
    for example in examples:
        query_id = by_text.get(_folded(example.query))
        if query_id is None and example.query_id and example.query_id in queries:
            query_id = example.query_id
        if query_id is not None:
            raise UsageError(
                f"--examples: query {shown(query_id)} ({shown(example.query)}) is one of those to "
                "be judged; examples must be of other queries"
            )


def examples_sha256(examples: Iterable[Example]) -> str:
    """Return the digest of what the judge is shown; the ids of queries are no part of it."""
    told = [{**asdict(example), "query_id": ""} for example in examples]
    text = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _turns(prompt: Prompt, example: Example) -> tuple[Message, Message]:
    try:
        asked = user_turn(prompt, holes_of(Pair("", example.query, "", example.text)))
    except CallError as error:
        raise UsageError(f"--examples: query {shown(example.query)}: {error}") from error
    reply = RelevanceReply(
        reasoning=visible(example.reasoning),
        evidence=visible(example.evidence),
        contains_answer=example.contains_answer,
        grade=example.grade,
    )
    return asked, Message("assistant", reply.model_dump_json())


def _folded(text: str) -> str:
    """Return the words of a query: a question mark makes no other question."""
    words = re.findall(r"\w+", fold(visible(text)).casefold())
    return " ".join(words) or fold(visible(text))
