"""Checking many answers: concurrent, and whatever is done is kept when it is stopped."""

from collections.abc import Iterable
from functools import partial

from ragforge.errors import CallError
from ragforge.records import Failure, Grounding, Provenance
from ragforge.stages.ground.citations import read_marks
from ragforge.stages.ground.parts import Exchange
from ragforge.stages.ground.settling import settled_by_rule
from ragforge.stages.runner import Judge, Sink, Work, Workers, pour

_NAMED = 3


async def ground_exchanges(
    exchanges: Iterable[Exchange],
    judge: Judge[Exchange, Grounding],
    workers: Workers,
    sink: Sink[Grounding],
    *,
    total: int | None,
) -> None:
    """Check answers, each once; those with a failure get a grounding without faithfulness.

    Args:
        exchanges: What to check; taken one at a time.
        judge: Who checks.
        workers: How many answers are in work at once, and who is told.
        sink: Takes groundings and failures as they come.
        total: How many answers there are, where that is known.

    Raises:
        EndpointError, BudgetError: As the judge raises them; the sink has what was done.
    """

    async def ground(exchange: Exchange) -> Grounding:
        if exchange.failure:
            raise CallError("error", f"the system gave no answer: {exchange.failure}")
        if exchange.lost:
            return _of_incomplete(exchange)
        return await judge.judge(exchange)

    work: Work[Exchange, Grounding] = Work(
        stage="ground",
        key=lambda exchange: exchange.query_id,
        do=ground,
        workers=workers,
        blank=partial(_unchecked, judge.provenance),
    )
    await pour(exchanges, work, sink, total=total)


def _of_incomplete(exchange: Exchange) -> Grounding:
    """Return the grounding by rule of an answer of whose context a part is missing.

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


def _unchecked(judge: Provenance, exchange: Exchange, failure: Failure) -> Grounding:
    return Grounding(
        query_id=exchange.query_id,
        is_grounded=None,
        faithfulness=None,
        failure=failure.kind,
        provenance=judge,
    )
