"""The one runner: a fixed pool of workers over a stream of units, failures told from values."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from ragforge.errors import BudgetError, CallError, RagforgeError
from ragforge.observe import Event, Observer
from ragforge.records import Failure, Stage

U = TypeVar("U")
R = TypeVar("R")

TICK_S = 5.0
"""Seconds between two signs of life."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[U, R]):
    """What became of a unit of work: a result or a failure, never both."""

    unit: U
    result: R | None
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Work(Generic[U, R]):
    """What a stage does with one unit.

    Args:
        stage: Names it in failures and events.
        key: The unit's ids, for its failure record.
        do: The work; may raise CallError to fail the unit, any RagforgeError to stop the run.
        concurrency: Units in work at once.
        observer: Told of each finished unit.
    """

    stage: Stage
    key: Callable[[U], str]
    do: Callable[[U], Awaitable[R]]
    concurrency: int
    observer: Observer


async def run(units: Iterable[U], work: Work[U, R]) -> AsyncGenerator[Outcome[U, R], None]:
    """Yield the outcome of each unit as it is done, in no particular order.

    Units are taken from the iterable only when a worker is free, so it may be endless or lazy.
    When the budget is reached, what is in work is finished, for it is paid for. Whatever else ends
    the iteration early (another error, an interrupt, the consumer) cancels what is in work.

    Raises:
        RagforgeError: A unit raised it; what was done before has been yielded.
    """
    waiting = _Waiting(units)
    done: asyncio.Queue[Outcome[U, R] | _End] = asyncio.Queue(work.concurrency)
    workers = [asyncio.create_task(_work_off(waiting, work, done)) for _ in range(work.concurrency)]
    ticker = asyncio.create_task(_tick(work))
    stopped: BudgetError | None = None
    try:
        running = len(workers)
        while running:
            outcome = await done.get()
            if isinstance(outcome, Outcome):
                yield outcome
                continue
            running -= 1
            if isinstance(outcome.error, BudgetError):
                waiting.close()
                stopped = outcome.error
            elif outcome.error is not None:
                raise outcome.error
        if stopped is not None:
            raise stopped
    finally:
        for task in (*workers, ticker):
            task.cancel()
        await asyncio.wait((*workers, ticker))


async def _tick(work: Work[U, R]) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        work.observer(Event("tick", stage=work.stage))


class _Waiting(Iterator[U]):
    """Units not yet taken; none any more once closed."""

    def __init__(self, units: Iterable[U]) -> None:
        self._units = iter(units)
        self._open = True

    def __next__(self) -> U:
        if not self._open:
            raise StopIteration
        return next(self._units)

    def close(self) -> None:
        """Give out no further unit."""
        self._open = False


@dataclass(slots=True)
class Collected(Generic[R]):
    """What a stage left: its results, and the failures of units that gave none."""

    results: list[R]
    failures: list[Failure]


async def collect(
    units: Sequence[U],
    work: Work[U, R],
    *,
    blank: Callable[[U, Failure], R] | None,
    keep: Callable[[Collected[R]], None],
) -> Collected[R]:
    """Work through all units and hand over what is done, also when something stops the run.

    Args:
        units: In any order.
        work: What to do with each.
        blank: Makes the record that stands for a failed unit; None where none does.
        keep: Called once, at the end or at the stop, with everything done so far.

    Raises:
        RagforgeError: As a unit raised it, after `keep`.
    """
    collected: Collected[R] = Collected([], [])
    work.observer(Event("stage.start", stage=work.stage, numbers={"total": float(len(units))}))
    try:
        async with aclosing(run(units, work)) as outcomes:
            async for outcome in outcomes:
                if outcome.result is not None:
                    collected.results.append(outcome.result)
                elif outcome.failure is not None:
                    collected.failures.append(outcome.failure)
                    if blank is not None:
                        collected.results.append(blank(outcome.unit, outcome.failure))
    finally:
        work.observer(Event("stage.end", stage=work.stage))
        keep(collected)
    return collected


@dataclass(frozen=True, slots=True)
class _End:
    """A worker has stopped: out of units, or by an error that ends the run."""

    error: Exception | None


async def _work_off(
    waiting: Iterator[U], work: Work[U, R], done: asyncio.Queue[Outcome[U, R] | _End]
) -> None:
    try:
        for unit in waiting:
            await done.put(await _attempt(unit, work))
    except Exception as error:  # noqa: BLE001  # handed to the consumer, who raises it
        await done.put(_End(error))
    else:
        await done.put(_End(None))


async def _attempt(unit: U, work: Work[U, R]) -> Outcome[U, R]:
    try:
        result = await work.do(unit)
    except RagforgeError:
        raise
    except CallError as error:
        failure = _failure(unit, work, error)
    except (Exception, asyncio.CancelledError) as error:  # the one place where a bug becomes one
        if _cut_off():
            raise
        failure = _failure(unit, work, CallError("error", f"{type(error).__name__}: {error}"))
    else:
        work.observer(Event("unit", stage=work.stage, outcome="done"))
        return Outcome(unit, result, None)
    work.observer(Event("unit", stage=work.stage, outcome="failed", message=failure.message))
    return Outcome(unit, None, failure)


def _cut_off() -> bool:
    """Whether this worker is being cancelled, and not just something that its unit waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure(unit: U, work: Work[U, R], error: CallError) -> Failure:
    return Failure.model_validate(
        {
            "what": work.stage,
            "key": work.key(unit),
            "kind": error.kind,
            "message": _speakable(str(error)),
            "raw": _speakable(error.raw),
            "call_keys": error.call_keys,
        }
    )


def _speakable(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "backslashreplace").decode()
