"""The changelog of a set: what each version changed, for people; newest first."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from ragforge.records import Action, ItemChange, VersionDiff
from ragforge.report.markdown import escape_markdown
from ragforge.report.refresh.words import (
    ACTIONS,
    bridge_line,
    cause_text,
    documents_line,
    grades_line,
    items_line,
)

_TITLE: Final = "# Changelog\n"
_LISTED: Final = 25
"""Queries that are named under an action; all are in diff.json."""


def with_entry(changelog: str, diff: VersionDiff) -> str:
    """Return a changelog with the entry of a version on top; texts of data are no markup.

    Args:
        changelog: As it was, "" for none.
        diff: What the version changed.
    """
    before = changelog.removeprefix(_TITLE).lstrip("\n")
    entry = "\n".join(_entry(diff))
    return f"{_TITLE}\n{entry}\n" + (f"\n{before}" if before else "")


def _entry(diff: VersionDiff) -> Iterator[str]:
    yield f"## Version {diff.version} (after {diff.parent})\n"
    yield f"- {documents_line(diff.documents)}"
    yield f"- {items_line(diff.items)}"
    yield f"- {grades_line(diff.judgments)}"
    yield f"- {bridge_line(len(diff.bridge))}"
    if diff.shortfall:
        yield f"- {escape_markdown(diff.shortfall)}"
    by_action: dict[Action, list[ItemChange]] = defaultdict(list)
    for change in diff.changes:
        by_action[change.action].append(change)
    for action, meaning in ACTIONS.items():
        if action in by_action and action != "remapped":
            yield f"\n### {action.replace('_', ' ').capitalize()}: {meaning}\n"
            yield from _named(by_action[action])


def _named(changes: list[ItemChange]) -> Iterator[str]:
    for change in changes[:_LISTED]:
        causes = "; ".join(map(cause_text, change.causes))
        yield f"- {escape_markdown(change.query_id)}: {escape_markdown(causes)}"
    if len(changes) > _LISTED:
        yield f"- … and {len(changes) - _LISTED:,} more"
