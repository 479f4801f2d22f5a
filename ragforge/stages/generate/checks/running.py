"""Putting checks to work by the stages' runner: one by one, or in batches."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from ragforge.errors import CallError
from ragforge.observe import Observer
from ragforge.stages.generate.checks.batches import Entry, Form, R, Said, V, ask_batch, batches
from ragforge.stages.generate.checks.standing import Standing
from ragforge.stages.runner import Outcome, Work, nothing, run

U = TypeVar("U")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Running:
    """How checks run.

    Args:
        concurrency: Units in work at once; what a batch leaves open is asked for together.
        observer: Told of progress.
        on_stop: As in `Work`.
    """

    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing

    async def each(
        self, standings: Sequence[Standing], do: Callable[[Standing], Awaitable[None]]
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
            concurrency=self.concurrency,
            observer=self.observer,
            on_stop=self.on_stop,
        )
        for outcome in await _outcomes(standings, work):
            if outcome.failure is not None:
                outcome.unit.failed(outcome.failure)

    async def batched(
        self, entries: Sequence[Entry], form: Form[R, V]
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
            concurrency=self.concurrency,
            observer=self.observer,
            on_stop=self.on_stop,
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
