"""What is left of a run once its judged chunks are found: all that the measures need."""

from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from typing import Final, NamedTuple

_EXAMPLES: Final = 4

# Named tuples rather than dataclasses: a process that scores one small file is done in less time
# than the import of `dataclasses` takes.


class JudgedHits(NamedTuple):
    """Where the judged chunks of one query stand in its ranking."""

    n_retrieved: int
    """Chunks of the ranking, judged or not."""
    ranks: list[int]
    """Ranks, from 1 and ascending, of the retrieved chunks that the qrels list."""
    grades: list[int | None]
    """Their grades, aligned with `ranks`; None where the judgment failed."""


class RunHits(NamedTuple):
    """A run cut down to its judged chunks: 53,000 hits stand for seven million rows."""

    by_query: dict[str, JudgedHits]
    """Of the queries that both the run and the qrels have."""
    n_not_in_qrels: int = 0
    """Queries of the run that the qrels lack."""
    not_in_qrels: tuple[str, ...] = ()
    """The smallest of their ids, for messages: four at most."""
    example_ids: tuple[str, list[str]] | None = None
    """A judged query and up to four of its chunks, for messages."""
    latencies_s: tuple[float, ...] = ()
    """Of the queries for which the run says how long it took."""


class HitsCollector:
    """Takes the queries of a run one by one, and keeps their hits and what messages show."""

    def __init__(self, qrels: Mapping[str, Mapping[str, int | None]]) -> None:
        self._qrels = qrels
        self._by_query: dict[str, JudgedHits] = {}
        self._others: set[str] = set()
        self._example: tuple[str, Collection[str]] | None = None

    def has(self, query_id: str) -> bool:
        """Whether a query has come before."""
        return query_id in self._by_query or query_id in self._others

    def add(self, query_id: str, chunk_ids: Collection[str], hits: JudgedHits) -> None:
        """Take a query that the qrels have, and the chunks of its ranking in any order."""
        self._by_query[query_id] = hits
        could_show = self._qrels[query_id] and chunk_ids
        if could_show and (self._example is None or query_id < self._example[0]):
            self._example = (query_id, chunk_ids)

    def add_other(self, query_id: str) -> None:
        """Take a query that the qrels lack."""
        self._others.add(query_id)

    def collected(self, latencies_s: Iterable[float] = ()) -> RunHits:
        """Return the hits of all queries that were added."""
        example = self._example
        return RunHits(
            self._by_query,
            len(self._others),
            tuple(nsmallest(_EXAMPLES, self._others)),
            None if example is None else (example[0], nsmallest(_EXAMPLES, example[1])),
            tuple(latencies_s),
        )
