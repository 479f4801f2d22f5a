"""Whether it was the system that moved a measure, or the set that it is measured on."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragforge.records import BridgeMean, Evaluation
from ragforge.report.history.trends import difference_between, trend_on_bridge

Cause: TypeAlias = Literal["system", "set", "both", "neither", "unknown"]


@dataclass(frozen=True, slots=True)
class Moved:
    """Whether it was the system that moved a measure, or the set it is measured on."""

    measure: str
    cause: Cause
    """`system`: the same items came out otherwise. `set`: the mean over all items moved further
    than the same items allow."""
    full: float | None
    """Difference of the means over all items."""
    same: BridgeMean | None
    """Of the items that are equal in both."""


def moved(before: Evaluation, now: Evaluation, measure: str) -> Moved:
    """Return what moved a measure between two evaluations of a run, by the items in common.

    Args:
        before: The one that `now` has its bridge to; of others nothing can be told.
        now: The later one.
        measure: Canonical name.
    """
    full = difference_between(before.measures.get(measure), now.measures.get(measure))
    same = now.bridge.get(measure) if now.bridge_to == before.evaluation_id else None
    if same is None or full is None:
        return Moved(measure, "unknown", full, same)
    found = trend_on_bridge(before, now, measure, same)
    if found.low is None or found.high is None:
        return Moved(measure, "unknown", full, same)
    of_system = found.verdict != "STABLE"
    of_set = not found.low <= full <= found.high
    cause: Cause = "neither"
    if of_system:
        cause = "both" if of_set else "system"
    elif of_set:
        cause = "set"
    return Moved(measure, cause, full, same)
