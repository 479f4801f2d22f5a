"""Checks of single numbers that statistics take: shares and seeds."""

from ragforge.errors import UsageError


def check_share(value: float, name: str, highest: float = 1.0) -> None:
    """Refuse a level, significance level, power or persistence outside of (0, highest).

    Raises:
        UsageError: It is.
    """
    if not 0 < value < highest:
        raise UsageError(f"{name}: expected a number between 0 and {highest:g}, got {value}")


def checked_seed(seed: int) -> int:
    """Return the seed of a random generator.

    Raises:
        UsageError: It is below 0.
    """
    if seed < 0:
        raise UsageError(f"seed: expected a whole number from 0, got {seed}")
    return seed
