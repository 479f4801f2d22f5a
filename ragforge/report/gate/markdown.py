"""The verdict of a gate as Markdown, for a comment on a pull request or a job's summary."""

import re
from typing import Final

from ragforge.report.gate.text import check_table, refusal_lines, sentences
from ragforge.report.gate.verdict import Verdict
from ragforge.report.graded_by import graded_line
from ragforge.report.markdown import escape_markdown, markdown_table
from ragforge.report.shown import harmless, number, one_line
from ragforge.report.table import Table

COMMENT_BYTES: Final = 60_000
"""A comment on GitHub may have 65,536 characters; what is longer is refused."""
_CUT: Final = "\n_Cut here: the rest does not fit; `ragforge gate` prints all of it._\n"
_REFERENCES: Final = re.compile(
    r"(?<=\w)@(?!\d{1,6}(?![\w-]|\.\w))(?=\w)|(?<=\w)#(?=\d)|\bGH-(?=\d)", re.IGNORECASE
)
"""What a host turns into links though it is inside of words: issues, commits, addresses of mail.
The cutoff of a measure is none of these, so that its name can be copied."""
_BACKTICKS: Final = re.compile("`+")
_NAME: Final = re.compile(r"[^A-Za-z0-9._+]+")
_SIGNS: Final = {"PASS": "✅", "FAIL": "❌", "REFUSED": "⛔", "UNCHECKED": "⚪"}
_DIGITS: Final = 4
_LONGEST: Final = 1600
"""Characters of a sentence."""


def render_gate_markdown(verdict: Verdict, limit: int = COMMENT_BYTES) -> str:
    """Return the verdict as Markdown of less than `limit` bytes, cut at a line with a note.

    The first line is a comment that is not shown: the same for the same dataset and run, so that
    a bot finds what it wrote before. Data is text and no markup, link or mention.
    """
    title = f"{_SIGNS[verdict.outcome]} ragforge gate: {verdict.title}"
    graded = _plain(graded_line(verdict.graded_by))
    blocks = [f"{marker(verdict)}\n{graded}", f"## {title}", _plain(verdict.head)]
    blocks.extend(_list("Refused", refusal_lines(verdict)))
    if verdict.checks:
        blocks.append(_table(check_table(verdict)))
        blocks.extend(_list("", sentences(verdict)))
    blocks.extend(_list("What changed since the baseline", [c.text for c in verdict.changes]))
    if verdict.fallen:
        lines = [
            f"- {code_span(harmless(item.query_id))} "
            f"{number(item.value_a, _DIGITS)} → {number(item.value_b, _DIGITS)} "
            f"{code_span(harmless(item.text))}"
            for item in verdict.fallen
        ]
        head = f"### Queries that fell most by {_plain(verdict.fallen_by)}"
        blocks.append("\n".join([head, "", *lines]))
    blocks.extend(_list("Notes", list(verdict.notes)))
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


def _list(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    head = [f"### {title}", ""] if title else []
    return ["\n".join([*head, *(f"- {_plain(one_line(line, 1000))}" for line in lines)])]


def _table(table: Table) -> str:
    return _REFERENCES.sub(_parted, markdown_table(table).replace("## ", "### ", 1))


def _plain(text: str) -> str:
    return _REFERENCES.sub(_parted, escape_markdown(harmless(text, _LONGEST)))


def _parted(match: re.Match[str]) -> str:
    return f"{match.group()}&#8288;"


def _name(text: str) -> str:
    return _NAME.sub("-", text)[:100].strip("-") or "unnamed"
