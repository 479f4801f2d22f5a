"""The items that two evaluations have in common: what moved there is the system's doing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isinf
from typing import Final

from ragforge.errors import UsageError
from ragforge.measures import parse_measure
from ragforge.measures.identity import is_identity
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES, LEVEL
from ragforge.measures.samples import (
    Floats,
    differences,
    is_constant,
    mean,
    standard_deviation,
)
from ragforge.measures.strata import Design, Stratified, weighted_mean
from ragforge.measures.stratified import sample_difference_interval
from ragforge.measures.unseen import difference_interval
from ragforge.records import Baseline, BridgeMean, Evaluation, MixedGrades
from ragforge.report.history.common_items import (
    LEFT_OUT,
    CommonItem,
    Yardstick,
    common_items,
    mixed_of,
)
from ragforge.report.one_judge import Reading

_UNBOUNDED: Final = frozenset({"DCG", "NumRet", "NumRel", "NumRelRet"})


@dataclass(frozen=True, slots=True)
class Crossing:
    """What two evaluations tell of the items that are equal in both."""

    means: Mapping[str, BridgeMean]
    """How they moved, by measure; nothing of those of which no item can be compared."""
    mixed: MixedGrades | None
    """What keeps some from being compared on the grades of one judge."""


def bridge(
    before: Baseline, now: Baseline, yardstick: Yardstick | None = None
) -> Mapping[str, BridgeMean]:
    """Return by measure how the items moved that are equal in both; {} where none can be compared.

    Items are equal where query and item digest are; those whose grades changed are measured on the
    grades of now, see `common_items`. Measures that only one has are left out, and nothing is
    compared where relevance was counted in another way.

    Args:
        before: The earlier one.
        now: The later one.
        yardstick: The grades of today; without it, items whose grades changed are left out.
    """
    return crossing(before, now, yardstick).means


def crossing(
    before: Baseline,
    now: Baseline,
    yardstick: Yardstick | None = None,
    design: Design | None = None,
) -> Crossing:
    """Return the bridge between two evaluations, with what keeps it from being whole.

    Args:
        before: As for `bridge`.
        now: Likewise.
        yardstick: Likewise.
        design: What the items of a sample were drawn from; None where neither is of a sample. Where
            an item is not in it any more, all weigh alike.
    """
    if not is_comparable(before.evaluation, now.evaluation):
        return Crossing({}, None)
    common = common_items(before, now, yardstick)
    items = {query_id: item for query_id, item in common.items() if item.now}
    if design is not None and not items.keys() <= design.stratum_of.keys():
        design = None
    # Rankings are of all queries of the run: what differs then is only what they are measured on.
    alike = before.evaluation.digests.rankings == now.evaluation.digests.rankings
    found = {
        name: _paired(
            name,
            {query_id: item for query_id, item in items.items() if name in item.now},
            alike,
            design,
        )
        for name in now.evaluation.measures
        if name in before.evaluation.measures
    }
    means = {name: of for name, of in found.items() if of is not None}
    return Crossing(means, mixed_of(common, yardstick))


def is_comparable(before: Evaluation, now: Evaluation) -> bool:
    """Whether relevant meant the same, and queries without a ranking counted alike."""
    old, new = ((of.rel_threshold, of.by_lists, of.only_retrieved) for of in (before, now))
    return old == new


def is_bounded(measure: str) -> bool:
    """Whether the values of a measure are known to lie in [0, 1]."""
    try:
        return parse_measure(measure).name not in _UNBOUNDED
    except UsageError:  # Of a later version.
        return False


def _paired(
    measure: str, items: Mapping[str, CommonItem], alike: bool, design: Design | None
) -> BridgeMean | None:
    readings = {key: (item.before[measure], item.now[measure]) for key, item in items.items()}
    known = {
        key: (old.value, new.value)
        for key, (old, new) in readings.items()
        if old.value is not None and new.value is not None
    }
    if not known:
        return None
    before, now = [old for old, _ in known.values()], [new for _, new in known.values()]
    drawn = design.stratified(known) if design else None
    n_left_out = len(readings) - len(known)
    moved = differences(before, now)
    ends = None
    # What a sample ranks alike may differ in what was not drawn.
    if alike and design is None and is_identity(moved, same_rankings=not n_left_out):
        ends = Ends(0.0, 0.0)
    elif n_left_out <= LEFT_OUT * len(readings):
        every = design.stratified(readings) if design else None
        ends = _widest(_Moved(moved, drawn), [*readings.values()], every, is_bounded(measure))
    return BridgeMean(
        n=len(moved),
        before=_mean(before, drawn),
        now=_mean(now, drawn),
        diff=mean(moved) if drawn is None else _mean(moved.tolist(), drawn),
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        n_rescored=sum(items[key].is_rescored for key in known),
        n_left_out=n_left_out,
        n_mixed=sum(measure in item.lacking for item in items.values()),
        sd=_sd(moved),
        n_tied=int((moved == 0).sum()),
    )


def _sd(moved: Floats) -> float | None:
    if len(moved) < LEAST_VALUES:
        return None
    return 0.0 if is_constant(moved) else standard_deviation(moved)


@dataclass(frozen=True, slots=True)
class _Moved:
    """Differences, and of which strata they are."""

    values: Floats
    drawn: Stratified | None


def _mean(values: Sequence[float], drawn: Stratified | None) -> float:
    if drawn is None:
        return fsum(values) / len(values)
    return weighted_mean(values, drawn.weights)


def _widest(
    moved: _Moved,
    readings: Sequence[tuple[Reading, Reading]],
    every: Stratified | None,
    bounded: bool,
) -> Ends | None:
    """Return the interval, as far as what is not known of some items could move it."""
    ends = _interval(moved, bounded)
    if all(old.low == old.high and new.low == new.high for old, new in readings):
        return ends
    if any(isinf(old.high) or isinf(new.high) for old, new in readings):
        return None
    lows = differences([old.high for old, _ in readings], [new.low for _, new in readings])
    highs = differences([old.low for old, _ in readings], [new.high for _, new in readings])
    low, high = (_interval(_Moved(of, every), bounded) for of in (lows, highs))
    if ends is None or low is None or high is None:
        return None
    return Ends(min(ends.low, low.low), max(ends.high, high.high))


def _interval(moved: _Moved, bounded: bool) -> Ends | None:
    """Return the 95 % interval of the mean difference; None where so few items allow none.

    Source: as `ragforge.measures.comparing`.
    """
    if len(moved.values) < LEAST_VALUES:
        return None
    if moved.drawn is not None:
        return sample_difference_interval(moved.values, moved.drawn, LEVEL, bounded=bounded)
    return difference_interval(moved.values, LEVEL, bounded=bounded)
