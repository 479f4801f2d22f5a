"""What people's labels are expected to be, by the judge's grade, before there are any."""

from __future__ import annotations

from typing import Final

from ragforge.deferred import numpy as np
from ragforge.measures.checked_samples import Floats
from ragforge.measures.measure_names import Measure

_RELEVANT: Final = {
    1: (0.5, 0.7, 0.85, 0.9, 0.7),
    2: (0.25, 0.45, 0.65, 0.8, 0.5),
    3: (0.1, 0.2, 0.35, 0.55, 0.25),
}
"""Shares of pairs that people call relevant, by threshold and the judge's grade, then without."""
_GRADES: Final = (0.7, 1.2, 1.8, 2.3, 1.2)
"""People's mean grade, likewise."""
_VARIANCES: Final = (0.5, 0.85, 0.95, 1.2, 0.85)
"""Variance of people's grades, likewise: the mean of three published judges on retrieved texts."""


def expected_values(measure: Measure, threshold: int) -> Floats:
    """Return the value of a pair by the judge's grade, and without one; shape (5,)."""
    return np.array(_RELEVANT[min(threshold, 3)] if measure.name == "P" else _GRADES)


def expected_variances(measure: Measure, threshold: int) -> Floats:
    """Return how far values spread among pairs of a grade, as a variance; shape (5,)."""
    if measure.name != "P":
        return np.array(_VARIANCES)
    shares = expected_values(measure, threshold)
    found: Floats = shares * (1 - shares)
    return found
