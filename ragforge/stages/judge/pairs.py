"""What is judged: pairs of a query and a chunk, from a pool or from a file."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ragforge.records import Ranking


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


class PairId(NamedTuple):
    """The ids of a pair; texts are fetched when it is judged."""

    query_id: str
    chunk_id: str


def pool(query_ids: Container[str], runs: Iterable[Iterable[Ranking]], depth: int) -> list[PairId]:
    """Return the union of the top ranks of several runs, each pair once, sorted.

    Args:
        query_ids: Only their pairs are taken.
        runs: Rankings, best first; read once.
        depth: Ranks taken of each ranking.
    """
    return sorted(
        {
            PairId(ranking.query_id, hit.chunk_id)
            for run in runs
            for ranking in run
            if ranking.query_id in query_ids
            for hit in ranking.ranking[:depth]
        }
    )
