"""From qrels and a run in memory to the table of judged hits.

Nothing of a ranking is ordered, hashed or kept but what is judged: the rank of a chunk is one more
than the number of higher scores, and of equal scores with a larger id.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import inf, isnan
from typing import Final

from ragforge.errors import DataError
from ragforge.measures.hit_table import (
    LARGEST_GRADE,
    LEAST_GRADE,
    FailedJudgments,
    JudgedHits,
    JudgedRanking,
    Rows,
    Table,
    whole_grade,
)

Judgments = Mapping[str, int | None]
RankedChunks = Mapping[str, float] | Sequence[str]

_EMPTY: Final[dict[str, float]] = {}
NOTHING: Final = JudgedHits(0, [], [])
"""What a run that lacks a query retrieved for it."""
_SCANNED: Final = 4
"""Up to so many chunks a judged one, looking up every chunk is cheaper than ordering scores."""


def add_rankings(
    table: Table,
    query_ids: Iterable[str],
    qrels: Mapping[str, Judgments],
    run: Mapping[str, RankedChunks],
) -> Iterator[str]:
    """Add queries to a table, and yield those that `judged_ranking` has to look at.

    Those are queries with failed judgments, ties, chunks that come twice, or a value that cannot be
    taken. The table is grown in the order of the ids, so the caller adds a yielded query before
    it asks for the next. A query that the run lacks has an empty ranking.
    """

    def add(rows: Rows, query_id: str) -> bool:
        judgments, ranking = qrels[query_id], run.get(query_id, _EMPTY)
        if not isinstance(judgments, dict):
            return False
        if isinstance(ranking, dict):
            return _add_regular(rows, query_id, judgments, ranking)
        if isinstance(ranking, tuple | list):
            return _add_listed(rows, query_id, judgments, ranking)
        return False

    return _add_or_yield(table, query_ids, add)


def add_located(
    table: Table,
    query_ids: Iterable[str],
    qrels: Mapping[str, Judgments],
    hits: Mapping[str, JudgedHits],
) -> Iterator[str]:
    """Add queries whose judged chunks are found, and yield those that `ranking_of` has to look at.

    Those are queries with failed judgments; else as `add_rankings`.
    """

    def add(rows: Rows, query_id: str) -> bool:
        judged = _judged(qrels[query_id])
        if judged is None:
            return False
        found = hits.get(query_id, NOTHING)
        rows.ranks.extend(found.ranks)
        rows.grades.extend(found.grades)
        _close(rows, query_id, found.n_retrieved, judged)
        return True

    return _add_or_yield(table, query_ids, add)


def _add_or_yield(
    table: Table, query_ids: Iterable[str], add: Callable[[Rows, str], bool]
) -> Iterator[str]:
    """Yield the queries that could not be added to rows, when all before them are in the table."""
    pending = _no_rows()
    for query_id in query_ids:
        if not add(pending, query_id):
            table.extend_listed(pending)
            pending = _no_rows()
            yield query_id
    table.extend_listed(pending)


def _no_rows() -> Rows:
    return Rows([], [], [], [], [], [], [], [])


def _judged(judgments: Judgments) -> list[int] | None:
    """Return all grades, highest first; None where one is missing or takes a closer look."""
    grades = [grade for grade in judgments.values() if type(grade) is int]
    grades.sort(reverse=True)
    whole = len(grades) == len(judgments)
    return grades if whole and grades[-1] >= LEAST_GRADE and grades[0] <= LARGEST_GRADE else None


def _close(rows: Rows, query_id: str, n_retrieved: int, judged: list[int]) -> None:
    """Add a query of which ranks and grades have been added."""
    n_before = rows.hit_ends[-1] if rows.hit_ends else 0
    rows.at.extend([len(rows.query_ids)] * (len(rows.ranks) - n_before))
    rows.hit_ends.append(len(rows.ranks))
    rows.query_ids.append(query_id)
    rows.n_retrieved.append(n_retrieved)
    rows.judged.extend(judged)
    rows.judged_ends.append(len(rows.judged))


def _add_regular(
    rows: Rows, query_id: str, judgments: dict[str, int], scores: dict[str, float]
) -> bool:
    """Add a query without failed judgments and ties; return False where it is none."""
    judged = _judged(judgments)
    if judged is None:
        return False
    if len(scores) <= _SCANNED * len(judgments) and falls(scores.values()):
        for rank, chunk_id in enumerate(scores, start=1):
            if chunk_id in judgments:
                rows.ranks.append(rank)
                rows.grades.append(judgments[chunk_id])
    else:
        grade_at = _searched(judgments, scores)
        if grade_at is None:
            return False
        ranks = sorted(grade_at)
        rows.ranks.extend(ranks)
        rows.grades.extend(map(grade_at.__getitem__, ranks))
    _close(rows, query_id, len(scores), judged)
    return True


def _add_listed(
    rows: Rows, query_id: str, judgments: dict[str, int], ranking: Sequence[str]
) -> bool:
    """Add a query of which the chunks come in their order, as `_add_regular`."""
    judged = _judged(judgments)
    if judged is None or len(set(ranking)) != len(ranking):
        return False
    for rank, chunk_id in enumerate(ranking, start=1):
        if chunk_id in judgments:
            rows.ranks.append(rank)
            rows.grades.append(judgments[chunk_id])
    _close(rows, query_id, len(ranking), judged)
    return True


def _searched(judgments: dict[str, int], scores: dict[str, float]) -> dict[int, int] | None:
    """Return grades by rank; None where judged chunks are tied, or a score is no number."""
    try:
        ascending = sorted(scores.values())
        if isnan(sum(ascending)):
            return None
    except (TypeError, OverflowError):
        return None
    behind = len(ascending) + 1
    ranks: dict[int, int] = {}
    for chunk_id in judgments:
        if chunk_id in scores:
            score = scores[chunk_id]
            n_not_higher = bisect_right(ascending, score)
            if n_not_higher > 1 and ascending[n_not_higher - 2] == score:
                return None
            ranks[behind - n_not_higher] = judgments[chunk_id]
    return ranks


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
    hits = judged_hits(query_id, judgments, ranking)
    located = list(zip(hits.ranks, hits.grades, strict=True))
    return ranking_of(query_id, judgments, hits.n_retrieved, located)


def judged_hits(query_id: str, judgments: Judgments, ranking: RankedChunks) -> JudgedHits:
    """Find the ranks of the judged chunks; arguments and errors are those of `judged_ranking`."""
    ranks = _ranks(query_id, judgments, ranking)
    # No two have one rank, so a grade that is None is not compared.
    found = sorted((rank, judgments[chunk_id]) for chunk_id, rank in ranks.items())
    return JudgedHits(len(ranking), [rank for rank, _ in found], [grade for _, grade in found])


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
    checked = [
        _checked_grade(query_id, chunk_id, grade)
        for chunk_id, grade in judgments.items()
        if grade is not None
    ]
    ordered = sorted(hits)
    failed_ranks = [rank for rank, grade in ordered if grade is None]
    return JudgedRanking(
        query_id,
        [rank for rank, grade in ordered if grade is not None],
        [int(grade) for _, grade in ordered if grade is not None],
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
        return ranks_by_score(query_id, judged, ranking)
    if isinstance(ranking, str | bytes):
        raise DataError(f"run: query {query_id!r}: expected scores or a list of ids, got text")
    if len(set(ranking)) != len(ranking):
        last = {chunk_id: rank for rank, chunk_id in enumerate(ranking)}
        twice = next(c for rank, c in enumerate(ranking) if last[c] != rank)
        raise DataError(f"run: query {query_id!r}: chunk {twice!r} is listed more than once")
    return {chunk_id: rank for rank, chunk_id in enumerate(ranking, 1) if chunk_id in judged}


def ranks_by_score(query_id: str, judged: Judgments, scores: Mapping[str, float]) -> dict[str, int]:
    """Return the ranks of the judged chunks among those that have scores.

    Raises:
        DataError: A score is not a number.
    """
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


def falls(scores: Iterable[float]) -> bool:
    """Return whether every score is lower than the one before, which NaN never is."""
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
