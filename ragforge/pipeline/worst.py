"""The queries on which the runs of a dataset do badly, with the likely cause of each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.causes.bad_queries import (
    BadQueriesOfRun,
    BadQuery,
    WorstReport,
    find_bad_queries,
    worst_causes,
)
from ragforge.evaluating.causes.catalogue import CauseCode, Causes
from ragforge.evaluating.causes.finder import CauseFinder
from ragforge.evaluating.evaluation_data import (
    EvaluationData,
    load_evaluation_data,
    measured_gradings,
    reading_words,
)
from ragforge.evaluating.graded_by import grades_of, mark_drift
from ragforge.evaluating.judgments import judges
from ragforge.evaluating.query_details import ChunkStart, ChunkStarts
from ragforge.evaluating.runs import PRIMARY, MeasuredRun, Task
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.stale_runs import usable_runs
from ragforge.measures import parse_measure

_ABOVE_ONE: Final = frozenset({"DCG", "NumRet", "NumRelRet", "NumRel"})
"""Measures whose values may be above 1."""


def find_worst(
    dataset: Dataset,
    run_names: Sequence[str],
    settings: EvaluateSettings,
    *,
    n: int | None,
    cause: CauseCode | None = None,
    below: float | None = None,
) -> WorstReport:
    """Find where runs do badly, and why.

    Args:
        dataset: Has queries, judgments and runs.
        run_names: Which runs; all but stale ones where empty.
        settings: The first measure counts, nDCG@10 where there is none; and the threshold.
        n: Queries listed of each run; all where None.
        cause: List only queries of this likely cause.
        below: List only queries whose value is less than this.

    Raises:
        DataError: There is no (such) run, or nothing is judged.
        UsageError: The measure, the threshold or `below` cannot be taken.
    """
    measure = parse_measure(settings.measures[0] if settings.measures else PRIMARY)
    if below is not None and below > 1 and measure.name not in _ABOVE_ONE:
        raise UsageError(f"--below {below:g}: {measure} is from 0 to 1; 30 % are --below 0.3")
    data = load_evaluation_data(
        dataset,
        measures=[str(measure)],
        rel_threshold=settings.rel_threshold,
        run_names=run_names,
    )
    _check(dataset, data)
    causes = _causes(dataset, data, str(measure))
    rel = measure.rel or settings.rel_threshold
    threshold = measure.rel or data.task.rel_threshold
    # A measure that names a grade goes by grades.
    relevant = {} if measure.rel else data.task.relevant
    task = _by_grade(data.task, measure.rel)

    def findings_of(run: MeasuredRun) -> BadQueriesOfRun:
        worst = worst_causes(causes[run.name].values(), n, cause, below)
        own = None if run.task is None else _by_grade(run.task, measure.rel)
        of_run = replace(data, task=task, runs=[replace(run, task=own)], systems=())
        return find_bad_queries(of_run, causes[run.name], worst, _mean(run, str(measure)))

    findings = tuple(map(findings_of, data.runs))
    measured_on = measured_gradings(data.judgments.of_queries(data.task.qrels), data.tasks)
    quotes = _quotes([bad for run in findings for bad in run.worst])
    return WorstReport(
        dataset=dataset.manifest.name,
        measure=str(measure),
        rel_threshold=threshold,
        cause=cause,
        runs=findings,
        starts=_starts(dataset, quotes),
        warnings=data.run_warnings,
        graded_by=mark_drift(grades_of(judges(measured_on, {})), read_canaries(dataset)),
        by_lists=bool(relevant),
        reading=reading_words(dataset, data.judgments, task, rel),
    )


def _by_grade(task: Task, rel: int | None) -> Task:
    """Return a task with the threshold that a measure names, if it names one."""
    return replace(task, rel_threshold=rel, relevant={}) if rel else task


def _check(dataset: Dataset, data: EvaluationData) -> None:
    if not data.runs:
        usable_runs(dataset).require_any()
        raise DataError(f"{dataset.path}: has no runs; make one with `ragforge retrieve`")
    if not any(data.task.qrels.values()) and not any(data.task.text_grades.values()):
        raise DataError(f"{dataset.path}: nothing to measure: no answerable query is judged")


def _causes(dataset: Dataset, data: EvaluationData, measure: str) -> dict[str, dict[str, Causes]]:
    """Return the causes of bad values, by run and query."""
    finder = CauseFinder(data.runs, data.task, measure)
    if (dataset.chunks_path).exists():
        for chunk in chain(dataset.chunks(), dataset.texts_as_chunks()):
            finder.take(chunk)
    return finder.causes()


def _mean(run: MeasuredRun, measure: str) -> float | None:
    return None if run.scores is None else run.scores.mean(measure)


def _quotes(listed: Sequence[BadQuery]) -> dict[str, tuple[str, ...]]:
    """Return the chunks that are shown, with the quotes to be seen in them."""
    return {chunk.chunk_id: chunk.quotes for bad in listed for chunk in bad.detail.chunks.values()}


def _starts(dataset: Dataset, shown: Mapping[str, tuple[str, ...]]) -> Mapping[str, ChunkStart]:
    """Read the chunks and texts that are shown; it ends with the last of them."""
    if not shown or not (dataset.chunks_path).exists():
        return {}
    starts = ChunkStarts(shown)
    for chunk in chain(dataset.texts_as_chunks(), dataset.chunks()):
        starts.take(chunk)
        if starts.has_all:
            break
    return starts.starts()
