"""The items that two evaluations have in common: what moved there is the system's doing."""

from collections.abc import Sequence
from math import fsum
from typing import Final

from ragforge.errors import UsageError
from ragforge.measures import parse_measure
from ragforge.measures.intervals import Ends, mean_interval
from ragforge.measures.rates import LEAST_VALUES, LEVEL, least_share
from ragforge.measures.samples import Floats, differences, is_constant, mean
from ragforge.records import Baseline, BridgeMean, Evaluation

_UNBOUNDED: Final = frozenset({"DCG", "NumRet", "NumRel", "NumRelRet"})


def bridge(before: Baseline, now: Baseline) -> dict[str, BridgeMean]:
    """Return by measure how the items moved that are equal in both; {} where none can be compared.

    Items are equal where query and item digest are. Measures that only one has are left out, and
    nothing is compared where relevance was counted in another way.
    """
    if not is_comparable(before.evaluation, now.evaluation):
        return {}
    of_before = {item.query_id: item for item in before.items}
    pairs = [
        (of_before[item.query_id], item)
        for item in now.items
        if item.query_id in of_before and of_before[item.query_id].item == item.item
    ]
    if not pairs:
        return {}
    return {
        name: _paired(
            name, [old.values[name] for old, _ in pairs], [new.values[name] for _, new in pairs]
        )
        for name in now.evaluation.measures
        if name in before.evaluation.measures
    }


def is_comparable(before: Evaluation, now: Evaluation) -> bool:
    """Whether the same grades were relevant, and queries without a ranking counted alike."""
    return (before.rel_threshold, before.only_retrieved) == (now.rel_threshold, now.only_retrieved)


def is_bounded(measure: str) -> bool:
    """Whether the values of a measure are known to lie in [0, 1]."""
    try:
        return parse_measure(measure).name not in _UNBOUNDED
    except UsageError:  # Of a later version.
        return False


def _paired(measure: str, before: Sequence[float], now: Sequence[float]) -> BridgeMean:
    moved = differences(before, now)
    ends = _interval(moved, is_bounded(measure))
    return BridgeMean(
        n=len(moved),
        before=fsum(before) / len(before),
        now=fsum(now) / len(now),
        diff=mean(moved),
        low=ends.low if ends else None,
        high=ends.high if ends else None,
    )


def _interval(moved: Floats, bounded: bool) -> Ends | None:
    """Return the 95 % interval of the mean difference; None where so few items allow none.

    It reaches as far as that of the bootstrap or that of Student's t, whichever goes further. Where
    all items moved alike it is what so many equal differences of values in [0, 1] allow.
    """
    n = len(moved)
    if n < LEAST_VALUES:
        return None
    if is_constant(moved):
        share = least_share(n)
        value = float(moved[0])
        return Ends(value * share - (1 - share), value * share + (1 - share)) if bounded else None
    bootstrap, student = mean_interval(moved, LEVEL), mean_interval(moved, LEVEL, "student")
    assert bootstrap.low is not None
    assert bootstrap.high is not None
    assert student.low is not None
    assert student.high is not None
    return Ends(min(bootstrap.low, student.low), max(bootstrap.high, student.high))
