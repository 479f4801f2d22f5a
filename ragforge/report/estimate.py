"""A mean that says what it rests on, and what the failures could change."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from ragforge.report.shown import MISSING, number


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of values in [0, 1] with bounds: every failure at 0, every failure at 1."""

    mean: float | None
    """Over the values that exist; None where there are none."""
    n: int
    n_failed: int
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.n_failed == 0 or self.low is None or self.high is None:
            return number(self.mean)
        if self.mean is None:
            return MISSING
        return f"{number(self.mean)} [{number(self.low)}, {number(self.high)}]"


def estimate(values: Iterable[float | None]) -> Estimate:
    """Return the mean of values in [0, 1], None standing for a value that failed."""
    given = list(values)
    known = [value for value in given if value is not None]
    n, n_failed = len(known), len(given) - len(known)
    if not given:
        return Estimate(None, 0, 0, None, None)
    total = fsum(known)
    low, high = total / len(given), (total + n_failed) / len(given)
    return Estimate(total / n if n else None, n, n_failed, low, high)
