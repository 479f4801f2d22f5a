"""The model of the page's table of queries, made around one pass over the chunks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ragforge.evaluating.evaluation_data import EvaluationData
from ragforge.evaluating.formatting import Excerpt
from ragforge.evaluating.query_details import (
    ChunkStart,
    QueryDetail,
    Texts,
    Wanted,
    query_detail,
    wanted_texts,
)
from ragforge.evaluating.runs import PRIMARY, MeasuredRun
from ragforge.report.queries.rows import QueryRow, RunCell, query_rows, worst_first

WORST: Final = 10
"""Queries that can be opened without the script, of each run."""
MAX_BYTES: Final = 1_000_000
"""What the table and its drill-downs take of a page by default: it stays fit for a mail."""
_BYTES_A_CHUNK: Final = 60
"""Less than a chunk's text takes when packed, so that enough of them are kept."""


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
    texts: Texts
    reach: int
    """How many of the first rows have all their texts."""
    max_bytes: int

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


class QueryDraft:
    """Decides which texts the table needs first, and takes them in later.

    Args:
        records: What there is to show.
        max_bytes: What the table and its drill-downs may take of the page. Rows of all queries
            are in it in any case; drill-downs of the worst queries fill what is left.
    """

    def __init__(self, records: EvaluationData, max_bytes: int = MAX_BYTES) -> None:
        self._records = records
        self._max_bytes = max_bytes
        self._worst = {run.name: _worst(run) for run in records.runs}
        always = (query_id for found in self._worst.values() for query_id in found)
        self._wanted: Wanted = wanted_texts(
            records, worst_first(records), max_bytes // _BYTES_A_CHUNK, always
        )

    @property
    def chunk_quotes(self) -> dict[str, tuple[str, ...]]:
        """The chunks whose texts are wanted, with the quotes to be seen in them."""
        return self._wanted.chunk_quotes

    @property
    def call_keys(self) -> frozenset[str]:
        """The judges' replies that are wanted."""
        return self._wanted.call_keys

    def fill(
        self,
        starts: Mapping[str, ChunkStart],
        documents: Mapping[str, str],
        replies: Mapping[str, Excerpt],
        causes: Mapping[str, Mapping[str, str]],
    ) -> QueryTable:
        """Return the table.

        Args:
            starts: Of the chunks wanted; the dataset may lack some.
            documents: Chunk id to document, of the queries' source chunks.
            replies: By call key; may lack any.
            causes: In words, by run and query; may lack any.
        """
        return QueryTable(
            records=self._records,
            rows=query_rows(self._records, documents, causes),
            worst=self._worst,
            texts=Texts(starts, replies),
            reach=self._wanted.reach,
            max_bytes=self._max_bytes,
        )


def _worst(run: MeasuredRun) -> tuple[str, ...]:
    """Pick the bad queries; where nothing relevant is known the run is not to blame."""
    if run.scores is None:
        return ()
    hopeless = set(run.scores.without_relevant)
    lowest = run.scores.worst(WORST + len(hopeless), PRIMARY)
    bad = [q for q, value in lowest if q not in hopeless and value < 1]
    return tuple(bad[:WORST])
