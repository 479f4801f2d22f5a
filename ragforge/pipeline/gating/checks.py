"""What a rule comes to: a bound, a drop or failures, with the interval it is decided by."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final

from ragforge.evaluating.gate import (
    Check,
    CheckPower,
    Decision,
    GatedRun,
    GateOutcome,
    RuleKind,
    Threshold,
    bound_sentence,
    decided_on,
    drop_sentence,
    failures_text,
)
from ragforge.measures.checked_samples import Floats, sample
from ragforge.measures.comparing import Comparison, RunPair, compare_pairs
from ragforge.measures.distributions import normal_quantile
from ragforge.measures.intervals import Ends
from ragforge.measures.power import IntervalOf, queries_for_distance, shown_distance
from ragforge.measures.rates import LEVEL
from ragforge.measures.strata import Design
from ragforge.measures.unseen_values import difference_interval, is_bounded
from ragforge.pipeline.gating.refusals import (
    AtWorst,
    SharedItems,
)
from ragforge.pipeline.gating.subjects import ANSWERS, Valued
from ragforge.records import Evaluation, MeasuredMean

_NEAR: Final = 0.25
"""Share of the interval's width within which a check that passed has nearly failed."""
_SIZE: Final = 1 - normal_quantile(0.2) / normal_quantile(0.975)
"""Distances to the low end of an interval that such a drop is: 2.5 % of worse runs pass, and 80 %
of those that are as good."""
_ROUNDING: Final = 1e-12
"""What sums of floats may miss a threshold by: a mean of 0.7 is at least 0.7."""


def check_bound(kind: RuleKind, threshold: Threshold, valued: Valued, *, by_point: bool) -> Check:
    """Check that a mean reaches a threshold (`min`), or does not go beyond it (`max`)."""
    sign = -1 if kind == "max" else 1
    bounds = _bounded(valued, sign, by_point=by_point)
    outcome = outcome_of(bounds, threshold.value, threshold.value, sign)
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
    outcome = outcome_of(difference, -threshold.value, lost)
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
    best = plain.diff if by_point else _best_end(plain)
    decided = low
    if pairs and at_worst:
        [worst] = compare_pairs([_pair({**pairs, **at_worst}, name, shared.design)])
        decided = _worse([low, worst.diff if by_point else _end(worst.interval_alone, 1)], 1)
    if pairs and failed:
        [worst] = compare_pairs([_pair({**pairs, **failed}, name, shared.design)])
        best = _worse([best, worst.diff if by_point else _best_end(worst)], 1)
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
        p=plain.p,
    )


def _best_end(found: Comparison) -> float | None:
    """Return the high end of a difference; none below 0 where the test of it finds no drop.

    A drop is shown as a comparison shows it, by the interval and by the test.
    """
    high = _end(found.interval_alone, -1)
    return high if high is None or found.winner == "A" else max(high, 0.0)


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


def outcome_of(found: Decision, bound: float, lost: float, sign: int = 1) -> GateOutcome:
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
