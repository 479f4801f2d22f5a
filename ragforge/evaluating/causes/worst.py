"""What is said of the queries on which runs do badly: causes by number, and single queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from ragforge.evaluating.causes.catalogue import BLAMELESS, CauseCode, CauseGroup, Causes, grouped
from ragforge.evaluating.gathered import Gathered
from ragforge.evaluating.graded_by import GradedBy
from ragforge.evaluating.query_details import (
    ChunkStart,
    QueryDetail,
    RunDetail,
    ShownChunk,
    query_detail,
)


@dataclass(frozen=True, slots=True)
class BadQuery:
    """A query on which a run did badly."""

    causes: Causes
    detail: QueryDetail
    run: RunDetail
    first_relevant: int | None
    """Rank; None where no relevant chunk came."""

    @property
    def top(self) -> list[ShownChunk]:
        """What was retrieved, best first."""
        return [self.detail.chunks[chunk_id] for chunk_id in self.run.top]

    @property
    def missed(self) -> list[ShownChunk]:
        """Relevant chunks that are not in the top ranks, best grade first."""
        return [self.detail.chunks[chunk_id] for chunk_id in self.run.missed]


@dataclass(frozen=True, slots=True)
class RunFindings:
    """What was found of one run."""

    name: str
    n_queries: int
    """Answerable queries of the set, or of the part of it that the run was asked."""
    mean: float | None
    groups: tuple[CauseGroup, ...]
    """All that did badly, by likely cause, the commonest first."""
    worst: tuple[BadQuery, ...]
    """The worst first."""

    @property
    def n_bad(self) -> int:
        """Queries that did badly."""
        return sum(len(group.query_ids) for group in self.groups)


@dataclass(frozen=True, slots=True)
class WorstReport:
    """All that was found."""

    dataset: str
    measure: str
    rel_threshold: int
    """Lowest relevant grade for this measure, where it goes by grades."""
    cause: CauseCode | None
    """The only cause of which queries are listed; None for all that a run is to blame for."""
    runs: tuple[RunFindings, ...]
    starts: Mapping[str, ChunkStart]
    """Of the chunks of the listed queries that the dataset holds."""
    warnings: tuple[str, ...] = ()
    """Which runs are left out because they are stale, and the like."""
    graded_by: tuple[GradedBy, ...] = ()
    by_lists: bool = False
    """Whether lists say what is relevant."""
    reading: str = ""
    """What is relevant, and what a chunk without a label is, in words."""


def worst_of(
    causes: Iterable[Causes], n: int | None, cause: CauseCode | None, below: float | None = None
) -> list[Causes]:
    """Return the worst of the queries that did badly, those without a value last.

    Args:
        causes: Of one run.
        n: How many, at most; all where None.
        below: Only those with a value less than this; where None, those without a value too.
        cause: The likely cause that they have to have. Where None, those are left out of which
            the run is not to blame.
    """
    wanted = [
        found for found in causes if (found.code == cause if cause else found.code not in BLAMELESS)
    ]
    if below is not None:
        wanted = [found for found in wanted if found.value is not None and found.value < below]
    wanted.sort(key=lambda found: (inf if found.value is None else found.value, found.query_id))
    return wanted[:n]


def run_findings(
    records: Gathered,
    causes: Mapping[str, Causes],
    listed: Iterable[Causes],
    mean: float | None,
) -> RunFindings:
    """Return what was found of the one run of the records.

    Args:
        records: With that run alone.
        causes: Of all queries that did badly.
        listed: Those to be shown, in order.
        mean: Of the measure.
    """
    [run] = records.runs
    queries = run.task.queries if run.task else records.queries.values()
    return RunFindings(
        name=run.name,
        n_queries=sum(query.answerable for query in queries),
        mean=mean,
        groups=grouped(causes.values()),
        worst=tuple(_bad_query(records, item) for item in listed),
    )


def _bad_query(records: Gathered, causes: Causes) -> BadQuery:
    detail = query_detail(records, causes.query_id)
    relevant = records.task.relevant_in(causes.query_id)
    ranked = records.runs[0].ranked.get(causes.query_id, ())
    first = next((rank for rank, chunk_id in enumerate(ranked, 1) if chunk_id in relevant), None)
    return BadQuery(causes, detail, detail.runs[0], first)
