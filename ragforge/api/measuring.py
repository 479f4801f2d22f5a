"""Measuring runs: evaluate, compare, decide, report; only `judge_as_needed` asks a model."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from inspect import signature
from math import inf
from os import PathLike
from pathlib import Path
from typing import Final, Literal, Unpack, overload

from ragforge.api.arguments import checked
from ragforge.api.call import EVALUATE, Call, Handle, begin, part_of, whole_of
from ragforge.api.compared import RunComparison
from ragforge.api.decided import BestRuns, RunDecision, compare_as_needed
from ragforge.api.gating import (
    GateBasis,
    GateDecision,
    allowances,
    checked_rules,
    decide,
    given_rules,
)
from ragforge.api.jobs import Runs, names_of
from ragforge.api.keywords import ComparingKeywords, EvaluateKeywords, JudgeKeywords
from ragforge.api.measured import MeasuredRuns
from ragforge.api.outcomes import VersionDifference
from ragforge.api.reports import BatchHistory, RunHistories, WorstQueries, WrittenReport, form_of
from ragforge.api.results import Estimate
from ragforge.api.running import run_now
from ragforge.calibration.comparing import with_calibration
from ragforge.errors import UsageError
from ragforge.evaluating.causes.catalogue import CauseCode
from ragforge.evaluating.gate import Allowance, FailOn
from ragforge.files.set.baseline import write_baseline
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import read_history
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.versions import open_version
from ragforge.measures.measure_names import canonical
from ragforge.observe import Event
from ragforge.pipeline.calibrating import read_calibration, with_levels
from ragforge.pipeline.comparing.answers import compare_answers as compare_answers_of
from ragforge.pipeline.comparing.deciding import ComparisonOptions
from ragforge.pipeline.comparing.runs import compare_files as compare_files_of
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.evaluating import evaluate_dataset
from ragforge.pipeline.evaluating import evaluate_files as evaluate_files_of
from ragforge.pipeline.history import (
    batch_histories,
    kept_in_history,
    run_histories,
    stale_notes,
    uneven_notes,
)
from ragforge.pipeline.job import Mode
from ragforge.pipeline.notifying import notify_gate
from ragforge.pipeline.observer_events import emit_evaluations
from ragforge.pipeline.reporting import ReportOptions, report_summary
from ragforge.pipeline.reporting import write_report as write_report_of
from ragforge.pipeline.worst import find_worst
from ragforge.records import Calibration
from ragforge.refresh.version_diffs import compare_versions

Measures = str | Sequence[str]
"""The name of a measure, or several, as `parse_measure` reads them."""
MOVED: Final = 10
"""Queries that gained, and that lost, of each comparison."""


@checked
def evaluate(
    handle: Handle,
    runs: Runs = (),
    measures: Measures = (),
    *,
    only_retrieved: bool = False,
    history: bool = True,
    calibrated: bool | str = False,
    **settings: Unpack[EvaluateKeywords],
) -> MeasuredRuns:
    """Compute measures from judgments and runs, per query and in the mean.

    Every query with judgments counts, with 0 where a run lacks it. What failed has no value, and
    the mean gets bounds instead.

    Args:
        handle: The set.
        runs: Which; all but stale ones where empty.
        measures: Which; the usual ones where empty.
        only_retrieved: Leave queries out that a run lacks.
        history: Add a line for each run to the set's history.
        calibrated: Correct by people's labels: see `calibrate`; the name of a calibration where
            there are several.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: There is no (such) run, it was made on other chunks, or nothing is judged.
        UsageError: A measure or the threshold cannot be taken.
    """
    with _begin(evaluate, handle, measures, settings) as call:
        dataset = part_of(handle)
        found = evaluate_dataset(
            dataset, names_of(runs), call.settings.evaluate, only_retrieved=only_retrieved
        )
        found = with_levels(found, _calibration(dataset, calibrated))
        notes = call.notes
        if history:
            kept, warning = kept_in_history(dataset, found.records, call.observer)
            found = replace(found, records=tuple(kept))
            notes.extend([warning] if warning else [])
        if call.names_observer:
            emit_evaluations(found.records, call.observer)
        return MeasuredRuns(found, tuple(notes))


@overload
def compare(
    handle: Handle,
    *runs: str,
    measures: Measures = ...,
    base: str | None = ...,
    alpha: float = ...,
    moved: int = ...,
    only_retrieved: bool = ...,
    calibrated: bool | str = ...,
    judge_as_needed: Literal[False] = ...,
    **settings: Unpack[EvaluateKeywords],
) -> RunComparison: ...


@overload
def compare(
    handle: Handle,
    a: str,
    b: str,
    /,
    *,
    measures: Measures = ...,
    judge_as_needed: Literal[True],
    again: bool = ...,
    sample_seed: int = ...,
    dry_run: Literal[False] = ...,
    **settings: Unpack[JudgeKeywords],
) -> RunDecision: ...


@overload
def compare(
    handle: Handle,
    *runs: str,
    measures: Measures = ...,
    judge_as_needed: Literal[True],
    again: bool = ...,
    sample_seed: int = ...,
    dry_run: Literal[False] = ...,
    **settings: Unpack[JudgeKeywords],
) -> RunDecision | BestRuns: ...


@overload
def compare(
    handle: Handle,
    *runs: str,
    measures: Measures = ...,
    judge_as_needed: Literal[True],
    again: bool = ...,
    sample_seed: int = ...,
    dry_run: Literal[True],
    **settings: Unpack[JudgeKeywords],
) -> Estimate: ...


@checked
def compare(
    handle: Handle,
    *runs: str,
    measures: Measures = (),
    base: str | None = None,
    alpha: float = 0.05,
    moved: int = MOVED,
    only_retrieved: bool = False,
    calibrated: bool | str = False,
    judge_as_needed: bool = False,
    again: bool = False,
    sample_seed: int = 0,
    dry_run: bool = False,
    **settings: Unpack[ComparingKeywords],
) -> RunComparison | RunDecision | BestRuns | Estimate:
    """Tell which of several runs is better, and whether that can be told at all.

    With `judge_as_needed` a model grades pairs of the runs only until that is decided, by one
    measure: DCG@k (DCG@10 by default), P@k, RR or Success@k. The sample stays out of the set's
    judgments.

    Args:
        handle: The set.
        runs: Two or more; all where none is named.
        measures: By which; the first decides. Intervals widen with each, so name those you need.
        base: Hold each other run against this one only; it need not be named among the runs.
        alpha: Chance of any false finding among all comparisons.
        moved: Queries that gained most, and that lost most, of each two.
        only_retrieved: Leave queries out that a run lacks, rather than count them as 0.
        calibrated: Correct by people's labels: see `calibrate`; the name of a calibration where
            there are several.
        judge_as_needed: Judge a sample of the pairs, and return a `RunDecision` of two runs,
            or the `BestRuns` of more.
        again: With judge_as_needed: use no grade of another model or prompt.
        sample_seed: With judge_as_needed: the same one asks for the same pairs.
        dry_run: With judge_as_needed: return what it may take, as an `Estimate`; nothing is asked.
        settings: rel_threshold and others, and with judge_as_needed model, max_cost_usd and others;
            see `ragforge.api.keywords`.

    Raises:
        DataError: There is no such run, it was made on other chunks, or nothing is judged.
        UsageError: A measure or another argument cannot be taken.
        EndpointError, BudgetError: Judging was stopped; replies are kept, the same call goes on.
    """
    if judge_as_needed:
        if base is not None or calibrated or only_retrieved or alpha != 0.05:
            raise UsageError(
                "compare: base, alpha, calibrated and only_retrieved do not go with judge_as_needed"
            )
        mode = Mode(again=again, dry_run=dry_run)
        return run_now(
            compare_as_needed(handle, runs, names_of(measures), mode, sample_seed, **settings)
        )
    if again or dry_run or sample_seed:
        raise UsageError("compare: again, dry_run and sample_seed go with judge_as_needed")
    options = _options(base, alpha, moved, only_retrieved=only_retrieved)
    with _begin(compare, handle, measures, settings) as call:
        names = _with_base(runs, base, call)
        dataset = part_of(handle)
        report = compare_runs(dataset, names, call.settings.evaluate, options)
        found = _calibration(dataset, calibrated)
        report = report if found is None else with_calibration(report, found)
        return RunComparison(report, tuple(call.notes))


@checked
def compare_answers(
    handle: Handle,
    *systems: str,
    measures: Measures = (),
    base: str | None = None,
    alpha: float = 0.05,
    moved: int = MOVED,
    **settings: Unpack[EvaluateKeywords],
) -> RunComparison:
    """Tell which of several systems answers better, by the grades of their answers.

    Args:
        handle: The set.
        systems: Two or more; all where none is named.
        measures: As for `compare`, of those of answers.
        base: As for `compare`.
        alpha: As for `compare`.
        moved: As for `compare`.
        settings: As for `compare`.

    Raises:
        DataError: There is no such system, or none of its answers is graded.
        UsageError: A measure or another argument cannot be taken.
    """
    options = _options(base, alpha, moved, only_retrieved=False)
    with _begin(compare_answers, handle, measures, settings) as call:
        names = _with_base(systems, base, call)
        report = compare_answers_of(part_of(handle), names, call.settings.evaluate, options)
        return RunComparison(report, tuple(call.notes))


@checked
def evaluate_files(
    qrels: str | PathLike[str],
    runs: str | PathLike[str] | Sequence[str | PathLike[str]],
    measures: Measures = (),
    *,
    only_retrieved: bool = False,
    **settings: Unpack[EvaluateKeywords],
) -> MeasuredRuns:
    """Compute measures of run files; `ragforge.evaluate` takes what is in memory.

    Args:
        qrels: File of judgments: TREC, JSON Lines, JSON, CSV or a BEIR folder.
        runs: One or more files.
        measures: Which; the usual ones where empty.
        only_retrieved: Leave queries out that a run lacks, rather than count them as 0.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: A file does not hold to its format.
        UsageError: A measure or the threshold cannot be taken.
    """
    own = {"evaluate.measures": tuple(names_of(measures))} if measures else {}
    paths = [Path(runs)] if isinstance(runs, str | PathLike) else [Path(path) for path in runs]
    with begin(EVALUATE, settings, {}, own=own) as call:
        found = evaluate_files_of(
            Path(qrels), paths, call.settings.evaluate, only_retrieved=only_retrieved
        )
        return MeasuredRuns(found, tuple(call.notes))


@checked
def compare_files(
    qrels: str | PathLike[str],
    runs: Sequence[str | PathLike[str]],
    measures: str | Sequence[str] = (),
    *,
    base: str | None = None,
    alpha: float = 0.05,
    only_retrieved: bool = False,
    **settings: Unpack[EvaluateKeywords],
) -> RunComparison:
    """Tell which of several run files is better; `EvaluationSet.compare` does so in a set.

    Args:
        qrels: File of judgments: TREC, JSON Lines, JSON, CSV or a BEIR folder.
        runs: Two or more files.
        measures: By which; the first decides.
        base: Name of the run (its file's, without endings) that the others are held against.
        alpha: Chance of any false finding among all comparisons.
        only_retrieved: Leave queries out that a run lacks, rather than count them as 0.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: A file does not hold to its format, or runs share no query.
        UsageError: A measure or another argument cannot be taken.
    """
    own = {"evaluate.measures": tuple(names_of(measures))} if measures else {}
    options = ComparisonOptions(alpha=alpha, baseline=base, only_retrieved=only_retrieved)
    with begin(EVALUATE, settings, {}, own=own) as call:
        paths = [Path(path) for path in runs]
        report = compare_files_of(Path(qrels), paths, call.settings.evaluate, options)
        return RunComparison(report, tuple(call.notes))


@checked
def gate(
    handle: Handle,
    run: str | None = None,
    *,
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    max_drop: Mapping[str, float | Literal["auto"]] | None = None,
    max_failures: float | str | None = None,
    min_queries: int | None = None,
    max_holes: float | str | None = None,
    point: bool = False,
    fail_on: FailOn = "regression",
    baseline: str | PathLike[str] | None = None,
    baseline_file: str | PathLike[str] | None = None,
    write_baseline_to: str | PathLike[str] | None = None,
    answers: str | None = None,
    allow: Allowance | Collection[Allowance] = (),
    calibrated: bool | str = False,
    **settings: Unpack[EvaluateKeywords],
) -> GateDecision:
    """Decide whether a run, or a system's answers, may ship: see `GateDecision.passed`.

    A threshold is held where the low end of the mean's 95 % interval is at or above it. What the
    gate cannot judge it refuses, which is no pass. Where it fails, the hooks of [refresh] are told.

    Args:
        handle: The set.
        run: Which; the only one where None.
        min: Means that must be reached, such as {"nDCG@10": 0.6}.
        max: Means that must not be passed, of measures of which less is better.
        max_drop: How much lower than the baseline's a mean may be; `auto` for the least that the
            queries can rule out.
        max_failures: Share of the queries that may have failed, 0.01 or `1%`.
        min_queries: Refuse to decide on fewer; 25 where None.
        max_holes: Refuse where more of the top 10 have no grade; a tenth where None.
        point: Decide on means, not on the ends of their intervals.
        fail_on: What stops the run: a `regression` that is shown (a mean shown to be below its
            threshold, or to have dropped), or also what is `not-shown` either way.
        baseline: A file, `last` (the newest evaluation that differs from now, else the newest), or
            `main` (the file as the main branch has it).
        baseline_file: The file that `main` reads.
        write_baseline_to: Write it as a baseline, if all rules are shown to be held.
        answers: The system whose answers are decided on, in place of a run.
        allow: What does not refuse the gate: few, holes, baseline-judge, dataset-change,
            grading-change.
        calibrated: Correct by people's labels: see `calibrate`; the name of a calibration where
            there are several.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: There is nothing to check, or rules do not go together.
        DataError: There is no such run, system or baseline, or nothing is judged.
    """
    given = given_rules(
        {
            "min": min,
            "max": max,
            "max_drop": max_drop,
            "max_failures": max_failures,
            "min_queries": min_queries,
            "max_holes": max_holes,
            "point": point,
            "fail_on": fail_on,
            "answers": answers,
        }
    )
    held = GateBasis(
        None if baseline is None else str(baseline),
        None if baseline_file is None else Path(baseline_file),
        allowances(allow),
    )
    if answers is not None and run is not None:
        raise UsageError("give either run or answers")
    rules = checked_rules(given, baseline, writes=write_baseline_to is not None)
    with _begin(gate, handle, (), settings) as call:
        dataset = part_of(handle)
        held = held._replace(calibration=_calibration(dataset, calibrated))
        decided = decide(dataset, run, answers, rules, held, call.settings.evaluate)
        if not decided.verdict.passed:
            notify_gate(decided.verdict, call.settings.refresh, call.observer)
        elif write_baseline_to is not None and decided.verdict.is_shown:
            write_baseline(Path(write_baseline_to), decided.subject.baseline)
        return GateDecision(decided.verdict, tuple(call.notes))


@checked
def report(
    handle: Handle,
    out: str | PathLike[str] | None = None,
    *,
    runs: Runs = (),
    base: str = "",
    measures: Measures = (),
    calibrated: bool | str = False,
    single: bool = False,
    **settings: Unpack[EvaluateKeywords],
) -> WrittenReport:
    """Write a page about a set: what changed, measures, which run is better, and every query.

    Args:
        handle: The set.
        out: A file whose ending decides the form: .html, .md or .txt; none is written where None.
            A page of many queries has a folder `NAME_files` beside it.
        runs: Which; all where empty.
        base: The run that all others are held against; each two are compared where "".
        measures: Which; the usual ones where empty.
        calibrated: Correct by people's labels: see `calibrate`; the name of a calibration where
            there are several.
        single: Whether a page is one file, however large.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: The set cannot be read, or the file cannot be written.
        UsageError: The ending names no form, there is no such base or measure, or what is to be
            one file is no page.
    """
    path = None if out is None else Path(out)
    form = None if path is None else form_of(path)
    if single and form != "html":
        raise UsageError("single: is for a page: out='FILE.html'")
    with _begin(report, handle, measures, settings) as call:
        dataset, wanted = whole_of(handle, "report"), call.settings.evaluate
        found = _calibration(dataset, calibrated)
        options = ReportOptions(tuple(names_of(runs)), base, found)
        if path is None or form is None:
            summary = report_summary(dataset, wanted, options)
        else:
            summary = write_report_of(dataset, path, form, wanted, options, is_single=single)
        return WrittenReport(summary, path, tuple(call.notes))


@checked
def worst(
    handle: Handle,
    runs: Runs = (),
    *,
    n: int | None = 20,
    below: float | None = None,
    cause: CauseCode | None = None,
    measure: str | None = None,
    **settings: Unpack[EvaluateKeywords],
) -> WorstQueries:
    """Show where runs do badly, and the likely cause: what to repair first.

    Args:
        handle: The set.
        runs: Which; all where empty.
        n: Queries listed of each run; all where None.
        below: List only queries with a value less than this.
        cause: List only queries with this likely cause.
        measure: By which; nDCG@10 where None.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: There is no (such) run, or nothing is judged.
        UsageError: The measure or the threshold cannot be taken.
    """
    if n is not None and n < 0:
        raise UsageError(f"worst: n: expected a whole number from 0, got {n}")
    if below is not None and not 0 < below < inf:
        raise UsageError(
            f"worst: below: expected a number above 0, as no value is less than 0, got {below:g}"
        )
    with _begin(worst, handle, [measure] if measure else (), settings) as call:
        found = find_worst(
            part_of(handle),
            names_of(runs),
            call.settings.evaluate,
            n=n,
            cause=cause,
            below=below,
        )
        return WorstQueries(found, tuple(call.notes))


@checked
def history(handle: Handle, runs: Runs = (), measures: Measures = ()) -> RunHistories:
    """Show how runs did over time: what changed, and where measures go.

    Args:
        handle: The set.
        runs: Which; all that were evaluated where empty.
        measures: Which; all that were computed where empty.

    Raises:
        DataError: The history cannot be read.
        UsageError: A measure cannot be taken.
    """
    dataset = whole_of(handle, "history")
    past = read_history(dataset.home)
    found = run_histories(dataset, past, names_of(runs), _canonical(measures))
    names = [item.run for item in found]
    notes = (*past.notes, *stale_notes(dataset, names), *uneven_notes(dataset, past, names))
    return RunHistories(handle.path, tuple(found), notes)


@checked
def history_by_batch(
    handle: Handle, runs: Runs = (), measures: Measures = (), *, n: int = 20
) -> BatchHistory:
    """Show how runs do on each batch of queries that `add_logs(sample=…)` drew, such as weeks.

    Args:
        handle: The set.
        runs: Which, by their newest evaluation; all that were evaluated where empty.
        measures: Which; the first of the newest evaluation where empty.
        n: Batches, the last by name.

    Raises:
        DataError: The history cannot be read.
        UsageError: No query was drawn from a log, or there is no such run or measure.
    """
    if n < 1:
        raise UsageError(f"n {n}: expected at least 1")
    dataset = whole_of(handle, "history_by_batch")
    past = read_history(dataset.home)
    wanted = _canonical(measures)
    found = batch_histories(dataset, past, names_of(runs), wanted, newest=n)
    notes = (*past.notes, *stale_notes(dataset, past.runs))
    return BatchHistory(handle.path, tuple(found), notes)


@checked
def diff(handle: Handle, since: int | str | PathLike[str] | Handle) -> VersionDifference:
    """Show how the published version differs from an earlier one, query by query, and why.

    Args:
        handle: The set.
        since: Number of the earlier version; or another set, or the directory of one.

    Raises:
        DataError: There is no such version or set.
    """
    now = whole_of(handle, "diff")
    if isinstance(since, int):
        before = open_version(handle.path, since)
    else:
        before = open_dataset(since.path if isinstance(since, Handle) else Path(since))
    return VersionDifference(compare_versions(before, now))


def _calibration(dataset: Dataset, asked: bool | str) -> Calibration | None:
    """Return the calibration asked for; None for none."""
    if asked is False:
        return None
    return read_calibration(dataset, None if asked is True else asked)


def _begin(
    call: Callable[..., object], handle: Handle, measures: Measures, settings: Mapping[str, object]
) -> AbstractContextManager[Call]:
    takes = replace(EVALUATE, name=call.__name__, arguments=tuple(signature(call).parameters)[1:-1])
    own = {"evaluate.measures": tuple(names_of(measures))} if measures else {}
    return begin(takes, settings, handle.keywords, own=own)


def _canonical(measures: Measures) -> list[str]:
    return canonical(names_of(measures))


def _options(
    base: str | None, alpha: float, moved: int, *, only_retrieved: bool
) -> ComparisonOptions:
    if moved < 0 or not 0 < alpha < inf:
        raise UsageError(f"moved {moved}, alpha {alpha:g}: expected numbers from 0")
    return ComparisonOptions(
        alpha=alpha, baseline=base, only_retrieved=only_retrieved, n_moved=moved
    )


def _with_base(names: Sequence[str], base: str | None, call: Call) -> list[str]:
    """Return the names with the base among them, unless all are meant; it is told."""
    if not names or base is None or base in names:
        return [*names]
    call.observer(Event("note", message=f"base {base}: is compared as well, beside those named"))
    return [base, *names]
