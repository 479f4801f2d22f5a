"""The first of two steps: from qrels and a run to the ranks of the judged chunks.

Every measure is a function of these few numbers, so nothing else of a ranking is ordered or kept.
"""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final, SupportsIndex

from ragforge.errors import DataError

Judgments = Mapping[str, int | None]
RankedChunks = Mapping[str, float] | Sequence[str]

LARGEST_GRADE: Final = 1000
"""2^grade, the exponential gain, has to fit a float together with its sums."""


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """All that the measures need to know about one query."""

    query_id: str
    ranks: list[int]
    """Ranks, from 1 and ascending, of the retrieved chunks that have a grade."""
    grades: list[int]
    """Grades at those ranks."""
    judged: list[int]
    """Grades of all judged chunks of the query, retrieved or not, highest first."""
    n_retrieved: int
    failed_ranks: list[int]
    """Ranks of the retrieved chunks whose judgment failed."""
    n_failed_unretrieved: int
    """Chunks whose judgment failed and which were not retrieved."""

    @property
    def has_failures(self) -> bool:
        """Whether a judgment of this query failed."""
        return bool(self.failed_ranks) or self.n_failed_unretrieved > 0


def judged_ranking(query_id: str, judgments: Judgments, ranking: RankedChunks) -> JudgedRanking:
    """Find where the judged chunks of one query stand in its ranking.

    Args:
        query_id: Named in errors.
        judgments: Chunk id to grade; None where the judge failed.
        ranking: Scores by chunk id, where the higher score comes first and of equal scores the
            larger chunk id (by code point, which is the order of UTF-8 bytes) as in trec_eval;
            or chunk ids in their order.

    Raises:
        DataError: A score is not a number, a chunk is listed twice, or a grade is no whole number
            or above `LARGEST_GRADE`.
    """
    ranks = _ranks(query_id, judgments, ranking)
    judged: list[int] = []
    pairs: list[tuple[int, int]] = []
    failed_ranks: list[int] = []
    n_failed = 0
    for chunk_id, given in judgments.items():
        rank = ranks.get(chunk_id)
        if given is None:
            n_failed += 1
            if rank is not None:
                failed_ranks.append(rank)
            continue
        grade = given if type(given) is int else _checked_grade(query_id, chunk_id, given)
        judged.append(grade)
        if rank is not None:
            pairs.append((rank, grade))
    pairs.sort()
    return JudgedRanking(
        query_id,
        [rank for rank, _ in pairs],
        [grade for _, grade in pairs],
        _highest_first(query_id, judged),
        len(ranking),
        sorted(failed_ranks),
        n_failed - len(failed_ranks),
    )


def _ranks(query_id: str, chunk_ids: Iterable[str], ranking: RankedChunks) -> dict[str, int]:
    """Return the ranks of at least those `chunk_ids` that are in the ranking."""
    if isinstance(ranking, Mapping):
        return _ranks_by_score(query_id, chunk_ids, ranking)
    if isinstance(ranking, str | bytes):
        raise DataError(f"run: query {query_id!r}: expected scores or a list of ids, got text")
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(ranking, start=1)}
    if len(ranks) != len(ranking):
        twice = next(c for rank, c in enumerate(ranking, start=1) if ranks[c] != rank)
        raise DataError(f"run: query {query_id!r}: chunk {twice!r} is listed more than once")
    return ranks


def _ranks_by_score(
    query_id: str, chunk_ids: Iterable[str], scores: Mapping[str, float]
) -> dict[str, int]:
    ascending = _ascending(query_id, scores)
    n_scores = len(ascending)
    ranks: dict[str, int] = {}
    tied: dict[float, list[str]] = {}
    for chunk_id in chunk_ids:
        score = scores.get(chunk_id)
        if score is None:
            continue
        n_not_higher = bisect_right(ascending, score)
        ranks[chunk_id] = n_scores - n_not_higher + 1
        if n_not_higher > 1 and ascending[n_not_higher - 2] == score:
            tied[score] = []
    if tied:
        _rank_ties(ranks, tied, scores)
    return ranks


def _rank_ties(
    ranks: dict[str, int], tied: dict[float, list[str]], scores: Mapping[str, float]
) -> None:
    """Move the chunks of `ranks` that share a score behind those of larger id.

    One pass over the ranking collects all groups: a pass per tied chunk would be quadratic.
    """
    for chunk_id, score in scores.items():
        if score in tied:
            tied[score].append(chunk_id)
    for group in tied.values():
        group.sort()
    for chunk_id in ranks:
        same = tied.get(scores[chunk_id])
        if same is not None:
            ranks[chunk_id] += len(same) - 1 - bisect_left(same, chunk_id)


def _ascending(query_id: str, scores: Mapping[str, float]) -> list[float]:
    """Return the sorted scores; one sum tells cheaply that they are all numbers, and no NaN."""
    try:
        spoilt = isnan(sum(scores.values()))
    except (TypeError, ValueError, OverflowError):
        spoilt = True
    if spoilt:
        _refuse_bad_score(query_id, scores)
    # Runs mostly come best first, and sorting a descending list downwards is linear.
    ordered = sorted(scores.values(), reverse=True)
    ordered.reverse()
    return ordered


def _refuse_bad_score(query_id: str, scores: Mapping[str, float]) -> None:
    """Name the score that spoilt the sum; infinities of both signs spoil it rightfully."""
    for chunk_id, score in scores.items():
        try:
            bad = isnan(score)
        except (TypeError, ValueError, OverflowError):
            bad = True
        if bad:
            where = f"run: query {query_id!r}: chunk {chunk_id!r}: score"
            raise DataError(f"{where}: expected a number, got {score!r}")


def _highest_first(query_id: str, grades: list[int]) -> list[int]:
    ordered = sorted(grades, reverse=True)
    if ordered and ordered[0] > LARGEST_GRADE:
        found = f"qrels: query {query_id!r}: grade {ordered[0]}"
        raise DataError(f"{found}: expected at most {LARGEST_GRADE}")
    return ordered


def _checked_grade(query_id: str, chunk_id: str, grade: SupportsIndex) -> int:
    """Take whole numbers of other types, such as numpy's."""
    try:
        return operator.index(grade)
    except TypeError:
        where = f"qrels: query {query_id!r}: chunk {chunk_id!r}: grade"
        raise DataError(f"{where}: expected a whole number, got {grade!r}") from None
