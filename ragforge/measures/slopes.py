"""The least-squares slope, and how sure it is that there is one."""

from dataclasses import dataclass
from math import fsum, inf, sqrt

from ragforge.errors import UsageError
from ragforge.measures.distributions import student_sf
from ragforge.measures.samples import Values, is_constant, mean, sample


@dataclass(frozen=True, slots=True)
class Slope:
    """How much y rises with x."""

    slope: float | None
    """Per unit of x; None with fewer than three points, or where all x are the same."""
    p: float | None
    """Two-sided, of no slope, by Student's t with n - 2 degrees of freedom; None as `slope`."""
    n: int


def slope(x: Values, y: Values) -> Slope:
    """Return the slope of the least-squares line through some points.

    Args:
        x: Where n points lie, shape (n,).
        y: How high each is, aligned.

    Raises:
        UsageError: The lengths differ.
        DataError: A value is no finite number.
    """
    across, up = sample(x, "x"), sample(y, "y")
    n = len(across)
    if n != len(up):
        raise UsageError(f"expected as many y as x, got {n} x and {len(up)} y")
    if n < 3 or is_constant(across):
        return Slope(None, None, n)
    if is_constant(up):
        return Slope(0.0, 1.0, n)
    dx, dy = across - mean(across), up - mean(up)
    spread = fsum((dx * dx).tolist())
    rise = fsum((dx * dy).tolist()) / spread
    unexplained = fsum(((dy - rise * dx) ** 2).tolist())
    error = sqrt(unexplained / (n - 2) / spread)
    t = abs(rise) / error if error else inf
    return Slope(rise, min(1.0, 2 * student_sf(t, n - 2)), n)
