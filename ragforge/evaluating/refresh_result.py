"""The result of a refresh, or of its dry run, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ragforge.files.manifest import Spent
from ragforge.records import (
    DocumentsDiff,
    ItemChange,
    VersionDiff,
)

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
