"""Which pairs people should label: a random sample that can grow, with known probabilities.

Pairs are put into strata by what they weigh in the measures and by the judge's grade. Within a
stratum each pair is as likely as another: they stand in the order of a number that seed, query and
text give, and the first ones are drawn. Places go to the strata one after the other, so a sample
of 100 lies within the sample of 200, and adding labels spoils none.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import Final

from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers

N_CLASSES: Final = 3
"""Of weights; what no run retrieved is one more class."""
LEAST_OF_STRATUM: Final = 2
OUTSIDE: Final = (0.08, 0.12, 0.16)
"""How likely a pair that weighs nothing is drawn beside the heaviest, by the judge's grade: the
last is for all higher grades. They tell what the ideal ranking is."""


def label_sizes(weights: Floats, judged: Integers, n_grades: int, *, ideal: bool) -> Floats:
    """Return how likely each pair is drawn beside the others; 0 is never.

    Args:
        weights: What a pair weighs at most in the measures and runs that are compared, from 0 for
            what none of them retrieved; shape (N,).
        judged: The judge's grade, `n_grades` where it gave none.
        n_grades: Of the scale.
        ideal: Whether a measure needs the ideal ranking, as nDCG does: others are then drawn too.
    """
    heaviest = float(weights.max(initial=0.0))
    inside = weights / heaviest if heaviest else np.zeros(len(weights))
    if not ideal:
        return inside
    by_grade = np.array([*OUTSIDE, *[OUTSIDE[-1]] * n_grades])[: n_grades + 1]
    by_grade[n_grades] = OUTSIDE[1]
    return np.where(weights > 0, inside, by_grade[judged])


def label_strata(weights: Floats, judged: Integers, n_grades: int) -> Integers:
    """Return the stratum of each pair, shape (N,): classes of weight, and in each the grades.

    Args:
        weights: As for `label_sizes`.
        judged: Likewise.
        n_grades: Likewise.
    """
    inside = weights[weights > 0]
    ends = np.quantile(inside, np.arange(1, N_CLASSES) / N_CLASSES) if len(inside) else np.zeros(2)
    classes = np.where(weights > 0, np.searchsorted(ends, weights, side="left"), N_CLASSES)
    found: Integers = (classes * (n_grades + 1) + judged).astype(np.intp)
    return found


def label_allocation(strata: Integers, sizes: Floats, n: int) -> dict[int, int]:
    """Return how many pairs of each stratum are drawn: two of each, then by size.

    Args:
        strata: Shape (N,).
        sizes: Aligned, from `label_sizes`; strata of size 0 are left out.
        n: Pairs to draw.

    Raises:
        UsageError: There are fewer places than the first two of each stratum take.
    """
    first, others = _allocated(strata, sizes, n)
    drawn = dict(first)
    for stratum in others:
        drawn[stratum] += 1
    return drawn


def label_order(strata: Integers, sizes: Floats, places: Floats, n: int) -> Integers:
    """Return which pairs are drawn, as indexes in an order whose every beginning is a sample too.

    The first two of each stratum come first, in the order of their numbers: nothing tells whoever
    labels them of which stratum they are.

    Args:
        strata: Shape (N,).
        sizes: Aligned, from `label_sizes`.
        places: Aligned: numbers in [0, 1) from a digest of seed, query and text.
        n: Pairs to draw.

    Raises:
        UsageError: As for `label_allocation`.
    """
    first, others = _allocated(strata, sizes, n)
    by_place = np.lexsort((places, strata))
    starts = dict(zip(*np.unique(strata[by_place], return_index=True), strict=True))
    drawn = [by_place[starts[s] + i] for s, count in first.items() for i in range(count)]
    found = sorted(drawn, key=lambda i: float(places[i]))
    reached = dict(first)
    for stratum in others:
        found.append(by_place[starts[stratum] + reached[stratum]])
        reached[stratum] += 1
    return np.array(found, dtype=np.intp)


def _allocated(strata: Integers, sizes: Floats, n: int) -> tuple[dict[int, int], list[int]]:
    """Return how many of each stratum come first, and of which stratum each one behind them is."""
    names, places = np.unique(strata, return_inverse=True)
    totals, counts = np.bincount(places, weights=sizes), np.bincount(places)
    wanted = {int(s): float(t) for s, t in zip(names, totals, strict=True) if t > 0}
    population = {int(s): int(c) for s, c in zip(names, counts, strict=True) if int(s) in wanted}
    first = {s: min(size, LEAST_OF_STRATUM) for s, size in population.items()}
    left = min(n, sum(population.values())) - sum(first.values())
    if left < 0:
        raise UsageError(f"a sample of {n}: expected at least {sum(first.values())} pairs")
    drawn = dict(first)

    def priority(stratum: int) -> tuple[float, int]:
        is_full = drawn[stratum] == population[stratum]
        return (1.0 if is_full else -wanted[stratum] / (drawn[stratum] + 0.5), stratum)

    waiting = [priority(stratum) for stratum in population]
    heapify(waiting)
    others = []
    for _ in range(left):
        stratum = waiting[0][1]
        drawn[stratum] += 1
        others.append(stratum)
        heapreplace(waiting, priority(stratum))
    return first, others


def label_sample(strata: Integers, places: Floats, drawn: dict[int, int]) -> Integers:
    """Return which pairs are drawn, as ascending indexes.

    Args:
        strata: Shape (N,).
        places: Aligned: numbers in [0, 1) from a digest of seed, query and text.
        drawn: By stratum, from `label_allocation`.
    """
    chosen: list[Integers] = []
    for stratum, count in drawn.items():
        of_stratum = np.flatnonzero(strata == stratum)
        chosen.append(of_stratum[np.argsort(places[of_stratum], kind="stable")[:count]])
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.intp)
