"""Whether a run may ship: rules, a baseline, and a verdict that says what it rests on."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final, Literal

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.comparison import MovedQuery
from ragforge.evaluating.evaluation_data import missing_relevant
from ragforge.evaluating.formatting import one_line, plural
from ragforge.evaluating.gate import Allowance, Check, Rules, Verdict
from ragforge.evaluating.graded_by import grades_of
from ragforge.evaluating.history.changes import Change, changes
from ragforge.evaluating.judgments import COMPLETE_LABELS
from ragforge.evaluating.runs import by_document_text, missing_text
from ragforge.evaluating.selection import Part
from ragforge.files.set.dataset import Dataset
from ragforge.measures import DEFAULT_MEASURES
from ragforge.pipeline.comparing.answers import LOWER_IS_BETTER
from ragforge.pipeline.evaluated import EvaluatedRun, evaluate_runs
from ragforge.pipeline.gating.checks import check_bound, check_drop, check_failures
from ragforge.pipeline.gating.refusals import (
    Shared,
    find_refusals,
    n_offline,
    of_offline,
    shared_items,
)
from ragforge.pipeline.gating.subjects import ANSWERS, Subject, of_run
from ragforge.records import Baseline

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
    return check_subject(dataset, of_run(run), rules, baseline, allowed)


def check_subject(
    dataset: Dataset,
    subject: Subject,
    rules: Rules,
    baseline: Baseline | None = None,
    allowed: Collection[Allowance] = _NONE,
) -> Verdict:
    """Hold a run, or the answers of a system, to rules; as `check_run`.

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
    found = list(find_refusals(subject, rules, baseline, shared))
    refusals = tuple(item for item in found if item.allowance not in allowed)
    notes = [f"allowed by {item.flag}: {item.reason}" for item in found if item not in refusals]
    checks = tuple(_checks(subject, rules, baseline, shared))
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
            *_notes(subject, baseline, shared, rules),
        ),
        changes=tuple(_changes(subject, baseline, shared)) if baseline and shared else (),
        fallen=tuple(_fallen(dataset, shared, measure)) if shared else (),
        fallen_by=measure if shared else "",
        graded_by=grades_of(subject.judges),
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
    subject: Subject, rules: Rules, baseline: Baseline | None, shared: Shared | None
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


def _outcome(checks: Collection[Check]) -> Literal["PASS", "FAIL", "UNCHECKED"]:
    if any(check.outcome == "FAIL" for check in checks):
        return "FAIL"
    return "PASS" if checks else "UNCHECKED"


def _fallen_by(subject: Subject, rules: Rules, checks: Collection[Check]) -> str:
    """Return the measure of the first drop that failed; else of the first rule, else the first."""
    failed = [c.measure for c in checks if c.kind == "max-drop" and c.outcome == "FAIL"]
    named = (*failed, *rules.measures, *subject.valued)
    return next(name for name in named if name not in LOWER_IS_BETTER)


def _missing(dataset: Dataset, subject: Subject) -> Iterator[str]:
    if subject.run is not None and subject.run.is_complete:
        n_missing = missing_relevant(dataset, dataset.each_judgment())
        if n_missing:
            yield missing_text(n_missing, "document" if subject.run.n_by_document else "chunk")


def _of_labels(run: EvaluatedRun) -> Iterator[str]:
    """Yield how the labels are read that a run was measured on."""
    if run.is_complete:
        yield COMPLETE_LABELS
    if run.n_by_document:
        yield by_document_text(run.n_by_document)


def _notes(
    subject: Subject, baseline: Baseline | None, shared: Shared | None, rules: Rules
) -> Iterator[str]:
    if rules.by_point:
        yield "decided on means (--point): another choice of such queries may decide otherwise"
    now = subject.evaluation
    yield from _of_part(subject)
    if subject.run is not None:
        yield from _of_labels(subject.run)
    if n_offline(subject)[0]:
        yield of_offline(subject)
    if baseline is not None and shared is not None:
        n_left_out = len(subject.baseline.items) - len(shared.now)
        if n_left_out:
            items = plural(n_left_out, "item is", "items are")
            yield f"{items} not as in the baseline (or new), and left out of differences"
        yield from _of_grades(shared, rules)
        before = baseline.evaluation
        if before.digests.rankings == now.digests.rankings:
            what = "rankings" if subject.of == "runs" else "answers"
            yield f"the {what} are those of the baseline"
        n_failed = max((mean.n_failed for mean in before.measures.values()), default=0)
        if n_failed:
            failed = plural(n_failed, "query", "queries")
            yield f"{failed} failed in the baseline, and count as if at their best there"
    yield from subject.warnings


def _of_part(subject: Subject) -> Iterator[str]:
    """Say which part of the queries is decided on, where it is not all."""
    if subject.chosen is not None:
        measured = {key for valued in subject.valued.values() for key in valued.values}
        yield from Part(subject.chosen, subject.design, frozenset(measured)).sentences


def _of_grades(shared: Shared, rules: Rules) -> Iterator[str]:
    """Say what was done where grades are not those of the baseline."""
    if shared.n_rescored:
        items = plural(shared.n_rescored, "item")
        yield (
            f"the grades of {items} changed since the baseline: its rankings of them were scored "
            "again on the grades of now"
        )
    n_left_out = shared.n_left_out(item.measure for item in rules.drops)
    if n_left_out:
        items = plural(n_left_out, "item cannot", "items cannot")
        how = "counts at its worst" if n_left_out == 1 else "count at their worst"
        if not shared.is_bounded:
            how = "is left out" if n_left_out == 1 else "are left out"
            how += " of differences: a drop there would not be seen"
        yield f"{items} be compared with the baseline, and {how}"


def _changes(subject: Subject, baseline: Baseline, shared: Shared) -> Iterator[Change]:
    for change in changes(baseline.evaluation, subject.evaluation, len(shared.now)):
        if subject.of == "runs" or change.what not in _OF_RUNS:
            yield change


def _fallen(dataset: Dataset, shared: Shared, measure: str) -> Iterator[MovedQuery]:
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
