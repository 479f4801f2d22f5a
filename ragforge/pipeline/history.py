"""Keeping evaluations in the history of their dataset, and finding those to compare with."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from ragforge.errors import DataError, UsageError
from ragforge.files.dataset import Dataset
from ragforge.files.history import History, appending, read_history
from ragforge.files.item_values import drop_old_values, values_in, write_values
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.evaluated import EvaluatedRun, sealed
from ragforge.records import Baseline, BridgeMean, Evaluation
from ragforge.report.history.bridge import bridge
from ragforge.report.history.of_run import RunHistory, run_history
from ragforge.report.history.trends import Trend, trend_of_means, trend_on_bridge

WINDOW: Final = 10
"""Evaluations that the longer trend reaches over."""


def keep_evaluations(
    dataset: Dataset, runs: Iterable[EvaluatedRun], observer: Observer = silent
) -> list[Evaluation]:
    """Add evaluations to the history, each with the bridge to the one of its run before.

    Args:
        dataset: The one they were made on.
        runs: Just evaluated.
        observer: Told what of the history could not be used.

    Returns:
        The evaluations as they were kept: with their bridge, and so with other ids.

    Raises:
        DataError: The history cannot be written.
    """
    with appending(dataset.path) as ledger:
        history = read_history(dataset.path)
        kept = [_bridged(dataset, history, run.baseline, observer) for run in runs]
        for baseline in kept:
            write_values(dataset.path, baseline)
        evaluations = [baseline.evaluation for baseline in kept]
        if ledger.append(evaluations):
            _note(observer, f"{ledger.path}: the last line was torn; it stays, and is passed over")
        everything = History((*history.evaluations, *evaluations))
        drop_old_values(dataset.path, everything)
    return evaluations


def last_other(dataset: Dataset, evaluated: EvaluatedRun) -> Baseline | None:
    """Return the newest evaluation of a run that was made on something else, or found it.

    Args:
        dataset: Whose history is searched.
        evaluated: The run as it is now; whether it is in the history makes no difference.

    Returns:
        The newest one of the run with a digest that is not that of now; None where there is none,
        or its values are not kept any more.

    Raises:
        DataError: The history cannot be read, or those values are damaged.
    """
    now = evaluated.evaluation
    history = read_history(dataset.path)
    others = [item for item in history.of_run(now.run) if item.digests != now.digests]
    return values_in(dataset.path, history, others[-1]) if others else None


def run_histories(
    dataset: Dataset,
    history: History,
    run_names: Iterable[str] = (),
    measures: Sequence[str] = (),
    *,
    window: int = WINDOW,
) -> list[RunHistory]:
    """Return what the history of a dataset says of each run.

    Args:
        dataset: Whose history it is.
        history: As it was read.
        run_names: Which runs; all where empty.
        measures: Canonical names; for each run those of its newest evaluation where empty.
        window: Evaluations that the longer trend reaches over, at most.

    Raises:
        UsageError: There is no such run or measure.
    """
    names = list(dict.fromkeys(run_names)) or list(history.runs)
    for name in names:
        if name not in history.runs:
            there = ", ".join(history.runs) or "none yet"
            raise UsageError(f"{dataset.path}: no evaluation of run {name!r}; there are: {there}")
    return [_of_run(dataset, history, name, measures, window) for name in names]


def _of_run(
    dataset: Dataset, history: History, name: str, measures: Sequence[str], window: int
) -> RunHistory:
    evaluations = history.of_run(name)
    known = dict.fromkeys(m for item in reversed(evaluations) for m in item.measures)
    for measure in measures:
        if measure not in known:
            raise UsageError(
                f"{dataset.path}: run {name!r} was never measured by {measure}; "
                f"there are: {', '.join(known)}"
            )
    seen = evaluations[-window:]
    trends = _window_trends(dataset, history, seen, measures) if len(seen) > 2 else []
    return run_history(evaluations, measures, window=trends, window_size=len(seen))


def _window_trends(
    dataset: Dataset, history: History, seen: Sequence[Evaluation], measures: Sequence[str]
) -> list[Trend]:
    """Return where measures went from the first to the last of some evaluations."""
    first, last = seen[0], seen[-1]
    means: dict[str, BridgeMean] = {}
    with suppress(DataError):  # Damaged values: the means are still there.
        before, now = (values_in(dataset.path, history, item) for item in (first, last))
        means = bridge(before, now) if before is not None and now is not None else {}
    return [
        trend_on_bridge(first, last, name, means[name])
        if name in means
        else trend_of_means(first, last, name)
        for name in measures or last.measures
    ]


def _bridged(dataset: Dataset, history: History, now: Baseline, observer: Observer) -> Baseline:
    before = _before(dataset, history.of_run(now.evaluation.run), history, observer)
    means = bridge(before, now) if before is not None else {}
    if before is None or not means:
        return now
    update = {"bridge_to": before.evaluation.evaluation_id, "bridge": means}
    return now.model_copy(update={"evaluation": sealed(now.evaluation.model_copy(update=update))})


def _before(
    dataset: Dataset, of_run: Sequence[Evaluation], history: History, observer: Observer
) -> Baseline | None:
    if not of_run:
        return None
    try:
        return values_in(dataset.path, history, of_run[-1])
    except DataError as error:
        _note(observer, f"{error}; not compared item by item with the evaluation before")
        return None


def _note(observer: Observer, message: str) -> None:
    observer(Event("note", "history", message=message))
