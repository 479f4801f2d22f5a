"""What is judged: pairs of a query and a chunk, from a pool or from a file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ragforge.records import Chunk, Judgment, Provenance, Query, Ranking


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a chunk, with their texts; the ids are never shown to a judge."""

    query_id: str
    query: str
    chunk_id: str
    text: str

    @property
    def key(self) -> str:
        """The ids of the pair, for a failure record."""
        return f"{self.query_id}/{self.chunk_id}"


class Judge(Protocol):
    """Grades pairs."""

    @property
    def provenance(self) -> Provenance:
        """Who judges, for the pairs that get no judgment."""

    async def judge(self, pair: Pair) -> Judgment:
        """Return a judgment whose grade is not None.

        Called concurrently from one event loop; must not block it.

        Raises:
            CallError: This pair cannot be judged; it stays unjudged.
            EndpointError, BudgetError: No pair can be judged any more.
        """


def pool(
    queries: Sequence[Query],
    runs: Iterable[Sequence[Ranking]],
    chunks: Mapping[str, Chunk],
    depth: int,
) -> list[Pair]:
    """Return the union of the top ranks of several runs, each pair once, sorted.

    Args:
        queries: Only their pairs are taken.
        runs: Rankings, best first.
        chunks: By id; ids that are not in it are left out (the evaluation counts them).
        depth: Ranks taken of each ranking.
    """
    texts = {query.query_id: query.query for query in queries}
    pairs = {
        (ranking.query_id, hit.chunk_id)
        for run in runs
        for ranking in run
        for hit in ranking.ranking[:depth]
        if ranking.query_id in texts and hit.chunk_id in chunks
    }
    return [
        Pair(query_id, texts[query_id], chunk_id, chunks[chunk_id].text)
        for query_id, chunk_id in sorted(pairs)
    ]


def unknown_chunks(runs: Iterable[Sequence[Ranking]], chunks: Mapping[str, Chunk]) -> Iterator[str]:
    """Yield the retrieved chunk ids that the corpus does not know."""
    for run in runs:
        for ranking in run:
            yield from (hit.chunk_id for hit in ranking.ranking if hit.chunk_id not in chunks)
