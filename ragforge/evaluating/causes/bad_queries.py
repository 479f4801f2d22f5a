"""The queries on which runs do badly: by cause, and the worst of them with their details."""

from collections.abc import Iterable, Mapping
from math import inf

from ragforge.deferred import dataclass
from ragforge.evaluating.causes.catalogue import BLAMELESS, CauseCode, CauseGroup, Causes, grouped
from ragforge.evaluating.evaluation_data import EvaluationData
from ragforge.evaluating.graded_by import GradedBy
from ragforge.evaluating.query_details import (
    ChunkDetail,
    ChunkStart,
    QueryDetail,
    RunDetail,
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
    def top(self) -> list[ChunkDetail]:
        """What was retrieved, best first."""
        return [self.detail.chunks[chunk_id] for chunk_id in self.run.top]

    @property
    def missed(self) -> list[ChunkDetail]:
        """Relevant chunks that are not in the top ranks, best grade first."""
        return [self.detail.chunks[chunk_id] for chunk_id in self.run.missed]


@dataclass(frozen=True, slots=True)
class BadQueriesOfRun:
    """The queries on which one run does badly."""

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
    """The bad queries of several runs, with the texts of their chunks."""

    dataset: str
    measure: str
    rel_threshold: int
    """Lowest relevant grade for this measure, where it goes by grades."""
    cause: CauseCode | None
    """The only cause of which queries are listed; None for all that a run is to blame for."""
    runs: tuple[BadQueriesOfRun, ...]
    starts: Mapping[str, ChunkStart]
    """Of the chunks of the listed queries that the dataset holds."""
    warnings: tuple[str, ...] = ()
    """Which runs are left out because they are stale, and the like."""
    graded_by: tuple[GradedBy, ...] = ()
    by_lists: bool = False
    """Whether lists say what is relevant."""
    reading: str = ""
    """What is relevant, and what a chunk without a label is, in words."""


def worst_causes(
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
        query_causes
        for query_causes in causes
        if (query_causes.code == cause if cause else query_causes.code not in BLAMELESS)
    ]
    if below is not None:
        wanted = [
            query_causes
            for query_causes in wanted
            if query_causes.value is not None and query_causes.value < below
        ]
    wanted.sort(
        key=lambda query_causes: (
            inf if query_causes.value is None else query_causes.value,
            query_causes.query_id,
        )
    )
    return wanted[:n]


def find_bad_queries(
    records: EvaluationData,
    causes: Mapping[str, Causes],
    listed: Iterable[Causes],
    mean: float | None,
) -> BadQueriesOfRun:
    """Return the bad queries of the one run of the records, by cause, and those to be listed.

    Args:
        records: With that run alone.
        causes: Of all queries that did badly.
        listed: Those to be shown, in order.
        mean: Of the measure.
    """
    [run] = records.runs
    queries = run.task.queries if run.task else records.queries.values()
    return BadQueriesOfRun(
        name=run.name,
        n_queries=sum(query.answerable for query in queries),
        mean=mean,
        groups=grouped(causes.values()),
        worst=tuple(_bad_query(records, item) for item in listed),
    )


def _bad_query(records: EvaluationData, causes: Causes) -> BadQuery:
    detail = query_detail(records, causes.query_id)
    relevant = records.runs[0].cut_task(records.task).relevant_in(causes.query_id)
    ranked = records.runs[0].ranked.get(causes.query_id, ())
    first = next((rank for rank, chunk_id in enumerate(ranked, 1) if chunk_id in relevant), None)
    return BadQuery(causes, detail, detail.runs[0], first)
