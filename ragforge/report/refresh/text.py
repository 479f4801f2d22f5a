"""A refresh for the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from ragforge.records import Action, VersionDiff
from ragforge.report.refresh.summary import RefreshSummary
from ragforge.report.refresh.words import (
    bridge_line,
    change_text,
    check_text,
    documents_line,
    grades_line,
    items_line,
)
from ragforge.report.shown import one_line, plural

_SHOWN: Final = 10
_LISTED: Final[tuple[Action, ...]] = (
    "quarantined",
    "answer_changed",
    "retired",
    "converted",
    "relinked",
    "reverified",
    "revived",
    "out_of_split",
    "back_in_split",
    "added",
)
"""Actions that are listed, the most weighty first; the others are counted, as nothing about the
query changed."""


def refresh_text(summary: RefreshSummary) -> str:
    """Return what a refresh did, on several lines; texts of data are on one line each."""
    return "\n".join(_lines(summary))


def _lines(summary: RefreshSummary) -> Iterator[str]:
    yield _headline(summary)
    if summary.unreadable:
        yield _unreadable_line(summary.unreadable)
    if summary.plan is not None:
        yield from summary.plan.lines()
    if summary.diff is not None:
        yield from diff_lines(summary.diff)
        spent = summary.spent
        cost = "cost unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f} USD"
        tokens = spent.prompt_tokens + spent.completion_tokens
        yield f"bought now: {plural(spent.calls, 'call')}, {tokens:,} tokens, {cost}"
    if summary.removed:
        yield f"old versions removed: {', '.join(map(str, summary.removed))}"
    yield from (f"  {one_line(change_text(change), 200)}" for change in summary.broken_pins)


def _unreadable_line(doc_ids: Sequence[str]) -> str:
    some = ", ".join(doc_ids[:_SHOWN])
    more = f" and {len(doc_ids) - _SHOWN:,} more" if len(doc_ids) > _SHOWN else ""
    stay = "stays as it was" if len(doc_ids) == 1 else "stay as they were"
    told = plural(len(doc_ids), "document")
    return one_line(f"{told} cannot be read now and {stay}: {some}{more}", 400)


def diff_lines(diff: VersionDiff) -> Iterator[str]:
    """Yield what a version changed, the most weighty changes first."""
    yield documents_line(diff.documents)
    yield items_line(diff.items)
    listed = [change for change in diff.changes if change.action in _LISTED]
    listed.sort(key=lambda change: _LISTED.index(change.action))
    for change in listed[:_SHOWN]:
        yield f"  {one_line(change_text(change), 200)}"
    if len(listed) > _SHOWN:
        yield f"  … and {len(listed) - _SHOWN:,} more, all in diff.json"
    yield grades_line(diff.judgments)
    calls = diff.calls
    yield (
        f"calls: {calls.verify:,} to verify, {calls.judge:,} to judge, {calls.conflicts:,} to look "
        f"for conflicts, {calls.generate:,} to generate"
    )
    yield bridge_line(len(diff.bridge))
    if diff.shortfall:
        yield one_line(diff.shortfall, 200)
    for check in diff.checks:
        yield f"  {one_line(check_text(check), 200)}"


def _headline(summary: RefreshSummary) -> str:
    name = one_line(summary.name, 80)
    match summary.status:
        case "unchanged":
            n_calls = summary.spent.calls
            made = f"{plural(n_calls, 'call')} made" if n_calls else "no call was made"
            return f"{name}: nothing changed; version {summary.parent} stays, {made}"
        case "planned":
            return f"{name}: version {summary.version} would follow version {summary.parent}"
        case "published":
            return f"{name}: version {summary.version} is published (after {summary.parent})"
        case "rejected":
            return (
                f"{name}: version {summary.version} was rejected, version {summary.parent} stays; "
                f"look at it in rejected/, or publish it with --accept-churn"
            )
    return f"{name}: pinned queries lost their evidence; version {summary.parent} stays"
