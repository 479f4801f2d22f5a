"""Whether a run may ship: its numbers held against rules, and a verdict that says why.

A mean is decided on by an end of its 95 % interval, so that a run passes where the threshold is
shown to be held, not where this choice of queries happened to hold it. Failures are taken at their
worst, in the interval as well. Several checks need no correction: all of them must pass, so that
each is one more way to fail and never one more chance to pass.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import partial
from math import inf
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
    CheckPower,
    Decision,
    GatedRun,
    GateOutcome,
    Refusal,
    RuleKind,
    Rules,
    Threshold,
    Verdict,
    VerdictOutcome,
    bound_sentence,
    decided_on,
    drop_sentence,
    failures_text,
)
from ragforge.evaluating.graded_by import grades_of, mark_drift
from ragforge.evaluating.history.changes import Change, changes
from ragforge.evaluating.runs import missing_text
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.decision_samples import sample_note
from ragforge.measures import DEFAULT_MEASURES
from ragforge.measures.checked_samples import Floats, sample
from ragforge.measures.comparing import RunPair, compare_pairs
from ragforge.measures.distributions import normal_quantile
from ragforge.measures.intervals import Ends
from ragforge.measures.power import IntervalOf, queries_for_distance, shown_distance
from ragforge.measures.rates import LEVEL
from ragforge.measures.strata import Design
from ragforge.measures.unseen_values import difference_interval, is_bounded
from ragforge.pipeline.evaluated import EvaluatedRun, evaluate_runs
from ragforge.pipeline.gating.notes import notes_of
from ragforge.pipeline.gating.refusals import (
    AtWorst,
    SharedItems,
    drift_refusals,
    find_refusals,
    shared_items,
    unknown_refusals,
)
from ragforge.pipeline.gating.subjects import ANSWERS, Subject, Valued, run_subject
from ragforge.records import Baseline, Calibration, Evaluation, MeasuredMean

_NEAR: Final = 0.25
"""Share of the interval's width within which a check that passed has nearly failed."""
_SIZE: Final = 1 - normal_quantile(0.2) / normal_quantile(0.975)
"""Distances to the low end of an interval that such a drop is: 2.5 % of worse runs pass, and 80 %
of those that are as good."""
_ROUNDING: Final = 1e-12
"""What sums of floats may miss a threshold by: a mean of 0.7 is at least 0.7."""
FALLEN: Final = 10
"""Queries that are named because they fell."""
_OF_RUNS: Final = ("retriever", "judgments", "scale")
"""Changes whose words speak of rankings and relevance."""
_NONE: Final[frozenset[Allowance]] = frozenset()


def check_bound(kind: RuleKind, threshold: Threshold, valued: Valued, *, by_point: bool) -> Check:
    """Check that a mean reaches a threshold (`min`), or does not go beyond it (`max`)."""
    sign = -1 if kind == "max" else 1
    bounds = _bounded(valued, sign, by_point=by_point)
    outcome = _outcome_of(bounds, threshold.value, threshold.value, sign)
    power = None
    if _is_close(bounds, threshold.value, sign) and not (by_point or valued.design):
        values = sample(list(valued.values.values()))
        power = _power(values, _interval_of(valued), _room(threshold, sign), below=sign < 0)
    return Check(
        kind=kind,
        measure=threshold.measure,
        threshold=threshold.value,
        value=bounds.value,
        low=bounds.low,
        high=bounds.high,
        decided_on=decided_on(kind, bounds),
        decided=bounds.decided,
        n=bounds.n,
        n_failed=bounds.n_failed,
        outcome=outcome,
        text=bound_sentence(kind, bounds, threshold, outcome),
        power=power,
    )


def check_drop(
    threshold: Threshold, valued: Valued, shared: SharedItems, before: Evaluation, *, by_point: bool
) -> Check:
    """Check that a mean is no more than some amount lower than the baseline's."""
    name = threshold.measure
    if valued.design is not None:
        shared = replace(shared, design=valued.design)
    pairs = {
        query_id: (shared.before[query_id][name], values[name])
        for query_id, values in shared.now.items()
        if name in values and name in shared.before[query_id]
    }
    failed = _failed_at_worst(pairs, valued, shared, name)
    left_out = dict(shared.left_out.get(name, {})) if shared.is_bounded else {}
    left_out |= _failed_before(valued, shared, before, name)
    difference = _difference(pairs, failed, left_out, name, by_point=by_point, shared=shared)
    if threshold.is_sized:
        threshold = replace(threshold, value=_sized(difference))
    if shared.is_bounded:
        difference = replace(difference, n_left_out=shared.n_left_out([name]))
    lost = -threshold.value if by_point else 0.0
    outcome = _outcome_of(difference, -threshold.value, lost)
    power = None
    if _is_close(difference, -threshold.value) and not (
        by_point or shared.design or threshold.is_sized or difference.is_identical
    ):
        diffs = sample([now - then for then, now in pairs.values()])
        bounded = is_bounded(name)
        ends = partial(difference_interval, level=LEVEL, bounded=bounded)
        power = _power(diffs, ends, 1.0 if bounded else inf, threshold.value)
    return Check(
        kind="max-drop",
        measure=name,
        threshold=threshold.value,
        value=difference.value,
        low=difference.low,
        high=difference.high,
        decided_on=decided_on("max-drop", difference),
        decided=difference.decided,
        n=difference.n,
        n_failed=difference.n_failed,
        outcome=outcome,
        text=drop_sentence(difference, threshold, outcome),
        power=power,
        is_sized=threshold.is_sized,
    )


def _sized(found: Decision) -> float:
    """Return the drop that a run which changed nothing is shown not to have with 80 % chance."""
    if found.value is None or found.low is None:
        return 0.0
    return _SIZE * (found.value - found.low)


def check_failures(evaluation: GatedRun, most: float) -> Check:
    """Check how many queries failed."""
    n, n_failed = evaluation.n_queries, evaluation.n_failed
    value = n_failed / n if n else None
    what = "failed or have no graded answer" if evaluation.run.startswith(ANSWERS) else "failed"
    return Check(
        kind="max-failures",
        measure="",
        threshold=most,
        value=value,
        low=None,
        high=None,
        decided_on="share",
        decided=value,
        n=n,
        n_failed=n_failed,
        outcome="PASS" if _holds(value, most, -1) else "FAIL",
        text=failures_text(n_failed, n, most, what),
    )


def _bounded(valued: Valued, sign: int, *, by_point: bool) -> Decision:
    """Return a mean with what decides: the lower of all ends, or with a sign of -1 the higher."""
    values = valued.values
    worst = {key: ends.low if sign > 0 else ends.high for key, ends in valued.possible.items()}
    ends = valued.ends(values) if values else None
    plain, best = valued.mean(values), valued.mean(values)
    if not by_point:
        plain, best = _end(ends, sign), _end(ends, -sign)
    decided = None
    if values and plain is not None:
        every = {**values, **worst}
        mean, of_every = valued.mean(every), valued.ends(every)
        decided = _worse([plain, mean if by_point else _end(of_every, sign)], sign)
        best = _worse([best, mean if by_point else _end(of_every, -sign)], sign)
    return Decision(
        value=valued.mean(values),
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        decided=decided,
        best=best,
        n=len(values),
        n_failed=len(worst),
        worst=decided != plain,
        by_point=by_point,
    )


def _difference(
    pairs: Mapping[str, tuple[float, float]],
    failed: Mapping[str, tuple[float, float]],
    left_out: Mapping[str, tuple[float, float]],
    name: str,
    *,
    by_point: bool,
    shared: SharedItems,
) -> Decision:
    """Return the mean difference, and what decides where failures of now are at their worst.

    What cannot be compared shows no drop: it may be one, and is at its worst for the end that has
    to rule one out only.
    """
    if shared.is_identical:
        failed, left_out = {}, {}
    at_worst = {**failed, **left_out}
    alike = shared.has_same_rankings
    [plain] = compare_pairs([_pair(pairs, name, shared.design)._replace(same_rankings=alike)])
    ends = plain.interval_alone
    low = plain.diff if by_point else _end(ends, 1)
    best = plain.diff if by_point else _end(ends, -1)
    decided = low
    if pairs and at_worst:
        [worst] = compare_pairs([_pair({**pairs, **at_worst}, name, shared.design)])
        decided = _worse([low, worst.diff if by_point else _end(worst.interval_alone, 1)], 1)
    if pairs and failed:
        [worst] = compare_pairs([_pair({**pairs, **failed}, name, shared.design)])
        best = _worse([best, worst.diff if by_point else _end(worst.interval_alone, -1)], 1)
    return Decision(
        value=plain.diff,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        decided=decided,
        best=best,
        n=plain.n,
        n_failed=len(at_worst),
        worst=decided != low,
        by_point=by_point,
        is_identical=plain.is_identity,
    )


def _failed_at_worst(
    pairs: Mapping[str, tuple[float, float]], valued: Valued, shared: SharedItems, name: str
) -> dict[str, tuple[float, float]]:
    """Return the queries with failures that the baseline knows, each at its worst.

    One and the same ranking does not differ from itself, whatever grade a failed judgment would
    have given.
    """
    return {
        query_id: (shared.known[query_id][name], ends.low)
        for query_id, ends in valued.possible.items()
        if name in shared.known.get(query_id, {})
        if query_id in pairs or query_id not in valued.values
        if name not in shared.alike.get(query_id, ())
    }


def _failed_before(
    valued: Valued, shared: SharedItems, before: Evaluation, name: str
) -> dict[str, AtWorst]:
    """Return the queries that failed in the baseline, at their best there and their worst now.

    A baseline tells how many failed, and not which ones: they are among the queries that it has no
    value of. Where some of these may be new, those are taken that the drop is largest by.
    """
    mean = before.measures[name]
    # Answers that nobody gave lack a value as failures do.
    is_of_answers = before.run.startswith(ANSWERS)
    n_lacking = before.n_queries - mean.n
    n_failed = n_lacking if is_of_answers else min(n_lacking, mean.n_failed)
    if n_failed < 1:
        return {}
    best = 1.0 if is_bounded(name) else _best_of_failures(mean, n_failed)
    lows = {**valued.values, **{key: ends.low for key, ends in valued.possible.items()}}
    found = {
        key: AtWorst(max(best, valued.possible[key].high) if key in valued.possible else best, low)
        for key, low in lows.items()
        if name not in shared.known.get(key, {})
        if shared.design is None or key in shared.design.stratum_of
    }
    largest = sorted(found, key=lambda key: (found[key].now - found[key].before, key))
    return {key: found[key] for key in largest[:n_failed]}


def _best_of_failures(mean: MeasuredMean, n_failed: int) -> float:
    """Return what failed queries came to at best, each, by the greatest mean that they allow."""
    if mean.most is None or mean.mean is None:
        return 0.0
    return mean.most + (mean.most - mean.mean) * mean.n / n_failed


def _room(threshold: Threshold, sign: int) -> float:
    """Return the most that a mean can be beyond a threshold, on the side where it holds."""
    if not is_bounded(threshold.measure):
        return inf
    return 1 - threshold.value if sign > 0 else threshold.value


def _power(
    values: Floats, interval: IntervalOf, room: float, wanted: float = 0.0, *, below: bool = False
) -> CheckPower | None:
    """Return the power of so many queries; None where they can show what is wanted, or nothing.

    Args:
        values: Of the run, or differences from the baseline.
        interval: By which the gate decides.
        room: The most that there can be to be shown.
        wanted: What is to be shown.
        below: Whether less is better.
    """
    n = len(values)
    detectable = shown_distance(values, n, interval, below=below) if n > 1 else None
    if not detectable or not wanted < detectable <= room:
        return None
    target = wanted or detectable / 2
    needed = queries_for_distance(values, target, interval, below=below)
    return CheckPower(detectable, target, max(1, needed - n))


def _interval_of(valued: Valued) -> IntervalOf:
    """Return the interval of the gate for any values, as those of queries of a number each."""
    return lambda values: valued.ends({str(n): value for n, value in enumerate(values.tolist())})


def _is_close(found: Decision, bound: float, sign: int = 1) -> bool:
    """Whether a check failed, or passed by little beside how uncertain it is."""
    if found.decided is None or found.low is None or found.high is None:
        return True
    return sign * (found.decided - bound) < _NEAR * (found.high - found.low)


def _outcome_of(found: Decision, bound: float, lost: float, sign: int = 1) -> GateOutcome:
    """Return what is shown.

    Args:
        found: What is held against the bounds.
        bound: What the deciding end has to hold.
        lost: What not even the other end holds, where the rule is shown to be broken.
        sign: -1 where less is better.
    """
    if _holds(found.decided, bound, sign):
        return "PASS"
    # Nothing that could be measured is no open question but a broken run.
    is_lost = found.value is None or (found.best is not None and not _holds(found.best, lost, sign))
    return "FAIL" if is_lost or found.by_point else "NOT_SHOWN"


def _holds(value: float | None, bound: float, sign: int = 1) -> bool:
    return value is not None and sign * (value - bound) >= -_ROUNDING


def _pair(pairs: Mapping[str, tuple[float, float]], name: str, design: Design | None) -> RunPair:
    before = [then for then, _ in pairs.values()]
    now = [now for _, now in pairs.values()]
    drawn = design.stratified(pairs) if design else None
    return RunPair("baseline", "now", name, before, now, drawn=drawn)


def _end(ends: Ends | None, sign: int) -> float | None:
    if ends is None:
        return None
    return ends.low if sign > 0 else ends.high


def _worse(values: Iterable[float | None], sign: int) -> float | None:
    found = [value for value in values if value is not None]
    return (min if sign > 0 else max)(found, default=None)


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
            *filter(None, [sample_note(dataset)]),
            *notes_of(subject, baseline, shared, rules),
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
        outcome = _outcome_of(decision, check.threshold, check.threshold)
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
    """Say that a run of a file lacks queries and does not tell why; "" where none does.

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
