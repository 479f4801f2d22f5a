"""Whether a run may ship: its numbers held against rules, and a verdict that says why.

A mean is decided on by an end of its 95 % interval, so that a run passes where the threshold is
shown to be held, not where this choice of queries happened to hold it. Failures are taken at their
worst, in the interval as well. Several checks need no correction: all of them must pass, so that
each is one more way to fail and never one more chance to pass.
"""

from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import replace
from typing import Final

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.answers.records import LOWER_IS_BETTER
from ragforge.evaluating.comparison import MovedQuery
from ragforge.evaluating.evaluation_data import missing_relevant
from ragforge.evaluating.formatting import one_line, plural
from ragforge.evaluating.gate import (
    Allowance,
    Check,
    Decision,
    Refusal,
    Rules,
    Threshold,
    Verdict,
    VerdictOutcome,
    bound_sentence,
    decided_on,
)
from ragforge.evaluating.graded_by import grades_of, mark_drift
from ragforge.evaluating.history.changes import Change, changes
from ragforge.evaluating.query_variants import query_variants, variants_note
from ragforge.evaluating.runs import missing_text
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.decision_samples import sample_note
from ragforge.measures import DEFAULT_MEASURES
from ragforge.pipeline.evaluated import EvaluatedRun, evaluate_runs
from ragforge.pipeline.gating.checks import check_bound, check_drop, check_failures, outcome_of
from ragforge.pipeline.gating.notes import notes_of, uneven_labels
from ragforge.pipeline.gating.refusals import (
    SharedItems,
    drift_refusals,
    find_refusals,
    shared_items,
    unknown_refusals,
)
from ragforge.pipeline.gating.subjects import ANSWERS, Subject, run_subject
from ragforge.records import Baseline, Calibration

FALLEN: Final = 10
"""Queries that are named because they fell."""
_OF_RUNS: Final = ("retriever", "judgments", "scale")
"""Changes whose words speak of rankings and relevance."""
_NONE: Final[frozenset[Allowance]] = frozenset()


def check_run(
    dataset: Dataset,
    run: EvaluatedRun,
    rules: Rules,
    baseline: Baseline | None = None,
    allowed: Collection[Allowance] = _NONE,
) -> Verdict:
    """Hold a run to rules; nothing is written.

    Args:
        dataset: Gives the texts of queries.
        run: Has all measures of the rules.
        rules: What it is held to; without checks only what would refuse a gate is looked at.
        baseline: What it may not fall behind; needed where the rules have drops.
        allowed: What does not refuse the gate here.

    Raises:
        DataError: The baseline lacks a measure of the rules, or is of answers.
        UsageError: The run lacks one.
    """
    return check_subject(dataset, run_subject(run), rules, baseline, allowed)


def check_subject(
    dataset: Dataset,
    subject: Subject,
    rules: Rules,
    baseline: Baseline | None = None,
    allowed: Collection[Allowance] = _NONE,
    calibration: Calibration | None = None,
) -> Verdict:
    """Hold a run, or the answers of a system, to rules; as `check_run`.

    With a calibration, means and their intervals are those that people's labels correct.

    Raises:
        DataError: The baseline lacks a measure of the rules, or is of another kind of subject.
        UsageError: The subject lacks one.
    """
    _require_computed(subject, rules)
    shared = None
    if baseline is not None:
        _require_alike(subject, baseline, rules)
        is_bounded = "dataset-change" not in allowed
        shared = shared_items(dataset, subject, baseline, is_bounded=is_bounded)
    graded_by = mark_drift(grades_of(subject.judges), read_canaries(dataset))
    found = [
        *unknown_refusals(dataset, subject, rules),
        *find_refusals(subject, rules, baseline, shared),
        *drift_refusals(subject, rules, baseline, graded_by),
        *(_untold_failures(dataset, subject) if rules.max_failures is not None else ()),
    ]
    refusals = tuple(item for item in found if item.allowance not in allowed)
    notes = [f"allowed by {item.flag}: {item.reason}" for item in found if item not in refusals]
    checks = tuple(_checks(subject, rules, baseline, shared))
    if calibration is not None:
        require_corrected(calibration, subject, rules)
        checks = tuple(_corrected_checks(checks, rules, calibration, subject))
    measure = _fallen_by(subject, rules, checks)
    if refusals:
        checks = tuple(replace(check, outcome="OPEN") for check in checks)
    return Verdict(
        outcome="REFUSED" if refusals else _outcome(checks),
        evaluation=subject.evaluation,
        baseline=baseline.evaluation if baseline else None,
        checks=checks,
        refusals=refusals,
        notes=(
            *notes,
            *_missing(dataset, subject),
            *filter(None, [sample_note(dataset), _note_on_variants(dataset, subject)]),
            *notes_of(subject, baseline, shared, rules),
            *(uneven_labels(dataset, subject, baseline) if baseline and rules.drops else ()),
            *(calibration.warnings if calibration else ()),
        ),
        changes=tuple(_changes(subject, baseline, shared)) if baseline and shared else (),
        fallen=tuple(_fallen(dataset, shared, measure)) if shared else (),
        fallen_by=measure if shared else "",
        graded_by=graded_by,
        calibration=calibration,
        fail_on=rules.fail_on,
    )


def require_corrected(found: Calibration, subject: Subject, rules: Rules) -> None:
    """Refuse rules that labels do not correct.

    Raises:
        UsageError: One is of another measure, of a drop, or of answers.
    """
    run = subject.evaluation.run
    if subject.of == "answers" or rules.most:
        raise UsageError("calibrated: labels of pairs correct no measure of answers")
    from ragforge.calibration.comparing import require_threshold

    now = subject.evaluation
    require_threshold(found, now.rel_threshold, rules.measures, by_lists=now.by_lists)
    if rules.drops:
        raise UsageError(
            "calibrated: labels correct no drop from a baseline; `ragforge compare --calibrated` "
            "holds two runs against each other"
        )
    for threshold in rules.least:
        figure = found.figure(threshold.measure, run)
        if figure is None or figure.corrected is None or figure.corrected.wide_low is None:
            why = figure.refused if figure else _why_no_level(found, threshold.measure, run)
            raise UsageError(
                f"calibrated: {threshold.measure} of {run} is not corrected: "
                f"{why or 'it has no interval over queries like these'}"
            )


def _why_no_level(found: Calibration, measure: str, run: str) -> str:
    """Return why labels give no level of a measure of a run."""
    if measure not in found.measures or run not in {item.name for item in found.runs}:
        return "the sample was not drawn for it"
    if not measure.startswith("nDCG"):
        return "the sample was drawn for differences alone (--of)"
    return (
        "levels of nDCG rest on a model of the grades, by which no gate decides; name "
        f"{measure.removeprefix('n')}, which needs none"
    )


def _corrected_checks(
    checks: Iterable[Check], rules: Rules, found: Calibration, subject: Subject
) -> Iterator[Check]:
    """Yield checks of means as they are corrected, and others as they are."""
    for check in checks:
        figure = found.figure(check.measure, subject.evaluation.run)
        if check.kind != "min" or figure is None or figure.corrected is None:
            yield check
            continue
        by = figure.corrected
        n = figure.n_queries or found.n_queries
        # Where only judgments failed, the sample has the query, and labels stand for its grades.
        lost = subject.run.measured.summary.attention.failed if subject.run else ()
        n_failed = min(check.n_failed, len(lost))
        # What failed counts 0.
        counted = n / (n + n_failed) if n_failed else 1.0
        ends = (by.value, by.value) if rules.by_point else (by.wide_low, by.wide_high)
        decided, best = (None if end is None else end * counted for end in ends)
        decision = Decision(
            value=by.value,
            low=by.wide_low,
            high=by.wide_high,
            decided=decided,
            best=best,
            n=n,
            n_failed=n_failed,
            worst=n_failed > 0,
            by_point=rules.by_point,
        )
        threshold = Threshold(check.measure, check.threshold)
        outcome = outcome_of(decision, check.threshold, check.threshold)
        yield replace(
            check,
            value=by.value,
            low=by.wide_low,
            high=by.wide_high,
            decided_on=decided_on("min", decision),
            decided=decided,
            n=n,
            n_failed=n_failed,
            outcome=outcome,
            text=bound_sentence("min", decision, threshold, outcome),
            power=None,
        )


def evaluate_for(
    rules: Rules, dataset: Dataset, run_name: str, settings: EvaluateSettings
) -> EvaluatedRun:
    """Evaluate a run by the measures that are usual or asked for, and by those of the rules.

    Raises:
        DataError: There is no such run, or nothing is judged.
        UsageError: A measure or the threshold cannot be taken.
    """
    asked = settings.measures or DEFAULT_MEASURES
    wanted = settings.model_copy(update={"measures": (*asked, *rules.measures)})
    [evaluated] = evaluate_runs(dataset, [run_name], wanted)
    return evaluated


def _require_computed(subject: Subject, rules: Rules) -> None:
    lacking = [name for name in rules.measures if name not in subject.valued]
    if lacking:
        raise UsageError(
            f"measure {lacking[0]!r} was not computed; there are: {', '.join(subject.valued)}"
        )


def _require_alike(subject: Subject, baseline: Baseline, rules: Rules) -> None:
    before = baseline.evaluation
    if before.run.startswith(ANSWERS) != (subject.of == "answers"):
        what = "answers" if before.run.startswith(ANSWERS) else "a run"
        raise DataError(f"baseline: is of {what} ({one_line(before.run)}), this is of {subject.of}")
    lacking = [item.measure for item in rules.drops if item.measure not in before.measures]
    if lacking:
        raise DataError(
            f"baseline: has no {', '.join(lacking)}; it has: "
            f"{', '.join(before.measures) or 'none'}; "
            "make it anew with `ragforge gate --write-baseline`"
        )


def _checks(
    subject: Subject, rules: Rules, baseline: Baseline | None, shared: SharedItems | None
) -> Iterator[Check]:
    by_point, valued = rules.by_point, subject.valued
    for threshold in rules.least:
        yield check_bound("min", threshold, valued[threshold.measure], by_point=by_point)
    for threshold in rules.most:
        yield check_bound("max", threshold, valued[threshold.measure], by_point=by_point)
    if baseline is not None and shared is not None:
        before = baseline.evaluation
        for threshold in rules.drops:
            of_measure = valued[threshold.measure]
            yield check_drop(threshold, of_measure, shared, before, by_point=by_point)
    if rules.max_failures is not None:
        yield check_failures(subject.evaluation, rules.max_failures)


def _outcome(checks: Collection[Check]) -> VerdictOutcome:
    outcomes = {check.outcome for check in checks}
    if "FAIL" in outcomes:
        return "FAIL"
    if "NOT_SHOWN" in outcomes:
        return "NOT_SHOWN"
    return "PASS" if checks else "UNCHECKED"


def _fallen_by(subject: Subject, rules: Rules, checks: Collection[Check]) -> str:
    """Return the measure of the first drop not held; else of the first rule, else the first."""
    failed = [c.measure for c in checks if c.kind == "max-drop" and c.outcome != "PASS"]
    named = (*failed, *rules.measures, *subject.valued)
    return next(name for name in named if name not in LOWER_IS_BETTER)


def _untold_failures(dataset: Dataset, subject: Subject) -> Iterator[Refusal]:
    """Refuse to count failures where a run of a file lacks queries and does not say why."""
    if subject.run is None:
        return
    counted = {key for of in subject.valued.values() for key in of.values}
    n = subject.evaluation.n_queries
    if text := untold_failures(dataset, subject.evaluation.run, counted, n):
        yield Refusal(text, None)


def untold_failures(dataset: Dataset, name: str, counted: Set[str], n_queries: int) -> str:
    """Return a note that a run of a file lacks queries and does not tell why; "" where none does.

    Args:
        dataset: Has the run.
        name: Of the run.
        counted: Queries that did not fail.
        n_queries: All there are.
    """
    entry = dataset.manifest.files.get(f"runs/{name}.jsonl")
    if entry is None or (entry.run is not None and entry.run.retriever):
        return ""
    n_missing = len(counted - {item.query_id for item in dataset.each_ranking(name)})
    if not n_missing:
        return ""
    verb = "is" if n_missing == 1 else "are"
    n = plural(n_missing, "query", "queries")
    return (
        f"--max-failures: {n} of {n_queries:,} {verb} not in the file of "
        f"run {name}, which does not tell whether they failed; write those that did as rows "
        "with an error and a ranking of null, or leave the rule out"
    )


def _note_on_variants(dataset: Dataset, subject: Subject) -> str:
    queries = subject.run.task.queries if subject.run else dataset.accepted_queries()
    return variants_note(query_variants(dataset, queries), len(queries))


def _missing(dataset: Dataset, subject: Subject) -> Iterator[str]:
    if subject.run is not None and subject.run.is_complete:
        n_missing = missing_relevant(dataset, dataset.judgment_table())
        if n_missing:
            yield missing_text(n_missing, "document" if subject.run.n_by_document else "chunk")


def _changes(subject: Subject, baseline: Baseline, shared: SharedItems) -> Iterator[Change]:
    for change in changes(baseline.evaluation, subject.evaluation, len(shared.now)):
        if subject.of == "runs" or change.what not in _OF_RUNS:
            yield change


def _fallen(dataset: Dataset, shared: SharedItems, measure: str) -> Iterator[MovedQuery]:
    fell = sorted(
        (values[measure] - shared.before[query_id][measure], query_id)
        for query_id, values in shared.now.items()
        if measure in values and measure in shared.before[query_id]
    )
    named = [query_id for diff, query_id in fell[:FALLEN] if diff < 0]
    texts = {query.query_id: query.query for query in dataset.queries()} if named else {}
    for query_id in named:
        before, now = shared.before[query_id][measure], shared.now[query_id][measure]
        yield MovedQuery(query_id, texts.get(query_id, ""), before, now)
