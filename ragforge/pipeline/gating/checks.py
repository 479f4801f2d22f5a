"""The checks of a gate: each a number of a run or system, held against a threshold.

A mean is decided on by an end of its 95 % interval, so that a run passes where the threshold is
shown to be held, not where this choice of queries happened to hold it. Failures are taken at their
worst, in the interval as well. Several checks need no correction: all of them must pass, so that
each is one more way to fail and never one more chance to pass.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, inf, sqrt
from typing import Final

from ragforge.evaluating.gate import (
    Check,
    CheckPower,
    Decision,
    Kind,
    Outcome,
    Threshold,
    bound_sentence,
    decided_on,
    drop_sentence,
    failures_text,
)
from ragforge.measures.comparing import RunPair, compare_pairs
from ragforge.measures.intervals import Ends
from ragforge.measures.power import detectable_difference, queries_needed
from ragforge.measures.strata import Design
from ragforge.measures.unseen_values import is_bounded
from ragforge.pipeline.gating.refusals import Shared
from ragforge.pipeline.gating.subjects import ANSWERS, Valued
from ragforge.records import Evaluation

_NEAR: Final = 0.25
"""Share of the interval's width within which a check that passed has nearly failed."""
_ROUNDING: Final = 1e-12
"""What sums of floats may miss a threshold by: a mean of 0.7 is at least 0.7."""


def check_bound(kind: Kind, threshold: Threshold, valued: Valued, *, by_point: bool) -> Check:
    """Check that a mean reaches a threshold (`min`), or does not go beyond it (`max`)."""
    sign = -1 if kind == "max" else 1
    bounds = _bounded(valued, sign, by_point=by_point)
    outcome = _outcome(bounds.decided, threshold.value, sign)
    tells = _is_close(bounds, threshold.value, sign) and not (by_point or valued.is_of_sample)
    room = _room(threshold, sign)
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
        power=_power(_sd(list(valued.values.values())), bounds.n, room) if tells else None,
    )


def check_drop(
    threshold: Threshold, valued: Valued, shared: Shared, before: Evaluation, *, by_point: bool
) -> Check:
    """Check that a mean is no more than some amount lower than the baseline's."""
    name = threshold.measure
    pairs = {
        query_id: (shared.before[query_id][name], values[name])
        for query_id, values in shared.now.items()
        if name in values and name in shared.before[query_id]
    }
    at_worst = _at_worst(pairs, valued, shared, name)
    difference = _difference(pairs, at_worst, name, by_point=by_point, shared=shared)
    reach = 0.0 if shared.is_identical else _reach(before, name, len(pairs))
    if difference.decided is not None and reach:
        difference = replace(difference, decided=difference.decided - reach, worst=True)
    if shared.is_bounded:
        difference = replace(difference, n_left_out=shared.n_left_out([name]))
    outcome = _outcome(difference.decided, -threshold.value)
    sd = _sd([now - then for then, now in pairs.values()])
    tells = _is_close(difference, -threshold.value) and not (by_point or shared.design)
    room = 1.0 if is_bounded(name) else inf
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
        power=_power(sd, difference.n, room, threshold.value) if tells else None,
    )


def check_failures(evaluation: Evaluation, most: float) -> Check:
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
        outcome=_outcome(value, most, -1),
        text=failures_text(n_failed, n, most, what),
    )


def _bounded(valued: Valued, sign: int, *, by_point: bool) -> Decision:
    """Return a mean with what decides: the lower of all ends, or with a sign of -1 the higher."""
    values = valued.values
    worst = {key: ends.low if sign > 0 else ends.high for key, ends in valued.possible.items()}
    ends = valued.ends(values) if values else None
    plain, decided = valued.mean(values), None
    if not by_point:
        plain = _end(ends, sign)
    if values:
        every = {**values, **worst}
        with_failures = valued.mean(every) if by_point else _end(valued.ends(every), sign)
        decided = _worse([plain, with_failures], sign) if plain is not None else None
    return Decision(
        value=valued.mean(values),
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        decided=decided,
        n=len(values),
        n_failed=len(worst),
        worst=decided != plain,
        by_point=by_point,
    )


def _difference(
    pairs: Mapping[str, tuple[float, float]],
    at_worst: Mapping[str, tuple[float, float]],
    name: str,
    *,
    by_point: bool,
    shared: Shared,
) -> Decision:
    """Return the mean difference, and what decides where failures of now are at their worst."""
    alike = shared.has_same_rankings
    [plain] = compare_pairs([_pair(pairs, name, shared.design)._replace(same_rankings=alike)])
    ends = plain.interval_alone
    low = plain.diff if by_point else _end(ends, 1)
    decided = low
    if pairs and at_worst:
        [worst] = compare_pairs([_pair({**pairs, **at_worst}, name, shared.design)])
        decided = _worse([low, worst.diff if by_point else _end(worst.interval_alone, 1)], 1)
    return Decision(
        value=plain.diff,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        decided=decided,
        n=plain.n,
        n_failed=len(at_worst),
        worst=decided != low,
        by_point=by_point,
        is_identical=plain.is_identity,
    )


def _at_worst(
    pairs: Mapping[str, tuple[float, float]], valued: Valued, shared: Shared, name: str
) -> dict[str, tuple[float, float]]:
    """Return the queries that may have fallen further than is seen, each at its worst.

    They are those with failures that the baseline knows, and those that cannot be compared. One and
    the same ranking does not differ from itself, whatever grade a failed judgment would have given.
    """
    if shared.is_identical:
        return {}
    failed = {
        query_id: (shared.known[query_id][name], ends.low)
        for query_id, ends in valued.possible.items()
        if name in shared.known.get(query_id, {})
        if query_id in pairs or query_id not in valued.values
        if name not in shared.alike.get(query_id, ())
    }
    left_out = shared.left_out.get(name, {}) if shared.is_bounded else {}
    return {**failed, **left_out}


def _reach(before: Evaluation, name: str, n_shared: int) -> float:
    """Return how much higher failures of the baseline may have left its mean on the shared items.

    They are known in the mean only, so all of them count as if they were among these items.
    """
    mean = before.measures[name]
    if not mean.n_failed or mean.most is None or mean.mean is None:
        return 0.0
    return (mean.most - mean.mean) * max(1.0, (mean.n + mean.n_failed) / n_shared)


def _room(threshold: Threshold, sign: int) -> float:
    """Return how far a mean can be beyond a threshold, on the side where it holds."""
    if not is_bounded(threshold.measure):
        return inf
    return 1 - threshold.value if sign > 0 else threshold.value


def _power(sd: float | None, n: int, room: float, wanted: float = 0.0) -> CheckPower | None:
    """Return what n queries can show; None where they can show all that is wanted, or nothing.

    Args:
        sd: Of the values, or of the differences.
        n: How many there are.
        room: The most that there can be to be shown.
        wanted: What is to be shown.
    """
    detectable = detectable_difference(sd, n) if sd else None
    if not sd or not detectable or not wanted < detectable <= room:
        return None
    target = wanted or detectable / 2
    return CheckPower(detectable, target, queries_needed(target, sd) - n)


def _is_close(found: Decision, bound: float, sign: int = 1) -> bool:
    """Whether a check failed, or passed by little beside how uncertain it is."""
    if found.decided is None or found.low is None or found.high is None:
        return True
    return sign * (found.decided - bound) < _NEAR * (found.high - found.low)


def _outcome(decided: float | None, bound: float, sign: int = 1) -> Outcome:
    held = decided is not None and sign * (decided - bound) >= -_ROUNDING
    return "PASS" if held else "FAIL"


def _pair(pairs: Mapping[str, tuple[float, float]], name: str, design: Design | None) -> RunPair:
    before = [then for then, _ in pairs.values()]
    now = [now for _, now in pairs.values()]
    drawn = design.stratified(pairs) if design else None
    return RunPair("baseline", "now", name, before, now, drawn=drawn)


def _sd(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    centre = fsum(values) / len(values)
    return sqrt(fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def _end(ends: Ends | None, sign: int) -> float | None:
    if ends is None:
        return None
    return ends.low if sign > 0 else ends.high


def _worse(values: Iterable[float | None], sign: int) -> float | None:
    found = [value for value in values if value is not None]
    return (min if sign > 0 else max)(found, default=None)
