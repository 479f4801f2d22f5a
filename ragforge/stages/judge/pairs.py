"""Pairs of a query and a chunk: pooled, still open, and what the judgments of a query come to."""

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from ragforge.deferred import dataclass
from ragforge.records import Judgment, Ranking
from ragforge.records.model import ConfigDict, Model

RELEVANT_FROM = 2
_ANSWERS_FROM = 3


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


def open_pairs(
    pairs: Iterable[PairId], known: Iterable[Judgment], stays: Callable[[Judgment], bool]
) -> list[PairId]:
    """Return the pairs whose judgment is missing or does not stay."""
    graded = {(old.query_id, old.chunk_id) for old in known if stays(old)}
    return [pair for pair in pairs if pair not in graded]


class QuerySummary(Model):
    """Counts over the chunks judged for one query.

    `answerCoverage` is FULL where a chunk answers on its own, PARTIAL where one holds a part, NONE
    where none does; None where failures leave that open.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    query_id: str
    totalChunks: int  # names fixed by the published shape of this summary
    relevantChunks: int
    failedChunks: int
    averageRelevance: float | None
    answerCoverage: Literal["FULL", "PARTIAL", "NONE"] | None


def summarise(ordered: Iterable[Judgment]) -> list[QuerySummary]:
    """Return one summary a query for judgments that come sorted by query id."""
    return [
        _of_query(query_id, list(group))
        for query_id, group in groupby(ordered, key=lambda judgment: judgment.query_id)
    ]


def _of_query(query_id: str, judgments: Sequence[Judgment]) -> QuerySummary:
    grades = [judgment.grade for judgment in judgments if judgment.grade is not None]
    return QuerySummary(
        query_id=query_id,
        totalChunks=len(judgments),
        relevantChunks=sum(grade >= RELEVANT_FROM for grade in grades),
        failedChunks=len(judgments) - len(grades),
        averageRelevance=sum(grades) / len(grades) if grades else None,
        answerCoverage=_coverage(max(grades, default=-1), complete=len(grades) == len(judgments)),
    )


def _coverage(best: int, *, complete: bool) -> Literal["FULL", "PARTIAL", "NONE"] | None:
    if best >= _ANSWERS_FROM:
        return "FULL"
    if not complete:
        return None
    return "PARTIAL" if best >= RELEVANT_FROM else "NONE"
