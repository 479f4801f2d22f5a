"""All checks of a window of candidates, the cheapest first; who fails one is spared the others.

What needs no text of its own is asked for several candidates at once. The batches follow from the
order of the candidates, so that a rerun asks the same and finds the replies in the call store.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import field
from math import ceil
from typing import Literal, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.records import Failure, Gate, GateResult, Measured, Provenance, QueryType
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Anchored, Rejection
from ragforge.stages.generate.checks.absence import Corpus, near, search
from ragforge.stages.generate.checks.batches import (
    MOST,
    Entry,
    Form,
    Item,
    R,
    SignedVerdict,
    V,
    ask_batch,
    batches,
    item_of,
)
from ragforge.stages.generate.checks.questions import (
    LEAST_READINGS,
    GivenAnswer,
    PairVerdict,
    agrees_by_rule,
    distinct_readings,
    is_enough,
    known_answer,
    pair_entry,
    pair_form,
    question_entry,
    question_form,
    read_evidence,
    steps_left_out,
)
from ragforge.stages.runner import Outcome, Work, Workers, failure_of, run
from ragforge.stages.visible_text import visible

U = TypeVar("U")
D = TypeVar("D")

PROMPTS = ("check_question", "check_answer", "compare_answers", "find_answer")
"""Prompts that the checks ask with, in the order of the fields of `Askers`."""

_LONGEST_REASON = 300
"""Characters; a reason is what a model said, and no model is bound to be brief."""


@dataclass(frozen=True, slots=True)
class CheckedCandidate:
    """Verdicts of the gates on a candidate.

    Args:
        gates: Those that were tried, in their order; behind one that is not passed none is.
        passed: Whether all its gates are there and passed.
        measured: Labels: closed-book success and agreement. Ranks and difficulty are not known
            here.
        call_keys: Keys of the replies that say so, sorted.
        failures: Calls that gave nothing, each of them why a gate or label is unknown.
    """

    gates: tuple[GateResult, ...]
    passed: bool
    measured: Measured
    call_keys: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def rejection(self) -> Rejection | None:
        """Why it is stopped, `GATE_fail` or `GATE_unknown`; None where it passed."""
        for result in self.gates:
            if result.verdict != "pass":
                return Rejection(f"{result.gate}_{result.verdict}", result.reason)
        return None if self.passed else Rejection("check_unknown", "not all gates were tried")


@dataclass(slots=True, eq=False)
class GateProgress:
    """A candidate under way through its gates.

    Args:
        item: What is checked.
        results: Of the gates tried so far.
        known: The answer from general knowledge; "" where there is none.
        given: The answer from the evidence alone; "" before it is read.
        read_by: Who gave that answer.
        agreement: How that compares with the expected answer.
        closed_book: Whether general knowledge gives the expected answer.
        call_keys: Of the replies so far.
        failures: Of the calls so far.
    """

    item: Item
    results: list[GateResult] = field(default_factory=list)
    known: str = ""
    given: str = ""
    read_by: Provenance | None = None
    agreement: Literal["agrees", "in part", "differs", "unknown"] = "unknown"
    closed_book: Literal["solved", "not solved", "unknown"] = "unknown"
    call_keys: set[str] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)

    @property
    def next_gate(self) -> Gate | None:
        """The gate that is to be tried now; None where all are passed, or one is not."""
        if any(result.verdict != "pass" for result in self.results):
            return None
        left = self.item.gates[len(self.results) :]
        return left[0] if left else None

    @property
    def has_passed(self) -> bool:
        """Whether every gate is passed."""
        verdicts = [(result.gate, result.verdict) for result in self.results]
        return verdicts == [(gate, "pass") for gate in self.item.gates]

    def settle(self, is_passed: bool, why_not: str, by: Provenance | None) -> None:
        """Take the verdict on the next gate.

        Args:
            is_passed: Whether it is passed.
            why_not: The reason where it is not.
            by: Who says so.
        """
        if is_passed:
            self._add("pass", "", by)
        else:
            self._add("fail", why_not, by)

    def failed(self, failure: Failure) -> None:
        """Note that nobody can say whether the next gate is passed."""
        self._add("unknown", f"{failure.kind}: {failure.message}", None)
        self.failures.append(failure)

    def checked(self) -> CheckedCandidate:
        """Return how it ended."""
        return CheckedCandidate(
            gates=tuple(self.results),
            passed=self.has_passed,
            measured=Measured(closed_book=self.closed_book, agreement=self.agreement),
            call_keys=tuple(sorted(self.call_keys - {""})),
            failures=tuple(self.failures),
        )

    def _add(
        self, verdict: Literal["pass", "fail", "unknown"], reason: str, by: Provenance | None
    ) -> None:
        gate = self.next_gate
        assert gate is not None
        if by is not None:
            self.call_keys.add(by.call_key)
        told = " ".join(visible(reason).split())[:_LONGEST_REASON]
        self.results.append(GateResult(gate=gate, verdict=verdict, reason=told, by=by))


@dataclass(frozen=True, slots=True)
class Askers:
    """The checking model with each of the prompts.

    Args:
        question: Sees questions alone.
        answer: Sees a question with quotes.
        compare: Sees pairs of answers.
        find: Sees a question with passages.
    """

    question: Asker
    answer: Asker
    compare: Asker
    find: Asker


def askers(make: Callable[[str], Asker]) -> Askers:
    """Return the askers of all checks.

    Args:
        make: Returns the model with the prompt of a name.
    """
    return Askers(*(make(name) for name in PROMPTS))


def calls_for(types: Iterable[QueryType]) -> int:
    """Return the number of calls that the checks of a window of candidates take.

    That is if all pass, each reply is usable, no rule compares an answer and a model knows all of
    them without a text; a multi-hop query counts as one of two hops.
    """
    counts = Counter(types)
    unanswerable = counts["unanswerable"]
    read = counts.total() - unanswerable
    hops = 2 * (counts["multi_hop"] + counts["multi_hop_across"])
    return ceil(counts.total() / MOST) + read + 2 * ceil(read / MOST) + hops + unanswerable


@dataclass(frozen=True, slots=True)
class Checks:
    """How candidates are checked.

    Args:
        askers: The model; should not be the one that wrote the candidates.
        corpus: Where the answers of unanswerable questions are looked for.
        workers: How many units are in work at once; what a batch leaves open is asked for together.
    """

    askers: Askers
    corpus: Corpus
    workers: Workers

    async def check(self, candidates: Sequence[Anchored]) -> list[CheckedCandidate]:
        """Return what became of each candidate, in their order.

        A call that fails leaves its gate unknown, which is no pass. The more candidates at a
        time, the fewer calls for each: the batches hold up to 8.

        Raises:
            EndpointError, BudgetError: Nothing can be asked any more; replies are in the call
                store, so that a rerun has them for nothing.
        """
        under_way = [GateProgress(item_of(candidate)) for candidate in candidates]
        await self._ask_questions(under_way)
        reading = [*_at("premise", under_way), *_at("independent_answer", under_way)]
        await check_each(reading, self._read, self.workers)
        await self._compare(_at("independent_answer", under_way))
        await check_each(_at("necessary_hops", under_way), self._leave_out, self.workers)
        await check_each(_at("unanswerable", under_way), self._look_for, self.workers)
        await self._label([each for each in under_way if each.has_passed])
        return [progress.checked() for progress in under_way]

    async def _ask_questions(self, under_way: Sequence[GateProgress]) -> None:
        asker = self.askers.question
        entries = [question_entry(progress.item) for progress in under_way]
        verdicts = await _ask_in_batches(entries, question_form(asker), self.workers)
        for progress, signed in zip(under_way, verdicts, strict=True):
            if isinstance(signed, CallError):
                progress.failed(_failure(progress, signed))
                continue
            verdict, by = signed.verdict, signed.by
            progress.known = known_answer(verdict, progress.item.asked)
            if progress.next_gate == "ambiguity":
                can_mean = len(distinct_readings(verdict, progress.item.asked))
                told = f"can be taken in {can_mean} way"
                progress.settle(can_mean >= LEAST_READINGS, told, by)
            else:
                progress.settle(verdict.clear == "yes", verdict.missing, by)

    async def _read(self, progress: GateProgress) -> None:
        """Have a model answer from the evidence alone; whether it agrees is asked later."""
        asker = self.askers.answer
        reading = await read_evidence(progress.item, progress.item.proofs, asker)
        reply, by = reading.reply, reading.by
        progress.given, progress.read_by = reply.answer, by
        progress.call_keys.add(by.call_key)
        if progress.next_gate == "premise":
            told = "the evidence does not contradict what the question takes for granted"
            progress.settle(reply.premise == "wrong", told, by)
        elif reply.premise == "wrong":
            told = f"the evidence contradicts what the question takes for granted: {reply.quote}"
            progress.settle(False, told, by)
        elif reply.answerable == "no":
            progress.settle(False, "the evidence alone does not give the answer", by)

    async def _look_for(self, progress: GateProgress) -> None:
        """Have a model look for the answer that there should not be."""
        asker = self.askers.find
        texts = await near(progress.item, self.corpus)
        found = await search(progress.item, texts, asker)
        told = f"chunk {found.chunk_id} gives an answer: {found.quote}"
        progress.settle(not found.chunk_id, told, found.by)

    async def _leave_out(self, progress: GateProgress) -> None:
        """Have a model answer without each step in turn, until it can."""
        asker, by = self.askers.answer, None
        steps = steps_left_out(progress.item.proofs)
        for name, proofs in steps:
            reading = await read_evidence(progress.item, proofs, asker)
            by = reading.by
            progress.call_keys.add(by.call_key)
            if reading.reply.answers:
                progress.settle(False, f"can be answered without {name}", by)
                return
        progress.settle(bool(steps), "the evidence has only one step", by)

    async def _compare(self, under_way: Sequence[GateProgress]) -> None:
        """Hold the answers from the evidence against the expected ones."""
        given = [GivenAnswer(progress.item, progress.given) for progress in under_way]
        for progress, signed in zip(under_way, await self._agreements(given), strict=True):
            if isinstance(signed, CallError):
                progress.failed(_failure(progress, signed))
            elif signed is None:
                progress.agreement = "agrees"
                progress.settle(True, "", progress.read_by)
            else:
                found, by = signed.verdict, signed.by
                progress.agreement = found.verdict
                is_passed = is_enough(found.verdict, progress.item.type)
                progress.settle(is_passed, f"{found.verdict}: {found.difference}", by)

    async def _label(self, under_way: Sequence[GateProgress]) -> None:
        """Label whether general knowledge gives the expected answer."""
        asked = [each for each in under_way if "unanswerable" not in each.item.gates]
        for progress in asked:
            progress.closed_book = "not solved"
        knowing = [progress for progress in asked if progress.known]
        given = [GivenAnswer(progress.item, progress.known) for progress in knowing]
        for progress, signed in zip(knowing, await self._agreements(given), strict=True):
            if isinstance(signed, CallError):
                progress.closed_book = "unknown"
                progress.failures.append(_failure(progress, signed))
            elif signed is None or signed.verdict.verdict == "agrees":
                progress.closed_book = "solved"
            if isinstance(signed, SignedVerdict):
                progress.call_keys.add(signed.by.call_key)

    async def _agreements(
        self, given: Sequence[GivenAnswer]
    ) -> list[SignedVerdict[PairVerdict] | CallError | None]:
        """Return how answers compare with the expected ones; None where a rule says they agree."""
        certain = [agrees_by_rule(each) for each in given]
        marked = zip(given, certain, strict=True)
        doubtful = [pair_entry(each) for each, is_certain in marked if not is_certain]
        form = pair_form(self.askers.compare)
        said = iter(await _ask_in_batches(doubtful, form, self.workers))
        return [None if is_certain else next(said) for is_certain in certain]


def _at(gate: Gate, under_way: Sequence[GateProgress]) -> list[GateProgress]:
    return [progress for progress in under_way if progress.next_gate == gate]


def _failure(progress: GateProgress, error: CallError) -> Failure:
    return failure_of("check", progress.item.key, error)


async def check_each(
    under_way: Sequence[GateProgress],
    do: Callable[[GateProgress], Awaitable[None]],
    workers: Workers,
) -> None:
    """Do something with each candidate; where that fails, its next gate is unknown.

    Raises:
        EndpointError, BudgetError: Nothing can be asked any more.
    """

    async def done(progress: GateProgress) -> GateProgress:
        await do(progress)
        return progress

    work: Work[GateProgress, GateProgress] = Work(
        stage="check",
        key=lambda progress: progress.item.key,
        do=done,
        workers=workers,
    )
    for outcome in await _outcomes(under_way, work):
        if outcome.failure is not None:
            outcome.unit.failed(outcome.failure)


async def _ask_in_batches(
    entries: Sequence[Entry], form: Form[R, V], workers: Workers
) -> list[SignedVerdict[V] | CallError]:
    """Return the verdict on each entry, in their order, asked in batches.

    Raises:
        EndpointError, BudgetError: Nothing can be asked any more.
    """
    parts = batches(entries)

    async def ask(number: int) -> list[SignedVerdict[V] | CallError]:
        return await ask_batch(parts[number], form)

    work: Work[int, list[SignedVerdict[V] | CallError]] = Work(
        stage="check",
        key=lambda number: f"{form.hole} {number}",
        do=ask,
        workers=workers,
        size=lambda number: len(parts[number]),
        lost=lambda verdicts: sum(isinstance(each, CallError) for each in verdicts),
    )
    by_part: dict[int, list[SignedVerdict[V] | CallError]] = {}
    for outcome in await _outcomes(range(len(parts)), work):
        if outcome.result is not None:
            by_part[outcome.unit] = outcome.result
        elif outcome.failure is not None:
            lost = CallError(outcome.failure.kind, outcome.failure.message)
            by_part[outcome.unit] = [lost] * len(parts[outcome.unit])
    return [verdicts for number in range(len(parts)) for verdicts in by_part[number]]


async def _outcomes(units: Sequence[U], work: Work[U, D]) -> list[Outcome[U, D]]:
    if not units:
        return []
    async with aclosing(run(units, work)) as outcomes:
        return [outcome async for outcome in outcomes]
