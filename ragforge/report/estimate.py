"""A mean that says what it rests on, and what the failures could change."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragforge.report.shown import MISSING, number

if TYPE_CHECKING:
    from ragforge.measures.intervals import Ends


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of values in [0, 1] with bounds: all that has no value at 0, and all of it at 1."""

    mean: float | None
    """Over the values that exist; None where there are none."""
    n: int
    n_failed: int
    low: float | None
    high: float | None
    interval: "Ends | None" = None
    """95 %, of the mean over queries like these; None where it is not known."""

    @property
    def is_bounded(self) -> bool:
        """Whether what has no value could change the mean, so that its bounds say something."""
        return self.n_failed > 0 and self.low is not None

    def __str__(self) -> str:
        if not self.is_bounded:
            return number(self.mean)
        if self.mean is None:
            return MISSING
        return f"{number(self.mean)} [{number(self.low)}, {number(self.high)}]"


def with_interval(found: Estimate) -> str:
    """Return a mean with its interval in round brackets, and bounds on failures in square ones."""
    if found.mean is None:
        return str(found)
    ends = found.interval
    mean = number(found.mean)
    known = f"{mean} ({number(ends.low)}-{number(ends.high)})" if ends else mean
    return f"{known} [{number(found.low)}, {number(found.high)}]" if found.is_bounded else known


def with_counts(found: Estimate) -> str:
    """Return a mean with its interval; where something failed, with bounds and numbers too."""
    shown = with_interval(found)
    return f"{shown} ({counts(found, 'with failures')})" if found.n_failed else shown


def counts(found: Estimate, failed: str = "failed") -> str:
    """Return the numbers of values, and of failures if there are any."""
    return f"n {found.n:,}" + (f", {found.n_failed:,} {failed}" if found.n_failed else "")
