"""Runs on batches that were drawn from logs: a series of means, such as production by week.

Batches are different questions. That one has a higher mean than the one before may be the questions
or the system, and is no trend of the set; the interval of the difference is one of two samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ragforge.deferred import dataclass, pattern
from ragforge.deferred import numpy as np
from ragforge.evaluating.formatting import one_line, plural
from ragforge.evaluating.graded_by import silent_of
from ragforge.evaluating.history.common_items import LEFT_OUT, is_read_alike
from ragforge.measures.checked_samples import Floats, is_constant
from ragforge.measures.intervals import Ends, clustered_interval
from ragforge.measures.measure_names import is_of_evidence
from ragforge.measures.rates import LEAST_VALUES, interval_of_difference
from ragforge.measures.unseen_values import interval_by_measure, is_bounded
from ragforge.records import Baseline, Draw, Evaluation, LogDraw

_SEED: Final = 0
_DIGITS: Final = pattern(r"(\d+)")


@dataclass(frozen=True, slots=True)
class BatchRun:
    """The newest evaluation of a run, with its values."""

    baseline: Baseline
    is_logged: bool
    """Whether its rankings are of a log, and not of a retriever that was asked all queries."""
    judges_of: Mapping[str, frozenset[str]]
    """By batch: the judges that graded its queries; people and rules aside."""

    @property
    def evaluation(self) -> Evaluation:
        """What was evaluated."""
        return self.baseline.evaluation


@dataclass(frozen=True, slots=True)
class Level:
    """A mean with its 95 % interval."""

    mean: float
    interval: Ends | None
    """None with fewer than five values, or where so few of them weigh nearly everything."""


@dataclass(frozen=True, slots=True)
class BatchMean:
    """A measure of a run on one batch."""

    batch: str
    run: str
    measure: str
    evaluated_at: str
    """"" for a state that is not kept."""
    n_queries: int
    """Accepted queries of the batch."""
    n: int
    """Of these, queries with a value; the others are in no mean."""
    over_queries: Level
    """Each query counts once."""
    as_asked: Level | None
    """Each query counts as often as it was asked, over its chance of being drawn. None where the
    draw did not go by frequency: what is asked most may not be in it, and nothing would tell; and
    where more than a tenth of what was asked has no value."""
    draw: Draw
    """How it was drawn."""
    share: float
    """What the batch stands for, of all that was asked in the log."""
    since: str = ""
    """The batch before it in its series; "" where there is none."""
    diff: float | None = None
    """How much higher the mean is than in that batch: as asked where both have that, else over the
    queries of two batches that were drawn alike; None where it is UNKNOWN."""
    interval: Ends | None = None
    is_as_asked: bool = False
    """Whether the difference is of the means as asked."""
    unknown: str = ""
    """Why nothing is said of the difference."""


@dataclass(frozen=True, slots=True)
class BatchSeries:
    """A measure over the batches of a set."""

    measure: str
    rows: tuple[BatchMean, ...]
    """By run, then by batch in the order of their names; runs of logs stand together."""
    notes: tuple[str, ...]
    """What is not shown, and why."""


def batch_series(
    measure: str,
    batches: Mapping[str, Mapping[str, LogDraw]],
    runs: Iterable[BatchRun],
    *,
    newest: int,
) -> BatchSeries:
    """Return how runs do on each batch, each held against the batch before it.

    A run has a row for a batch of which it has nine tenths: what is missing may be the hard part.

    Args:
        measure: Canonical name.
        batches: How each accepted query of a batch was drawn, by batch.
        runs: In the order in which they are to stand.
        newest: Batches to show at most, the last by name.
    """
    newest_batches = sorted(batches, key=_natural_order)[-newest:]
    notes: list[str] = []
    series: dict[str, list[tuple[BatchMean, BatchRun]]] = {}
    for run in runs:
        if measure not in run.evaluation.measures:
            notes.append(f"run {one_line(run.evaluation.run)} was not measured by {measure}")
            continue
        for batch in newest_batches:
            row = _row(measure, batch, batches[batch], run, notes)
            if row is not None:
                series.setdefault("" if run.is_logged else row.run, []).append((row, run))
    if "" in series:
        series[""].sort(key=lambda pair: _natural_order(pair[0].batch))
    return BatchSeries(
        measure,
        tuple(row for rows in series.values() for row in _with_differences(rows)),
        tuple(dict.fromkeys(notes)),
    )


def _row(
    measure: str,
    batch: str,
    drawn: Mapping[str, LogDraw],
    run: BatchRun,
    notes: list[str],
) -> BatchMean | None:
    """Return a run on a batch; None, with a note where it should be there, if it has too little."""
    of_batch = [
        item for item in run.baseline.items if item.query_id in drawn and measure in item.values
    ]
    retrieved = [item for item in of_batch if item.n_retrieved]
    where = f"batch {one_line(batch, 40)}, run {one_line(run.evaluation.run)}"
    if len(retrieved) < (1 - LEFT_OUT) * len(of_batch) or not retrieved:
        if of_batch and (retrieved or not run.is_logged):
            queries = plural(len(of_batch), "query", "queries")
            notes.append(f"{where}: not shown, it has rankings for {len(retrieved):,} of {queries}")
        elif not of_batch and not run.is_logged:
            notes.append(f"{where}: not shown, nothing of it was judged when the run was evaluated")
        return None
    # What a log does not hold was not asked there; a retriever that finds nothing has failed.
    items = retrieved if run.is_logged else of_batch
    values = np.array([item.values[measure] for item in items])
    draws = [drawn[item.query_id] for item in items]
    is_of_traffic = draws[0].draw == "frequency" or all(draw.inclusion == 1 for draw in draws)
    weights = np.array([draw.weight for draw in draws])
    valued = float(weights.sum()) / sum(draw.weight for draw in drawn.values())
    if valued < 1 - LEFT_OUT:
        is_of_traffic = False
        notes.append(f"{where}: {1 - valued:.0%} of what was asked has no value")
    return BatchMean(
        batch=batch,
        run=run.evaluation.run,
        measure=measure,
        evaluated_at=run.evaluation.at,
        n_queries=len(drawn),
        n=len(items),
        over_queries=_level(measure, values),
        as_asked=_weighted(measure, values, weights) if is_of_traffic else None,
        draw=draws[0].draw,
        share=draws[0].share,
    )


def _level(measure: str, values: Floats) -> Level:
    estimate = interval_by_measure(measure, values)
    assert estimate.mean is not None
    if len(values) < LEAST_VALUES or estimate.low is None or estimate.high is None:
        return Level(estimate.mean, None)
    return Level(estimate.mean, Ends(estimate.low, estimate.high))


def _weighted(measure: str, values: Floats, weights: Floats) -> Level:
    """Return the mean by weights: the ratio of two sums, resampled over the queries.

    Source: Hájek 1971 for the ratio; Kish 1965, section 11.7, for the number of equal weights that
    tell as much.
    """
    if np.ptp(weights) <= 1e-9 * weights.max():
        return _level(measure, values)
    n_alike = int(weights.sum() ** 2 / (weights @ weights))
    if is_constant(values):
        return _level(measure, values[:n_alike])
    mean = float(values @ weights / weights.sum())
    if n_alike < LEAST_VALUES:
        return Level(mean, None)
    resampled = clustered_interval(
        lambda times: (times @ (weights * values)) / (times @ weights), len(values), seed=_SEED
    )
    assert resampled.low is not None
    assert resampled.high is not None
    return Level(mean, Ends(resampled.low, resampled.high))


def _with_differences(rows: Sequence[tuple[BatchMean, BatchRun]]) -> Iterable[BatchMean]:
    """Yield rows of one series, each with its difference to the batch before."""
    names = list(dict.fromkeys(row.batch for row, _ in rows))
    by_batch = {name: [pair for pair in rows if pair[0].batch == name] for name in names}
    for row, run in rows:
        place = names.index(row.batch)
        before = by_batch[names[place - 1]] if place else []
        # Of several runs of logs on one batch nobody knows which is the one before.
        if len(before) == 1 and len(by_batch[row.batch]) == 1:
            yield _with_difference(before[0], (row, run))
        else:
            yield row


def _with_difference(
    before: tuple[BatchMean, BatchRun], now: tuple[BatchMean, BatchRun]
) -> BatchMean:
    old, new = before[0], now[0]
    unknown = _why_unknown(before, now)
    levels, is_as_asked = (old.over_queries, new.over_queries), False
    if old.as_asked is not None and new.as_asked is not None:
        levels, is_as_asked = (old.as_asked, new.as_asked), True
    elif not unknown and old.draw != new.draw:
        unknown = f"it was drawn by {new.draw}, and {one_line(old.batch, 40)} by {old.draw}"
    ends = _difference_ends(*levels, bounded=is_bounded(new.measure))
    if not unknown and ends is None:
        unknown = f"too few questions of {one_line(old.batch, 40)} or of this batch weigh enough"
    if unknown:
        return replace(new, since=old.batch, unknown=unknown)
    diff = levels[1].mean - levels[0].mean
    return replace(new, since=old.batch, diff=diff, interval=ends, is_as_asked=is_as_asked)


def _difference_ends(old: Level, new: Level, *, bounded: bool) -> Ends | None:
    """Return the interval of the difference of two means of different queries.

    Source: `ragforge.measures.rates.interval_of_difference`.
    """
    if old.interval is None or new.interval is None:
        return None
    ends = interval_of_difference(old.mean, old.interval, new.mean, new.interval)
    return Ends(max(ends.low, -1.0), min(ends.high, 1.0)) if bounded else ends


def _why_unknown(before: tuple[BatchMean, BatchRun], now: tuple[BatchMean, BatchRun]) -> str:
    """Return why two batches are not held against each other; "" where nothing forbids it."""
    (old, old_run), (new, new_run) = before, now
    for run in (old_run, new_run):
        silent = silent_of(run.evaluation.graders)
        if silent.any and not is_of_evidence(new.measure):
            return f"grades are {silent.basis}, which says nothing about quality"
    if not is_read_alike(old_run.evaluation, new_run.evaluation):
        return "the two evaluations call other grades relevant"
    judges = old_run.judges_of.get(old.batch, frozenset()) | new_run.judges_of.get(
        new.batch, frozenset()
    )
    if len(judges) > 1:
        return f"they were graded by several judges: {', '.join(sorted(judges))}"
    for row in (old, new):
        if row.n < (1 - LEFT_OUT) * row.n_queries:
            n, of = f"{row.n:,}", f"{row.n_queries:,}"
            return f"only {n} of {of} queries of {one_line(row.batch, 40)} have a value"
    return ""


def _natural_order(name: str) -> list[tuple[bool, int, str]]:
    """Return a key by which week9 comes before week10."""
    return [
        (False, int(part), "") if part.isdecimal() else (True, 0, part)
        for part in _DIGITS.split(name)
        if part
    ]
