"""What a dear judge adds where it is asked only about the pairs that a cheap one doubts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.grader_agreement import Agreement, Grader, agree

SHARES: Final = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Of the pairs, that the dear judge is asked about."""


def routed(
    query_ids: Sequence[str],
    human: Sequence[int],
    cheap: Sequence[int],
    dear: Sequence[int],
    doubts: Sequence[float],
    *,
    threshold: int = 2,
    seed: int = 0,
) -> Agreement:
    """Return how grades agree with people where doubtful pairs go to the dear judge.

    The rule sees no label, so the intervals over queries hold for each share that is fixed before.

    Args:
        query_ids: Of each pair, shape (n,).
        human: The people's grades, aligned.
        cheap: Those of the cheap judge.
        dear: Those of the dear one.
        doubts: Of the cheap judge; higher goes first, equal ones in an order by the seed.
        threshold: Lowest relevant grade.
        seed: Of the order of equal doubts, and of the resampled queries.

    Returns:
        A grader for each of `SHARES` but in the other order: the dear judge alone is the first,
        with which the others are compared.

    Raises:
        UsageError: Lengths differ.
    """
    n = len(human)
    if not len(query_ids) == len(cheap) == len(dear) == len(doubts) == n:
        raise UsageError("routing: expected grades of both judges and a doubt for each pair")
    by_chance = np.random.default_rng(seed).random(n)
    order = np.lexsort((by_chance, -np.asarray(doubts, dtype=np.float64)))
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    graders = [
        Grader(f"{share:.0%}", np.where(place < round(share * n), dear, cheap).tolist())
        for share in reversed(SHARES)
    ]
    return agree(query_ids, human, graders, threshold=threshold, seed=seed)
