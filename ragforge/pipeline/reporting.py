"""Writing a report about a dataset."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ragforge.calibration.comparing import require_threshold, with_calibration
from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.query_table import MAX_BYTES
from ragforge.evaluating.summary import Summary, summarise
from ragforge.files.atomic import write_whole
from ragforge.files.page_files import page_files
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import read_history
from ragforge.pipeline.comparing.answers import compare_answers
from ragforge.pipeline.comparing.deciding import ComparisonOptions
from ragforge.pipeline.evaluated import evaluate_data
from ragforge.pipeline.history import batches_now, uneven_notes, with_now
from ragforge.pipeline.judge.agreement import agreement_in
from ragforge.records import Calibration
from ragforge.report.page.page import render_html
from ragforge.report.set_report import render_markdown, render_text

RENDERERS: dict[str, Callable[[Summary], str]] = {
    "markdown": render_markdown,
    "text": render_text,
}


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What a report is about."""

    run_names: Sequence[str] = ()
    """Which runs; all where empty."""
    base: str = ""
    """The run that all others are held against; each two are compared where "", and the first
    run is the one that the page looks from."""
    calibration: Calibration | None = None
    """By which levels and differences are corrected."""


ALL_RUNS: Final = ReportOptions()


@dataclass(frozen=True, slots=True)
class PageRoom:
    """Where the drill-downs of queries go."""

    max_bytes: int
    """What they may take of a page."""
    has_all_texts: bool = False
    """Whether those of all queries are wanted, even so."""


NO_PAGE: Final = PageRoom(0)
_FIT_FOR_MAIL: Final = PageRoom(MAX_BYTES, has_all_texts=True)
_SINGLE: Final = PageRoom(sys.maxsize)
_SERVED: Final = PageRoom(4 * MAX_BYTES)
"""Nobody mails a page that is served, and it has no files beside it."""


def write_report(
    dataset: Dataset,
    out: Path,
    form: str,
    settings: EvaluateSettings,
    options: ReportOptions = ALL_RUNS,
    *,
    is_single: bool = False,
) -> Summary:
    """Write a report, and return what it says.

    Args:
        dataset: What it is about.
        out: The file; replaced whole. A page of many queries has a folder `NAME_files` beside it.
        form: "html", or a key of `RENDERERS`.
        settings: Measures and threshold.
        options: Which runs.
        is_single: Whether a page is one file, however many queries there are.

    Raises:
        DataError: The dataset cannot be read, or the file cannot be written.
        UsageError: There is no such base, or a measure or the threshold cannot be taken, or what
            is in the place of the folder is none.
    """
    if form != "html":
        summary = report_summary(dataset, settings, options)
        write_whole(out, [RENDERERS[form](summary)])
    elif out.exists() and not out.is_file():
        # Nothing is beside a pipe.
        summary = report_summary(dataset, settings, options, _SINGLE)
        write_whole(out, [render_html(summary)])
    else:
        with page_files(out) as files:
            room = _SINGLE if is_single else _FIT_FOR_MAIL
            summary = report_summary(dataset, settings, options, room)
            files.write_page([render_html(summary, files)])
    return summary


def served_report(dataset: Dataset, settings: EvaluateSettings) -> str:
    """Return the report of a dataset as a page without files beside it, of a few megabytes.

    Raises:
        DataError: The dataset cannot be read.
        UsageError: A measure or the threshold cannot be taken.
    """
    return render_html(report_summary(dataset, settings, room=_SERVED))


def report_summary(
    dataset: Dataset,
    settings: EvaluateSettings,
    options: ReportOptions = ALL_RUNS,
    room: PageRoom = NO_PAGE,
) -> Summary:
    """Return the contents of a report: the set, its past, and which run is better.

    Raises:
        DataError: The dataset cannot be read.
        UsageError: There is no such base, or a measure or the threshold cannot be taken.
    """
    # Copies among chunks are looked for with it; loaded before, it computes the measures too.
    import numpy  # noqa: F401

    summary = summarise(
        dataset,
        measures=settings.measures,
        rel_threshold=settings.rel_threshold,
        run_names=options.run_names,
        max_bytes=room.max_bytes,
        has_all_texts=room.has_all_texts,
    )
    if options.calibration is not None:
        require_threshold(
            options.calibration,
            summary.rel_threshold,
            options.calibration.measures,
            by_lists=summary.by_lists,
        )
        warnings = (*summary.run_warnings, *options.calibration.warnings)
        summary = replace(summary, run_warnings=warnings)
    names = [run.name for run in summary.runs]
    if options.base and options.base not in names:
        raise UsageError(f"base {options.base!r}: expected one of the runs: {', '.join(names)}")
    valued = [run.name for run in summary.runs if run.primary.n]
    history = read_history(dataset.home)
    found = summary.table.records
    summary = replace(summary, agreement=agreement_in(dataset, found.judgments))
    has_batches = any(query.drawn is not None for query in found.queries.values())
    now = evaluate_data(dataset, found) if history.evaluations or has_batches else []
    if history.evaluations:
        history = with_now(dataset, history, now)
        notes = (*history.notes, *uneven_notes(dataset, history, names))
        history = replace(history, notes=notes)
    followed = next(
        name for name in (summary.primary, *summary.measures) if name in summary.measures
    )
    summary = replace(
        summary,
        history=history,
        batches=batches_now(dataset, now, followed) if now else None,
        calibration=options.calibration,
        canaries=read_canaries(dataset),
        base=options.base or next(iter(valued), next(iter(names), "")),
    )
    if len(names) > 1:
        summary = _compared(summary, dataset, settings, options)
    return _with_answers(summary, dataset) if len(summary.answers) > 1 else summary


def _compared(
    summary: Summary, dataset: Dataset, settings: EvaluateSettings, options: ReportOptions
) -> Summary:
    """Add the comparison, or why there is none: runs of other queries do not spoil a report."""
    from ragforge.pipeline.comparing.runs import compare_gathered

    how = ComparisonOptions(baseline=options.base or None)
    try:
        found = compare_gathered(dataset, summary.table.records, settings, how)
    except (DataError, UsageError) as error:
        return replace(summary, not_compared=f"The runs are not compared: {error}.")
    if options.calibration is not None:
        # What is to be known of the labels stands at the head of the report already.
        found = replace(with_calibration(found, options.calibration), warnings=found.warnings)
    return replace(summary, comparison=found)


def _with_answers(summary: Summary, dataset: Dataset) -> Summary:
    """Add the comparison of answer systems, if there is one to be had."""
    try:
        found = compare_answers(dataset, (), EvaluateSettings())
    except (DataError, UsageError):
        return summary
    return replace(summary, answers_comparison=found)
