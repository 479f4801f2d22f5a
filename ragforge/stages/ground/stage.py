"""Checking many answers: concurrent, and whatever is done is kept when it is stopped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ragforge.errors import CallError
from ragforge.observe import Observer
from ragforge.records import Failure, Grounding, Provenance
from ragforge.stages.collecting import Sink, pour
from ragforge.stages.ground.citations import read_marks
from ragforge.stages.ground.parts import Exchange, Grounder
from ragforge.stages.ground.settling import settled_by_rule
from ragforge.stages.runner import Work, nothing

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Checking:
    """How answers are checked.

    Args:
        grounder: Who checks.
        concurrency: Answers in work at once.
        observer: Told of progress.
        on_stop: As in `Work`.
    """

    grounder: Grounder
    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing


async def ground_exchanges(
    exchanges: Iterable[Exchange],
    checking: Checking,
    sink: Sink[Grounding],
    *,
    total: int | None,
) -> None:
    """Check answers, each once; those with a failure get a grounding without faithfulness.

    Args:
        exchanges: What to check; taken one at a time.
        checking: By whom and how.
        sink: Takes groundings and failures as they come.
        total: How many answers there are, where that is known.

    Raises:
        EndpointError, BudgetError: As the grounder raises them; the sink has what was done.
    """

    async def ground(exchange: Exchange) -> Grounding:
        if exchange.lost:
            return _of_incomplete(exchange)
        return await checking.grounder.ground(exchange)

    work: Work[Exchange, Grounding] = Work(
        stage="ground",
        key=lambda exchange: exchange.query_id,
        do=ground,
        concurrency=checking.concurrency,
        observer=checking.observer,
        on_stop=checking.on_stop,
    )
    blank = partial(_unchecked, checking.grounder.provenance)
    await pour(exchanges, work, sink, total=total, blank=blank)


def _of_incomplete(exchange: Exchange) -> Grounding:
    """Return what can be said without a part of the context.

    Raises:
        CallError: Nothing: a claim may stand in the part that is missing.
    """
    cited = read_marks(exchange.answer, [passage.chunk_id for passage in exchange.passages])
    found = settled_by_rule(exchange, cited)
    if found is not None:
        return found
    named = ", ".join(exchange.lost[:_NAMED])
    raise CallError(
        "error", f"{len(exchange.lost)} of its chunks are not in the dataset, such as {named}"
    )


def _unchecked(grounder: Provenance, exchange: Exchange, failure: Failure) -> Grounding:
    return Grounding(
        query_id=exchange.query_id,
        is_grounded=None,
        faithfulness=None,
        failure=failure.kind,
        provenance=grounder,
    )
