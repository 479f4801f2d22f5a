"""What happened to documents and queries, in words."""

from collections.abc import Mapping
from typing import Final

from ragforge.records import Action, Cause, DocumentsDiff, ItemChange, JudgmentsDiff, VersionCheck
from ragforge.report.shown import plural

ACTIONS: Final[Mapping[Action, str]] = {
    "remapped": "its quotes stand at other places",
    "reverified": "its quotes stand in changed text, and still prove the answer",
    "relinked": "another quote proves the same answer",
    "answer_changed": "the documents give another answer now",
    "retired": "the documents do not answer it any more",
    "converted": "the documents do not answer it any more, which is what it asks for now",
    "quarantined": "taken out until somebody has looked at it",
    "revived": "what it had lost is back",
    "added": "new",
    "out_of_split": "in no split, as its documents connect it with queries of the other one",
    "back_in_split": "in its split again, as its documents connect it with no other",
}
"""Each action in a phrase."""


def documents_line(found: DocumentsDiff) -> str:
    """Return what happened to documents and chunks, in a line."""
    counts = {
        "added": len(found.added),
        "changed": len(found.changed),
        "removed": len(found.removed),
        "renamed": len(found.renamed),
        "unreadable, kept as they were": len(found.unreadable),
    }
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "no change"
    anew = "all cut anew by other chunk settings; " if found.is_cut_anew else ""
    return (
        f"documents: {anew}{told} ({found.n_before:,} before, {found.n_now:,} now); chunks: "
        f"{found.chunks_kept:,} kept, {found.chunks_added:,} added, {found.chunks_removed:,} gone"
    )


def items_line(items: Mapping[str, int]) -> str:
    """Return what became of the queries, in a line."""
    order = ("kept", *ACTIONS)
    told = [f"{items[name]:,} {_spoken(name)}" for name in order if items.get(name)]
    return f"queries: {', '.join(told) or 'none'}"


def grades_line(found: JudgmentsDiff) -> str:
    """Return what became of grades, in a line."""
    rows = found.kept + found.carried + found.judged + found.evidence + found.failed
    waiting = f", {found.dormant:,} of people wait for theirs" if found.dormant else ""
    return (
        f"grades: {found.kept:,} kept, {found.carried:,} carried, {found.judged:,} new, "
        f"{found.evidence:,} from evidence, {found.failed:,} failed ({rows:,} in all); "
        f"{found.dropped:,} dropped with their chunks{waiting}"
    )


def cause_text(cause: Cause) -> str:
    """Return a cause in words; ids and details are data, and come as they are."""
    named = f" {cause.doc_id}" if cause.doc_id else ""
    renamed = f" (was {cause.before})" if cause.kind == "document renamed" and cause.before else ""
    detail = f": {cause.detail}" if cause.detail else ""
    return f"{cause.kind}{named}{renamed}{detail}"


def change_text(change: ItemChange) -> str:
    """Return what became of a query, with its causes."""
    revision = f" (revision {change.revision})" if change.action == "answer_changed" else ""
    causes = "; ".join(map(cause_text, change.causes))
    return f"{change.query_id} {_spoken(change.action)}{revision}: {causes}"


def check_text(check: VersionCheck) -> str:
    """Return a check of a version in words."""
    figures = ""
    if check.found is not None and check.limit is not None:
        figures = f" ({check.found:.3g}, limit {check.limit:.3g})"
    said = f": {check.detail}" if check.detail else ""
    return f"{check.name} {'passed' if check.passed else 'FAILED'}{figures}{said}"


def bridge_line(n_bridge: int) -> str:
    """Return how many queries two versions have in common."""
    return f"bridge: {plural(n_bridge, 'query', 'queries')} equal in both versions"


def _spoken(name: str) -> str:
    return name.replace("_", " ")
