"""From qrels and a run in memory to the table of judged hits.

Nothing of a ranking is ordered, hashed or kept but what is judged: the rank of a chunk is one more
than the number of higher scores, and of equal scores with a larger id.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf, isnan
from typing import Final

from ragforge.errors import DataError
from ragforge.measures.table import (
    LARGEST_GRADE,
    LEAST_GRADE,
    FailedJudgments,
    JudgedRanking,
    whole_grade,
)

Judgments = Mapping[str, int | None]
RankedChunks = Mapping[str, float] | Sequence[str]

_SCANNED: Final = 4
"""Up to so many chunks a judged one, looking up every chunk is cheaper than ordering scores."""


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
            or too large to compute with.
    """
    ranks = _ranks(query_id, judgments, ranking)
    found = [(rank, judgments[chunk_id]) for chunk_id, rank in ranks.items()]
    return ranking_of(query_id, judgments, len(ranking), found)


def ranking_of(
    query_id: str,
    judgments: Judgments,
    n_retrieved: int,
    hits: Collection[tuple[int, int | None]],
) -> JudgedRanking:
    """Put together a query whose judged chunks are located.

    Args:
        query_id: Named in errors.
        judgments: Chunk id to grade; None where the judge failed.
        n_retrieved: Length of the ranking.
        hits: Rank and grade of the retrieved chunks among them; None where the judge failed.

    Raises:
        DataError: A grade is no whole number, or too large to compute with.
    """
    ordered = sorted(hits)
    graded = [grade for _, grade in ordered if grade is not None]
    judged = [grade for grade in judgments.values() if type(grade) is int]
    judged.sort(reverse=True)
    regular = len(judged) == len(judgments)
    if regular and judged[-1] >= LEAST_GRADE and judged[0] <= LARGEST_GRADE:
        ranks = [rank for rank, _ in ordered]
        return JudgedRanking(query_id, ranks, graded, tuple(judged), n_retrieved)
    checked = [
        _checked_grade(query_id, chunk_id, grade)
        for chunk_id, grade in judgments.items()
        if grade is not None
    ]
    failed_ranks = [rank for rank, grade in ordered if grade is None]
    return JudgedRanking(
        query_id,
        [rank for rank, grade in ordered if grade is not None],
        list(map(int, graded)),
        tuple(sorted(checked, reverse=True)),
        n_retrieved,
        FailedJudgments(failed_ranks, len(judgments) - len(checked) - len(failed_ranks)),
    )


def rank_ties(ranks: dict[str, int], tied: Iterable[float], scores: Mapping[str, float]) -> None:
    """Move the chunks of `ranks` that share a score behind those of larger id.

    One pass over the ranking collects all groups: a pass per tied chunk would be quadratic.

    Args:
        ranks: Chunk id to the rank that the highest of its score has; is changed.
        tied: Scores that several chunks have.
        scores: Chunk id to score.
    """
    groups: dict[float, list[str]] = {score: [] for score in tied}
    for chunk_id, score in scores.items():
        if score in groups:
            groups[score].append(chunk_id)
    for group in groups.values():
        group.sort()
    for chunk_id in ranks:
        same = groups.get(scores[chunk_id])
        if same is not None:
            ranks[chunk_id] += len(same) - 1 - bisect_left(same, chunk_id)


def _ranks(query_id: str, judged: Judgments, ranking: RankedChunks) -> dict[str, int]:
    """Return the ranks of the judged chunks that are in the ranking."""
    if isinstance(ranking, Mapping):
        return _ranks_by_score(query_id, judged, ranking)
    if isinstance(ranking, str | bytes):
        raise DataError(f"run: query {query_id!r}: expected scores or a list of ids, got text")
    if len(set(ranking)) != len(ranking):
        last = {chunk_id: rank for rank, chunk_id in enumerate(ranking)}
        twice = next(c for rank, c in enumerate(ranking) if last[c] != rank)
        raise DataError(f"run: query {query_id!r}: chunk {twice!r} is listed more than once")
    return {chunk_id: rank for rank, chunk_id in enumerate(ranking, 1) if chunk_id in judged}


def _ranks_by_score(
    query_id: str, judged: Judgments, scores: Mapping[str, float]
) -> dict[str, int]:
    if len(scores) <= _SCANNED * len(judged) and _falls(scores.values()):
        return {c: rank for rank, c in enumerate(scores, start=1) if c in judged}
    ascending = _ascending(query_id, scores)
    n_scores = len(ascending)
    ranks: dict[str, int] = {}
    tied: set[float] = set()
    for chunk_id in judged:
        score = scores.get(chunk_id)
        if score is None:
            continue
        n_not_higher = bisect_right(ascending, score)
        ranks[chunk_id] = n_scores - n_not_higher + 1
        if n_not_higher > 1 and ascending[n_not_higher - 2] == score:
            tied.add(score)
    if tied:
        rank_ties(ranks, tied, scores)
    return ranks


def _falls(scores: Iterable[float]) -> bool:
    """Whether every score is lower than the one before, which NaN never is."""
    last = inf
    try:
        for score in scores:
            if not score < last:
                return False
            last = score
    except TypeError:
        return False
    return True


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


def _checked_grade(query_id: str, chunk_id: str, grade: object) -> int:
    whole = whole_grade(grade)
    if whole is not None and LEAST_GRADE <= whole <= LARGEST_GRADE:
        return whole
    where = f"qrels: query {query_id!r}: chunk {chunk_id!r}: grade"
    expected = "a whole number" if whole is None else f"{LEAST_GRADE} to {LARGEST_GRADE}"
    raise DataError(f"{where}: expected {expected}, got {grade!r}")
