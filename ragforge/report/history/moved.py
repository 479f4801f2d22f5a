"""Whether it was the system that moved a measure, or the set that it is measured on."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragforge.records import BridgeMean, Evaluation, MeasuredMean
from ragforge.report.history.trends import (
    difference_between,
    has_several_judges,
    is_open,
    is_same_set,
    trend_on_bridge,
)

Cause: TypeAlias = Literal["system", "set", "judgments", "both", "failures", "neither", "unknown"]


@dataclass(frozen=True, slots=True)
class Moved:
    """Whether it was the system that moved a measure, or the set it is measured on."""

    measure: str
    cause: Cause
    """`system`: the same items came out otherwise. `set`: the mean over all items moved further
    than the same items, and whatever failed, allow; `judgments` where only its grades changed.
    `failures`: it did so by the queries that failed, which are in no mean."""
    full: float | None
    """Difference of the means over all items; None where it may be one of several judges."""
    same: BridgeMean | None
    """Of the items that are equal in both."""


def moved(
    before: Evaluation, now: Evaluation, measure: str, same: BridgeMean | None = None
) -> Moved:
    """Return what moved a measure between two evaluations of a run, by the items in common.

    Args:
        before: An earlier one.
        now: The later one.
        measure: Canonical name.
        same: The items that are equal in both, where the later one has no bridge to the earlier.
    """
    full = difference_between(before.measures.get(measure), now.measures.get(measure))
    if now.bridge_to == before.evaluation_id and not is_open(before, now):
        same = now.bridge.get(measure)
    if has_several_judges(before, now):
        return Moved(measure, _cause_beside_judges(before, now, measure, same), None, same)
    if same is None or full is None:
        return Moved(measure, "unknown", full, same)
    return Moved(measure, _cause(before, now, measure, same), full, same)


def _cause_beside_judges(
    before: Evaluation, now: Evaluation, measure: str, same: BridgeMean | None
) -> Cause:
    """Say whether the system moved; what else moved a mean over all items may be the judges."""
    if same is None:
        return "unknown"
    verdict = trend_on_bridge(before, now, measure, same).verdict
    if verdict == "UNKNOWN":
        return "unknown"
    return "judgments" if verdict == "STABLE" else "system"


def _cause(before: Evaluation, now: Evaluation, measure: str, same: BridgeMean) -> Cause:
    found = trend_on_bridge(before, now, measure, same)
    if same.low is None or same.high is None or found.verdict == "UNKNOWN":
        return "unknown"
    old, new = before.measures[measure], now.measures[measure]
    least, full, most = _differences(old, new)
    of_set = not is_same_set(before, now) and (most < same.low or least > same.high)
    if found.verdict != "STABLE":
        return "both" if of_set else "system"
    if of_set:
        return "set" if before.digests.queries != now.digests.queries else "judgments"
    if same.low <= full <= same.high:
        return "neither"
    return "failures" if old.n_failed or new.n_failed else "unknown"


def _differences(old: MeasuredMean, new: MeasuredMean) -> tuple[float, float, float]:
    """Return the least difference of two means that failures allow, their own, and the greatest."""
    (old_least, old_mean, old_most), (new_least, new_mean, new_most) = _bounds(old), _bounds(new)
    return new_least - old_most, new_mean - old_mean, new_most - old_least


def _bounds(of: MeasuredMean) -> tuple[float, float, float]:
    assert of.mean is not None
    return (
        of.mean if of.least is None else of.least,
        of.mean,
        of.mean if of.most is None else of.most,
    )
