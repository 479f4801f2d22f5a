"""What the numbers of an evaluation can be: a line of a history may have been made by hand."""

from collections.abc import Iterator
from typing import Final

from ragforge.errors import UsageError
from ragforge.measures import parse_measure
from ragforge.measures.formulas import FORMULAS
from ragforge.records import BridgeMean, Evaluation, MeasuredMean

_NOISE: Final = 1e-9
"""By which sums of floats may miss one another."""


def impossibility(evaluation: Evaluation) -> str:
    """Return what about the numbers of an evaluation cannot be; "" where all can."""
    return next(_impossible(evaluation), "")


def _impossible(of: Evaluation) -> Iterator[str]:
    if of.n_failed > of.n_queries:
        yield f"n_failed {of.n_failed:,} is more than its {of.n_queries:,} queries"
    if of.n_holes > of.n_retrieved:
        yield f"n_holes {of.n_holes:,} is more than its {of.n_retrieved:,} retrieved chunks"
    for measure, mean in of.measures.items():
        yield from (f"{measure}: {found}" for found in _of_mean(mean, _highest(measure)))
    for measure, bridge in of.bridge.items():
        yield from (f"bridge of {measure}: {found}" for found in _of_bridge(bridge, measure))


def _of_mean(of: MeasuredMean, highest: float | None) -> Iterator[str]:
    if of.mean is None:
        return
    yield from _in_range("mean", of.mean, highest)
    yield from _between("mean", of.mean, of.low, of.high)
    yield from _between("mean", of.mean, of.least, of.most)


def _of_bridge(of: BridgeMean, measure: str) -> Iterator[str]:
    highest = _highest(measure)
    yield from _in_range("before", of.before, highest)
    yield from _in_range("now", of.now, highest)
    yield from _between("diff", of.diff, of.now - of.before, of.now - of.before)
    yield from _between("diff", of.diff, of.low, of.high)


def _in_range(name: str, value: float, highest: float | None) -> Iterator[str]:
    if value < -_NOISE or (highest is not None and value > highest + _NOISE):
        ends = "0 or more" if highest is None else f"0 to {highest:g}"
        yield f"{name} {value:g} is not in its range, {ends}"


def _between(name: str, value: float, low: float | None, high: float | None) -> Iterator[str]:
    if (low is not None and value < low - _NOISE) or (high is not None and value > high + _NOISE):
        yield f"{name} {value:g} is not between {_shown(low)} and {_shown(high)}"


def _shown(end: float | None) -> str:
    return "nothing" if end is None else f"{end:g}"


def _highest(measure: str) -> float | None:
    """Return the greatest value of a measure; None where there is none, or it is not known."""
    try:
        return None if FORMULAS[parse_measure(measure).name].unbounded else 1.0
    except UsageError:  # Of a later version.
        return None
