"""A language model as judge: one call a pair, checked in code."""

from dataclasses import dataclass

from ragforge.errors import CallError
from ragforge.llm.structured import Structured
from ragforge.records import Judgment, Provenance, Vote
from ragforge.stages.asking import Asker, Way, quoted, together
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.judge.reply import (
    GradeReply,
    RelevanceReply,
    broken_rule,
    evidence_in,
    grade_odds,
)
from ragforge.stages.judge.tripwires import flags
from ragforge.stages.judge.votes import Ballot, lost_vote, refuse_below_quorum, settle, weighted

SCHEMA = "relevance"
BARE_SCHEMA = "relevance_grade"
"""Of a prompt that asks for the grade alone."""
ALTERNATIVES = 10
"""Tokens whose probabilities are asked for: the four grades, and room for what is none."""


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


def holes_of(pair: Pair) -> dict[str, str]:
    """Return the values for the holes of the prompt for a pair."""
    return {"query": quoted(pair.query), "passage": quoted(pair.text)}


def flagged(judgment: Judgment, pair: Pair) -> Judgment:
    """Return a judgment with the flags of its chunk."""
    found = flags(pair.text)
    return judgment.model_copy(update={"flags": found}) if found else judgment
