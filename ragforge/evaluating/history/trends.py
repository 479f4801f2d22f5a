"""Trends: whether a measure of a run rises, falls or stays, with intervals."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, islice, zip_longest
from math import fsum, nan
from typing import Final, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.evaluating.graded_by import silent_of
from ragforge.evaluating.history.changes import stands_for_same
from ragforge.evaluating.history.common_items import (
    LEFT_OUT,
    CommonItem,
    RescoringBasis,
    common_items,
    lacking_of,
    mixed_of,
)
from ragforge.evaluating.same_judge import Reading
from ragforge.files.set.baseline import Evaluated
from ragforge.measures import parse_measure
from ragforge.measures.checked_samples import (
    Floats,
    differences,
    is_constant,
    mean,
    standard_deviation,
)
from ragforge.measures.formulas import FORMULAS
from ragforge.measures.intervals import Ends
from ragforge.measures.measure_names import is_of_evidence
from ragforge.measures.rates import LEAST_VALUES, LEVEL, interval_of_difference, least_share
from ragforge.measures.strata import Design, Stratified, weighted_mean
from ragforge.measures.stratified import sample_difference_interval
from ragforge.measures.unseen_values import difference_interval, is_identity
from ragforge.records import Baseline, BridgeMean, Evaluation, MeasuredMean, MixedGrades

LEAST_DIFFERENCE: Final = 0.05
"""What a difference has to be for people to care, where they do not say."""
_ROUNDING: Final = 1e-9
_ITEMS_AT_A_TIME: Final = 1000
"""Items of two evaluations that are compared at a time."""
TrendVerdict: TypeAlias = Literal["IMPROVING", "DEGRADING", "STABLE", "UNKNOWN"]


@dataclass(frozen=True, slots=True)
class Bridge:
    """The differences on the items that are equal in two evaluations."""

    means: Mapping[str, BridgeMean]
    """How they moved, by measure; nothing of those of which no item can be compared."""
    mixed: MixedGrades | None
    """What keeps some from being compared on the grades of one judge."""


def bridge(
    before: Evaluated,
    now: Evaluated,
    basis: RescoringBasis | None = None,
    design: Design | None = None,
) -> Bridge:
    """Return how the items moved that are equal in two evaluations, with what keeps some out.

    Items are equal where query and item digest are; those whose grades changed are measured on the
    grades of now, see `common_items`. Measures that only one has are left out, and nothing is
    compared where relevance was counted in another way. Items are read some at a time.

    Args:
        before: The earlier one.
        now: The later one.
        basis: The grades of today; without it, items whose grades changed are left out.
        design: What the items of a sample were drawn from; None where neither is of a sample. Where
            an item is not in it any more, all weigh alike.
    """
    if not is_comparable(before.evaluation, now.evaluation):
        return Bridge({}, None)
    names = [name for name in now.evaluation.measures if name in before.evaluation.measures]
    columns = {name: _Column() for name in names}
    lacking: dict[str, Mapping[str, Mapping[str, int]]] = {}
    n_items = 0
    for common in _some_at_a_time(before, now, columns, basis):
        n_items += len(common)
        lacking |= lacking_of(common)
        items = {query_id: item for query_id, item in common.items() if item.now}
        if design is not None and not items.keys() <= design.stratum_of.keys():
            design = None
        for query_id, item in items.items():
            for name in columns.keys() & item.now.keys():
                columns[name].add(query_id, item, name)
    # Rankings are of all queries of the run: what differs then is only what they are measured on.
    alike = before.evaluation.digests.rankings == now.evaluation.digests.rankings
    paired = {name: _paired(name, column, alike, design) for name, column in columns.items()}
    means = {name: of for name, of in paired.items() if of is not None}
    return Bridge(means, mixed_of(lacking, n_items, basis))


def _some_at_a_time(
    before: Evaluated,
    now: Evaluated,
    columns: "Mapping[str, _Column]",
    basis: RescoringBasis | None,
) -> Iterator[dict[str, CommonItem]]:
    """Yield the items in common; the columns are read for what is lacking by then."""
    of_now, rest = now.by_query(), iter(before.items)
    while olds := tuple(islice(rest, _ITEMS_AT_A_TIME)):
        news = (of_now.get(old.query_id) for old in olds)
        yield common_items(
            Baseline(evaluation=before.evaluation, items=olds),
            Baseline(evaluation=now.evaluation, items=tuple(new for new in news if new)),
            basis,
            {
                name: LEFT_OUT * len(before.items) - column.n_mixed
                for name, column in columns.items()
            },
        )


class _Column:
    """The readings of one measure, an entry for each item that two evaluations have in common."""

    def __init__(self) -> None:
        self.query_ids: list[str] = []
        self.n_mixed = 0
        """Items that no one judge graded."""
        self._before = array("d")
        self._now = array("d")
        self._is_rescored = array("B")

    def add(self, query_id: str, item: CommonItem, measure: str) -> None:
        """Add an item."""
        self.query_ids.append(query_id)
        self.n_mixed += measure in item.lacking
        self._before.extend(_numbers(item.before[measure]))
        self._now.extend(_numbers(item.now[measure]))
        self._is_rescored.append(item.is_rescored)

    @property
    def before(self) -> Floats:
        """Value, NaN where it cannot be told, and its least and most, shape (n, 3)."""
        return np.array(self._before).reshape(-1, 3)

    @property
    def now(self) -> Floats:
        """The same, in the later evaluation."""
        return np.array(self._now).reshape(-1, 3)

    @property
    def is_rescored(self) -> Floats:
        """1 where the earlier ranking was scored on the later grades, else 0, shape (n,)."""
        return np.array(self._is_rescored)


def _numbers(of: Reading) -> tuple[float, float, float]:
    return nan if of.value is None else of.value, of.low, of.high


def is_comparable(before: Evaluation, now: Evaluation) -> bool:
    """Whether relevant meant the same, and queries without a ranking counted alike."""
    old, new = ((of.rel_threshold, of.by_lists, of.only_retrieved) for of in (before, now))
    return old == new


def is_bounded(measure: str) -> bool:
    """Whether the values of a measure are known to lie in [0, 1]."""
    try:
        return not FORMULAS[parse_measure(measure).name].unbounded
    except UsageError:  # Of a later version.
        return False


def _paired(measure: str, column: _Column, alike: bool, design: Design | None) -> BridgeMean | None:
    old, new = column.before, column.now
    is_known = ~np.isnan(old[:, 0] + new[:, 0])
    if not is_known.any():
        return None
    before, now = old[is_known, 0], new[is_known, 0]
    drawn = design.stratified(list(compress(column.query_ids, is_known))) if design else None
    n_left_out = len(old) - len(before)
    moved = differences(before, now)
    ends = None
    # What a sample ranks alike may differ in what was not drawn.
    if alike and design is None and is_identity(moved, same_rankings=not n_left_out):
        ends = Ends(0.0, 0.0)
    elif n_left_out <= LEFT_OUT * len(old):
        every = design.stratified(column.query_ids) if design else None
        ends = _widest_interval(_Differences(moved, drawn), old, new, every, is_bounded(measure))
    return BridgeMean(
        n=len(moved),
        before=_mean(before.tolist(), drawn),
        now=_mean(now.tolist(), drawn),
        diff=mean(moved) if drawn is None else _mean(moved.tolist(), drawn),
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        n_rescored=int(column.is_rescored[is_known].sum()),
        n_left_out=n_left_out,
        n_mixed=column.n_mixed,
        sd=_deviation(moved),
        n_tied=int((moved == 0).sum()),
        p=_p(measure, before, now, drawn) if _leaves_0_out(ends) else None,
    )


def _leaves_0_out(ends: Ends | None) -> bool:
    return ends is not None and not ends.low <= 0 <= ends.high


def _p(measure: str, before: Floats, now: Floats, drawn: Stratified | None) -> float:
    from ragforge.measures.comparing import RunPair, compare_pairs  # Few measures need it.

    [found] = compare_pairs(
        [RunPair("before", "now", measure, before.tolist(), now.tolist(), drawn=drawn)]
    )
    return found.p


def _deviation(moved: Floats) -> float | None:
    if len(moved) < LEAST_VALUES:
        return None
    return 0.0 if is_constant(moved) else standard_deviation(moved)


@dataclass(frozen=True, slots=True)
class _Differences:
    """Differences, and of which strata they are."""

    values: Floats
    drawn: Stratified | None


def _mean(values: Sequence[float], drawn: Stratified | None) -> float:
    if drawn is None:
        return fsum(values) / len(values)
    return weighted_mean(values, drawn.weights)


def _widest_interval(
    moved: _Differences, old: Floats, new: Floats, every: Stratified | None, bounded: bool
) -> Ends | None:
    """Return the interval, as far as what is not known of some items could move it.

    Args:
        moved: Of the items that are known.
        old: The earlier readings of all, as in `_Column`.
        new: The later ones.
        every: Of which strata these are.
        bounded: Whether values lie in [0, 1].
    """
    ends = _bridged_interval(moved, bounded)
    (_, old_lows, old_highs), (_, new_lows, new_highs) = old.T, new.T
    if (old_lows == old_highs).all() and (new_lows == new_highs).all():
        return ends
    if np.isinf(old_highs).any() or np.isinf(new_highs).any():
        return None
    lows, highs = differences(old_highs, new_lows), differences(old_lows, new_highs)
    low, high = (_bridged_interval(_Differences(of, every), bounded) for of in (lows, highs))
    if ends is None or low is None or high is None:
        return None
    return Ends(min(ends.low, low.low), max(ends.high, high.high))


def _bridged_interval(moved: _Differences, bounded: bool) -> Ends | None:
    """Return the 95 % interval of the mean difference; None where so few items allow none.

    Source: as `ragforge.measures.comparing`.
    """
    if len(moved.values) < LEAST_VALUES:
        return None
    if moved.drawn is not None:
        return sample_difference_interval(moved.values, moved.drawn, LEVEL, bounded=bounded)
    return difference_interval(moved.values, LEVEL, bounded=bounded)


@dataclass(frozen=True, slots=True)
class Trend:
    """Where a measure of a run went since an earlier evaluation."""

    run: str
    measure: str
    verdict: TrendVerdict
    """As `compare` decides: the interval leaves 0 out and the test finds a difference, or not both;
    UNKNOWN where there is no interval, or the grades of now are in part of the offline baseline or
    a mock, which say nothing about quality."""
    since: str
    """The earlier evaluation; "" where there is none."""
    on: Literal["same items", "all items"]
    """What the difference is over. That of all items has an interval only where items, grades and
    scale are the same: elsewhere it mixes a changed system and a changed set."""
    n: int
    diff: float | None
    low: float | None
    high: float | None
    """Ends of the 95 % interval, further apart by what failures could change."""
    until: str = ""
    """The later evaluation."""
    sd: float | None = None
    """Standard deviation of the differences per item; None where it is not known."""
    n_tied: int = 0
    """Items of which the difference is 0."""

    @property
    def is_identity(self) -> bool:
        """Whether nothing differs: only the same rankings have an interval from 0 to 0."""
        return self.low == self.high == 0.0


@dataclass(frozen=True, slots=True)
class QueriesNeeded:
    """How many items would tell two evaluations apart, were they spread as those that are there."""

    for_seen: int | None
    """Of which the difference that was seen would be shown in 4 of 5 samples; None where it is 0,
    or where what failed keeps it open and not how few there are."""
    least: float
    """The least difference that matters."""
    for_least: int
    is_lower_end: bool
    """Whether it may take more: most items tie, and the few others tell little of the spread."""


def queries_needed_by(trend: Trend, least: float) -> QueriesNeeded | None:
    """Return how many items a verdict would need, where a measure neither rises nor falls.

    Args:
        trend: Where it went.
        least: The least difference that matters, above 0.

    Returns:
        None where there is a verdict, nothing differs, or the spread is not known.

    Source: `ragforge.measures.power`, at 80 % and the 5 % level, as `ragforge compare`.
    """
    from ragforge.measures.power import queries_needed

    if trend.verdict != "STABLE" or not trend.sd or trend.diff is None:
        return None
    seen = queries_needed(trend.diff, trend.sd) if abs(trend.diff) > _ROUNDING else None
    return QueriesNeeded(
        for_seen=None if seen is None or seen <= trend.n else seen,
        least=least,
        for_least=queries_needed(least, trend.sd),
        is_lower_end=trend.n_tied > trend.n / 2,
    )


def until_change(evaluations: Sequence[Evaluation]) -> Sequence[Evaluation]:
    """Return evaluations of one run without those at the end that only repeat the one before.

    What changed last, and where that led, is told by the last two of what is left. To look at the
    same by other measures is a repeat.
    """
    n = len(evaluations)
    while n > 1 and _is_repeat(evaluations[n - 2], evaluations[n - 1]):
        n -= 1
    return evaluations[:n]


def comparable(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations of one run without those that a later one stands for.

    That is one whose grades were of another judge than those of the evaluation before, where the
    next one has the same rankings, by the grades that were missing.
    """
    return [
        item
        for item, later in zip_longest(evaluations, evaluations[1:])
        if later is None or item.mixed is None or _ground(item) != _ground(later)
    ]


def _ground(of: Evaluation) -> tuple[object, ...]:
    found = of.digests
    relevant = of.rel_threshold, of.by_lists
    return found.corpus, found.queries, found.rankings, relevant, of.only_retrieved


def has_several_judges(*evaluations: Evaluation) -> bool:
    """Whether the grades of some evaluations are of several judges.

    People and rules aside, and whoever wrote the queries, whose evidence gives grades.
    """
    graders = [
        grader
        for item in evaluations
        for grader in item.graders
        if grader.is_judge and grader.kind not in ("human", "rule")
    ]
    judges = {(grader.kind, grader.model) for grader in graders}
    prompts = {(grader.prompt, grader.prompt_sha256) for grader in graders}
    return len(judges) > 1 or len(prompts) > len({name for name, _ in prompts})


def is_open(before: Evaluation, now: Evaluation) -> bool:
    """Whether several judges graded, and nobody looked whether one graded both rankings."""
    if not has_several_judges(before, now):
        return False
    return now.bridge_to != before.evaluation_id or not (now.by_one_judge or now.mixed)


def last_two_states(
    evaluations: Sequence[Evaluation], measure: str
) -> tuple[Evaluation, Evaluation] | None:
    """Return the last two evaluations that have a measure, repeats at the end left out."""
    having = [item for item in evaluations if measure in item.measures]
    distinct = until_change(comparable(having))
    return (distinct[-2], distinct[-1]) if len(distinct) > 1 else None


def last_two(
    evaluations: Sequence[Evaluation], measure: str
) -> tuple[Evaluation | None, Evaluation | None]:
    """Return the `last_two_states`, else two that repeat each other; None for what is not there."""
    if pair := last_two_states(evaluations, measure):
        return pair
    having = comparable([item for item in evaluations if measure in item.measures])
    return having[-2] if len(having) > 1 else None, having[-1] if having else None


def trend(evaluations: Sequence[Evaluation], measure: str, same: BridgeMean | None = None) -> Trend:
    """Return where a measure went between the last two states of one run that have it.

    Args:
        evaluations: Of one run, oldest first; at least one.
        measure: Canonical name.
        same: The items that are equal in these two, where the later one has no bridge between them.
    """
    before, now = last_two(evaluations, measure)
    if now is None or before is None:
        newest = now or evaluations[-1]
        return Trend(newest.run, measure, "UNKNOWN", "", "all items", 0, None, None, None)
    is_known = now.bridge_to == before.evaluation_id and not is_open(before, now)
    known = now.bridge.get(measure) if is_known else same
    if known is None:
        return trend_of_means(before, now, measure)
    return trend_on_bridge(before, now, measure, known)


def trend_on_bridge(before: Evaluation, now: Evaluation, measure: str, on: BridgeMean) -> Trend:
    """Return where a measure went on the items that are equal in two evaluations."""
    ends = None if on.low is None or on.high is None else Ends(on.low, on.high)
    if not (ends == Ends(0.0, 0.0) and _has_same_rankings(before, now, measure)):
        ends = _with_failures(ends, before.measures[measure], now.measures[measure])
    return _trend(before, now, measure, ends, on)


def _has_same_rankings(before: Evaluation, now: Evaluation, measure: str) -> bool:
    """Whether both rank alike in every query, so that no failure can set them apart.

    A failed judgment moves one and the same ranking equally. A query on which the retriever failed
    has no ranking, and no value: where any has none and something failed, it may be one of these.
    """
    return before.digests.rankings == now.digests.rankings and not any(
        of.measures[measure].n_failed and of.measures[measure].n < of.n_queries
        for of in (before, now)
    )


def trend_of_means(before: Evaluation, now: Evaluation, measure: str) -> Trend:
    """Return where a measure went over all items of two evaluations, were they drawn anew.

    There is no interval where they are not the same items with the same grades: that the mean of
    others is higher says nothing of the system.

    Source: `ragforge.measures.rates.interval_of_difference`.
    """
    if has_several_judges(before, now):
        return _unknown(before, now, measure)
    old, new = before.measures.get(measure), now.measures.get(measure)
    if old is None or new is None or not (is_comparable(before, now) and is_same_set(before, now)):
        return _trend(before, now, measure, None, None)
    of_old, of_new = _interval(old, measure), _interval(new, measure)
    if of_old is None or of_new is None or old.mean is None or new.mean is None:
        return _trend(before, now, measure, None, None)
    ends = interval_of_difference(old.mean, of_old, new.mean, of_new)
    return _trend(before, now, measure, _with_failures(ends, old, new), None)


def _unknown(before: Evaluation, now: Evaluation, measure: str) -> Trend:
    ids = before.evaluation_id, now.evaluation_id
    return Trend(now.run, measure, "UNKNOWN", ids[0], "same items", 0, None, None, None, ids[1])


def _trend(
    before: Evaluation, now: Evaluation, measure: str, ends: Ends | None, on: BridgeMean | None
) -> Trend:
    new = now.measures.get(measure)
    verdict: TrendVerdict = "UNKNOWN"
    if ends is not None and (is_of_evidence(measure) or not silent_of(now.graders).any):
        is_found = on is None or on.p is None or on.p <= 1 - LEVEL
        verdict = "STABLE"
        if is_found and _leaves_0_out(ends):
            verdict = "IMPROVING" if ends.low > 0 else "DEGRADING"
    return Trend(
        run=now.run,
        measure=measure,
        verdict=verdict,
        since=before.evaluation_id,
        on="all items" if on is None else "same items",
        n=on.n if on is not None else new.n if new is not None else 0,
        diff=on.diff if on is not None else difference_between(before.measures.get(measure), new),
        low=ends.low if ends is not None else None,
        high=ends.high if ends is not None else None,
        until=now.evaluation_id,
        sd=on.sd if on is not None else None,
        n_tied=on.n_tied if on is not None else 0,
    )


def is_same_set(before: Evaluation, now: Evaluation) -> bool:
    """Whether two evaluations are of the same items, of the same weights and grades."""
    old, new = before.digests, now.digests
    same = (old.queries, old.judgments) == (new.queries, new.judgments)
    return same and stands_for_same(before, now)


def difference_between(old: MeasuredMean | None, new: MeasuredMean | None) -> float | None:
    """Return how much higher the second mean is; None where there are not two means."""
    if old is None or new is None or old.mean is None or new.mean is None:
        return None
    return new.mean - old.mean


def _is_repeat(before: Evaluation, now: Evaluation) -> bool:
    """Whether nothing differs but which measures were looked at."""
    both = before.measures.keys() & now.measures.keys()
    return (before.digests, before.n_failed) == (now.digests, now.n_failed) and (
        is_comparable(before, now)
        and all(before.measures[name] == now.measures[name] for name in both)
    )


def _interval(of: MeasuredMean, measure: str) -> Ends | None:
    """Return the interval of a mean; None where so few values allow none.

    Where all values are the same, their bootstrap shows no spread however few they are.
    """
    if of.mean is None or of.low is None or of.high is None or of.n < LEAST_VALUES:
        return None
    if of.low < of.high:
        return Ends(of.low, of.high)
    known = of.mean * least_share(of.n)
    return Ends(known, known + 1 - least_share(of.n)) if is_bounded(measure) else None


def _with_failures(ends: Ends | None, old: MeasuredMean, new: MeasuredMean) -> Ends | None:
    """Move the ends apart by what the means would be with all failures at worst, and at best."""
    if ends is None:
        return None
    return Ends(
        ends.low - _shift(new.mean, new.least) - _shift(old.mean, old.most),
        ends.high + _shift(new.mean, new.most) + _shift(old.mean, old.least),
    )


def _shift(mean: float | None, bound: float | None) -> float:
    return 0.0 if mean is None or bound is None else abs(mean - bound)
