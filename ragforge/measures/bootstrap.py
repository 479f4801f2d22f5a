"""The bootstrap distribution of a mean, without resampling.

The mean of n draws from n values is distributed as the n-fold convolution of the values' own
distribution: its characteristic function is theirs to the power n, and two Fourier transforms give
what infinitely many resamples would. No seed, no noise: same data, same interval.

Three things keep it exact, or nearly so:

* Shares, counts and reciprocal ranks lie on a lattice, which is the grid then; nothing is rounded.
* Other values are split between the two nearest points of a grid, which keeps the mean. The
  variance that this adds is known and taken out by shrinking the result about the mean.
* The grid covers the whole support of the sum, or a window that the sum leaves with a probability
  below 1e-12 by Bernstein's inequality; that much may wrap around.
"""

from dataclasses import dataclass
from math import ceil, exp, floor, log, log2, sqrt
from typing import Final

import numpy as np

from ragforge.measures.samples import Floats, is_constant, lattice_cells, mean

_GRID: Final = 2**15
"""Cells for values on no lattice: some 2,000 to a standard deviation of the mean."""
_LARGEST_GRID: Final = 2**18
_CELLS_TO_DEVIATION: Final = 16
"""Cells to the mean absolute deviation, at least, so that one far value does not blur the rest."""
_OUTSIDE: Final = log(2e12)
"""Of a probability of 1e-12 on two sides."""
_VANISHED: Final = -42.0
"""Logarithm of a share of the characteristic function that rounding hides anyway."""
_ROUNDING: Final = 1e-10
"""Probabilities closer than this are taken as equal; the transforms leave less."""


@dataclass(frozen=True, slots=True)
class MeanDistribution:
    """How the mean of a resample is distributed."""

    points: Floats
    """Means, ascending and evenly spaced, shape (m,)."""
    mass: Floats
    """Their probabilities, shape (m,), which sum to 1."""
    exact: bool
    """Whether `points` are the means themselves; if not, each stands for the cell around it."""

    def quantile(self, p: float) -> float:
        """Return the least mean that is not exceeded with a probability of at least `p`."""
        return self._quantile(self.points, self.mass, p)

    def upper_quantile(self, p: float) -> float:
        """Return the greatest mean that is reached with a probability of at least `p`."""
        return self._quantile(self.points[::-1], self.mass[::-1], p)

    def share_below(self, mean: float) -> float:
        """Return the probability of less than `mean`, with half of that of `mean` itself."""
        width = float(self.points[1] - self.points[0]) if len(self.points) > 1 else 0.0
        if not width:  # Also of values so near 0 that floats end between them.
            return 0.5
        cell = min(max(round((mean - float(self.points[0])) / width), 0), len(self.points) - 1)
        part = 0.5 if self.exact else 0.5 + (mean - float(self.points[cell])) / width
        return float(self.mass[:cell].sum() + part * self.mass[cell])

    def _quantile(self, points: Floats, mass: Floats, p: float) -> float:
        reached = np.cumsum(mass)
        cell = int(np.searchsorted(reached, p - _ROUNDING))
        cell = min(cell, len(points) - 1)
        if self.exact or len(points) == 1:
            return float(points[cell])
        # The mass of a cell is spread evenly over it.
        width = float(points[1] - points[0])
        missing = (float(reached[cell]) - p) / float(mass[cell]) if mass[cell] > 0 else 0.0
        return float(points[cell]) + width * (0.5 - min(max(missing, 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class _Window:
    """Where the sum of n draws from offsets in [0, 1] stays."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def mean_distribution(values: Floats) -> MeanDistribution:
    """Return the bootstrap distribution of the mean of the values.

    Args:
        values: Finite, shape (n,), n at least 1; their order makes no difference.

    Source: Efron 1979, Annals of Statistics 7(1), section 2: the bootstrap distribution itself,
    of which his Monte Carlo is the approximation.
    """
    n = len(values)
    distinct, occurrences = np.unique(values, return_counts=True)
    counts = occurrences.astype(np.float64)
    if is_constant(distinct):
        return MeanDistribution(np.array([mean(values)]), np.ones(1), True)
    span = float(distinct[-1] - distinct[0])
    offsets = (distinct - distinct[0]) / span
    window = _window(offsets, counts)
    n_cells = lattice_cells(offsets)
    exact = n_cells is not None and window.width * n_cells <= _LARGEST_GRID // 2
    if not exact or n_cells is None:
        n_cells = _grid_cells(offsets, counts, window)
    positions = np.rint(offsets * n_cells) if exact else offsets * n_cells
    first = floor(window.low * n_cells)
    length = _fast_length(ceil(window.high * n_cells) - first + 1)
    mass = _convolved(positions, counts, first, length)
    sums = np.arange(first, first + length, dtype=np.float64)
    if not exact:
        centre = _sum(positions, counts)
        sums = centre + (sums - centre) * _shrinkage(positions, counts)
    points = float(distinct[0]) + sums / (n_cells * n) * span
    return MeanDistribution(points, mass, exact)


def _grid_cells(offsets: Floats, counts: Floats, window: _Window) -> int:
    """Return into how many cells the range of the values is cut."""
    n = int(counts.sum())
    deviation = _sum(np.abs(offsets - _sum(offsets, counts) / n), counts)
    fine = _CELLS_TO_DEVIATION * n / deviation
    most = (_LARGEST_GRID - 2) / window.width
    return max(int(min(max((_GRID - 2) / window.width, fine), most)), 1)


def _window(offsets: Floats, counts: Floats) -> _Window:
    """Bound the sum of n draws by its support, or by Bernstein's inequality where that is less."""
    n = int(counts.sum())
    total = _sum(offsets, counts)
    deviations = offsets - total / n
    variance = _sum(deviations**2, counts)
    largest = float(np.abs(deviations).max()) * _OUTSIDE / 3
    reach = largest + sqrt(largest * largest + 2 * variance * _OUTSIDE)
    return _Window(max(0.0, total - reach), min(float(n), total + reach))


def _convolved(positions: Floats, counts: Floats, first: int, length: int) -> Floats:
    """Return the probabilities of the sums `first` to `first + length - 1` of n draws.

    Args:
        positions: Of the distinct values, in cells from 0.
        counts: How often each occurs, aligned.
        first: Where the window begins.
        length: Cells of the window; what lies outside wraps around.
    """
    n = int(counts.sum())
    shares = counts / n
    # Near the mean's cell the angles are small, and n times their rounding is too.
    centre = round(_sum(positions, shares))
    below = np.floor(positions)
    part = positions - below
    cells = below.astype(np.int64) - centre
    histogram = np.bincount(cells % length, shares * (1 - part), length)
    histogram += np.bincount((cells + 1) % length, shares * part, length)
    transformed = np.fft.rfft(histogram)
    size = np.abs(transformed)
    alive = size > exp(_VANISHED / n)
    transformed[~alive] = 0
    transformed[alive] = np.exp(n * np.log(transformed[alive]))
    mass = np.maximum(np.fft.irfft(transformed, length), 0.0)
    mass = np.roll(mass, (n * centre - first) % length)
    return np.asarray(mass / mass.sum())


def _shrinkage(positions: Floats, counts: Floats) -> float:
    """Return the ratio of the standard deviations without and with the splitting."""
    n = int(counts.sum())
    part = positions - np.floor(positions)
    variance = _sum((positions - _sum(positions, counts) / n) ** 2, counts)
    return sqrt(variance / (variance + _sum(part * (1 - part), counts)))


def _sum(terms: Floats, counts: Floats) -> float:
    """Return the weighted sum; a BLAS product depends on its build and the number of threads."""
    return float(np.sum(terms * counts))


def _fast_length(least: int) -> int:
    return int(2 ** ceil(log2(max(least, 2))))
