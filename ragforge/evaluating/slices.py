"""The measure that decides of a run over the queries that share a property."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ragforge.evaluating.answers.records import documents_of
from ragforge.evaluating.judgments import GRADES
from ragforge.evaluating.patterns import patterns
from ragforge.evaluating.runs import (
    DEPTH,
    NOT_SET,
    NOTHING,
    BucketCount,
    CurvePoint,
    Estimate,
    MeasuredRun,
    RunSummary,
    Slice,
    Task,
)
from ragforge.measures import Scores
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES, interval_of
from ragforge.measures.strata import Design, mean_over_queries
from ragforge.measures.stratified import sample_interval
from ragforge.measures.unseen_values import interval_by_measure, is_bounded
from ragforge.records import Query

DIMENSIONS: Final = (
    "difficulty",
    "type",
    "category",
    "language",
    "split",
    "origin",
    "document group",
)
"""By which queries are parted; the group of a document is its folder."""
MOST_VALUES: Final = 12
"""Values of a property that are shown: those with the most queries."""

DEEPEST: Final = 100
"""Rank down to which recall is followed, at most."""
UNJUDGED: Final = "not judged"
FAILED: Final = "failed"
LISTED: Final = "listed"
"""As relevant, without a grade."""


def slices_of(scores: Scores | None, task: Task, documents: Mapping[str, str]) -> tuple[Slice, ...]:
    """Part the queries by each of `DIMENSIONS` that tells some of them from others.

    Args:
        scores: Of the run; None where nothing was measured.
        task: What it was measured on. Of a sample, a slice stands for that slice of the set.
        documents: Chunk id to document, of the queries' source chunks.
    """
    return tuple(
        Slice(dimension, value, len(query_ids), {task.primary: estimate})
        for dimension in DIMENSIONS
        for value, query_ids, estimate in _parts(scores, task, documents, dimension)
    )


def _parts(
    scores: Scores | None,
    task: Task,
    documents: Mapping[str, str],
    dimension: str,
) -> Iterable[tuple[str, Sequence[str], Estimate]]:
    members = _members(task.queries, documents, dimension)
    if len(members) < 2:
        return
    design_of_all = scores.design_of(task.primary) if scores is not None else None
    every = _members(task.population, documents, dimension) if design_of_all else members
    most = sorted(members, key=lambda value: (-len(members[value]), value))[:MOST_VALUES]
    known = _QueryValues(scores, task.primary)
    for value in sorted(most):
        design = design_of_all.within(every[value]) if design_of_all else None
        yield value, members[value], known.estimate(members[value], design)


def _members(
    queries: Iterable[Query], documents: Mapping[str, str], dimension: str
) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for query in queries:
        for value in _values(query, dimension, documents):
            members.setdefault(value, []).append(query.query_id)
    return members


def _values(query: Query, dimension: str, documents: Mapping[str, str]) -> Iterable[str]:
    if dimension == "document group":
        folders = {name.rpartition("/")[0] or "/" for name in documents_of(query, documents)}
        return sorted(folders) or [NOT_SET]
    return [getattr(query, dimension) or NOT_SET]


class _QueryValues:
    """The values of all queries, to take means of some."""

    def __init__(self, scores: Scores | None, measure: str) -> None:
        self._measure = measure
        self._is_measured = scores is not None
        self._values: dict[str, float] = {}
        self._possible: Mapping[str, Ends] = {}
        if scores is not None:
            self._values = scores.by_query(measure)
            found = scores.possible(measure) if scores.summary(measure).n_failed else {}
            self._possible = {key: Ends(item.low, item.high) for key, item in found.items()}

    def estimate(self, query_ids: Sequence[str], design: Design | None) -> Estimate:
        """Return the mean over some queries, with its interval and what failures could change."""
        if not self._is_measured:
            return NOTHING
        values = {key: self._values[key] for key in query_ids if key in self._values}
        bounds = {key: self._possible[key] for key in query_ids if key in self._possible}
        mean = mean_over_queries(design, values)
        # Without the queries that have no value the mean may leave what is possible with them.
        means = [
            each
            for each in (
                mean_over_queries(
                    design, {**values, **{key: item.low for key, item in bounds.items()}}
                ),
                mean,
                mean_over_queries(
                    design, {**values, **{key: item.high for key, item in bounds.items()}}
                ),
            )
            if each is not None
        ]
        return Estimate(
            mean,
            len(values),
            len(bounds),
            min(means, default=None),
            max(means, default=None),
            _interval(self._measure, values, design),
        )


def _interval(measure: str, values: Mapping[str, float], design: Design | None) -> Ends | None:
    listed = list(values.values())
    if len(listed) < LEAST_VALUES or (design is None and is_bounded(measure)):
        return interval_of(listed)
    interval = (
        interval_by_measure(measure, listed)
        if design is None
        else sample_interval(measure, listed, design.stratified(values))
    )
    return (
        None if interval.low is None or interval.high is None else Ends(interval.low, interval.high)
    )


def summary_with_details(run: MeasuredRun, task: Task, documents: Mapping[str, str]) -> RunSummary:
    """Return the summary of a run with all that a report shows of it.

    Args:
        run: As measured.
        task: What it was measured on.
        documents: Chunk id to document, of the queries' source chunks.
    """
    summary = run.summary
    return replace(
        summary,
        estimates={
            name: _with_interval(item, run.scores, name) for name, item in summary.estimates.items()
        },
        primary=_with_interval(summary.primary, run.scores, task.primary),
        slices=slices_of(run.scores, run.task or task, documents),
        curve=recall_curve(run.scores, max(map(len, run.ranked.values()), default=0)),
        top_grades=_top_grades(run, run.cut_task(task)),
        patterns=() if run.scores is None else tuple(patterns(run.scores)),
    )


def recall_curve(scores: Scores | None, depth: int) -> tuple[CurvePoint, ...]:
    """Return the mean of R@k for each k down to `depth`, or to `DEEPEST`."""
    if scores is None or not scores.query_ids:
        return ()
    points = []
    for k in _ranks(min(depth, DEEPEST)):
        name = f"R@{k}"
        rescored = scores.rescore([name], rel_threshold=scores.rel_threshold)
        mean = rescored.mean(name)
        assert mean is not None
        points.append(CurvePoint(k, mean, _mean_interval(rescored, name)))
    return tuple(points)


def _mean_interval(scores: Scores, measure: str) -> Ends | None:
    ends = scores.interval(measure) if scores.design else None
    if ends is None or ends.n < LEAST_VALUES or ends.low is None or ends.high is None:
        return interval_of(scores.values(measure))
    return Ends(ends.low, ends.high)


def _ranks(depth: int) -> Sequence[int]:
    """Return every rank near the top, and fewer of those that a chart cannot tell apart."""
    return [k for k in range(1, depth + 1) if k <= 20 or k % 5 == 0 or k == depth]


def _with_interval(estimate: Estimate, scores: Scores | None, measure: str) -> Estimate:
    if scores is None:
        return estimate
    ends = scores.interval(measure)
    if estimate.n < LEAST_VALUES or ends.low is None or ends.high is None:
        return estimate
    return replace(estimate, interval=Ends(ends.low, ends.high))


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
