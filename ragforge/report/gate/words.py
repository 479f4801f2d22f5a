"""The sentences of a gate's checks."""

from dataclasses import dataclass
from typing import Final

from ragforge.report.gate.verdict import Kind, Outcome, Threshold
from ragforge.report.shown import number, plural

_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Decision:
    """What a threshold is held against."""

    value: float | None
    """The mean, or the mean difference; None where there is none."""
    low: float | None
    high: float | None
    """Ends of the interval of it."""
    decided: float | None
    """The end, or by point the mean, that decides, failures at their worst."""
    n: int
    n_failed: int
    worst: bool
    """Whether failures, or items that cannot be compared, make it worse."""
    by_point: bool
    n_left_out: int = 0
    """Items that cannot be compared, and count at their worst."""
    is_identical: bool = False
    """Whether both are one and the same, so that no difference is possible."""


def decided_on(kind: Kind, found: Decision) -> str:
    """Say what was held against the threshold."""
    end = "high" if kind == "max" else "low"
    mean = "mean difference" if kind == "max-drop" else "mean"
    what = mean if found.by_point else f"{end} end of the interval"
    if found.is_identical:
        what = "identity"
    items = " and items left out" if found.n_left_out else ""
    return f"{what}, failures{items} at their worst" if found.worst else what


def bound_text(kind: Kind, found: Decision, threshold: Threshold, outcome: Outcome) -> str:
    """Say how a mean holds to the threshold of a `min` or a `max`."""
    if found.value is None:
        return "No query has a value."
    said = f"{threshold.measure} is {number(found.value, _DIGITS)}"
    if found.decided is None:
        return f"{said}, of {plural(found.n, 'query', 'queries')}: too few for an interval."
    bound, reached = number(threshold.value, _DIGITS), number(found.decided, _DIGITS)
    worst = _worst(found)
    beyond, far = ("above", "high") if kind == "max" else ("below", "low")
    if outcome == "PASS":
        held = (
            "" if found.by_point and not worst else f", and by its interval not {beyond} {reached}"
        )
        return f"{said}{held}{worst}."
    if (found.value > threshold.value) == (kind == "max") and found.value != threshold.value:
        return f"{said}, which is {beyond} {bound}."
    return f"{said}, but could be as {far} as {reached}{worst}: {bound} is not shown to be held."


def drop_text(found: Decision, threshold: Threshold, outcome: Outcome) -> str:
    """Say how a mean difference holds to the drop that is allowed."""
    if found.value is None:
        return "No item can be compared with the baseline."
    said = f"{threshold.measure} changed by {found.value:+.{_DIGITS}f} on "
    said += plural(found.n, "item")
    if found.decided is None:
        return f"{said}: too few for an interval."
    bound, worst = number(threshold.value, _DIGITS), _worst(found)
    if outcome == "PASS":
        ruled_out = "is ruled out" if not found.by_point else "was not found"
        return f"{said}: a drop of more than {bound} {ruled_out}{worst}."
    if found.value < -threshold.value:
        return f"{said}: that is a drop of more than {bound}."
    reached = f"{found.decided:+.{_DIGITS}f}"
    return f"{said}, but could be {reached}{worst}: a drop of {bound} is not ruled out."


def failures_text(n_failed: int, n: int, most: float, failed: str) -> str:
    """Say how many queries failed, and how many may.

    Args:
        n_failed: Of `n`.
        n: Queries.
        most: Share that may have failed.
        failed: What they did, in words.
    """
    text = f"{n_failed} of {plural(n, 'query', 'queries')} {failed}"
    rate = f", {100 * n_failed / n:.2f} %" if n else ""
    return f"{text}{rate}; allowed is {100 * most:g} %."


def _worst(found: Decision) -> str:
    if not found.worst:
        return ""
    items = plural(found.n_left_out, "item")
    left_out = f" and {items} that cannot be compared" if found.n_left_out else ""
    return f" with all failures{left_out} at their worst"
