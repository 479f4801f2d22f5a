"""Judging many pairs: concurrent, and whatever is done is kept when it is stopped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ragforge.observe import Observer
from ragforge.records import Failure, Judgment, Provenance
from ragforge.stages.judge.pairs import Judge, Pair, PairId
from ragforge.stages.runner import Sink, Work, nothing, pour


@dataclass(frozen=True, slots=True)
class Judging:
    """How pairs are judged.

    Args:
        judge: Who judges.
        concurrency: Pairs in work at once.
        observer: Told of progress.
        on_stop: As in `Work`.
    """

    judge: Judge
    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing


async def judge_pairs(
    pairs: Iterable[Pair], judging: Judging, sink: Sink[Judgment], *, total: int | None
) -> None:
    """Judge pairs, each once; those with a failure get a judgment with grade None.

    Args:
        pairs: What to judge; taken one at a time.
        judging: By whom and how.
        sink: Takes judgments and failures as they come.
        total: How many pairs there are, where that is known.

    Raises:
        EndpointError, BudgetError: As the judge raises them; the sink has what was done.
    """
    work: Work[Pair, Judgment] = Work(
        stage="judge",
        key=lambda pair: pair.key,
        do=judging.judge.judge,
        concurrency=judging.concurrency,
        observer=judging.observer,
        on_stop=judging.on_stop,
    )
    blank = partial(_unjudged, judging.judge.provenance)
    await pour(pairs, work, sink, total=total, blank=blank)


def open_pairs(
    pairs: Iterable[PairId], known: Iterable[Judgment], stays: Callable[[Judgment], bool]
) -> list[PairId]:
    """Return the pairs whose judgment is missing or does not stay."""
    graded = {(old.query_id, old.chunk_id) for old in known if stays(old)}
    return [pair for pair in pairs if pair not in graded]


def _unjudged(judge: Provenance, pair: Pair, failure: Failure) -> Judgment:
    return Judgment(
        query_id=pair.query_id,
        chunk_id=pair.chunk_id,
        grade=None,
        failure=failure.kind,
        provenance=judge,
    )
