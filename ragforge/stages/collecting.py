"""Results and failures of a run, handed to a sink one by one or collected in memory."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ragforge.observe import Event
from ragforge.records import Failure
from ragforge.stages.runner import Work, run

U = TypeVar("U")
R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


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
    blank: Callable[[U, Failure], R] | None,
) -> None:
    """Work through all units and hand over each outcome as it comes.

    Args:
        units: In any order; taken only when a worker is free.
        work: What to do with each.
        sink: Takes what is done, also behind a stop.
        total: How many things there are in all units, where that is known.
        blank: Makes the record that stands for a failed unit; None where none does.

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
                    if blank is not None:
                        sink.result(blank(outcome.unit, outcome.failure))
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
    blank: Callable[[U, Failure], R] | None,
    keep: Callable[[Collected[R]], None],
) -> Collected[R]:
    """Work through all units in memory and hand over what is done, also when the run is stopped.

    Args:
        units: In any order.
        work: What to do with each.
        blank: Makes the record that stands for a failed unit; None where none does.
        keep: Called once, at the end or at the stop, with everything done so far.

    Raises:
        RagforgeError: As a unit raised it, after `keep`.
    """
    collected: Collected[R] = Collected()
    try:
        await pour(units, work, collected, total=len(units), blank=blank)
    finally:
        keep(collected)
    return collected
