"""The queries a run did worst on, with all it takes to see why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.records import Chunk, Judgment, Query
from ragforge.report.runs import DEPTH, PRIMARY, MeasuredRun
from ragforge.report.shown import Excerpt, excerpt

WORST: Final = 10
"""Queries shown of each run."""
MISSED: Final = 5
"""Relevant chunks shown that were not in the top ranks."""
_CHUNK_CHARS: Final = 600
_TEXT_CHARS: Final = 1500
_REASON_CHARS: Final = 400

Settled = Mapping[str, Mapping[str, Judgment]]


@dataclass(frozen=True, slots=True)
class ChunkStart:
    """As much of a chunk as is shown."""

    doc_id: str
    heading: str
    text: Excerpt


@dataclass(frozen=True, slots=True)
class ShownChunk:
    """A chunk in a ranking, with what its judge said."""

    rank: int | None
    """None where it was not retrieved at all."""
    chunk_id: str
    grade: int | None
    state: str
    """`graded`, `failed` (the judge gave no grade) or `unjudged`."""
    source: str
    """Where the grade is from; "" without one."""
    reasoning: Excerpt
    start: ChunkStart | None
    """None where the dataset does not hold the chunk."""


@dataclass(frozen=True, slots=True)
class WorstQuery:
    """A query on which a run did badly."""

    query: Query
    text: Excerpt
    expected_answer: Excerpt | None
    evidence: tuple[Excerpt, ...]
    value: float
    """Of the primary measure."""
    first_relevant_rank: int | None
    retrieved: tuple[ShownChunk, ...]
    n_retrieved: int
    missed: tuple[ShownChunk, ...]
    """Relevant chunks that are not in the top ranks, best grade first."""
    n_missed: int


@dataclass(frozen=True, slots=True)
class _Draft:
    """A bad query with the ids of the chunks to show."""

    query_id: str
    value: float
    ranked: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        return (*self.ranked[:DEPTH], *self.missed[:MISSED])


class WorstQueries:
    """Finds the bad queries of runs first and fills in texts later, in one pass over the chunks.

    Args:
        settled: The judgment that counts, by query and chunk.
        runs: The measured runs.
        threshold: Lowest relevant grade.
    """

    def __init__(self, settled: Settled, runs: Iterable[MeasuredRun], threshold: int) -> None:
        self._settled = settled
        self._runs = list(runs)
        self._drafts = {run.name: _drafts(run, settled, threshold) for run in self._runs}

    @property
    def chunk_ids(self) -> set[str]:
        """The chunks whose texts are wanted."""
        return {
            chunk_id
            for drafts in self._drafts.values()
            for draft in drafts
            for chunk_id in draft.shown
        }

    def fill(
        self, queries: Mapping[str, Query], starts: Mapping[str, ChunkStart]
    ) -> dict[str, tuple[WorstQuery, ...]]:
        """Return the bad queries by run, worst first."""
        return {
            run.name: tuple(
                self._worst(run, draft, queries[draft.query_id], starts)
                for draft in self._drafts[run.name]
            )
            for run in self._runs
        }

    def _worst(
        self, run: MeasuredRun, draft: _Draft, query: Query, starts: Mapping[str, ChunkStart]
    ) -> WorstQuery:
        judged = self._settled.get(draft.query_id, {})
        ranks = {chunk_id: rank for rank, chunk_id in enumerate(draft.ranked, start=1)}

        def shown(chunk_ids: Sequence[str]) -> tuple[ShownChunk, ...]:
            return tuple(
                _shown(item, ranks.get(item), judged.get(item), starts.get(item))
                for item in chunk_ids
            )

        assert run.scores is not None
        answer = query.expected_answer
        return WorstQuery(
            query=query,
            text=excerpt(query.query, _TEXT_CHARS),
            expected_answer=None if answer is None else excerpt(answer, _TEXT_CHARS),
            evidence=tuple(excerpt(item.quote, _CHUNK_CHARS) for item in query.evidence[:MISSED]),
            value=draft.value,
            first_relevant_rank=run.scores.first_relevant_rank[draft.query_id],
            retrieved=shown(draft.ranked[:DEPTH]),
            n_retrieved=len(draft.ranked),
            missed=shown(draft.missed[:MISSED]),
            n_missed=len(draft.missed),
        )


def chunk_start(chunk: Chunk) -> ChunkStart:
    """Return as much of a chunk as is shown."""
    heading = " / ".join(chunk.heading_path)
    return ChunkStart(chunk.doc_id, heading, excerpt(chunk.text, _CHUNK_CHARS))


def _drafts(run: MeasuredRun, settled: Settled, threshold: int) -> list[_Draft]:
    """Pick the bad queries; where nothing relevant is known the run is not to blame."""
    if run.scores is None:
        return []
    hopeless = set(run.scores.without_relevant)
    lowest = run.scores.worst(WORST + len(hopeless), PRIMARY)
    bad = [(query_id, value) for query_id, value in lowest if query_id not in hopeless]
    found = []
    for query_id, value in bad[:WORST]:
        if value < 1:
            ranked = run.ranked.get(query_id, ())
            missed = _missed(settled.get(query_id, {}), ranked[:DEPTH], threshold)
            found.append(_Draft(query_id, value, ranked, missed))
    return found


def _missed(judged: Mapping[str, Judgment], top: Sequence[str], threshold: int) -> tuple[str, ...]:
    relevant = [
        (-judgment.grade, chunk_id)
        for chunk_id, judgment in judged.items()
        if judgment.grade is not None and judgment.grade >= threshold and chunk_id not in top
    ]
    return tuple(chunk_id for _, chunk_id in sorted(relevant))


def _shown(
    chunk_id: str, rank: int | None, judgment: Judgment | None, start: ChunkStart | None
) -> ShownChunk:
    if judgment is None:
        return ShownChunk(rank, chunk_id, None, "unjudged", "", excerpt("", 0), start)
    return ShownChunk(
        rank=rank,
        chunk_id=chunk_id,
        grade=judgment.grade,
        state="failed" if judgment.grade is None else "graded",
        source=judgment.source,
        reasoning=excerpt(judgment.reasoning, _REASON_CHARS),
        start=start,
    )
