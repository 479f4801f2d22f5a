"""Judging many pairs: concurrent, and whatever is done is kept when it is stopped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ragforge.files.dataset import Dataset
from ragforge.observe import Observer
from ragforge.records import Failure, Judgment, Provenance
from ragforge.stages.judge.pairs import Judge, Pair
from ragforge.stages.runner import Collected, Sink, Work, nothing, pour


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
    pairs: Iterable[Pair], known: Iterable[Judgment], stays: Callable[[Judgment], bool]
) -> list[Pair]:
    """Return the pairs whose judgment is missing or does not stay."""
    graded = {(old.query_id, old.chunk_id) for old in known if stays(old)}
    return [pair for pair in pairs if (pair.query_id, pair.chunk_id) not in graded]


def merge_into(dataset: Dataset, judged: Collected[Judgment]) -> None:
    """Write judgments into a dataset: new ones replace old ones of the same pair.

    What a query's own evidence says is not given up for a judgment that failed.
    """
    merged = {(old.query_id, old.chunk_id): old for old in dataset.judgments()}
    for new in judged.results:
        old = merged.get((new.query_id, new.chunk_id))
        if new.grade is not None or old is None or old.source != "evidence":
            merged[new.query_id, new.chunk_id] = new
    tried = {f"{new.query_id}/{new.chunk_id}" for new in judged.results}
    dataset.write_judgments(merged.values())
    dataset.replace_failures("judge", judged.failures, tried.__contains__)


def _unjudged(judge: Provenance, pair: Pair, failure: Failure) -> Judgment:
    return Judgment(
        query_id=pair.query_id,
        chunk_id=pair.chunk_id,
        grade=None,
        failure=failure.kind,
        provenance=judge,
    )
