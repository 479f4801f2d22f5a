"""A mean that says what it rests on, and what the failures could change."""

from dataclasses import dataclass

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


def with_n(found: Estimate, failed: str = "failed") -> str:
    """Return a mean with its bounds and what is behind it; `failed` names the failures."""
    return f"{found} ({counts(found, failed)})"


def counts(found: Estimate, failed: str = "failed") -> str:
    """Return the numbers of values, and of failures if there are any."""
    return f"n {found.n:,}" + (f", {found.n_failed:,} {failed}" if found.n_failed else "")
