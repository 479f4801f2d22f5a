"""Whether a run may ship: rules, a baseline, and a verdict that says what it rests on."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.files.dataset import Dataset
from ragforge.measures import DEFAULT_MEASURES
from ragforge.pipeline.evaluated import EvaluatedRun, evaluate_runs
from ragforge.pipeline.gating.checks import (
    Shared,
    check_bound,
    check_drop,
    check_failures,
    shared_items,
)
from ragforge.pipeline.gating.subjects import ANSWERS, Subject, of_run
from ragforge.records import Baseline, Evaluation
from ragforge.report.comparison.contents import MovedQuery
from ragforge.report.gate.verdict import Allowance, Check, Refusal, Rules, Verdict
from ragforge.report.history.trends import Change, changes
from ragforge.report.shown import one_line, plural

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
        shared = shared_items(subject.baseline, baseline)
    found = list(_refusals(subject.evaluation, rules, baseline, shared))
    refusals = tuple(item for item in found if item.allowance not in allowed)
    notes = [f"allowed by {item.flag}: {item.reason}" for item in found if item not in refusals]
    checks = tuple(_checks(subject, rules, baseline, shared))
    if refusals:
        checks = tuple(replace(check, outcome="OPEN") for check in checks)
    failed = any(check.outcome == "FAIL" for check in checks)
    measure = next(iter((*rules.measures, *subject.valued)))
    return Verdict(
        outcome="REFUSED" if refusals else "FAIL" if failed else "PASS",
        evaluation=subject.evaluation,
        baseline=baseline.evaluation if baseline else None,
        checks=checks,
        refusals=refusals,
        notes=(*notes, *_notes(subject, baseline, shared, rules)),
        changes=tuple(_changes(subject, baseline)) if baseline else (),
        fallen=tuple(_fallen(dataset, shared, measure)) if shared else (),
        fallen_by=measure if shared else "",
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


def _refusals(
    now: Evaluation, rules: Rules, baseline: Baseline | None, shared: Shared | None
) -> Iterator[Refusal]:
    n = _n_valued(now)
    if n < rules.min_queries:
        text = f"{plural(n, 'query has', 'queries have')} a value"
        yield Refusal(f"{text}; at least {rules.min_queries} are needed (--min-queries)", "few")
    if now.n_retrieved and now.n_holes > rules.max_holes * now.n_retrieved:
        holes = f"{100 * now.n_holes / now.n_retrieved:.1f} %"
        most = f"{100 * rules.max_holes:g} %"
        text = f"{holes} of the chunks in the top 10 have no grade and would count as not relevant"
        yield Refusal(f"{text}; at most {most} may be so (--max-holes)", "holes")
    kinds = {grader.kind for grader in now.graders if grader.count}
    if kinds == {"baseline"}:
        text = "all grades are of the offline baseline judge, which shows that things run"
        yield Refusal(f"{text} and not how good they are", "baseline-judge")
    if baseline is not None and shared is not None:
        yield from _baseline_refusals(now, rules, baseline, shared)


def _baseline_refusals(
    now: Evaluation, rules: Rules, baseline: Baseline, shared: Shared
) -> Iterator[Refusal]:
    before, n = baseline.evaluation, len(shared.now)
    if before.dataset != now.dataset:
        names = f"{one_line(before.dataset)!r}, this is {one_line(now.dataset)!r}"
        yield Refusal(f"the baseline is of another dataset, {names}", "dataset-change")
    elif before.digests.queries != now.digests.queries:
        versions = f"version {before.version}, this is version {now.version}"
        yield Refusal(f"the baseline is of other items ({versions})", "dataset-change")
    for change in _grading_changes(before, now):
        yield Refusal(change, "grading-change")
    if not rules.drops:
        return
    if not n:
        yield Refusal("no item is the same as in the baseline: nothing can be compared", None)
    elif n < rules.min_queries <= _n_valued(now):
        text = f"{plural(n, 'item is', 'items are')} the same as in the baseline"
        yield Refusal(f"{text}; at least {rules.min_queries} are needed (--min-queries)", "few")


def _n_valued(evaluation: Evaluation) -> int:
    return max((mean.n for mean in evaluation.measures.values()), default=0)


def _grading_changes(before: Evaluation, now: Evaluation) -> Iterator[str]:
    if _models(before) != _models(now):
        yield (
            f"the baseline was judged by {_judges(before)}, this is judged by {_judges(now)}: "
            "a difference may be that of the judges"
        )
    if before.rel_threshold != now.rel_threshold:
        yield (
            f"relevant meant grade {before.rel_threshold} or above in the baseline, "
            f"and means {now.rel_threshold} or above here"
        )


def _models(evaluation: Evaluation) -> set[tuple[str, str, str]]:
    """Return the judges that are models or baselines; people and rules judge alike each time."""
    return {
        (grader.model, grader.prompt, grader.prompt_sha256)
        for grader in evaluation.graders
        if grader.kind in ("llm", "baseline") and grader.count
    }


def _judges(evaluation: Evaluation) -> str:
    named = (
        f"{one_line(model)} with {one_line(prompt)} {digest[:8]}" if prompt else one_line(model)
        for model, prompt, digest in sorted(_models(evaluation))
    )
    return ", ".join(named) or "no model"


def _notes(
    subject: Subject, baseline: Baseline | None, shared: Shared | None, rules: Rules
) -> Iterator[str]:
    if rules.by_point:
        yield "decided on means (--point): another choice of such queries may decide otherwise"
    now = subject.evaluation
    kinds = {grader.kind for grader in now.graders if grader.count}
    if "baseline" in kinds and len(kinds) > 1:
        yield "some grades are of the offline baseline judge"
    if baseline is not None and shared is not None:
        n_left_out = len(subject.baseline.items) - len(shared.now)
        if n_left_out:
            items = plural(n_left_out, "item is", "items are")
            yield f"{items} not as in the baseline (or new), and left out of differences"
        before = baseline.evaluation
        if before.digests.rankings == now.digests.rankings:
            what = "rankings" if subject.of == "runs" else "answers"
            yield f"the {what} are those of the baseline"
        if before.n_failed:
            failed = plural(before.n_failed, "query", "queries")
            yield f"{failed} failed in the baseline, and count as if at their best there"
    yield from subject.warnings


def _changes(subject: Subject, baseline: Baseline) -> Iterator[Change]:
    for change in changes(baseline.evaluation, subject.evaluation):
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
