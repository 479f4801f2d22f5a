"""Judging many pairs: concurrent, and whatever is done is kept when it is stopped."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ragforge.files.dataset import Dataset
from ragforge.observe import Observer
from ragforge.records import Failure, Judgment, Provenance
from ragforge.stages.judge.pairs import Judge, Pair
from ragforge.stages.runner import Collected, Work, collect


async def judge_pairs(
    pairs: Sequence[Pair],
    judge: Judge,
    *,
    concurrency: int,
    observer: Observer,
    keep: Callable[[Collected[Judgment]], None],
) -> Collected[Judgment]:
    """Judge pairs, each once; those with a failure get a judgment with grade None.

    Args:
        pairs: What to judge.
        judge: Who judges.
        concurrency: Pairs in work at once.
        observer: Told of progress.
        keep: Called once, at the end or at a stop, with everything done so far.

    Raises:
        EndpointError, BudgetError: As the judge raises them, after `keep`.
    """
    work: Work[Pair, Judgment] = Work(
        stage="judge",
        key=lambda pair: pair.key,
        do=judge.judge,
        concurrency=concurrency,
        observer=observer,
    )
    return await collect(pairs, work, blank=partial(_unjudged, judge.provenance), keep=keep)


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
