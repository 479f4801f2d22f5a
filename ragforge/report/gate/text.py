"""The verdict of a gate for a terminal or the log of a CI job."""

from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import Final

from ragforge.report.gate.verdict import Check, Verdict, power_text
from ragforge.report.graded_by import graded_line
from ragforge.report.shown import MISSING, harmless, number
from ragforge.report.table import Table, render_table

_WIDTH: Final = 100
_DIGITS: Final = 4
_SENTENCE: Final = 1000


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
