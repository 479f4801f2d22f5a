"""The verdict of a gate for a terminal or the log of a CI job."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Final

from ragforge.evaluating.formatting import MISSING, harmless, number, plural
from ragforge.evaluating.gate import Check, Kind, Outcome, Threshold, Verdict, power_text
from ragforge.evaluating.graded_by import graded_line
from ragforge.evaluating.text_table import Table, render_table

_WIDTH: Final = 100
_DIGITS: Final = 4
_SENTENCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Decision:
    """The value, with its interval, that is compared with a threshold."""

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


def decided_on(kind: Kind, decision: Decision) -> str:
    """Return the name of the value that is compared with the threshold."""
    end = "high" if kind == "max" else "low"
    mean = "mean difference" if kind == "max-drop" else "mean"
    what = mean if decision.by_point else f"{end} end of the interval"
    if decision.is_identical:
        what = "identity"
    items = " and items left out" if decision.n_left_out else ""
    return f"{what}, failures{items} at their worst" if decision.worst else what


def bound_sentence(kind: Kind, decision: Decision, threshold: Threshold, outcome: Outcome) -> str:
    """Return a sentence on a mean against the threshold of a `min` or a `max`."""
    if decision.value is None:
        return "No query has a value."
    sentence = f"{threshold.measure} is {number(decision.value, _DIGITS)}"
    if decision.decided is None:
        return f"{sentence}, of {plural(decision.n, 'query', 'queries')}: too few for an interval."
    bound, reached = number(threshold.value, _DIGITS), number(decision.decided, _DIGITS)
    worst = _worst(decision)
    beyond, far = ("above", "high") if kind == "max" else ("below", "low")
    if outcome == "PASS":
        held = (
            ""
            if decision.by_point and not worst
            else f", and by its interval not {beyond} {reached}"
        )
        return f"{sentence}{held}{worst}."
    if (decision.value > threshold.value) == (kind == "max") and decision.value != threshold.value:
        return f"{sentence}, which is {beyond} {bound}."
    return (
        f"{sentence}, but could be as {far} as {reached}{worst}: {bound} is not shown to be held."
    )


def drop_sentence(decision: Decision, threshold: Threshold, outcome: Outcome) -> str:
    """Return a sentence on a mean difference against the drop that is allowed."""
    if decision.value is None:
        return "No item can be compared with the baseline."
    sentence = f"{threshold.measure} changed by {decision.value:+.{_DIGITS}f} on "
    sentence += plural(decision.n, "item")
    if decision.decided is None:
        return f"{sentence}: too few for an interval."
    bound, worst = number(threshold.value, _DIGITS), _worst(decision)
    if outcome == "PASS":
        ruled_out = "is ruled out" if not decision.by_point else "was not found"
        return f"{sentence}: a drop of more than {bound} {ruled_out}{worst}."
    if decision.value < -threshold.value:
        return f"{sentence}: that is a drop of more than {bound}."
    reached = f"{decision.decided:+.{_DIGITS}f}"
    return f"{sentence}, but could be {reached}{worst}: a drop of {bound} is not ruled out."


def failures_text(n_failed: int, n: int, most: float, failed: str) -> str:
    """Return a sentence on how many queries failed, and how many may.

    Args:
        n_failed: Of `n`.
        n: Queries.
        most: Share that may have failed.
        failed: What they did, in words.
    """
    text = f"{n_failed} of {plural(n, 'query', 'queries')} {failed}"
    rate = f", {100 * n_failed / n:.2f} %" if n else ""
    return f"{text}{rate}; allowed is {100 * most:g} %."


def _worst(decision: Decision) -> str:
    if not decision.worst:
        return ""
    items = plural(decision.n_left_out, "item")
    left_out = f" and {items} that cannot be compared" if decision.n_left_out else ""
    return f" with all failures{left_out} at their worst"


def render_gate(verdict: Verdict) -> str:
    """Return the verdict as plain text, without a line feed at its end.

    No text of the data can steer a terminal, or a CI service that reads commands from logs.
    """
    graded = harmless(graded_line(verdict.graded_by), _SENTENCE)
    blocks = [f"{graded}\ngate: {verdict.title}\n{harmless(verdict.head)}"]
    blocks.extend(_paragraphs("refused", refusal_lines(verdict)))
    if verdict.checks:
        table = check_table(verdict)
        blocks.append(render_table(table.headers, table.rows))
        blocks.extend(_paragraphs("", sentences(verdict)))
    blocks.extend(_paragraphs("what changed since the baseline", [c.text for c in verdict.changes]))
    if verdict.fallen:
        fallen = fallen_table(verdict)
        blocks.append(f"{fallen.title}\n{render_table(fallen.headers, fallen.rows)}")
    blocks.extend(_paragraphs("notes", verdict.notes))
    return "\n\n".join(blocks)


def check_table(verdict: Verdict) -> Table:
    """Return the checks, one a row."""
    headers = ("check", "threshold", "value", "95 % interval", "n", "decided on", "at", "verdict")
    rows = tuple(
        (
            harmless(check.name),
            _number(check, check.threshold),
            _value(check, check.value),
            _interval(check),
            f"{check.n:,}",
            check.decided_on,
            _value(check, check.decided),
            "not decided" if check.outcome == "OPEN" else check.outcome,
        )
        for check in verdict.checks
    )
    return Table("Checks", headers, rows)


def fallen_table(verdict: Verdict) -> Table:
    """Return the queries that fell most."""
    headers = ("query", "baseline", "now", "text")
    rows = tuple(
        (
            harmless(item.query_id),
            number(item.value_a, _DIGITS),
            number(item.value_b, _DIGITS),
            harmless(item.text),
        )
        for item in verdict.fallen
    )
    return Table(f"Queries that fell most by {harmless(verdict.fallen_by)}", headers, rows)


def sentences(verdict: Verdict) -> list[str]:
    """Return what each check found, with what so many queries can show."""
    return [f"{check.text} {power_text(check)}".strip() for check in verdict.checks]


def refusal_lines(verdict: Verdict) -> list[str]:
    """Return why nothing is decided, each with the flag that allows it."""
    return [
        f"{item.reason} (allow with {item.flag})" if item.flag else item.reason
        for item in verdict.refusals
    ]


def _paragraphs(title: str, lines: Iterable[str]) -> Iterator[str]:
    mark = "- " if title else ""
    filled = [
        fill(
            mark + harmless(line, _SENTENCE),
            _WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    ]
    if filled:
        yield "\n".join([f"{title}:", *filled] if title else filled)


def _number(check: Check, value: float | None) -> str:
    if check.kind == "max-failures" and value is not None:
        return f"{100 * value:.2f} %"
    return number(value, _DIGITS)


def _value(check: Check, value: float | None) -> str:
    if check.kind == "max-drop" and value is not None:
        return f"{value:+.{_DIGITS}f}"
    return _number(check, value)


def _interval(check: Check) -> str:
    if check.low is None or check.high is None:
        return MISSING
    sign = "+" if check.kind == "max-drop" else ""
    return f"{check.low:{sign}.{_DIGITS}f} to {check.high:{sign}.{_DIGITS}f}"
