"""The verdict of a gate: text for terminals and logs, Markdown, GitHub annotations."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from ragforge.deferred import pattern
from ragforge.evaluating.formatting import MISSING, Table, harmless, number, signed
from ragforge.evaluating.gate import (
    Check,
    Verdict,
    power_text,
)
from ragforge.evaluating.graded_by import graded_line
from ragforge.report.document import Block, Document, Listing
from ragforge.report.markdown import escape_markdown, markdown_block
from ragforge.report.text import TextLayout

_DIGITS: Final = 4
_SENTENCE: Final = 1000
_FALLEN: Final = ("query", "baseline", "now", "text")
_LAYOUT: Final = TextLayout(100, partial(harmless, limit=_SENTENCE), break_on_hyphens=False)

_COMMENT_BYTES: Final = 60_000
"""A comment on GitHub may have 65,536 characters; what is longer is refused."""
_CUT: Final = "\n_Cut here: the rest does not fit; `ragforge gate` prints all of it._\n"
_REFERENCES: Final = pattern(
    r"(?<=\w)@(?!\d{1,6}(?![\w-]|\.\w))(?=\w)|(?<=\w)#(?=\d)|\bGH-(?=\d)", re.IGNORECASE
)
"""What a host turns into links though it is inside of words: issues, commits, addresses of mail.
The cutoff of a measure is none of these, so that its name can be copied."""
_BACKTICKS: Final = pattern("`+")
_NAME: Final = pattern(r"[^A-Za-z0-9._+]+")
UNDECIDED: Final = {"OPEN": "not decided", "NOT_SHOWN": "not shown"}
_SIGNS: Final = {
    "PASS": "✅", "FAIL": "❌", "NOT_SHOWN": "❔", "REFUSED": "⛔", "UNCHECKED": "⚪",
}  # fmt: skip
_LONGEST: Final = 1600
"""Characters of a sentence."""
_SUMMARY_BYTES: Final = 1024 * 1024
"""A longer summary of a step is dropped whole."""
_MOST_ANNOTATIONS: Final = 10
"""Of each kind; what comes beyond is not shown."""
_MESSAGE_CHARACTERS: Final = 1000


def render_gate(verdict: Verdict) -> str:
    """Return the verdict as plain text, without a line feed at its end.

    No text of the data can steer a terminal, or a CI service that reads commands from logs.
    """
    graded = harmless(graded_line(verdict.graded_by, verdict.correction), _SENTENCE)
    outcome = harmless(verdict.sentence, _SENTENCE)
    head = f"{graded}\ngate: {outcome}\n{harmless(verdict.head)}"
    return "\n\n".join([head, *_LAYOUT.blocks(_gate_document(verdict, of_checks=""))])


def _gate_document(verdict: Verdict, of_checks: str = "Checks") -> Document:
    """Return the verdict as a document: refusals, checks, what changed, and which queries fell.

    Args:
        verdict: Of the gate.
        of_checks: Title of the table of checks.
    """
    blocks: list[Block] = [Listing("refused", tuple(refusal_lines(verdict)))]
    if verdict.checks:
        blocks += [
            replace(check_table(verdict), title=of_checks),
            Listing("", tuple(sentences(verdict))),
        ]
    changes = tuple(change.text for change in verdict.changes)
    blocks.append(Listing("what changed since the baseline", changes))
    if verdict.fallen:
        blocks.append(_fallen_table(verdict))
    blocks.append(Listing("notes", tuple(verdict.notes)))
    return Document(
        title=verdict.title,
        lead=(graded_line(verdict.graded_by, verdict.correction), verdict.head),
        blocks=tuple(b for b in blocks if not isinstance(b, Listing) or b.lines),
    )


def check_table(verdict: Verdict) -> Table:
    """Return the checks, one a row."""
    headers = ("check", "threshold", "value", "95 % interval", "n", "decided on", "at", "verdict")
    rows = tuple(
        (
            harmless(check.name),
            _number(check, check.threshold) + (" (auto)" if check.is_sized else ""),
            _value(check, check.value),
            _interval(check),
            f"{check.n:,}",
            check.decided_on,
            _value(check, check.decided),
            UNDECIDED.get(check.outcome, check.outcome),
        )
        for check in verdict.checks
    )
    return Table("Checks", headers, rows)


def _fallen_table(verdict: Verdict) -> Table:
    """Return the queries that fell most."""
    rows = tuple(
        (
            harmless(item.query_id),
            number(item.value_a, _DIGITS),
            number(item.value_b, _DIGITS),
            harmless(item.text),
        )
        for item in verdict.fallen
    )
    return Table(f"Queries that fell most by {harmless(verdict.fallen_by)}", _FALLEN, rows)


def sentences(verdict: Verdict) -> list[str]:
    """Return the `sentence` of each check."""
    return [sentence(check) for check in verdict.checks]


def sentence(check: Check) -> str:
    """Return what a check found, with what so many queries can show."""
    return f"{check.text} {power_text(check)}".strip()


def refusal_lines(verdict: Verdict) -> list[str]:
    """Return why nothing is decided, each with the flag that allows it."""
    return [
        f"{item.reason} (allow with {item.flag})" if item.flag else item.reason
        for item in verdict.refusals
    ]


def stops(check: Check, verdict: Verdict) -> bool:
    """Whether a check is one of those for which the gate stops the run."""
    return check.outcome == "FAIL" or (
        check.outcome == "NOT_SHOWN" and not verdict.passed and verdict.fail_on == "not-shown"
    )


def _number(check: Check, value: float | None) -> str:
    if check.kind == "max-failures" and value is not None:
        return f"{100 * value:.2f} %"
    return number(value, _DIGITS)


def _value(check: Check, value: float | None) -> str:
    if check.kind == "max-drop" and value is not None:
        return signed(value, _DIGITS)
    return _number(check, value)


def _interval(check: Check) -> str:
    if check.low is None or check.high is None:
        return MISSING
    sign = "+" if check.kind == "max-drop" else ""
    return f"{check.low:{sign}.{_DIGITS}f} to {check.high:{sign}.{_DIGITS}f}"


def render_gate_markdown(verdict: Verdict, limit: int = _COMMENT_BYTES) -> str:
    """Return the verdict as Markdown of less than `limit` bytes, cut at a line with a note.

    The first line is a comment that is not shown: the same for the same dataset and run, so that
    a bot finds what it wrote before. Data is text and no markup, link or mention.
    """
    title = f"{_SIGNS[verdict.outcome]} ragforge gate: {_plain(verdict.sentence)}"
    graded = _plain(graded_line(verdict.graded_by, verdict.correction))
    blocks = [f"{marker(verdict)}\n## {title}", graded, _plain(verdict.head)]
    blocks.extend(map(_markdown_block, _gate_document(verdict).blocks))
    return cut("\n\n".join(blocks) + "\n", limit)


def marker(verdict: Verdict) -> str:
    """Return the hidden line by which a bot finds its earlier comment."""
    now = verdict.evaluation
    return f"<!-- ragforge gate {_name(now.dataset)} {_name(now.run)} -->"


def cut(text: str, limit: int) -> str:
    """Return the lines that fit into less than `limit` bytes, with a note where some do not.

    Args:
        text: Ends with a line feed.
        limit: In bytes; "" comes back where not even the note fits.
    """
    if len(text.encode()) < limit:
        return text
    room = limit - len(_CUT.encode()) - 1
    kept = []
    for line in text.splitlines(keepends=True):
        room -= len(line.encode())
        if room < 0:
            break
        kept.append(line)
    return "".join(kept) + _CUT if kept else ""


def code_span(text: str) -> str:
    """Return a text as inline code, in which nothing is markup, a link or a mention."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if text.strip() else ""


def _markdown_block(block: Block) -> str:
    if not isinstance(block, Table):
        return markdown_block(block, _plain, level=3)
    if block.headers == _FALLEN:
        rows = (
            f"- {code_span(query_id)} {before} → {now} {code_span(text)}"
            for query_id, before, now, text in block.rows
        )
        return "\n".join([f"### {_plain(block.title)}", "", *rows])
    return _REFERENCES.sub(_parted, markdown_block(block, level=3))


def _plain(text: str) -> str:
    return _REFERENCES.sub(_parted, escape_markdown(harmless(text, _LONGEST)))


def _parted(match: re.Match[str]) -> str:
    return f"{match.group()}&#8288;"


def _name(text: str) -> str:
    return _NAME.sub("-", text)[:100].strip("-") or "unnamed"


def annotations(verdict: Verdict) -> list[str]:
    """Return workflow commands, one a line: errors, warnings for what is not shown, a notice."""
    errors = [f"::error title={_property(t)}::{_message(m)}" for t, m in _errors(verdict)]
    if len(errors) > _MOST_ANNOTATIONS:
        left_out = len(errors) - _MOST_ANNOTATIONS + 1
        more = f"::error title={_property('gate')}::{left_out} more failed; see the summary"
        errors = [*errors[: _MOST_ANNOTATIONS - 1], more]
    message = _message(f"{verdict.sentence} {verdict.head}")
    warned = [
        f"::warning title={_property(f'gate {check.name}')}::{_message(sentence(check))}"
        for check in verdict.checks
        if check.outcome == "NOT_SHOWN" and not stops(check, verdict)
    ]
    return [
        *errors,
        *warned[:_MOST_ANNOTATIONS],
        f"::notice title={_property('ragforge gate')}::{message}",
    ]


def step_summary(verdict: Verdict, n_bytes_there: int) -> str:
    """Return what to append to a step's summary so that it stays below what is allowed.

    Args:
        verdict: What to say.
        n_bytes_there: Size of the summary as it is.

    Returns:
        Markdown; "" where there is no room for any.
    """
    return cut(render_gate_markdown(verdict, _SUMMARY_BYTES), _SUMMARY_BYTES - n_bytes_there)


def _errors(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for line in refusal_lines(verdict):
        yield "gate refused", line
    for check in verdict.checks:
        if stops(check, verdict):
            yield f"gate {check.name}", sentence(check)


def _message(text: str) -> str:
    return _escaped(harmless(text, _MESSAGE_CHARACTERS))


def _property(text: str) -> str:
    escaped = _escaped(harmless(text))
    return escaped.replace(":", "%3A").replace(",", "%2C").replace(";", "%3B")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
