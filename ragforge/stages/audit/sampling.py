"""Which pairs a judge is audited on: spread over grades and queries, drawn by a seed."""

import hashlib
import heapq
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.stages.judge.pairs import PairId

_SPARE: Final = 4
"""Pairs of a grade looked at for each that may be drawn; more would hardly spread wider."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pair that may be drawn.

    Args:
        pair: Its ids.
        grade: The one it is known to have; None where nobody judged it.
    """

    pair: PairId
    grade: int | None


def draw(candidates: Iterable[Candidate], n: int, seed: int) -> list[PairId]:
    """Draw pairs: grades in turn, and of each grade a pair of the query drawn from least.

    Args:
        candidates: In any order, each pair once.
        n: How many; all where there are fewer.
        seed: At least 0.

    Returns:
        The pairs, sorted.
    """
    by_grade: dict[int | None, dict[str, list[PairId]]] = {}
    for candidate in candidates:
        of_grade = by_grade.setdefault(candidate.grade, {})
        of_grade.setdefault(candidate.pair.query_id, []).append(candidate.pair)
    strata = [_spread(of_query, n, seed) for _, of_query in sorted(by_grade.items(), key=_order)]
    drawn: list[PairId] = []
    used: Counter[str] = Counter()
    while len(drawn) < n and any(strata):
        for stratum in filter(None, strata):
            if len(drawn) < n:
                # min keeps the first of equals: the order of the stratum decides.
                pair = min(stratum, key=lambda each: used[each.query_id])
                stratum.remove(pair)
                used[pair.query_id] += 1
                drawn.append(pair)
    return sorted(drawn)


def others(
    drawn: Sequence[PairId], known: Mapping[str, Container[str]], seed: int
) -> dict[PairId, PairId]:
    """Return for each drawn pair one of another query, to take a passage about something else from.

    Args:
        drawn: As `draw` returns them.
        known: By query, the chunks that may have to do with it; they are not taken.
        seed: At least 0.

    Returns:
        The others by pair; a pair for which there is none is left out.
    """
    partners = {}
    for pair in drawn:
        strange = [
            other
            for other in drawn
            if other.query_id != pair.query_id and other.chunk_id not in known[pair.query_id]
        ]
        if strange:
            partners[pair] = min(strange, key=lambda other: _hash(seed, *pair, *other))
    return partners


def _spread(of_query: Mapping[str, Sequence[PairId]], n: int, seed: int) -> list[PairId]:
    """Return the pairs of a grade that may be drawn: one of each query, then a second of each."""
    turns = (
        (turn, _hash(seed, *pair), pair)
        for pairs in of_query.values()
        for turn, pair in enumerate(sorted(pairs, key=lambda each: _hash(seed, *each)))
    )
    return [pair for _, _, pair in heapq.nsmallest(_SPARE * n, turns)]


def _order(stratum: tuple[int | None, object]) -> int:
    """Grades in turn from 0, what nobody judged behind them."""
    grade = stratum[0]
    return 4 if grade is None else grade


def _hash(seed: int, *ids: str) -> str:
    return hashlib.sha256("\0".join((str(seed), *ids)).encode("utf-8", "replace")).hexdigest()
