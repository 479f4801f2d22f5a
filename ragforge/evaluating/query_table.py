"""The table of all queries of a report: a row each, and the texts of the worst of them."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import nsmallest
from typing import Final, Literal, NamedTuple, TypeAlias

from ragforge.deferred import dataclass
from ragforge.evaluating.answers.records import SystemRecords, documents_of
from ragforge.evaluating.evaluation_data import EvaluationData
from ragforge.evaluating.formatting import Excerpt, one_line
from ragforge.evaluating.query_details import (
    ChunkStart,
    QueryDetail,
    Texts,
    WantedTexts,
    query_detail,
    wanted_texts,
)
from ragforge.evaluating.runs import DEPTH, PRIMARY, MeasuredRun
from ragforge.measures.measure_names import is_of_evidence
from ragforge.measures.unseen_values import is_bounded
from ragforge.records import Query

CellState: TypeAlias = Literal[
    "measured",
    "no_relevant",
    "missing",
    "failed",
    "judging_failed",
    "not_judged",
    "unplaced",
    "unanswerable",
]
"""Why a value is what it is; the last five have none. `unplaced`: a measure of evidence, and it has
no place in the documents."""
Replies: TypeAlias = Callable[[Collection[str]], Mapping[str, Excerpt]]
"""Returns what is known of some replies of judges, by call key."""
FACETS: Final = ("difficulty", "type", "category", "language", "document", "split")
NO_ANSWER: Final = "no answer"
NO_GRADE: Final = "no grade"
_TEXT_CHARS: Final = 160

WORST: Final = 10
"""Queries that can be opened without the script, of each run."""
MAX_BYTES: Final = 1_000_000
"""What the table and its drill-downs take of a page by default: it stays fit for a mail."""
_BYTES_A_CHUNK: Final = 60
"""Less than a chunk's text takes when packed, so that enough of them are kept."""


@dataclass(frozen=True, slots=True)
class RunCell:
    """What a run made of a query."""

    value: float | None
    """Of the measure that the table is by; None where it has none."""
    first: int | None
    """Rank of the first relevant chunk; None where none came."""
    holes: int
    """Chunks without a grade in the top ranks."""
    state: CellState
    cause: str = ""
    """Why it is below the best, in words; "" where that was not looked at."""

    @property
    def is_of_lower_grades(self) -> bool:
        """Whether it has a value though nothing relevant came: lower grades have a gain too."""
        return bool(self.value) and self.first is None


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query."""

    query_id: str
    text: str
    """On one line, and cut."""
    facets: tuple[str, ...]
    """Aligned with `FACETS`; "" where not set."""
    cells: tuple[RunCell, ...]
    """One a run."""
    verdicts: tuple[str, ...]
    """One an answer system."""


def query_rows(
    records: EvaluationData,
    documents: Mapping[str, str],
    causes: Mapping[str, Mapping[str, str]],
    measure: str = PRIMARY,
) -> tuple[QueryRow, ...]:
    """Return the rows, the worst first.

    Args:
        records: What they are made of.
        documents: Chunk id to document, of the queries' source chunks.
        causes: By run and query, in words; may lack any.
        measure: Whose values they hold.
    """
    cell_of = [_cells(run, records, causes.get(run.name, {}), measure) for run in records.runs]
    return tuple(
        QueryRow(
            query_id=query.query_id,
            text=one_line(query.query, _TEXT_CHARS),
            facets=_facets(query, documents),
            cells=tuple(cell(query) for cell in cell_of),
            verdicts=tuple(_verdict(system, query.query_id) for system in records.systems),
        )
        for query in map(records.queries.__getitem__, worst_first(records, measure))
    )


def worst_first(records: EvaluationData, measure: str = PRIMARY) -> list[str]:
    """Return the ids of all queries, the worst of any run first.

    Failures go first, then values upwards; what no run was measured on goes last.
    """
    of_runs = [(run.by_query(measure), _states(run, measure)) for run in records.runs]

    def key(query_id: str) -> tuple[float, float, str]:
        values = [found[query_id] for found, _ in of_runs if query_id in found]
        told = {states.get(query_id) for _, states in of_runs}
        if told & {"failed", "judging_failed"}:
            return (0, 0, query_id)
        if not values:
            return (3, 0, query_id)
        return (2 if "no_relevant" in told else 1, min(values), query_id)

    return sorted(records.queries, key=key)


def _cells(
    run: MeasuredRun, records: EvaluationData, causes: Mapping[str, str], measure: str
) -> Callable[[Query], RunCell]:
    states, values = _states(run, measure), run.by_query(measure)
    ranks = {} if run.scores is None else run.scores.first_relevant_rank
    without: CellState = "unplaced" if is_of_evidence(measure) else "not_judged"

    def cell(query: Query) -> RunCell:
        query_id = query.query_id
        value = values.get(query_id)
        state: CellState = "unanswerable" if not query.answerable else without
        return RunCell(
            value=value,
            first=ranks.get(query_id),
            holes=_holes(run.ranked.get(query_id, ())[:DEPTH], query_id, records),
            state=states.get(query_id, state if value is None else "measured"),
            cause=causes.get(query_id, ""),
        )

    return cell


def _states(run: MeasuredRun, measure: str) -> dict[str, CellState]:
    attention = run.summary.attention
    if is_of_evidence(measure):
        lacked = (key for key in run.by_query(measure) if key not in run.ranked)
        return {**dict.fromkeys(lacked, "missing"), **dict.fromkeys(attention.failed, "failed")}
    named: Iterable[tuple[CellState, Iterable[str]]] = (
        ("no_relevant", attention.without_relevant),
        ("missing", attention.missing),
        ("not_judged", attention.without_judgments),
        ("judging_failed", attention.judgments_failed),
        ("failed", attention.failed),
    )
    return {query_id: state for state, query_ids in named for query_id in query_ids}


def _holes(chunk_ids: Iterable[str], query_id: str, records: EvaluationData) -> int:
    judged, task = records.settled.get(query_id, {}), records.task
    found = {chunk_id: judged.get(chunk_id) for chunk_id in chunk_ids}
    return sum(
        task.leaves_open(chunk_id) if item is None else item.is_failed
        for chunk_id, item in found.items()
    )


def _facets(query: Query, documents: Mapping[str, str]) -> tuple[str, ...]:
    named = documents_of(query, documents)
    facets = (
        query.difficulty,
        query.type,
        query.category,
        query.language,
        ", ".join(named[:3]) + (" …" if len(named) > 3 else ""),
        query.split,
    )
    return tuple(_facet(value) if value else "" for value in facets)


@lru_cache(maxsize=1024)
def _facet(value: str) -> str:
    """Return a value that many queries share as it is shown."""
    return one_line(value, 80)


def _verdict(system: SystemRecords, query_id: str) -> str:
    grade = system.grades.get(query_id)
    if grade is not None and grade.verdict is not None:
        return grade.verdict.replace("_", " ")
    if grade is not None or query_id in system.failed:
        return "failed"
    if query_id in system.answers:
        return NO_GRADE
    return NO_ANSWER if query_id in system.gradable else ""


class WorstCell(NamedTuple):
    """What a run made of a query it did badly on."""

    run: str
    query_id: str
    cell: RunCell


@dataclass(frozen=True, slots=True)
class QueryTable:
    """All queries, the worst first."""

    records: EvaluationData
    rows: tuple[QueryRow, ...]
    worst: dict[str, tuple[str, ...]]
    """By run: ids of the queries it did worst on, the worst first."""
    starts: Mapping[str, ChunkStart]
    """Of the chunks that are shown."""
    replies: Replies
    reach: int
    """How many of the first rows have all their texts."""
    max_bytes: int

    @property
    def measure(self) -> str:
        """Whose values it holds: the measure that decides."""
        return self.records.task.primary

    @property
    def is_of_evidence(self) -> bool:
        """Whether its values go by places of evidence: grades say nothing of them."""
        return is_of_evidence(self.measure)

    @property
    def is_bounded(self) -> bool:
        """Whether its values are from 0 to 1."""
        return is_bounded(self.measure)

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs."""
        return tuple(run.name for run in self.records.runs)

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the answer systems."""
        return tuple(system.system for system in self.records.systems)

    def worst_cells(self) -> Iterator[WorstCell]:
        """Yield the worst queries of each run, the worst first."""
        rows = {row.query_id: row for row in self.rows}
        for place, run in enumerate(self.runs):
            for query_id in self.worst[run]:
                yield WorstCell(run, query_id, rows[query_id].cells[place])

    def detail(self, query_id: str) -> QueryDetail:
        """Return what is shown of one query when it is opened."""
        return query_detail(self.records, query_id)

    def texts(self, details: Iterable[QueryDetail]) -> Texts:
        """Return the texts of some queries, with the replies that their grades rest on."""
        chunks = (chunk for detail in details for chunk in detail.chunks.values())
        return Texts(self.starts, self.replies({chunk.call_key for chunk in chunks} - {""}))


class QueryTableBuilder:
    """Decides which texts the table needs first, and takes them in later.

    Args:
        records: What there is to show.
        bad: By run, the queries whose value is below the best that their judgments allow.
        max_bytes: What the table and its drill-downs may take of the page. Rows of all queries
            are in it in any case; drill-downs of the worst queries fill what is left.
        has_all: Whether texts of all queries are wanted, even so: there are files beside the page.
    """

    def __init__(
        self,
        records: EvaluationData,
        bad: Mapping[str, Collection[str]],
        max_bytes: int = MAX_BYTES,
        *,
        has_all: bool = False,
    ) -> None:
        measure = records.task.primary
        self._records = records
        self._max_bytes = max_bytes
        self._worst = {run.name: _worst(run, bad[run.name], measure) for run in records.runs}
        always = (query_id for found in self._worst.values() for query_id in found)
        most = sys.maxsize if has_all else max_bytes // _BYTES_A_CHUNK
        self._wanted: WantedTexts = wanted_texts(
            records, worst_first(records, measure), most, always
        )

    @property
    def chunk_quotes(self) -> dict[str, tuple[str, ...]]:
        """The chunks whose texts are wanted, with the quotes to be seen in them."""
        return self._wanted.chunk_quotes

    def fill(
        self,
        starts: Mapping[str, ChunkStart],
        documents: Mapping[str, str],
        replies: Replies,
        causes: Mapping[str, Mapping[str, str]],
    ) -> QueryTable:
        """Return the table.

        Args:
            starts: Of the chunks wanted; the dataset may lack some.
            documents: Chunk id to document, of the queries' source chunks.
            replies: Returns those of judges; may lack any.
            causes: In words, by run and query; may lack any.
        """
        return QueryTable(
            records=self._records,
            rows=query_rows(self._records, documents, causes, self._records.task.primary),
            worst=self._worst,
            starts=starts,
            replies=replies,
            reach=self._wanted.reach,
            max_bytes=self._max_bytes,
        )


def _worst(run: MeasuredRun, bad: Collection[str], measure: str) -> tuple[str, ...]:
    """Pick the worst queries; where nothing relevant is known the run is not to blame."""
    if run.scores is None:
        return ()
    hopeless = () if is_of_evidence(measure) else run.scores.without_relevant
    blamed = set(bad).difference(hopeless)
    values = ((value, key) for key, value in run.by_query(measure).items() if key in blamed)
    return tuple(key for _, key in nsmallest(WORST, values))
