"""A row for every query: what the page's table of queries shows, sorts and filters by."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ragforge.evaluating.answers.records import SystemRecords, documents_of
from ragforge.evaluating.evaluation_data import EvaluationData
from ragforge.evaluating.formatting import one_line
from ragforge.evaluating.runs import DEPTH, PRIMARY, MeasuredRun
from ragforge.records import Query

CellState: TypeAlias = Literal[
    "measured", "no_relevant", "missing", "failed", "judging_failed", "not_judged", "unanswerable"
]
"""Why a value is what it is; the last four have none."""
FACETS: Final = ("difficulty", "type", "category", "language", "document", "split")
NO_ANSWER: Final = "no answer"
NO_GRADE: Final = "no grade"
_TEXT_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class RunCell:
    """What a run made of a query."""

    value: float | None
    """Of the primary measure; None where it has none."""
    first: int | None
    """Rank of the first relevant chunk; None where none came."""
    holes: int
    """Chunks without a grade in the top ranks."""
    state: CellState
    cause: str = ""
    """Why it is below the best, in words; "" where that was not looked at."""


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
) -> tuple[QueryRow, ...]:
    """Return the rows, the worst first.

    Args:
        records: What they are made of.
        documents: Chunk id to document, of the queries' source chunks.
        causes: By run and query, in words; may lack any.
    """
    cell_of = [_cells(run, records, causes.get(run.name, {})) for run in records.runs]
    rows = [
        QueryRow(
            query_id=query_id,
            text=one_line(query.query, _TEXT_CHARS),
            facets=_facets(query, documents),
            cells=tuple(cell(query) for cell in cell_of),
            verdicts=tuple(_verdict(system, query_id) for system in records.systems),
        )
        for query_id, query in records.queries.items()
    ]
    return tuple(sorted(rows, key=_badness))


def worst_first(records: EvaluationData) -> list[str]:
    """Return the ids of all queries in the order of `query_rows`."""
    return [row.query_id for row in query_rows(records, {}, {})]


def _badness(row: QueryRow) -> tuple[float, float, str]:
    """Failures go first, then values upwards; what no run was measured on goes last."""
    if any(cell.state in {"failed", "judging_failed"} for cell in row.cells):
        return (0, 0, row.query_id)
    values = [cell.value for cell in row.cells if cell.value is not None]
    hopeless = any(cell.state == "no_relevant" for cell in row.cells)
    if not values:
        return (3, 0, row.query_id)
    return (2 if hopeless else 1, min(values), row.query_id)


def _cells(
    run: MeasuredRun, records: EvaluationData, causes: Mapping[str, str]
) -> Callable[[Query], RunCell]:
    states = _states(run)
    scores = run.scores
    values = (
        {} if scores is None else dict(zip(scores.query_ids, scores.values(PRIMARY), strict=True))
    )
    ranks = {} if scores is None else scores.first_relevant_rank

    def cell(query: Query) -> RunCell:
        query_id = query.query_id
        value = values.get(query_id)
        state: CellState = "unanswerable" if not query.answerable else "not_judged"
        return RunCell(
            value=value,
            first=ranks.get(query_id),
            holes=_holes(run.ranked.get(query_id, ())[:DEPTH], query_id, records),
            state=states.get(query_id, state if value is None else "measured"),
            cause=causes.get(query_id, ""),
        )

    return cell


def _states(run: MeasuredRun) -> dict[str, CellState]:
    attention = run.summary.attention
    named: Iterable[tuple[CellState, Iterable[str]]] = (
        ("no_relevant", attention.without_relevant),
        ("missing", attention.missing),
        ("not_judged", attention.without_judgments),
        ("judging_failed", attention.judgments_failed),
        ("failed", attention.failed),
    )
    return {query_id: state for state, query_ids in named for query_id in query_ids}


def _holes(chunk_ids: Iterable[str], query_id: str, records: EvaluationData) -> int:
    if records.task.is_complete:
        return 0
    judged = records.settled.get(query_id, {})
    found = (judged.get(chunk_id) for chunk_id in chunk_ids)
    return sum(item is None or item.is_failed for item in found)


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
    return tuple(one_line(value or "", 80) for value in facets)


def _verdict(system: SystemRecords, query_id: str) -> str:
    grade = system.grades.get(query_id)
    if grade is not None and grade.verdict is not None:
        return grade.verdict.replace("_", " ")
    if grade is not None or query_id in system.failed:
        return "failed"
    if query_id in system.answers:
        return NO_GRADE
    return NO_ANSWER if query_id in system.gradable else ""
