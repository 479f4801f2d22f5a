"""Drawing so many of a population, some likelier than others, with probabilities that are known.

Where each item's probability is known, a mean over the drawn ones, each weighted by its size over
its probability, estimates the mean over all by size, however the draw preferred some.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray


def inclusion_probabilities(sizes: Sequence[float], n: int) -> Floats:
    """Return with which probability each item is drawn: in proportion to its size, at most 1.

    Args:
        sizes: All above 0.
        n: Items to draw, at least 0; all where there are no more.

    Returns:
        Shape of `sizes`; the sum is n, or the number of items where that is smaller.

    Raises:
        UsageError: A size is not above 0 and finite, or n is below 0.

    Source: Hansen and Hurwitz 1943 for the proportion; what it lifts above 1 is taken for certain
    and the rest shared anew, as in Särndal, Swensson and Wretman 1992, section 3.6.3.
    """
    if n < 0 or not all(isfinite(size) and size > 0 for size in sizes):
        raise UsageError("expected sizes above 0 and a number of at least 0")
    array = np.asarray(sizes, dtype=np.float64)
    if n >= len(array):
        return np.ones(len(array))
    order = np.argsort(-array, kind="stable")
    falling = array[order]
    # Of the items from each place on, by size; summed from the small end, which loses the least.
    left = np.cumsum(falling[::-1])[::-1]
    certain = 0
    while certain < n and falling[certain] * (n - certain) >= left[certain]:
        certain += 1
    found = np.ones(len(array))
    if certain < len(array):
        found[order[certain:]] = falling[certain:] * (n - certain) / left[certain]
    return found


def systematic_draw(probabilities: Floats, start: float) -> NDArray[np.intp]:
    """Return the places of a sample in which each item has its own probability, exactly.

    The probabilities are laid end to end, and one item is taken at each whole number after `start`.
    Which items come together depends on their order: shuffle them before.

    Args:
        probabilities: In [0, 1], whose sum is a whole number but for rounding.
        start: From 0 to below 1, uniform.

    Returns:
        Ascending places, as many as the probabilities sum to.

    Source: Madow 1949, Annals of Mathematical Statistics 20(3).
    """
    certain = probabilities >= 1
    uncertain = np.flatnonzero(~certain)
    ends = np.cumsum(probabilities[uncertain])
    n = round(float(ends[-1])) if len(ends) else 0
    if not n:
        return np.flatnonzero(certain)
    drawn = np.searchsorted(ends * (n / ends[-1]), start + np.arange(n), side="right")
    # The last end may lie a rounding below the whole number that it is.
    places = np.minimum(drawn, len(uncertain) - 1)
    return np.sort(np.concatenate([np.flatnonzero(certain), uncertain[places]]))
