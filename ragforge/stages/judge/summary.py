"""What the judgments of one query come to, computed here and never asked of a model."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ragforge.records import Judgment

RELEVANT_FROM = 2
ANSWERS_FROM = 3


class QuerySummary(BaseModel):
    """Counts over the chunks judged for one query.

    `answerCoverage` is FULL where a chunk answers on its own, PARTIAL where one holds a part, NONE
    where none does; None where failures leave that open.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    query_id: str
    totalChunks: int  # names fixed by the published shape of this summary
    relevantChunks: int
    failedChunks: int
    averageRelevance: float | None
    answerCoverage: Literal["FULL", "PARTIAL", "NONE"] | None


def summarise(judgments: Iterable[Judgment]) -> list[QuerySummary]:
    """Return one summary a query, sorted by query id."""
    return summarise_sorted(sorted(judgments, key=lambda judgment: judgment.query_id))


def summarise_sorted(ordered: Iterable[Judgment]) -> list[QuerySummary]:
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
    if best >= ANSWERS_FROM:
        return "FULL"
    if not complete:
        return None
    return "PARTIAL" if best >= RELEVANT_FROM else "NONE"
