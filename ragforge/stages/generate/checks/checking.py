"""All checks of a window of candidates, the cheapest first; who fails one is spared the others.

What needs no text of its own is asked for several candidates at once. The batches follow from the
order of the candidates, so that a rerun asks the same and finds the replies in the call store.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from math import ceil
from typing import TypeVar

from ragforge.errors import CallError
from ragforge.records import Failure, Gate, QueryType
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Anchored
from ragforge.stages.generate.checks.absence import Corpus, near, search
from ragforge.stages.generate.checks.agreement import (
    Given,
    PairVerdict,
    agrees_by_rule,
    is_enough,
    pair_entry,
    pair_form,
)
from ragforge.stages.generate.checks.batches import (
    MOST,
    Entry,
    Form,
    R,
    Said,
    V,
    ask_batch,
    batches,
    item_of,
)
from ragforge.stages.generate.checks.evidence import read_evidence, steps_left_out
from ragforge.stages.generate.checks.questions import (
    LEAST_READINGS,
    distinct_readings,
    known_answer,
    question_entry,
    question_form,
)
from ragforge.stages.generate.checks.standing import Checked, Standing
from ragforge.stages.runner import Outcome, Work, Workers, failure_of, run

U = TypeVar("U")
D = TypeVar("D")

PROMPTS = ("check_question", "check_answer", "compare_answers", "find_answer")
"""Prompts that the checks ask with, in the order of the fields of `Askers`."""


async def check_each(
    standings: Sequence[Standing], do: Callable[[Standing], Awaitable[None]], workers: Workers
) -> None:
    """Do something with each candidate; where that fails, its next gate is unknown.

    Raises:
        EndpointError, BudgetError: Nothing can be asked any more.
    """

    async def done(standing: Standing) -> Standing:
        await do(standing)
        return standing

    work: Work[Standing, Standing] = Work(
        stage="check",
        key=lambda standing: standing.item.key,
        do=done,
        workers=workers,
    )
    for outcome in await _outcomes(standings, work):
        if outcome.failure is not None:
            outcome.unit.failed(outcome.failure)


async def ask_in_batches(
    entries: Sequence[Entry], form: Form[R, V], workers: Workers
) -> list[Said[V] | CallError]:
    """Return what is said of each entry, in their order, asked in batches.

    Raises:
        EndpointError, BudgetError: Nothing can be asked any more.
    """
    parts = batches(entries)

    async def ask(number: int) -> list[Said[V] | CallError]:
        return await ask_batch(parts[number], form)

    work: Work[int, list[Said[V] | CallError]] = Work(
        stage="check",
        key=lambda number: f"{form.hole} {number}",
        do=ask,
        workers=workers,
        size=lambda number: len(parts[number]),
        lost=lambda said: sum(isinstance(each, CallError) for each in said),
    )
    found: dict[int, list[Said[V] | CallError]] = {}
    for outcome in await _outcomes(range(len(parts)), work):
        if outcome.result is not None:
            found[outcome.unit] = outcome.result
        elif outcome.failure is not None:
            lost = CallError(outcome.failure.kind, outcome.failure.message)
            found[outcome.unit] = [lost] * len(parts[outcome.unit])
    return [said for number in range(len(parts)) for said in found[number]]


async def _outcomes(units: Sequence[U], work: Work[U, D]) -> list[Outcome[U, D]]:
    if not units:
        return []
    async with aclosing(run(units, work)) as outcomes:
        return [outcome async for outcome in outcomes]


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
    """Return how many calls the checks of a window of candidates take.

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

    async def check(self, candidates: Sequence[Anchored]) -> list[Checked]:
        """Return what became of each candidate, in their order.

        A call that fails leaves its gate unknown, which is no pass. The more candidates at a
        time, the fewer calls for each: the batches hold up to 8.

        Raises:
            EndpointError, BudgetError: Nothing can be asked any more; replies are in the call
                store, so that a rerun has them for nothing.
        """
        standings = [Standing(item_of(candidate)) for candidate in candidates]
        await self._ask_questions(standings)
        reading = [*_at("premise", standings), *_at("independent_answer", standings)]
        await check_each(reading, self._read, self.workers)
        await self._compare(_at("independent_answer", standings))
        await check_each(_at("necessary_hops", standings), self._leave_out, self.workers)
        await check_each(_at("unanswerable", standings), self._look_for, self.workers)
        await self._label([each for each in standings if each.has_passed])
        return [standing.checked() for standing in standings]

    async def _ask_questions(self, standings: Sequence[Standing]) -> None:
        asker = self.askers.question
        entries = [question_entry(standing.item) for standing in standings]
        verdicts = await ask_in_batches(entries, question_form(asker), self.workers)
        for standing, said in zip(standings, verdicts, strict=True):
            if isinstance(said, CallError):
                standing.failed(_failure(standing, said))
                continue
            found, by = said.verdict, said.by
            standing.known = known_answer(found, standing.item.asked)
            if standing.next_gate == "ambiguity":
                can_mean = len(distinct_readings(found, standing.item.asked))
                told = f"can be taken in {can_mean} way"
                standing.settle(can_mean >= LEAST_READINGS, told, by)
            else:
                standing.settle(found.clear == "yes", found.missing, by)

    async def _read(self, standing: Standing) -> None:
        """Have a model answer from the evidence alone; whether it agrees is asked later."""
        asker = self.askers.answer
        reading = await read_evidence(standing.item, standing.item.proofs, asker)
        reply, by = reading.reply, reading.by
        standing.given, standing.read_by = reply.answer, by
        standing.call_keys.add(by.call_key)
        if standing.next_gate == "premise":
            told = "the evidence does not contradict what the question takes for granted"
            standing.settle(reply.premise == "wrong", told, by)
        elif reply.premise == "wrong":
            told = f"the evidence contradicts what the question takes for granted: {reply.quote}"
            standing.settle(False, told, by)
        elif reply.answerable == "no":
            standing.settle(False, "the evidence alone does not give the answer", by)

    async def _look_for(self, standing: Standing) -> None:
        """Have a model look for the answer that there should not be."""
        asker = self.askers.find
        texts = await near(standing.item, self.corpus)
        found = await search(standing.item, texts, asker)
        told = f"chunk {found.chunk_id} gives an answer: {found.quote}"
        standing.settle(not found.chunk_id, told, found.by)

    async def _leave_out(self, standing: Standing) -> None:
        """Have a model answer without each step in turn, until it can."""
        asker, by = self.askers.answer, None
        steps = steps_left_out(standing.item.proofs)
        for name, proofs in steps:
            reading = await read_evidence(standing.item, proofs, asker)
            by = reading.by
            standing.call_keys.add(by.call_key)
            if reading.reply.answers:
                standing.settle(False, f"can be answered without {name}", by)
                return
        standing.settle(bool(steps), "the evidence has only one step", by)

    async def _compare(self, standings: Sequence[Standing]) -> None:
        """Hold the answers from the evidence against the expected ones."""
        given = [Given(standing.item, standing.given) for standing in standings]
        for standing, said in zip(standings, await self._agreements(given), strict=True):
            if isinstance(said, CallError):
                standing.failed(_failure(standing, said))
            elif said is None:
                standing.agreement = "agrees"
                standing.settle(True, "", standing.read_by)
            else:
                found, by = said.verdict, said.by
                standing.agreement = found.verdict
                is_passed = is_enough(found.verdict, standing.item.type)
                standing.settle(is_passed, f"{found.verdict}: {found.difference}", by)

    async def _label(self, standings: Sequence[Standing]) -> None:
        """Label whether general knowledge gives the expected answer."""
        asked = [each for each in standings if "unanswerable" not in each.item.gates]
        for standing in asked:
            standing.closed_book = "not solved"
        knowing = [standing for standing in asked if standing.known]
        given = [Given(standing.item, standing.known) for standing in knowing]
        for standing, said in zip(knowing, await self._agreements(given), strict=True):
            if isinstance(said, CallError):
                standing.closed_book = "unknown"
                standing.failures.append(_failure(standing, said))
            elif said is None or said.verdict.verdict == "agrees":
                standing.closed_book = "solved"
            if isinstance(said, Said):
                standing.call_keys.add(said.by.call_key)

    async def _agreements(
        self, given: Sequence[Given]
    ) -> list[Said[PairVerdict] | CallError | None]:
        """Return how answers compare with the expected ones; None where a rule says they agree."""
        certain = [agrees_by_rule(each) for each in given]
        marked = zip(given, certain, strict=True)
        doubtful = [pair_entry(each) for each, is_certain in marked if not is_certain]
        form = pair_form(self.askers.compare)
        said = iter(await ask_in_batches(doubtful, form, self.workers))
        return [None if is_certain else next(said) for is_certain in certain]


def _at(gate: Gate, standings: Sequence[Standing]) -> list[Standing]:
    return [standing for standing in standings if standing.next_gate == gate]


def _failure(standing: Standing, error: CallError) -> Failure:
    return failure_of("check", standing.item.key, error)
