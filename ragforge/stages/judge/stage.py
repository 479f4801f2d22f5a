"""Judging many pairs: concurrent, and whatever is done is kept when it is stopped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ragforge.errors import CallError
from ragforge.records import Failure, Judgment, Provenance
from ragforge.stages.judge.batches import Batch, JudgedBatch, joined, unjudged
from ragforge.stages.judge.pairs import PairId
from ragforge.stages.runner import Judge, Sink, Work, Workers, pour


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
    )
    blank = partial(_unjudged, judge.provenance)
    await pour(batches, work, _Spread(sink), total=total, blank=blank)


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


def open_pairs(
    pairs: Iterable[PairId], known: Iterable[Judgment], stays: Callable[[Judgment], bool]
) -> list[PairId]:
    """Return the pairs whose judgment is missing or does not stay."""
    graded = {(old.query_id, old.chunk_id) for old in known if stays(old)}
    return [pair for pair in pairs if pair not in graded]


def _unjudged(judge: Provenance, batch: Batch, failure: Failure) -> JudgedBatch:
    error = CallError(failure.kind, failure.message, failure.raw, call_keys=failure.call_keys)
    return joined([unjudged(judge, twins, error) for twins in batch.twins])
