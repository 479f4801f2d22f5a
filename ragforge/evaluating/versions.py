"""What became of the versions of a set, as data and as JSON: a refresh, or any two compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.files.manifest import Spent
from ragforge.records import (
    Cause,
    DocumentsDiff,
    ItemChange,
    Query,
    RenamedDocument,
    VersionDiff,
)

DifferenceKind = Literal[
    "added",
    "gone",
    "status",
    "revision",
    "question",
    "answer",
    "evidence",
    "places",
    "grades",
    "split",
    "labels",
]
"""What differs. evidence: other quotes. places: the same quotes, elsewhere. labels: anything else
about the query, such as its difficulty or who reviewed it."""
_EXAMPLES: Final = 5
"""Other grades that are kept."""
Status = Literal["unchanged", "planned", "published", "rejected", "pins broken"]
"""unchanged: nothing to do, no new version. planned: a dry run. rejected: a check of the version
failed; the published one stays. pins broken: a query that a person pinned lost its evidence."""
REFRESH_EXIT_CODES: Final[dict[Status, int]] = {
    "unchanged": 0,
    "planned": 0,
    "published": 0,
    "rejected": 1,
    "pins broken": 2,
}
"""What the command ends with."""


@dataclass(frozen=True, slots=True)
class ComparedVersion:
    """One of the two.

    Args:
        path: As it was given.
        name: Of the dataset.
        version: Its number.
        n_queries: Queries of any status.
        n_accepted: Those that count.
    """

    path: str
    name: str
    version: int
    n_queries: int
    n_accepted: int


@dataclass(frozen=True, slots=True)
class OtherGrade:
    """A chunk that has another grade; None where a judge failed."""

    chunk_id: str
    before: int | None
    after: int | None


@dataclass(slots=True)
class GradeDifferences:
    """How the grades of a query, or of a set, differ.

    Args:
        same: Pairs of the same grade.
        moved: Pairs of the same grade whose chunk has another id now.
        changed: Pairs of another one.
        other_judge: Of these, pairs that another judge graded, so that nothing about them changed.
        added: Pairs that only the later one has.
        gone: Pairs that only the earlier one has.
        examples: Some of those that changed.
    """

    same: int = 0
    moved: int = 0
    changed: int = 0
    added: int = 0
    gone: int = 0
    examples: list[OtherGrade] = field(default_factory=list)
    other_judge: int = 0

    @property
    def differs(self) -> bool:
        """Whether any grade is another."""
        return bool(self.changed or self.added or self.gone)

    def in_words(self) -> str:
        """Return the counts of what is not the same."""
        moved = f"{self.moved:,} moved, " if self.moved else ""
        others = f" ({self.other_judge:,} by another judge)" if self.other_judge else ""
        return f"{moved}{self.changed:,} changed{others}, {self.added:,} new, {self.gone:,} gone"

    def compare(
        self, pair: OtherGrade, *, by_other: bool = False, is_relisted: bool = False
    ) -> None:
        """Count a pair that both have.

        Args:
            pair: With its grades.
            by_other: Whether another judge graded it.
            is_relisted: Whether people list it as relevant in one of the two only.
        """
        if pair.before == pair.after and not is_relisted:
            self.same += 1
            return
        self.changed += 1
        self.other_judge += by_other
        if pair.before != pair.after and len(self.examples) < _EXAMPLES:
            self.examples.append(pair)

    def add(self, other: "GradeDifferences") -> None:
        """Count those of a query in."""
        self.same += other.same
        self.moved += other.moved
        self.changed += other.changed
        self.other_judge += other.other_judge
        self.added += other.added
        self.gone += other.gone
        self.examples = (self.examples + other.examples)[:_EXAMPLES]


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """A query that differs.

    Args:
        query_id: Of the query.
        kinds: What about it; never empty.
        before, after: The query; None where it is not there.
        grades: Of its chunks.
        causes: Why, as refreshes wrote it down; () where that is not known.
    """

    query_id: str
    kinds: tuple[DifferenceKind, ...]
    before: Query | None
    after: Query | None
    grades: GradeDifferences
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """Chunks, by what became of them; kept ones may stand elsewhere in their document."""

    before: int
    after: int
    kept: int
    added: int
    gone: int


@dataclass(frozen=True, slots=True)
class DocumentDifferences:
    """Documents, by what became of them.

    Args:
        before, after: How many there are.
        added, gone: Ids, sorted.
        changed: Likewise; None where only the names of the documents are known.
        renamed: Documents whose text has another id now.
    """

    before: int
    after: int
    added: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...] | None
    renamed: tuple[RenamedDocument, ...] = ()


@dataclass(frozen=True, slots=True)
class Differences:
    """How two versions of a set differ.

    Args:
        before, after: The two.
        queries: Those that differ, sorted by id.
        n_same: Queries that are equal, grades included.
        documents, chunks: Of their corpora.
        grades: Of all queries.
        is_one_line: Whether the later one came of the earlier, so that causes are known.
    """

    before: ComparedVersion
    after: ComparedVersion
    queries: Sequence[QueryDifference]
    n_same: int
    documents: DocumentDifferences
    chunks: ChunkCounts
    grades: GradeDifferences
    is_one_line: bool

    def as_json(self) -> dict[str, object]:
        """Return one object for scripts."""
        documents = asdict(self.documents)
        renamed = [item.model_dump() for item in self.documents.renamed]
        return {
            "before": asdict(self.before),
            "after": asdict(self.after),
            "is_one_line": self.is_one_line,
            "documents": {**documents, "renamed": renamed},
            "chunks": asdict(self.chunks),
            "grades": _grades_json(self.grades),
            "counts": kind_counts(self.queries),
            "n_same": self.n_same,
            "queries": [_query_json(item) for item in self.queries],
        }


def kind_counts(queries: Sequence[QueryDifference]) -> dict[str, int]:
    """Return in how many queries each kind of difference is found, sorted by kind."""
    return dict(sorted(Counter(kind for query in queries for kind in query.kinds).items()))


def _query_json(difference: QueryDifference) -> dict[str, object]:
    return {
        "query_id": difference.query_id,
        "kinds": list(difference.kinds),
        "before": _side_json(difference.before),
        "after": _side_json(difference.after),
        "grades": _grades_json(difference.grades),
        "causes": [cause.model_dump() for cause in difference.causes] or None,
    }


def _side_json(query: Query | None) -> Mapping[str, object] | None:
    if query is None:
        return None
    fields = (
        "query",
        "expected_answer",
        "answerable",
        "status",
        "revision",
        "split",
        "evidence",
        "source_chunk_ids",
    )
    return query.model_dump(mode="json", include=set(fields))


def _grades_json(grades: GradeDifferences) -> dict[str, object]:
    counts = asdict(grades)
    if not grades.other_judge:
        del counts["other_judge"]
    return counts


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
        n_failed_judgments: Of the published version where it stays as it is: pairs without a grade,
            as their judgment failed.
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
    n_failed_judgments: int = 0

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        return REFRESH_EXIT_CODES[self.status]

    @property
    def n_failed(self) -> int:
        """Pairs of the version that was made, or stays, whose judgment failed."""
        return self.n_failed_judgments if self.diff is None else self.diff.judgments.failed

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
            "n_failed_judgments": self.n_failed,
        }
        if self.plan is not None:
            summary["plan"] = self.plan.as_json()
        if self.diff is not None:
            diff = self.diff.model_dump(mode="json", exclude={"version", "parent", "bridge"})
            summary |= {**diff, "n_bridge": len(self.diff.bridge)}
        return summary
