"""What goes into the statistics: checked arrays of one value per query.

Values come as any sequence of numbers. They are refused where a statistic would become NaN or
overflow, so that nothing behind this module has to look again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, lcm, sqrt
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values: TypeAlias = (
    "Sequence[float] | NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_]"
)
"""One number per query, in one dimension."""
PairedValues: TypeAlias = "Values | Mapping[str, float]"
"""Likewise of one of two runs; by query where not all queries have a value in both."""
Floats: TypeAlias = "NDArray[np.float64]"

LARGEST_VALUE: Final = 1e100
"""Third powers of it, summed over the queries, still fit a float."""
FINEST_LATTICE: Final = 5040
"""Cells that a lattice may have: reciprocal ranks down to 10 need 2520."""
_SAME: Final = 1e-12
"""Relative difference of two values that sums of floats may leave where there is none."""
_OFF_LATTICE: Final = 1e-10
"""Share of the range by which a value may miss its lattice point: small differences of large
values do, and results move by no more than that."""


def sample(values: Values, name: str = "values") -> Floats:
    """Return the values as an array of shape (n,); n may be 0.

    Args:
        values: The values; they are not changed, and may be returned as they are.
        name: What messages call them.

    Raises:
        DataError: A value is no finite number or is beyond 1e100 in size, or there is more than
            one dimension.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name}: expected one number per query, got {error}") from error
    if array.ndim != 1:
        raise DataError(f"{name}: expected one dimension, got shape {array.shape}")
    fine = np.abs(array) <= LARGEST_VALUE
    if not fine.all():
        n = int(np.argmin(fine))
        expected = f"a finite number of at most {LARGEST_VALUE:g} in size"
        raise DataError(f"{name}: value {n}: expected {expected}, got {array[n]}")
    return array


def differences(baseline: PairedValues, candidate: PairedValues) -> Floats:
    """Return candidate minus baseline, shape (n,), with what is only float noise set to 0.

    A difference below 1e-12 of the larger of its two values is noise: the same hits summed in
    another order are a tie, and neither a win nor a loss.

    Args:
        baseline: Values of n queries; or by query, of which those count that both have.
        candidate: Values of the same queries in the same order; or by query, too.

    Raises:
        UsageError: The lengths differ, or one is by query and the other not.
        DataError: As `sample`.
    """
    if isinstance(baseline, Mapping) and isinstance(candidate, Mapping):
        both = sorted(baseline.keys() & candidate.keys())
        return differences([baseline[key] for key in both], [candidate[key] for key in both])
    if isinstance(baseline, Mapping) or isinstance(candidate, Mapping):
        raise UsageError("expected values by query for both, or for neither")
    a, b = sample(baseline, "baseline"), sample(candidate, "candidate")
    if len(a) != len(b):
        raise UsageError(
            f"expected values of the same queries, got {len(a)} for the baseline and {len(b)} "
            "for the candidate"
        )
    difference = b - a
    difference[np.abs(difference) <= _SAME * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return difference


def mean(values: Floats) -> float:
    """Return the mean of at least one value: the same in any order, and never beyond the values."""
    exact = fsum(values.tolist()) / len(values)
    return min(max(exact, float(values.min())), float(values.max()))


def standard_deviation(values: Floats) -> float:
    """Return the standard deviation of at least two values, with the divisor n - 1."""
    centre = mean(values)
    return sqrt(fsum(((values - centre) ** 2).tolist()) / (len(values) - 1))


def lattice_cells(offsets: Floats) -> int | None:
    """Return the least K for which every offset is a multiple of max(offsets) / K.

    Shares (P@5), counts and reciprocal ranks lie on such lattices, and what is computed on them
    is exact. Multiples may be missed by 1e-10 of the largest offset.

    Args:
        offsets: Not negative, shape (n,), not all 0.

    Returns:
        K from 1 to 5040, or None where that does not do.
    """
    from fractions import Fraction

    shares = offsets / offsets.max()
    n_cells = 1
    while True:
        scaled = shares * n_cells
        missed = np.abs(scaled - np.rint(scaled)) > _OFF_LATTICE * n_cells
        if not missed.any():
            return n_cells
        share = float(shares[int(np.argmax(missed))])
        finer = lcm(n_cells, Fraction(share).limit_denominator(FINEST_LATTICE).denominator)
        if finer == n_cells or finer > FINEST_LATTICE:
            return None
        n_cells = finer


def is_constant(values: Floats) -> bool:
    """Tell whether at least one value is given and all are the same, but for float noise."""
    if not len(values):
        return False
    low, high = float(values.min()), float(values.max())
    return high - low <= _SAME * max(abs(low), abs(high))
