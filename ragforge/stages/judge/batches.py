"""Pairs judged in batches: texts that read alike once, and several passages in one call.

Such a call is cheaper, and open to what stands beside and before a passage. So each batch is shown
in several orders, every verdict is tied to its passage by an id that cannot be guessed and by the
words it quotes, and what a batch leaves open is asked for alone.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice

from ragforge.deferred import dataclass, random
from ragforge.errors import CallError
from ragforge.llm.chat import ChatReply, DryRunError
from ragforge.records import Failure, Judgment, Provenance, Vote
from ragforge.records.model import ConfigDict, Model
from ragforge.stages.asking import Asker, Way, quoted, quoted_by_id, repeats_data, together
from ragforge.stages.judge.llm import (
    RelevanceReply,
    broken_rule,
    evidence_in,
    find_evidence,
    flagged,
)
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.judge.votes import Ballot, NoQuorumError, in_order, lost_vote, settle
from ragforge.stages.runner import Judge, Sink, Work, Workers, failure_of, pour
from ragforge.stages.visible_text import locate_shown, visible

_TOGETHER = 2000
"""Pairs of one query that are looked at together for equal texts."""

_ROUNDS = 2
"""Times that a batch is asked for what it left out or got wrong, the first included."""
_TOKENS_EACH = 256
"""Room in the reply for each passage beyond the first."""


@dataclass(frozen=True, slots=True)
class SameText:
    """Pairs of one query whose chunks read alike: the first is judged for all."""

    pairs: tuple[Pair, ...]

    @property
    def first(self) -> Pair:
        """The pair that is judged."""
        return self.pairs[0]


@dataclass(frozen=True, slots=True)
class Batch:
    """Distinct texts that are judged for one query in one go."""

    texts: tuple[SameText, ...]

    @property
    def pairs(self) -> list[Pair]:
        """All pairs."""
        return [pair for alike in self.texts for pair in alike.pairs]

    @property
    def key(self) -> str:
        """The ids of the first pair, for its failure record."""
        return self.texts[0].first.key


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """What became of a batch: a judgment a pair, and a failure for each that has no grade."""

    judgments: tuple[Judgment, ...]
    failures: tuple[Failure, ...] = ()


async def judge_batches(
    batches: Iterable[Batch],
    judge: Judge[Batch, JudgedBatch],
    workers: Workers,
    sink: Sink[Judgment],
    *,
    total: int | None,
) -> None:
    """Judge batches, each once; pairs with a failure get a judgment with grade None.

    Args:
        batches: What to judge; taken one at a time.
        judge: Who judges.
        workers: How many batches are in work at once, and who is told.
        sink: Takes judgments and failures as they come.
        total: How many pairs there are, where that is known.

    Raises:
        EndpointError, BudgetError: As the judge raises them; the sink has what was done.
    """
    work: Work[Batch, JudgedBatch] = Work(
        stage="judge",
        key=lambda batch: batch.key,
        do=judge.judge,
        workers=workers,
        size=lambda batch: len(batch.pairs),
        lost=lambda judged: len(judged.failures),
        blank=partial(_unjudged, judge.provenance),
    )
    await pour(batches, work, _Spread(sink), total=total)


@dataclass(frozen=True, slots=True)
class _Spread:
    """A sink for batches that passes on their pairs."""

    inner: Sink[Judgment]

    def result(self, result: JudgedBatch) -> None:
        for judgment in result.judgments:
            self.inner.result(judgment)
        for failure in result.failures:
            self.inner.failure(failure)

    def failure(self, failure: Failure) -> None:
        """Take no note: the blank that follows has the failures of all pairs."""


def _unjudged(judge: Provenance, batch: Batch, failure: Failure) -> JudgedBatch:
    error = CallError(failure.kind, failure.message, failure.raw, call_keys=failure.call_keys)
    return joined([unjudged(judge, alike, error) for alike in batch.texts])


def batches(
    pairs: Iterable[Pair], most: int, singly: Callable[[Pair], bool] = lambda pair: False
) -> Iterator[Batch]:
    """Yield the pairs in batches; those of a query are looked at together while neighbours.

    Texts of a query come in an order that their content decides, so that the batches that are left
    of an interrupted run are the batches of the run.

    Args:
        pairs: Read as batches are taken, _TOGETHER of a query at once.
        most: Distinct texts in a batch.
        singly: Whether a pair is to have a batch of its own.
    """
    for _, group in groupby(pairs, key=lambda pair: (pair.query_id, pair.query)):
        while found := _by_text(islice(group, _TOGETHER)):
            apart = [alike for alike in found if any(map(singly, alike.pairs))]
            yield from (Batch((alike,)) for alike in apart)
            shared = [alike for alike in found if alike not in apart] if apart else found
            if most > 1:
                shared.sort(key=lambda alike: _shuffle_key(alike.first))
            for start in range(0, len(shared), most):
                yield Batch(tuple(shared[start : start + most]))


def for_all(judgment: Judgment, alike: SameText) -> list[Judgment]:
    """Return a judgment and its copies for the pairs whose chunk reads the same."""
    first, *others = alike.pairs
    return [
        judgment,
        *(
            judgment.model_copy(
                update={
                    "chunk_id": pair.chunk_id,
                    "evidence": _in_words_of(pair, judgment.evidence, first),
                    "copied_from": first.chunk_id,
                }
            )
            for pair in others
        ),
    ]


def unjudged(
    provenance: Provenance, alike: SameText, error: CallError, votes: tuple[Vote, ...] = ()
) -> JudgedBatch:
    """Return blank judgments and failures for a text that could not be judged."""
    judgments, failures = [], []
    for pair in alike.pairs:
        failures.append(failure_of("judge", pair.key, error))
        judgments.append(
            Judgment(
                query_id=pair.query_id,
                chunk_id=pair.chunk_id,
                grade=None,
                failure=failures[-1].kind,
                votes=votes,
                copied_from="" if pair is alike.first else alike.first.chunk_id,
                provenance=provenance,
            )
        )
    return JudgedBatch(tuple(judgments), tuple(failures))


def joined(parts: Sequence[JudgedBatch]) -> JudgedBatch:
    """Return judgments and failures of several parts of a batch as one."""
    return JudgedBatch(
        tuple(judgment for part in parts for judgment in part.judgments),
        tuple(failure for part in parts for failure in part.failures),
    )


def _by_text(pairs: Iterable[Pair]) -> list[SameText]:
    by_text: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_text.setdefault(visible(pair.text), []).append(pair)
    return [SameText(tuple(found)) for found in by_text.values()]


def _shuffle_key(pair: Pair) -> bytes:
    return hashlib.sha256(f"{pair.query}\n{visible(pair.text)}".encode("utf-8", "replace")).digest()


def _in_words_of(pair: Pair, evidence: str, first: Pair) -> str:
    """Return evidence as it stands in a text that differs at most in what no reader sees."""
    if pair.text == first.text or not evidence:
        return evidence
    at = locate_shown(evidence, pair.text)
    return pair.text[at.start : at.end] if at else evidence


@dataclass(frozen=True, slots=True)
class OneByOne:
    """A batch judge that has each text judged by itself."""

    alone: Judge[Pair, Judgment]

    @property
    def provenance(self) -> Provenance:
        """That of the judge."""
        return self.alone.provenance

    async def judge(self, batch: Batch) -> JudgedBatch:
        """Return the judgments; see `Judge`."""
        return joined([await self._judged(alike) for alike in batch.texts])

    async def _judged(self, alike: SameText) -> JudgedBatch:
        try:
            judgment = await self.alone.judge(alike.first)
        except NoQuorumError as error:
            return unjudged(self.provenance, alike, error, error.votes)
        return JudgedBatch(tuple(for_all(judgment, alike)))


class BatchVerdict(RelevanceReply):
    """What is said of one passage; the id comes first in the prompt's order."""

    id: str


class BatchReply(Model):
    """What the judge is asked for: one verdict a passage."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    verdicts: list[BatchVerdict]


@dataclass(frozen=True, slots=True)
class _ShownPair:
    """A passage as it is shown in one call."""

    opaque: str
    position: int
    pair: Pair


@dataclass(frozen=True, slots=True)
class BatchedJudge:
    """Judges the passages of a batch together, in several orders.

    Args:
        askers: One a model, with the prompt for batches.
        alone: Judges by itself what the batches leave open.
        permutations: Orders in which each batch is shown.
        name: What stands for all models in provenance.
    """

    askers: tuple[Asker, ...]
    alone: Judge[Pair, Judgment]
    permutations: int
    name: str

    @property
    def provenance(self) -> Provenance:
        """All models under one name, with the prompt they share."""
        return self.askers[0].provenance().model_copy(update={"model": self.name})

    async def judge(self, batch: Batch) -> JudgedBatch:
        """Return the judgments, more than half of the votes cast for each; see `Judge`.

        A text without others beside it is judged alone.
        """
        if len(batch.texts) == 1:
            return await self._alone(batch.texts[0])
        pairs = [alike.first for alike in batch.texts]
        orders = [
            _in_order(asker, pairs, permutation)
            for asker in self.askers
            for permutation in range(self.permutations)
        ]
        outcomes = await together(orders)
        for outcome in outcomes:
            if isinstance(outcome, DryRunError):
                raise outcome
        votes = [one if isinstance(one, dict) else _all_failed(pairs, one) for one in outcomes]
        judged = await together([self._settled(alike, votes) for alike in batch.texts])
        return joined([one for one in judged if isinstance(one, JudgedBatch)])

    async def _settled(
        self, alike: SameText, votes: Sequence[Mapping[str, Ballot | CallError]]
    ) -> JudgedBatch:
        cast = [one[alike.first.chunk_id] for one in votes]
        ballots = [one for one in cast if isinstance(one, Ballot)]
        numbered = enumerate(cast)
        lost = [self._lost(at, one) for at, one in numbered if isinstance(one, CallError)]
        if 2 * len(ballots) <= len(cast):
            return await self._alone(alike, [*(ballot.vote for ballot in ballots), *lost])
        provenance = self.provenance
        if len(cast) == 1:
            key = ballots[0].vote.call_key
            provenance = provenance.model_copy(update={"call_key": key})
        judgment = settle(alike.first, ballots, lost, provenance)
        return JudgedBatch(tuple(for_all(flagged(judgment, alike.first), alike)))

    async def _alone(self, alike: SameText, votes: Sequence[Vote] = ()) -> JudgedBatch:
        """Judge a text by itself; the votes of its batches are kept where that fails too."""
        try:
            judgment = await self.alone.judge(alike.first)
        except DryRunError:
            raise
        except CallError as error:
            own = error.votes if isinstance(error, NoQuorumError) else ()
            return unjudged(self.alone.provenance, alike, error, in_order([*votes, *own]))
        return JudgedBatch(tuple(for_all(judgment, alike)))

    def _lost(self, at: int, error: CallError) -> Vote:
        asker, permutation = self.askers[at // self.permutations], at % self.permutations
        return lost_vote(asker.name, error, permutation=permutation)


def _all_failed(pairs: Sequence[Pair], error: CallError) -> dict[str, Ballot | CallError]:
    return {pair.chunk_id: error for pair in pairs}


async def _in_order(
    asker: Asker, pairs: Sequence[Pair], permutation: int
) -> dict[str, Ballot | CallError]:
    """Return a vote or an error for each pair, by chunk id; only what is missing is asked again."""
    votes: dict[str, Ballot | CallError] = {}
    left = list(pairs)
    missing = CallError("invalid", "the reply leaves out this passage, even when asked again")
    for round_ in range(_ROUNDS):
        passages = _shuffled(left, asker.settings.seed, permutation, round_)
        try:
            verdicts = await _ask(asker, passages, permutation)
        except CallError as error:
            if not votes:
                raise
            missing = error
            break
        # To look through texts that hold no object takes as long as all else.
        scripts = [one for one in passages if "{" in f"{one.pair.query}{one.pair.text}"]
        holes = _batch_holes(scripts) if scripts else {}
        for verdict, reply, passage in verdicts:
            rule = _repetition(verdict, holes) or broken_rule(verdict, passage.pair.text)
            if rule is None:
                votes[passage.pair.chunk_id] = _ballot(asker, verdict, reply, passage, permutation)
            else:
                keys = (reply.key,) if reply.key else ()
                votes[passage.pair.chunk_id] = CallError(
                    "invalid", rule, reply.text, call_keys=keys
                )
        left = [pair for pair in left if not isinstance(votes.get(pair.chunk_id), Ballot)]
        if not left:
            break
    return {pair.chunk_id: votes.get(pair.chunk_id, missing) for pair in pairs}


async def _ask(
    asker: Asker, passages: Sequence[_ShownPair], permutation: int
) -> list[tuple[BatchVerdict, ChatReply, _ShownPair]]:
    by_id = {passage.opaque: passage for passage in passages}
    answered = await asker.ask(
        _batch_holes(passages),
        BatchReply,
        lambda reply: _broken_ids(reply, by_id) or _slipped(reply, by_id),
        Way(permutation=permutation, more_tokens=_TOKENS_EACH * (len(passages) - 1)),
    )
    return [(verdict, answered.reply, by_id[verdict.id]) for verdict in answered.value.verdicts]


def _batch_holes(passages: Sequence[_ShownPair]) -> dict[str, str]:
    """Return the values for the holes of the prompt for a batch, its passages as they are shown."""
    texts = [(passage.opaque, passage.pair.text) for passage in passages]
    return {"query": quoted(passages[0].pair.query), "passages": quoted_by_id(texts, "passage")}


def _repetition(verdict: BatchVerdict, holes: Mapping[str, str]) -> str | None:
    """Return the rule that is broken where a verdict is one that the data holds, but for its id."""
    alone = RelevanceReply.model_construct(**verdict.model_dump(exclude={"id"}))
    if repeats_data(alone, holes, beside=("id",)):
        return "the verdict repeats an object that stands in the data; that is no verdict"
    return None


def _broken_ids(reply: BatchReply, known: Mapping[str, _ShownPair]) -> str | None:
    """Return the rule that the ids break; one that is missing is no reason to doubt the others."""
    ids = [verdict.id for verdict in reply.verdicts]
    unknown = next((each for each in ids if each not in known), None)
    if unknown is not None:
        return f"no passage has the id {unknown!r}; the ids are {', '.join(known)}"
    twice = next((each for each in ids if ids.count(each) > 1), None)
    if twice is not None:
        return f"the id {twice!r} comes twice; each passage gets exactly one verdict"
    return None if ids else "verdicts is empty; each passage gets exactly one verdict"


def _slipped(reply: BatchReply, passages: Mapping[str, _ShownPair]) -> str | None:
    """Return the rule that is broken where a verdict has another passage's id; then none counts."""
    for verdict in reply.verdicts:
        if not verdict.evidence.strip() or _holds(passages[verdict.id], verdict):
            continue
        other = next((each for each in passages.values() if _holds(each, verdict)), None)
        if other is not None:
            return (
                f"the evidence under the id {verdict.id!r} stands in the passage {other.opaque!r}; "
                "each verdict must have the id of its own passage"
            )
    return None


def _holds(passage: _ShownPair, verdict: BatchVerdict) -> bool:
    return find_evidence(verdict.evidence, passage.pair.text) is not None


def _shuffled(pairs: Sequence[Pair], seed: int, permutation: int, round_: int) -> list[_ShownPair]:
    """Return the passages in the order of a permutation, under ids that no text can foresee."""
    content = json.dumps(
        [seed, permutation, round_, pairs[0].query, *(pair.text for pair in pairs)]
    )
    digest = hashlib.sha256(content.encode()).digest()
    order = list(pairs)
    random.Random(digest).shuffle(order)  # an order, not a secret
    drawn = random.Random(digest[::-1])
    ids = [f"{number:05x}" for number in drawn.sample(range(16**5), len(order))]
    return [_ShownPair(*each) for each in zip(ids, range(len(order)), order, strict=True)]


def _ballot(
    asker: Asker, verdict: BatchVerdict, reply: ChatReply, passage: _ShownPair, permutation: int
) -> Ballot:
    vote = Vote(
        model=asker.name,
        grade=verdict.grade,
        permutation=permutation,
        position=passage.position,
        call_key=reply.key,
    )
    evidence = evidence_in(verdict, passage.pair.text)
    return Ballot(vote, verdict.reasoning, evidence, is_mock=reply.is_mock)
