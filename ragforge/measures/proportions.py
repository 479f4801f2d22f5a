"""Intervals of a share of so many out of so many."""

from math import sqrt
from statistics import NormalDist

from ragforge.measures.intervals import Ends


def wilson_interval(k: int, n: int, level: float = 0.95) -> Ends | None:
    """Return the Wilson score interval of a share; None of nothing.

    Args:
        k: How many have it.
        n: Of how many.
        level: Of confidence, in (0, 1).

    Raises:
        ValueError: k is not in [0, n].

    Source: Wilson 1927, JASA 22(158); Brown, Cai and DasGupta 2001, Statistical Science 16(2).
    """
    if not 0 <= k <= n:
        raise ValueError(f"expected 0 to {n}, got {k}")
    if n == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2)
    middle = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(k * (n - k) / n + z * z / 4)
    return Ends(0.0 if k == 0 else middle - half, 1.0 if k == n else middle + half)
