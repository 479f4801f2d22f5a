"""A mean that says what it rests on, and what the failures could change."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from ragforge.report.shown import MISSING, number


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of values in [0, 1] with bounds: all that has no value at 0, and all of it at 1."""

    mean: float | None
    """Over the values that exist; None where there are none."""
    n: int
    n_failed: int
    low: float | None
    high: float | None
    n_absent: int = 0
    """Values that nobody tried to get; the bounds count them as they count failures."""

    @property
    def is_bounded(self) -> bool:
        """Whether what has no value could change the mean, so that its bounds say something."""
        return self.n_failed + self.n_absent > 0 and self.low is not None

    def __str__(self) -> str:
        if not self.is_bounded:
            return number(self.mean)
        if self.mean is None:
            return MISSING
        return f"{number(self.mean)} [{number(self.low)}, {number(self.high)}]"


def estimate(values: Iterable[float | None], n_absent: int = 0) -> Estimate:
    """Return the mean of values in [0, 1].

    Args:
        values: None stands for a value that failed.
        n_absent: Values that should be there besides, and that nobody tried to get.
    """
    given = list(values)
    known = [value for value in given if value is not None]
    n, n_failed, n_all = len(known), len(given) - len(known), len(given) + n_absent
    if not n_all:
        return Estimate(None, 0, 0, None, None)
    total = fsum(known)
    low, high = total / n_all, (total + n_failed + n_absent) / n_all
    return Estimate(total / n if n else None, n, n_failed, low, high, n_absent)


def with_n(found: Estimate, failed: str = "failed") -> str:
    """Return a mean with its bounds and what is behind it; `failed` names the failures."""
    return f"{found} ({counts(found, failed)})"


def counts(found: Estimate, failed: str = "failed") -> str:
    """Return the numbers of values, of what they should be, and of failures if there are any."""
    n_all = found.n + found.n_failed + found.n_absent
    n = f"n {found.n:,} of {n_all:,}" if found.n_absent else f"n {found.n:,}"
    return n + (f", {found.n_failed:,} {failed}" if found.n_failed else "")
