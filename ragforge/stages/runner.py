"""The one runner of all stages: a fixed pool of workers over a stream of units.

A unit ends in a result or in a `Failure`, never in both; `pour` hands each on as it comes, and
`collect` keeps them in memory. What a stage judges with is a `Judge`.
"""

import asyncio
import hashlib
import os
import time
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ragforge.deferred import dataclass, tempfile
from ragforge.errors import BudgetError, CallError, EndpointError, RagforgeError
from ragforge.observe import Event, Observer
from ragforge.records import Failure, Provenance, Stage

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
U_contra = TypeVar("U_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)

TICK_S = 5.0
"""Seconds between two signs of life."""

_RAW_KEPT = 20_000
"""Characters of an unusable reply that go into its failure record."""

DRAIN_S = 10.0
"""Seconds that calls in flight get to end when a run is stopped."""


class Judge(Protocol[U_contra, R_co]):
    """Judges cases of one kind: a baseline by rule, or a model that is asked."""

    @property
    def provenance(self) -> Provenance:
        """Who judges, also for the cases that get no judgment."""

    async def judge(self, case: U_contra, /) -> R_co:
        """Return what the judge says of a case, never a blank that stands for a failure.

        Called concurrently from one event loop; must not block it.

        Raises:
            CallError: This case cannot be judged; it stays unjudged.
            EndpointError, BudgetError: No case can be judged any more.
        """


@dataclass(frozen=True, slots=True)
class Outcome(Generic[U, R]):
    """Result or failure of a unit of work, never both."""

    unit: U
    result: R | None
    failure: Failure | None


def nothing(*_: object) -> None:
    """Do nothing."""


def one(unit: object) -> int:
    """Return 1: most units are one thing."""
    return 1


def none(result: object) -> int:
    """Return 0: most results are whole."""
    return 0


@dataclass(frozen=True, slots=True)
class Workers:
    """Who works through the units of a stage.

    Args:
        concurrency: Units in work at once.
        observer: Told of each finished unit.
        on_stop: Called when the run is stopped; makes units that would ask again give up instead.
    """

    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing


@dataclass(frozen=True, slots=True)
class Work(Generic[U, R]):
    """How a stage works off one unit.

    Args:
        stage: Names it in failures and events.
        key: The unit's ids, for its failure record.
        do: The work; may raise CallError to fail the unit, any RagforgeError to stop the run.
        workers: Who does it.
        size: Things in a unit, such as the pairs of a batch; what progress is counted in.
        lost: Things of a unit that failed though its result has others.
        blank: Makes the record that stands for a failed unit; None where none does.
    """

    stage: Stage
    key: Callable[[U], str]
    do: Callable[[U], Awaitable[R]]
    workers: Workers
    size: Callable[[U], int] = one
    lost: Callable[[R], int] = none
    blank: Callable[[U, Failure], R] | None = None


async def run(units: Iterable[U], work: Work[U, R]) -> AsyncGenerator[Outcome[U, R], None]:
    """Yield the outcome of each unit as it is done, in no particular order.

    Units are taken from the iterable only when a worker is free, so it may be endless or lazy.
    When something stops the run (the budget, the endpoint, an interrupt), no further call is made,
    but those in flight are paid for: they get DRAIN_S seconds to end, and their outcomes are
    yielded. What cannot be kept any more (bad data, a full disk), a second interrupt, and a
    consumer that leaves cancel what is in work.

    Raises:
        RagforgeError: A unit raised it; what was done before has been yielded.
        asyncio.CancelledError: The task was cancelled, likewise.
    """
    waiting = _Waiting(units)
    done: asyncio.Queue[Outcome[U, R] | _End] = asyncio.Queue(work.workers.concurrency)
    count = work.workers.concurrency
    workers = [asyncio.create_task(_work_off(waiting, work, done)) for _ in range(count)]
    ticker = asyncio.create_task(_tick(work))
    draining = _Draining()
    try:
        running = len(workers)
        while running:
            try:
                outcome = await draining.next(done)
            except asyncio.CancelledError as error:
                draining.begin(error, waiting, work)
                continue
            if isinstance(outcome, Outcome):
                yield outcome
                continue
            running -= 1
            if outcome.error is not None:
                draining.begin(outcome.error, waiting, work)
        draining.end()
    finally:
        for task in (*workers, ticker):
            task.cancel()
        await asyncio.wait((*workers, ticker))


@dataclass(slots=True)
class _Draining:
    """The end of a run before all units are done: why, and until when it may take."""

    why: BaseException | None = None
    until: float | None = None

    async def next(self, done: asyncio.Queue[T]) -> T:
        """Return the next item of a worker; raise the reason of the stop once its time is over."""
        try:
            async with asyncio.timeout_at(self.until):
                return await done.get()
        except TimeoutError:
            assert self.why is not None
            raise self.why from None

    def begin(self, why: BaseException, waiting: "_Waiting[U]", work: Work[U, R]) -> None:
        """Stop taking units and making calls.

        Raises:
            BaseException: The reason, where there is nothing to wait for.
        """
        interrupted = isinstance(why, asyncio.CancelledError)
        if self.why is not None and not interrupted:
            return  # Others fail for the reason that stopped the first.
        first = self.until is None
        if not (first and (interrupted or isinstance(why, BudgetError | EndpointError))):
            raise why
        self.why = why
        waiting.close()
        if isinstance(why, BudgetError):
            return  # What the budget let through is made and ends in its own time.
        work.workers.on_stop()
        self.until = asyncio.get_running_loop().time() + DRAIN_S
        if interrupted:
            told = f"calls in flight get {DRAIN_S:g} s to end; a second Ctrl-C stops at once"
            work.workers.observer(Event("note", message=f"interrupted: {told}"))

    def end(self) -> None:
        """Raise the reason of the stop, if there was one."""
        if self.why is not None:
            raise self.why


async def _tick(work: Work[U, R]) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        work.workers.observer(Event("tick", stage=work.stage))


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
        failure = failure_of(work.stage, work.key(unit), error)
    except (Exception, asyncio.CancelledError) as error:  # the one place where a bug becomes one
        if _cut_off():
            raise
        bug = CallError("error", f"{type(error).__name__}: {error}{_kept_traceback(error)}")
        failure = failure_of(work.stage, work.key(unit), bug)
    else:
        numbers = {"count": float(work.size(unit)), "failed": float(work.lost(result))}
        work.workers.observer(Event("unit", work.stage, "done", numbers=numbers))
        return Outcome(unit, result, None)
    count = float(work.size(unit))
    numbers = {"count": count, "failed": count}
    work.workers.observer(Event("unit", work.stage, "failed", failure.message, numbers))
    return Outcome(unit, None, failure)


def _kept_traceback(error: BaseException) -> str:
    """Keep the traceback of a bug in a log, and return where it is, as the end of a message.

    The log has its name from where the error was raised, and the message no folder: a rerun fails
    with the same words, one bug in a thousand units makes one file, and a published set tells of no
    machine.
    """
    frames = "".join(traceback.format_tb(error.__traceback__)).encode("utf-8", "backslashreplace")
    text = "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace")
    name = f"ragforge-traceback-{hashlib.sha256(frames).hexdigest()[:12]}.log"
    path = Path(tempfile.gettempdir()) / name
    try:
        # Never through a link that somebody laid where anybody may write.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as log:
            log.write(text)
    except FileExistsError:
        pass
    except OSError:
        return ""
    return f" (traceback in {name}, where temporary files are)"


def _cut_off() -> bool:
    """Whether this worker is being cancelled, and not just something that its unit waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def failure_of(stage: Stage, key: str, error: CallError) -> Failure:
    """Return the record of a failed unit."""
    return Failure.model_validate(
        {
            "what": stage,
            "key": key,
            "kind": error.kind,
            "message": _speakable(str(error)),
            "raw": recorded(error.raw),
            "call_keys": error.call_keys,
        }
    )


def recorded(raw: str) -> str:
    """Return a reply as a failure has it; of a huge one the start, for the call store has all."""
    if len(raw) <= _RAW_KEPT:
        return _speakable(raw)
    return _speakable(f"{raw[:_RAW_KEPT]}… ({len(raw)} characters, all of them in the call store)")


def _speakable(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


class Sink(Protocol[R_contra]):
    """Takes what a stage leaves, record by record."""

    def result(self, result: R_contra) -> None:
        """Take a result, or the blank that stands for a failed unit."""

    def failure(self, failure: Failure) -> None:
        """Take a failure."""


async def pour(
    units: Iterable[U],
    work: Work[U, R],
    sink: Sink[R],
    *,
    total: int | None,
) -> None:
    """Work through all units and hand over each outcome as it comes.

    Args:
        units: In any order; taken only when a worker is free.
        work: What to do with each.
        sink: Takes what is done, also behind a stop.
        total: How many things there are in all units, where that is known.

    Raises:
        RagforgeError: As a unit raised it.
    """
    numbers = {} if total is None else {"total": float(total)}
    work.workers.observer(Event("stage.start", stage=work.stage, numbers=numbers))
    started, counts = time.monotonic(), Counter[str]()
    try:
        async with aclosing(run(units, work)) as outcomes:
            async for outcome in outcomes:
                size = work.size(outcome.unit)
                if outcome.result is not None:
                    lost = work.lost(outcome.result)
                    counts["done"] += size - lost
                    counts["failed"] += lost
                    sink.result(outcome.result)
                elif outcome.failure is not None:
                    counts["failed"] += size
                    sink.failure(outcome.failure)
                    if work.blank is not None:
                        sink.result(work.blank(outcome.unit, outcome.failure))
    finally:
        ended = {"done": float(counts["done"]), "failed": float(counts["failed"])}
        ended["duration_s"] = time.monotonic() - started
        work.workers.observer(Event("stage.end", stage=work.stage, numbers=ended))


@dataclass(slots=True)
class Collected(Generic[R]):
    """Results of a stage, and the failures of units that gave none."""

    results: list[R] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def result(self, result: R) -> None:
        """Take a result."""
        self.results.append(result)

    def failure(self, failure: Failure) -> None:
        """Take a failure."""
        self.failures.append(failure)


async def collect(
    units: Sequence[U],
    work: Work[U, R],
    *,
    keep: Callable[[Collected[R]], None] = nothing,
) -> Collected[R]:
    """Work through all units in memory and hand over what is done, also when the run is stopped.

    Args:
        units: In any order.
        work: What to do with each.
        keep: Called once, at the end or at the stop, with everything done so far; as it is, what
            was done before a stop is not kept.

    Raises:
        RagforgeError: As a unit raised it, after `keep`.
    """
    collected: Collected[R] = Collected()
    try:
        await pour(units, work, collected, total=len(units))
    finally:
        keep(collected)
    return collected
