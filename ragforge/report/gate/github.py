"""The verdict of a gate in the words that GitHub Actions obeys: annotations, and a summary."""

from collections.abc import Iterator
from typing import Final

from ragforge.report.gate.markdown import cut, render_gate_markdown
from ragforge.report.gate.text import refusal_lines
from ragforge.report.gate.verdict import Verdict, power_text
from ragforge.report.shown import harmless

SUMMARY_BYTES: Final = 1024 * 1024
"""A longer summary of a step is dropped whole."""
MOST_ANNOTATIONS: Final = 10
"""Of each kind; what comes beyond is not shown."""
_MESSAGE_CHARACTERS: Final = 1000


def annotations(verdict: Verdict) -> list[str]:
    """Return workflow commands, one a line: errors for what failed, and a notice."""
    errors = [f"::error title={_property(t)}::{_message(m)}" for t, m in _errors(verdict)]
    if len(errors) > MOST_ANNOTATIONS:
        left_out = len(errors) - MOST_ANNOTATIONS + 1
        more = f"::error title={_property('gate')}::{left_out} more failed; see the summary"
        errors = [*errors[: MOST_ANNOTATIONS - 1], more]
    said = _message(f"{verdict.title}: {verdict.head}")
    return [*errors, f"::notice title={_property('ragforge gate')}::{said}"]


def step_summary(verdict: Verdict, n_bytes_there: int) -> str:
    """Return what to append to a step's summary so that it stays below what is allowed.

    Args:
        verdict: What to say.
        n_bytes_there: Size of the summary as it is.

    Returns:
        Markdown; "" where there is no room for any.
    """
    return cut(render_gate_markdown(verdict, SUMMARY_BYTES), SUMMARY_BYTES - n_bytes_there)


def _errors(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for line in refusal_lines(verdict):
        yield "gate refused", line
    for check in verdict.checks:
        if check.outcome == "FAIL":
            yield f"gate {check.name}", f"{check.text} {power_text(check)}".strip()


def _message(text: str) -> str:
    return _escaped(harmless(text, _MESSAGE_CHARACTERS))


def _property(text: str) -> str:
    escaped = _escaped(harmless(text))
    return escaped.replace(":", "%3A").replace(",", "%2C").replace(";", "%3B")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
