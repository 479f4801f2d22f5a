"""What the tables of a sweep share: a configuration, and how it compares with the best."""

from collections.abc import Sequence
from math import comb
from typing import Final

from ragforge.evaluating.configurations import Configuration
from ragforge.evaluating.formatting import MISSING, number, plural, signed
from ragforge.measures.comparing import Comparison
from ragforge.measures.intervals import Ends

_LEAST_P: Final = 0.001
_NAMED: Final = 5
"""Configurations named in a sentence; the table has all."""
FAILED_NOTE: Final = (
    "What failed has no value; it counts 0 in the order, and none is called worse that it could "
    "save."
)
CONFIGURATION_HEADERS: Final = ("splitter", "size", "overlap", "retriever")


def corrected_for(n: int) -> str:
    """Return what the comparisons with the best of n configurations are corrected for."""
    return (
        f"{plural(comb(n, 2), 'difference')} of any two, as the best is picked by the same queries"
    )


def listed_names(names: Sequence[str]) -> str:
    """Return names for a sentence; of many the first."""
    shown = "; ".join(names[:_NAMED])
    return f"{shown}; and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def all_equal(by: str, n: int, value: str) -> str:
    """Return a sentence on configurations of which none is first."""
    return f"All {n} configurations are equal by {by}: {value}. None is first."


def first_equal(by: str, names: Sequence[str], value: str, ties: Sequence[str]) -> str:
    """Return a sentence on the configurations that are first, and those not told apart from them.

    Args:
        by: What decides.
        names: Of the first.
        value: Of each of them, as shown.
        ties: Names of those that may be as good.
    """
    others = f" Not told apart from them: {listed_names(ties)}." if ties else ""
    return f"First by {by}, with equal values: {listed_names(names)} ({value}).{others}"


def configuration_cells(item: Configuration) -> tuple[str, ...]:
    """Return the cells under `CONFIGURATION_HEADERS`."""
    size = MISSING if item.size is None else f"{item.size:,}"
    return item.splitter, size, str(item.overlap), item.retriever


def against_best(comparison: Comparison | None, *, is_worse: bool) -> tuple[str, str, str]:
    """Return the cells of difference, p and what follows.

    Args:
        comparison: With the best; None for the best.
        is_worse: Whether it is told apart from that.
    """
    if comparison is None:
        return MISSING, MISSING, "first"
    ends = comparison.interval
    low, high = (ends.low, ends.high) if ends else (None, None)
    difference = comparison.diff
    shown = signed(difference)
    if difference is not None and low is not None and high is not None:
        shown = f"{shown} [{signed(low)}, {signed(high)}]"
    told = "worse" if is_worse else "not told apart"
    return shown, _p(comparison.p_corrected), told


def _p(value: float | None) -> str:
    return f"<{_LEAST_P}" if value is not None and value < _LEAST_P else number(value)


def configuration_json(item: Configuration) -> dict[str, object]:
    """Return a configuration as it was asked for."""
    return {
        "splitter": str(item.splitter),
        "size": item.size,
        "overlap": item.overlap,
        "retriever": str(item.retriever),
    }


def comparison_json(
    comparison: Comparison | None, bounds: Ends | None, *, is_worse: bool | None
) -> dict[str, object] | None:
    """Return a comparison with the best, None for the best.

    Args:
        comparison: The comparison.
        bounds: What the difference could be, had nothing failed; None where nothing has.
        is_worse: Whether it is told apart from the best; None where no judge says so.
    """
    if comparison is None:
        return None
    ends = comparison.interval
    return {
        "diff": comparison.diff,
        "low": ends.low if ends else None,
        "high": ends.high if ends else None,
        "level": comparison.level,
        "p": comparison.p,
        "p_corrected": comparison.p_corrected,
        "n": comparison.n,
        "is_worse": is_worse,
        "bound_low": bounds.low if bounds else None,
        "bound_high": bounds.high if bounds else None,
    }
