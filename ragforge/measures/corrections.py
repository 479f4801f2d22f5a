"""P values of several tests at once, adjusted so that each can be held against alpha as it is."""

from collections.abc import Sequence

from ragforge.errors import UsageError


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted so that alpha bounds the chance of any false finding.

    Args:
        p_values: Of the tests of one family, in any order; there may be none.

    Returns:
        Adjusted p values in the same order, none below its p value and none above 1.

    Raises:
        UsageError: A p value lies outside of [0, 1].

    Source: Holm 1979, Scandinavian Journal of Statistics 6(2).
    """
    order = _ascending(p_values)
    adjusted = [0.0] * len(order)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted so that alpha bounds the expected share of false findings.

    Holds for independent tests and for those that depend positively, as measures of one run do.

    Args:
        p_values: Of the tests of one family, in any order; there may be none.

    Returns:
        Adjusted p values in the same order, none below its p value and none above 1.

    Raises:
        UsageError: A p value lies outside of [0, 1].

    Source: Benjamini and Hochberg 1995, JRSS B 57(1).
    """
    order = _ascending(p_values)
    adjusted = [0.0] * len(order)
    lowest = 1.0
    for place, index in reversed(list(enumerate(order, start=1))):
        lowest = min(lowest, len(order) / place * p_values[index])
        adjusted[index] = lowest
    return adjusted


def _ascending(p_values: Sequence[float]) -> list[int]:
    for index, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise UsageError(f"p value {index}: expected a number from 0 to 1, got {p}")
    return sorted(range(len(p_values)), key=lambda index: p_values[index])
