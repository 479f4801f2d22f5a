"""What a refresh did or would do, as data, text, JSON and a changelog entry."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ragforge.evaluating.formatting import one_line, plural
from ragforge.files.manifest import Spent
from ragforge.records import (
    Action,
    Cause,
    DocumentsDiff,
    ItemChange,
    JudgmentsDiff,
    VersionCheck,
    VersionDiff,
)
from ragforge.report.markdown import escape_markdown

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

Status = Literal["unchanged", "planned", "published", "rejected", "pins broken"]
"""unchanged: nothing to do, no new version. planned: a dry run. rejected: a check of the version
failed; the published one stays. pins broken: a query that a person pinned lost its evidence."""
EXIT_CODES: Final[dict[Status, int]] = {
    "unchanged": 0,
    "planned": 0,
    "published": 0,
    "rejected": 1,
    "pins broken": 2,
}
"""What the command ends with."""
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
_TITLE: Final = "# Changelog\n"
_LISTED_IN_CHANGELOG: Final = 25
"""Queries that are named under an action; all are in diff.json."""


def documents_line(documents: DocumentsDiff) -> str:
    """Return what happened to documents and chunks, in a line."""
    counts = {
        "added": len(documents.added),
        "changed": len(documents.changed),
        "removed": len(documents.removed),
        "renamed": len(documents.renamed),
        "unreadable, kept as they were": len(documents.unreadable),
    }
    counted = (
        ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "no change"
    )
    anew = "all cut anew by other chunk settings; " if documents.is_cut_anew else ""
    return (
        f"documents: {anew}{counted} ({documents.n_before:,} before, {documents.n_now:,} now); "
        f"chunks: {documents.chunks_kept:,} kept, {documents.chunks_added:,} added, "
        f"{documents.chunks_removed:,} gone"
    )


def items_line(items: Mapping[str, int]) -> str:
    """Return what became of the queries, in a line."""
    order = ("kept", *ACTIONS)
    counted = [f"{items[name]:,} {_spoken(name)}" for name in order if items.get(name)]
    return f"queries: {', '.join(counted) or 'none'}"


def grades_line(judgments: JudgmentsDiff) -> str:
    """Return what became of grades, in a line."""
    rows = (
        judgments.kept
        + judgments.carried
        + judgments.judged
        + judgments.evidence
        + judgments.failed
    )
    waiting = f", {judgments.dormant:,} of people wait for theirs" if judgments.dormant else ""
    return (
        f"grades: {judgments.kept:,} kept, {judgments.carried:,} carried, "
        f"{judgments.judged:,} new, {judgments.evidence:,} from evidence, "
        f"{judgments.failed:,} failed ({rows:,} in all); "
        f"{judgments.dropped:,} dropped with their chunks{waiting}"
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
    detail = f": {check.detail}" if check.detail else ""
    return f"{check.name} {'passed' if check.passed else 'FAILED'}{figures}{detail}"


def bridge_line(n_bridge: int) -> str:
    """Return how many queries two versions have in common."""
    return f"bridge: {plural(n_bridge, 'query', 'queries')} equal in both versions"


def _spoken(name: str) -> str:
    return name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What a dry run counted.

    Args:
        documents: What changed in the corpus.
        items: Queries by what they need; those that are out of the set and stay so left out.
        n_pairs: Pairs of queries and new chunks that would be judged at first.
        n_new: Queries that would be generated.
        calls: Calls by purpose, that the call store does not answer. Whether new chunks that turn
            out to be relevant contradict a query is checked on top.
        tokens, cost_usd: Low, expected and high; None where they are not known, as of the offline
            baseline.
    """

    documents: DocumentsDiff
    items: Mapping[str, int]
    n_pairs: int
    n_new: int
    calls: Mapping[str, int]
    tokens: Mapping[str, float] | None
    cost_usd: Mapping[str, float] | None

    def as_json(self) -> dict[str, object]:
        """Return the plan as one object."""
        return {
            "documents": self.documents.model_dump(mode="json"),
            "items": dict(self.items),
            "pairs_to_judge": self.n_pairs,
            "to_generate": self.n_new,
            "calls": {**self.calls, "all": sum(self.calls.values())},
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan for the terminal."""
        yield documents_line(self.documents)
        counted = [f"{n:,} {name.replace('_', ' ')}" for name, n in self.items.items() if n]
        yield f"queries: {', '.join(counted) or 'none'}, {self.n_new:,} to generate"
        pairs = plural(self.n_pairs, "pair")
        yield (
            f"to judge: {pairs} of new chunks, more where pools grow; and checks of new relevant "
            "chunks"
        )
        by_purpose = ", ".join(f"{n:,} to {purpose}" for purpose, n in self.calls.items())
        yield f"calls: {sum(self.calls.values()):,} ({by_purpose})"
        if self.tokens is not None:
            yield f"tokens: {_range(self.tokens, ',.0f')}"
        money = "unknown" if self.cost_usd is None else f"{_range(self.cost_usd, '.4f')} USD"
        yield f"cost: {money}"


def _range(amounts: Mapping[str, float], form: str) -> str:
    low, expected, high = (format(amounts[name], form) for name in ("low", "expected", "high"))
    return f"{expected} expected ({low} to {high})"


@dataclass(frozen=True, slots=True)
class RefreshSummary:
    """What a refresh came to.

    Args:
        status: How it ended.
        dataset: The directory.
        name: Of the dataset.
        parent: The version that was published before.
        version: The new one, or the one that would be; the parent's where nothing changed.
        diff: What changed; None where nothing did, and in a dry run before anything is asked.
        spent: What was bought in this run; replies of the call store cost nothing.
        plan: What a dry run counted; None in earnest.
        removed: Old versions that were removed.
        broken_pins: What would have become of queries that a person pinned.
        unreadable: Ids of known documents that cannot be read now and stay as they were.
    """

    status: Status
    dataset: str
    name: str
    parent: int
    version: int
    diff: VersionDiff | None = None
    spent: Spent = field(default_factory=Spent)
    plan: RefreshPlan | None = None
    removed: tuple[int, ...] = ()
    broken_pins: tuple[ItemChange, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        return EXIT_CODES[self.status]

    def as_json(self) -> dict[str, object]:
        """Return one object for machines; the published diff is in it whole but for the bridge."""
        summary: dict[str, object] = {
            "status": self.status,
            "exit_code": self.exit_code,
            "dataset": self.dataset,
            "name": self.name,
            "parent": self.parent,
            "version": self.version,
            "spent": {
                "calls": self.spent.calls,
                "tokens": self.spent.prompt_tokens + self.spent.completion_tokens,
                "cost_usd": self.spent.cost_usd,
            },
            "removed_versions": list(self.removed),
            "broken_pins": [change.model_dump(mode="json") for change in self.broken_pins],
            "unreadable": list(self.unreadable),
        }
        if self.plan is not None:
            summary["plan"] = self.plan.as_json()
        if self.diff is not None:
            diff = self.diff.model_dump(mode="json", exclude={"version", "parent", "bridge"})
            summary |= {**diff, "n_bridge": len(self.diff.bridge)}
        return summary


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
    counted = plural(len(doc_ids), "document")
    return one_line(f"{counted} cannot be read now and {stay}: {some}{more}", 400)


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
    for change in changes[:_LISTED_IN_CHANGELOG]:
        causes = "; ".join(map(cause_text, change.causes))
        yield f"- {escape_markdown(change.query_id)}: {escape_markdown(causes)}"
    if len(changes) > _LISTED_IN_CHANGELOG:
        yield f"- … and {len(changes) - _LISTED_IN_CHANGELOG:,} more"
