"""The store of bought replies: what was bought, carrying it elsewhere, and making it smaller."""

import math
from collections.abc import Mapping
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from ragforge.api.results import Result
from ragforge.api.running import awaited
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import plural, render_table
from ragforge.files.atomic import write_whole
from ragforge.files.manifest import Spent
from ragforge.files.source_files import is_packed
from ragforge.llm.store.ledger import Ledger, PruneFilter, count_prunable, read_ledger
from ragforge.llm.store.ledger import prune as prune_store
from ragforge.llm.store.transfer import ExportCounts, export_lines, import_file


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CacheStats(Result):
    """What a store holds, and what was paid for it.

    Args:
        path: The store.
        ledger: Model by model.
    """

    path: Path
    ledger: Ledger

    @property
    def spent(self) -> Spent:
        """Calls, tokens and money of all replies ever bought, those pruned since included."""
        return self.ledger.spent

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge cache stats --json` prints."""
        ledger = self.ledger
        return {
            "store": str(self.path),
            "file_bytes": ledger.file_bytes,
            "models": self.rows(),
            "spent": ledger.spent.model_dump(),
            "pruned": ledger.pruned,
            "unanswered": ledger.unanswered,
            "leases": [
                {"pid": item.pid, "host": item.host, "leases": item.leases}
                for item in ledger.holdings
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each model."""
        return [
            {
                "model": item.model,
                **item.spent.model_dump(),
                "estimated": item.estimated,
                "forgotten": item.forgotten,
                "damaged": item.damaged,
            }
            for item in self.ledger.models
        ]

    def table(self) -> str:
        """Return the models, and the sums of all runs, as text."""
        headers = ("model", "calls", "prompt tokens", "completion tokens", "estimated", "cost USD")
        rows = [
            [
                item.model,
                f"{item.spent.calls:,}",
                f"{item.spent.prompt_tokens:,}",
                f"{item.spent.completion_tokens:,}",
                f"{item.estimated:,}",
                _money(item.spent),
                f"{item.forgotten:,}",
                f"{item.damaged:,}",
            ]
            for item in self.ledger.models
        ]
        models = render_table((*headers, "forgotten", "damaged"), rows)
        return "\n".join([models, "", *self._sums()])

    def _sums(self) -> list[str]:
        ledger, spent = self.ledger, self.ledger.spent
        held = [
            f"{plural(item.leases, 'lease')} by process {item.pid} on {item.host}"
            for item in ledger.holdings
        ]
        return [
            f"all runs: {plural(spent.calls, 'call')}, {spent.prompt_tokens:,} prompt and "
            f"{spent.completion_tokens:,} completion tokens, cost {_money(spent)} USD; "
            f"{ledger.pruned:,} of the replies were pruned",
            f"attempts perhaps billed without a reply: {ledger.unanswered:,}",
            f"held now: {', '.join(held) or 'no lease'}",
            f"{self.path}: {ledger.file_bytes:,} bytes",
        ]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CacheChange(Result):
    """What was exported, imported or pruned, as counts.

    Args:
        text: What was done, in words.
        counts: As the command prints them with `--json`.
        notes: What was told on the way.
    """

    text: str
    counts: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, as `--json` of the command prints them."""
        return dict(self.counts)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with the counts."""
        return [{name: value for name, value in self.counts.items() if name != "faults"}]

    def table(self) -> str:
        """Return what was done, in words."""
        return self.text


def stats(cache: "AnyCache") -> CacheStats:
    """Tell what was bought, by model, what was set aside, and who is buying now.

    Raises:
        DataError: There is no store, or it cannot be read.
    """
    path = Path(cache.path)
    return CacheStats(path, read_ledger(path))


def export_replies(cache: "AnyCache", out: str | PathLike[str]) -> CacheChange:
    """Write the replies as JSON Lines, to keep or to share; no key of an API is in them.

    Args:
        cache: The store.
        out: The file.

    Raises:
        UsageError: The file is the store itself, or has the ending of a packed one.
        DataError: There is no store, or the file cannot be written.
    """
    path, file, exported = Path(cache.path), Path(out), ExportCounts()
    _check_export(path, file)
    write_whole(file, export_lines(path, exported))
    return exported_change(path, file, exported)


def import_replies(cache: "AnyCache", source: str | PathLike[str]) -> CacheChange:
    """Take in replies that were exported; of two replies to one call the later one stays.

    Args:
        cache: The store, which is made where missing.
        source: What `export_replies` wrote, also packed.

    Raises:
        DataError: The file cannot be read, or none of its lines is a reply.
    """
    path, file = Path(cache.path), Path(source)
    imported = import_file(file, path)
    faults = [{"line": fault.line, "why": fault.why} for fault in imported.faults]
    notes = (f"{file}:{fault.line}: passed over: {fault.why}" for fault in imported.faults)
    text = (
        f"{plural(imported.rows, 'reply', 'replies')} read, {imported.new:,} of them new here; "
        f"{plural(len(imported.faults), 'line')} passed over"
    )
    counts = {"store": str(path), "rows": imported.rows, "new": imported.new, "faults": faults}
    return CacheChange(text, counts, tuple(notes))


def prune(
    cache: "AnyCache",
    *,
    older_than_days: float | None = None,
    model: str | None = None,
    set_aside: bool = False,
    dry_run: bool = False,
) -> CacheChange:
    """Take replies out for good; they are bought again when asked for, their cost stays in sums.

    All conditions that are given must hold.

    Args:
        cache: The store.
        older_than_days: Replies bought longer ago than that.
        model: Replies of this model, as `stats` names it.
        set_aside: Replies that were forgotten or damaged.
        dry_run: Count what would go, and keep it.

    Raises:
        UsageError: No condition is given, or the days are below 0.
        DataError: There is no store.
    """
    path, days = Path(cache.path), older_than_days
    if days is None and model is None and not set_aside:
        raise UsageError("prune: needs older_than_days, model or set_aside")
    if days is not None and not (math.isfinite(days) and days >= 0):
        raise UsageError(f"older_than_days: expected days >= 0, got {days:g}")
    went = (count_prunable if dry_run else prune_store)(path, PruneFilter(days, model, set_aside))
    counts = {"store": str(path), "dry_run": dry_run, **went.spent.model_dump()}
    sizes = {"bytes_before": went.bytes_before, "bytes_after": went.bytes_after}
    what = plural(went.spent.calls, "reply", "replies")
    took = f"{went.spent.prompt_tokens:,} prompt and {went.spent.completion_tokens:,} completion"
    lines = [
        f"{what} {'would go' if dry_run else 'taken out'} "
        f"({took} tokens, cost {_money(went.spent)} USD)"
    ]
    if not dry_run:
        lines.append(f"{path}: {went.bytes_before:,} -> {went.bytes_after:,} bytes")
    return CacheChange("\n".join(lines), {**counts, **sizes})


@dataclass(frozen=True, slots=True)
class AsyncCache:
    """The calls of a `Cache` to be awaited."""

    path: str | PathLike[str]

    stats = awaited(stats)
    export_replies = awaited(export_replies)
    import_replies = awaited(import_replies)
    prune = awaited(prune)


@dataclass(frozen=True, slots=True)
class Cache:
    """A store of bought replies, none of which is bought again; that of a set is `ds.cache`.

    Args:
        path: The file, such as `my-set/.ragforge/calls.sqlite`.
    """

    path: str | PathLike[str]

    stats = stats
    export_replies = export_replies
    import_replies = import_replies
    prune = prune

    @property
    def aio(self) -> AsyncCache:
        """The same calls to be awaited."""
        return AsyncCache(self.path)


AnyCache: TypeAlias = Cache | AsyncCache


def exported_change(store: Path, file: Path, exported: ExportCounts) -> CacheChange:
    """Return what an export came to."""
    counts = {
        "file": str(file),
        "rows": exported.rows,
        "left_out": exported.left_out,
        "salvaged": exported.salvaged,
    }
    text = (
        f"{plural(exported.rows, 'reply', 'replies')} written, "
        f"{exported.left_out:,} left out: set aside or damaged"
    )
    notes = (f"{store}: is damaged; what can be read was written",) if exported.salvaged else ()
    return CacheChange(text, counts, notes)


def _check_export(store: Path, file: Path) -> None:
    """Refuse to write replies over their store, or under the name of a packed file.

    Raises:
        UsageError: The file is one of these.
    """
    if is_packed(file):
        raise UsageError(f"{file}: is written plain; pack it afterwards")
    if file.exists() and store.exists() and file.samefile(store):
        raise UsageError(f"{file}: is the call store itself")


def _money(spent: Spent) -> str:
    return "unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f}"
