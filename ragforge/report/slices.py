"""The primary measure of a run over the queries that share a property."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Final

from ragforge.measures import Scores
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES
from ragforge.measures.strata import Design
from ragforge.measures.stratified import sample_interval
from ragforge.measures.unseen import bounded_interval
from ragforge.records import Query
from ragforge.report.answers.records import documents_of
from ragforge.report.estimate import Estimate
from ragforge.report.runs import NOT_SET, NOTHING, PRIMARY, Slice, Task

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


def slices_of(scores: Scores | None, task: Task, documents: Mapping[str, str]) -> tuple[Slice, ...]:
    """Part the queries by each of `DIMENSIONS` that tells some of them from others.

    Args:
        scores: Of the run; None where nothing was measured.
        task: What it was measured on. Of a sample, a slice stands for that slice of the set.
        documents: Chunk id to document, of the queries' source chunks.
    """
    return tuple(
        Slice(dimension, value, len(query_ids), {PRIMARY: estimate})
        for dimension in DIMENSIONS
        for value, query_ids, estimate in _parts(scores, task, documents, dimension)
    )


def interval_of(values: Sequence[float]) -> Ends | None:
    """Return the 95 % interval of the mean of a measure in [0, 1]; None of few values.

    Their resamples are alike, so that the interval would claim to know far too much.
    """
    if len(values) < LEAST_VALUES:
        return None
    found = bounded_interval(values)
    if found.low is None or found.high is None:
        return None
    return Ends(found.low, found.high)


def _parts(
    scores: Scores | None,
    task: Task,
    documents: Mapping[str, str],
    dimension: str,
) -> Iterable[tuple[str, Sequence[str], Estimate]]:
    members = _members(task.queries, documents, dimension)
    if len(members) < 2:
        return
    every = _members(task.population, documents, dimension) if task.design else members
    most = sorted(members, key=lambda value: (-len(members[value]), value))[:MOST_VALUES]
    known = _Known(scores)
    for value in sorted(most):
        design = task.design.within(every[value]) if task.design else None
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


class _Known:
    """The values of all queries, to take means of some."""

    def __init__(self, scores: Scores | None) -> None:
        self._is_measured = scores is not None
        self._values: dict[str, float] = {}
        self._possible: Mapping[str, Ends] = {}
        if scores is not None:
            self._values = dict(zip(scores.query_ids, scores.values(PRIMARY), strict=True))
            found = scores.possible(PRIMARY) if scores.summary(PRIMARY).n_failed else {}
            self._possible = {key: Ends(item.low, item.high) for key, item in found.items()}

    def estimate(self, query_ids: Sequence[str], design: Design | None) -> Estimate:
        """Return the mean over some queries, with its interval and what failures could change."""
        if not self._is_measured:
            return NOTHING
        values = {key: self._values[key] for key in query_ids if key in self._values}
        bounds = {key: self._possible[key] for key in query_ids if key in self._possible}
        mean = _mean(values, design)
        # Without the queries that have no value the mean may leave what is possible with them.
        means = [
            found
            for found in (
                _mean({**values, **{key: item.low for key, item in bounds.items()}}, design),
                mean,
                _mean({**values, **{key: item.high for key, item in bounds.items()}}, design),
            )
            if found is not None
        ]
        return Estimate(
            mean,
            len(values),
            len(bounds),
            min(means, default=None),
            max(means, default=None),
            _interval(values, design),
        )


def _mean(values: Mapping[str, float], design: Design | None) -> float | None:
    if design is not None:
        return design.mean(values)
    return fsum(values.values()) / len(values) if values else None


def _interval(values: Mapping[str, float], design: Design | None) -> Ends | None:
    listed = list(values.values())
    if design is None or len(listed) < LEAST_VALUES:
        return interval_of(listed)
    found = sample_interval(PRIMARY, listed, design.stratified(values))
    return None if found.low is None or found.high is None else Ends(found.low, found.high)
