"""Places on a chart for values: where a point goes, and which values get a mark on the axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from values to places."""

    low: float
    high: float
    start: float
    """Place of `low`."""
    end: float

    def place(self, value: float) -> float:
        """Return where a value goes."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


def round_range(values: Sequence[float], *, parts: int = 4) -> tuple[float, ...]:
    """Return round values, evenly apart, from below the least to above the greatest of some.

    Args:
        values: At least one.
        parts: About how many steps to take.
    """
    low, high = min(values), max(values)
    reach = high - low or abs(high) / 10 or 0.1
    rough = reach / parts
    unit = 10 ** floor(log10(rough))
    step = unit * next(size for size in _STEPS if size * unit >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return tuple(index * step for index in range(first, max(last, first + 1) + 1))
