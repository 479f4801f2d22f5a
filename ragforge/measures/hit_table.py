"""What is left of a run once its judged chunks are found, and the table that measures work on.

The table has one row for each judged chunk that was retrieved. A run of seven million rows becomes
one of some fifty thousand; whatever is asked of the run afterwards (other measures, other cutoffs,
slices) is answered from it.
"""

from array import array
from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from typing import Any, Final, NamedTuple

_EXAMPLES: Final = 4
LARGEST_GRADE: Final = 1000
"""2^grade, the exponential gain, has to fit a float together with its sums."""
LEAST_GRADE: Final = -LARGEST_GRADE
"""Grades below 0 are all alike; of one that is lower still, something went wrong."""


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


class FailedJudgments(NamedTuple):
    """Chunks of a query that the judge was asked about in vain."""

    ranks: list[int]
    """Ranks, ascending, of those that were retrieved."""
    n_unretrieved: int

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.ranks) or self.n_unretrieved > 0


class JudgedRanking(NamedTuple):
    """All that the measures need to know about one query."""

    query_id: str
    ranks: list[int]
    """Ranks, from 1 and ascending, of the retrieved chunks that have a grade."""
    grades: list[int]
    """Grades at those ranks."""
    judged: tuple[int, ...]
    """Grades of all judged chunks of the query, retrieved or not, highest first."""
    n_retrieved: int
    failed: FailedJudgments = FailedJudgments([], 0)


class Rows(NamedTuple):
    """Several queries at a time without failed judgments, as numpy arrays of int64 or lists."""

    query_ids: list[str]
    n_retrieved: Any
    """For each query the length of its ranking."""
    hit_ends: Any
    """For each query how many hits it and those before it have."""
    at: Any
    """For each hit the index of its query among these; ascending."""
    ranks: Any
    """For each hit its rank, ascending within a query."""
    grades: Any
    """For each hit its grade."""
    judged: Any
    """For each judged chunk its grade, by query and highest first."""
    judged_ends: Any
    """For each query how many judged chunks it and those before it have."""


class Table:
    """Queries with a value, in the order they were added, and their judged hits.

    The columns are arrays, which numpy reads without a copy: of 64-bit integers for each query, of
    32-bit ones for each hit, and of 16-bit ones for grades.

    Attributes:
        query_ids: One for each query.
        n_retrieved: For each query the length of its ranking.
        starts: For each query the index of its first hit; one more closes the last.
        at: For each hit the index of its query; ascending.
        ranks: For each hit its rank, ascending within a query.
        grades: For each hit its grade.
        judged_starts: As `starts`, for `judged`.
        judged: For each judged chunk, retrieved or not, its grade; by query and highest first.
        failures: By index of a query, where a judgment of it failed.
    """

    __slots__ = (
        "at",
        "failures",
        "grades",
        "judged",
        "judged_starts",
        "n_retrieved",
        "query_ids",
        "ranks",
        "starts",
    )

    def __init__(self) -> None:
        self.query_ids: list[str] = []
        self.n_retrieved = array("q")
        self.starts = array("q", [0])
        self.at = array("i")
        self.ranks = array("i")
        self.grades = array("h")
        self.judged_starts = array("q", [0])
        self.judged = array("h")
        self.failures: dict[int, FailedJudgments] = {}

    def add(self, ranking: JudgedRanking) -> None:
        """Add one query."""
        index = len(self.query_ids)
        self.query_ids.append(ranking.query_id)
        self.n_retrieved.append(ranking.n_retrieved)
        self.at.extend([index] * len(ranking.ranks))
        self.ranks.extend(ranking.ranks)
        self.grades.extend(ranking.grades)
        self.starts.append(len(self.ranks))
        self.judged.extend(ranking.judged)
        self.judged_starts.append(len(self.judged))
        if ranking.failed:
            self.failures[index] = ranking.failed

    def extend(self, rows: Rows) -> None:
        """Add queries given as arrays."""
        n_queries, n_hits, n_judged = len(self.query_ids), len(self.ranks), len(self.judged)
        self.query_ids.extend(rows.query_ids)
        for column, values in (
            (self.n_retrieved, rows.n_retrieved),
            (self.starts, rows.hit_ends + n_hits),
            (self.at, rows.at + n_queries),
            (self.ranks, rows.ranks),
            (self.grades, rows.grades),
            (self.judged, rows.judged),
            (self.judged_starts, rows.judged_ends + n_judged),
        ):
            column.frombytes(values.astype(column.typecode).tobytes())

    def extend_listed(self, rows: Rows) -> None:
        """Add queries given as lists."""
        n_queries, n_hits, n_judged = len(self.query_ids), len(self.ranks), len(self.judged)
        self.query_ids.extend(rows.query_ids)
        self.n_retrieved.extend(rows.n_retrieved)
        self.starts.extend([end + n_hits for end in rows.hit_ends])
        self.at.extend([index + n_queries for index in rows.at])
        self.ranks.extend(rows.ranks)
        self.grades.extend(rows.grades)
        self.judged.extend(rows.judged)
        self.judged_starts.extend([end + n_judged for end in rows.judged_ends])

    def ranking(self, index: int) -> JudgedRanking:
        """Return all that is known of the query at an index."""
        hits = slice(self.starts[index], self.starts[index + 1])
        return JudgedRanking(
            self.query_ids[index],
            self.ranks[hits].tolist(),
            self.grades[hits].tolist(),
            tuple(self.judged[self.judged_starts[index] : self.judged_starts[index + 1]]),
            self.n_retrieved[index],
            self.failures.get(index, FailedJudgments([], 0)),
        )

    @property
    def highest_grade(self) -> int:
        """The highest grade that occurs; 0 where none does."""
        return max(map(self.judged.__getitem__, self.judged_starts[:-1]), default=0)


def whole_grade(grade: object) -> int | None:
    """Return a grade as the whole number it is, of whatever type; None where it is none."""
    if isinstance(grade, str | bytes):
        return None
    try:
        whole = int(grade)  # type: ignore[call-overload]  # what cannot be taken raises
    except (TypeError, ValueError, OverflowError):
        return None
    return int(whole) if whole == grade else None
