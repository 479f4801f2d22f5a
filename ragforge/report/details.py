"""What a report shows of a measured run beyond its means: intervals, slices, curve, top grades."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ragforge.measures import Scores
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES
from ragforge.report.estimate import Estimate
from ragforge.report.judging import GRADES
from ragforge.report.patterns import patterns
from ragforge.report.runs import (
    DEPTH,
    PRIMARY,
    BucketCount,
    CurvePoint,
    MeasuredRun,
    RunSummary,
    Task,
)
from ragforge.report.slices import interval_of, slices_of

DEEPEST: Final = 100
"""Rank down to which recall is followed, at most."""
UNJUDGED: Final = "not judged"
FAILED: Final = "failed"
LISTED: Final = "listed"
"""As relevant, without a grade."""


def detailed(run: MeasuredRun, task: Task, documents: Mapping[str, str]) -> RunSummary:
    """Return the summary of a run with all that a report shows of it.

    Args:
        run: As measured.
        task: What it was measured on.
        documents: Chunk id to document, of the queries' source chunks.
    """
    found = run.summary
    return replace(
        found,
        estimates={
            name: _with_interval(item, run.scores, name) for name, item in found.estimates.items()
        },
        primary=_with_interval(found.primary, run.scores, PRIMARY),
        slices=slices_of(run.scores, run.task or task, documents),
        curve=recall_curve(run.scores, max(map(len, run.ranked.values()), default=0)),
        top_grades=_top_grades(run, task),
        patterns=() if run.scores is None else tuple(patterns(run.scores)),
    )


def recall_curve(scores: Scores | None, depth: int) -> tuple[CurvePoint, ...]:
    """Return the mean of R@k for each k down to `depth`, or to `DEEPEST`."""
    if scores is None or not scores.query_ids:
        return ()
    points = []
    for k in _ranks(min(depth, DEEPEST)):
        name = f"R@{k}"
        found = scores.rescore([name], rel_threshold=scores.rel_threshold)
        mean = found.mean(name)
        assert mean is not None
        points.append(CurvePoint(k, mean, _interval(found, name)))
    return tuple(points)


def _interval(scores: Scores, measure: str) -> Ends | None:
    ends = scores.interval(measure) if scores.design else None
    if ends is None or ends.n < LEAST_VALUES or ends.low is None or ends.high is None:
        return interval_of(scores.values(measure))
    return Ends(ends.low, ends.high)


def _ranks(depth: int) -> Sequence[int]:
    """Return every rank near the top, and fewer of those that a chart cannot tell apart."""
    return [k for k in range(1, depth + 1) if k <= 20 or k % 5 == 0 or k == depth]


def _with_interval(found: Estimate, scores: Scores | None, measure: str) -> Estimate:
    if scores is None:
        return found
    ends = scores.interval(measure)
    if found.n < LEAST_VALUES or ends.low is None or ends.high is None:
        return found
    return replace(found, interval=Ends(ends.low, ends.high))


def _top_grades(run: MeasuredRun, task: Task) -> tuple[BucketCount, ...]:
    counts: Counter[str] = Counter()
    for query_id, chunk_ids in run.ranked.items():
        judged, listed = task.qrels.get(query_id, {}), task.relevant.get(query_id, ())
        for chunk_id in chunk_ids[:DEPTH]:
            grade = judged.get(chunk_id)
            unknown = LISTED if chunk_id in listed else UNJUDGED
            failed = FAILED if chunk_id in judged else unknown
            counts[failed if grade is None else str(max(grade, 0))] += 1
    seldom = [label for label in (LISTED, FAILED) if counts[label]]
    labels = [*map(str, GRADES), UNJUDGED, *seldom]
    return tuple(BucketCount(label, counts[label]) for label in labels)
