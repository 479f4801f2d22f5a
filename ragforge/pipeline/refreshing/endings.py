"""Telling hooks how a refresh ended."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ragforge.config import RefreshSettings
from ragforge.errors import ChurnError, LockedError, RagforgeError
from ragforge.observe import Observer
from ragforge.pipeline.notifying import EventKind, notify
from ragforge.report.refresh.summary import RefreshSummary, Status

_KINDS: Final[Mapping[Status, EventKind]] = MappingProxyType(
    {"published": "published", "rejected": "rejected", "pins broken": "pins_broken"}
)
"""Of the endings that anybody wants to hear of; a night without a change is none."""


def tell_of_summary(summary: RefreshSummary, settings: RefreshSettings, observer: Observer) -> None:
    """Tell how a refresh ended, where it made a version or was to make one."""
    kind = _KINDS.get(summary.status)
    if kind is None:
        return
    found = summary.as_json()
    kept = ("version", "parent", "items", "documents", "calls", "spent", "checks", "shortfall")
    event = {"kind": kind, "dataset": summary.name, "exit_code": summary.exit_code}
    more = {name: found[name] for name in (*kept, "broken_pins", "unreadable") if name in found}
    notify({**event, **more}, settings, observer)


def tell_of_failure(
    path: Path, error: RagforgeError, settings: RefreshSettings, observer: Observer
) -> None:
    """Tell that a refresh could not be made; the published version stays.

    That another refresh is running is not told: that one tells its own end.
    """
    if isinstance(error, LockedError):
        return
    kind: EventKind = "churn" if isinstance(error, ChurnError) else "failed"
    event = {
        "kind": kind,
        "dataset": path.resolve().name,
        "error": str(error),
        "exit_code": error.exit_code,
    }
    notify(event, settings, observer)
