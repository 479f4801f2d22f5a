"""What a decision between two retrievers takes, before anything is bought.

How many queries show a difference follows from how much two retrievers differ from query to query:
in this set, where two of its runs are judged, else in what is typical.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import ceil, inf
from typing import TYPE_CHECKING, Final

from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass, statistics
from ragforge.errors import UsageError
from ragforge.evaluating.decision_plan import (
    ALPHA,
    POWER,
    TYPICAL_SPREADS,
    DecisionPlan,
    PlannedDifference,
    RulePlan,
    Spread,
)
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.stale_runs import usable_runs
from ragforge.measures import Scores
from ragforge.measures.checked_samples import (
    Floats,
    differences,
    is_constant,
    sample,
    standard_deviation,
)
from ragforge.measures.measure_names import is_of_evidence, parse_measure
from ragforge.measures.power import (
    IntervalOf,
    achieved_power,
    detectable_difference,
    queries_for_distance,
    queries_needed,
    queries_to_show,
    shown_chance,
    shown_difference,
    shown_distance,
)
from ragforge.measures.unseen_values import difference_interval, ends_by_measure, is_bounded
from ragforge.observe import silent
from ragforge.pipeline.evaluating import evaluate_dataset
from ragforge.pipeline.judge.pooling import pool_of

if TYPE_CHECKING:
    from ragforge.pipeline.comparing.price import PairPrice

DIFFERENCES: Final = (0.02, 0.05, 0.10)
"""Of measures between 0 and 1."""
_OF_SUMS: Final = 10
"""Times as large are differences of DCG, which is a sum of grades."""
TYPICAL_TEXTS: Final = 1.7
"""Different texts in the top k of two retrievers, over k (`benchmarks/planning.py`: 1.2 to 1.7)."""
_USUAL_DEPTH: Final = 10
"""Ranks that are judged for a measure without a cutoff."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is asked of a plan.

    Args:
        measure: By which it is to be decided.
        differences: Those that would matter; the usual ones where empty.
        n_queries: Size of a set that is not there; of a set that is there, its own counts.
    """

    measure: str = "nDCG@10"
    differences: tuple[float, ...] = ()
    n_queries: int = 0

    @property
    def wanted(self) -> tuple[float, ...]:
        """The differences, ascending.

        Raises:
            UsageError: One is not above 0.
        """
        usual = _OF_SUMS if parse_measure(self.measure).name == "DCG" else 1
        found = self.differences or tuple(each * usual for each in DIFFERENCES)
        for each in found:
            if not 0 < each < inf:
                raise UsageError(f"difference: expected a number above 0, got {each}")
        return tuple(sorted(set(found)))


def plan_decision(
    dataset: Dataset | None,
    names: Sequence[str],
    settings: EvaluateSettings,
    options: PlanOptions,
    model: str = "",
    price: PairPrice | None = None,
) -> DecisionPlan:
    """Return how many queries and judged pairs it takes to tell two retrievers apart.

    Nothing is asked of a model, and nothing is written.

    Args:
        dataset: Whose runs tell how much retrievers differ; None for what is typical.
        names: The two runs that do; where none is named the median of all couples counts.
        settings: Threshold of what is relevant.
        options: Measure and differences.
        model: Who would judge; "" where no model is named.
        price: Of a pair judged by it, see `price_of_pairs`; None where it is not known.

    Raises:
        DataError: There is no such run, or a file of the set does not hold to its format.
        UsageError: The measure or a difference cannot be taken, or other than two runs are named.
    """
    if names and len(names) != 2:
        raise UsageError(f"plan: expected two runs, or none, got {len(names)}")
    if names and dataset is None:
        raise UsageError(f"plan: runs such as {names[0]!r} are of a dataset: name it")
    measure = str(parse_measure(options.measure))
    depth = parse_measure(measure).cutoff or _USUAL_DEPTH
    couple = None if dataset is None else _couple(dataset, names, settings, measure)
    spread = couple.spread if couple else Spread(typical_spread(measure), 0)
    n_queries = spread.n or (_n_measurable(dataset) if dataset else options.n_queries)
    a_query = _texts_a_query(dataset, couple, depth)
    shows = _shows(couple, spread, n_queries, measure)
    return DecisionPlan(
        measure=measure,
        spread=spread,
        n_queries=n_queries,
        shows=shows,
        pairs_a_query=a_query,
        rows=tuple(
            _row(each, _needed(couple, spread, each, measure), a_query, price, shows)
            for each in options.wanted
        ),
        model=model,
        judged_share=couple.judged_share if couple else None,
    )


def typical_plan(n_queries: int, measure: str = "nDCG@10") -> DecisionPlan:
    """Return the plan of a set of so many queries that has no judged runs yet."""
    options = PlanOptions(measure, n_queries=n_queries)
    spread = Spread(typical_spread(measure), 0)
    shows = _shows(None, spread, n_queries, measure)
    a_query = TYPICAL_TEXTS * (parse_measure(measure).cutoff or _USUAL_DEPTH)
    rows = (
        _row(each, _needed(None, spread, each, measure), a_query, None, shows)
        for each in options.wanted
    )
    return DecisionPlan(measure, spread, n_queries, shows, a_query, tuple(rows))


def _row(
    difference: float, n: int, pairs_a_query: float, price: PairPrice | None, shows: float | None
) -> PlannedDifference:
    pairs = ceil(n * pairs_a_query)
    return PlannedDifference(
        difference=difference,
        queries=n,
        pairs=pairs,
        calls=None if price is None else ceil(price.calls * pairs),
        cost_usd=None if price is None or price.usd is None else price.usd * pairs,
        is_shown=shows is not None and shows <= difference,
    )


@dataclass(frozen=True, slots=True)
class _Couple:
    """Two judged runs, and how they differ from query to query."""

    spread: Spread
    diffs: Floats
    query_ids: frozenset[str]
    judged_share: float | None
    """None of a measure that counts evidence, and needs no grades."""


def _can_measure(dataset: Dataset, measures: Iterable[str]) -> bool:
    """Whether there are grades, or none is needed."""
    has_grades = next(iter(dataset.each_judgment()), None) is not None
    return has_grades or all(map(is_of_evidence, measures))


def _couple(
    dataset: Dataset, names: Sequence[str], settings: EvaluateSettings, measure: str
) -> _Couple | None:
    """Return the couple of runs whose spread is the median; None where no two runs are judged."""
    there = list(names) or list(usable_runs(dataset).names)
    if len(there) < 2 or not _can_measure(dataset, [measure]):
        return None
    judged = f"Judged@{parse_measure(measure).cutoff or _USUAL_DEPTH}"
    measures = (measure,) if is_of_evidence(measure) else (measure, judged)
    asked = settings.model_copy(update={"measures": measures})
    found = evaluate_dataset(dataset, there, asked)
    couples = [
        _Couple(
            Spread(standard_deviation(diffs), len(diffs), (a, b), graded_by=found.graded_by),
            diffs,
            frozenset(shared),
            min(found.scores[name].mean(judged) or 0.0 for name in (a, b))
            if judged in measures
            else None,
        )
        for a, b in combinations(found.scores, 2)
        for shared, diffs in [_differences(found.scores[a], found.scores[b], measure)]
        if len(diffs) > 1 and not is_constant(diffs)
    ]
    if not couples:
        return None
    middle = statistics.median_low(couple.spread.sd for couple in couples)
    chosen = next(couple for couple in couples if couple.spread.sd == middle)
    return replace(chosen, spread=replace(chosen.spread, n_couples=len(couples)))


def _differences(a: Scores, b: Scores, measure: str) -> tuple[list[str], Floats]:
    """Return the queries that both have, and how much more b has in each."""
    of_a, of_b = a.by_query(measure), b.by_query(measure)
    shared = sorted(of_a.keys() & of_b.keys())
    return shared, differences([of_a[key] for key in shared], [of_b[key] for key in shared])


def _n_measurable(dataset: Dataset) -> int:
    return sum(query.answerable for query in dataset.queries())


def _shows(couple: _Couple | None, spread: Spread, n: int, measure: str) -> float | None:
    """Return the least difference that both the test and the interval of a comparison show."""
    if couple is None:
        return detectable_difference(spread.sd, n, ALPHA, POWER)
    found, interval = shown_difference(couple.diffs, ALPHA, POWER), _interval_of(measure)
    sides = (shown_distance(couple.diffs, n, interval, below=below) for below in (False, True))
    return max(found.difference, *(side or 0.0 for side in sides))


def _needed(couple: _Couple | None, spread: Spread, difference: float, measure: str) -> int:
    if couple is None:
        return queries_needed(difference, spread.sd, ALPHA, POWER)
    diffs, interval = couple.diffs, _interval_of(measure)
    return max(
        queries_to_show(diffs, difference, ALPHA, POWER),
        *(queries_for_distance(diffs, difference, interval, below=side) for side in (False, True)),
    )


def _interval_of(measure: str) -> IntervalOf:
    """Return how far a comparison takes a mean difference to reach."""
    return partial(difference_interval, level=1 - ALPHA, bounded=is_bounded(measure))


def _texts_a_query(dataset: Dataset | None, couple: _Couple | None, depth: int) -> float:
    if dataset is None or couple is None:
        return TYPICAL_TEXTS * depth
    pooled = pool_of(dataset, couple.query_ids, couple.spread.runs, depth, silent)
    return len(pooled) / len(couple.query_ids)


def typical_spread(measure: str) -> float:
    """Return how much two retrievers usually differ from query to query.

    Raises:
        UsageError: Nothing typical is known of the measure.
    """
    parsed = parse_measure(measure)
    for name in (measure, parsed.name, parsed.name.removeprefix("Evidence")):
        if name in TYPICAL_SPREADS:
            return TYPICAL_SPREADS[name]
    raise UsageError(
        f"plan: what is typical of {measure} is not known; expected {', '.join(TYPICAL_SPREADS)}, "
        "or two judged runs of a dataset, whose own spread counts"
    )


def plan_gate(
    dataset: Dataset, names: Sequence[str], settings: EvaluateSettings, rules: Rules
) -> tuple[RulePlan, ...]:
    """Return what each rule of a gate can show with the queries of a set; nothing is written.

    Args:
        dataset: Its judged runs tell the spread; where there are none, it is what is typical.
        names: Runs that do; all but stale ones where empty.
        settings: Threshold of what is relevant.
        rules: Means and drops; what is allowed to fail needs no plan.

    Raises:
        DataError: There is no such run, or a file of the set does not hold to its format.
        UsageError: There is no rule to plan, or nothing is known of its measure.
    """
    bounds = [("min", item) for item in rules.least] + [("max", item) for item in rules.most]
    if not bounds and not rules.drops:
        raise UsageError("nothing to plan: give a mean or a drop that is to be held")
    n = _n_measurable(dataset)
    there = list(names) or list(usable_runs(dataset).names)
    found = None
    if there and _can_measure(dataset, rules.measures):
        asked = settings.model_copy(update={"measures": rules.measures})
        found = evaluate_dataset(dataset, there, asked).scores
    runs = list(found.values()) if found else []
    return (
        *(_planned_bound(kind, item, runs, n) for kind, item in bounds),
        *(_planned_drop(item, found or {}, n) for item in rules.drops),
    )


def _planned_bound(kind: str, rule: Threshold, runs: Sequence[Scores], n: int) -> RulePlan:
    columns = [
        values
        for run in runs
        if len(values := sample(run.values(rule.measure))) > 1 and not is_constant(values)
    ]
    if not columns:
        sd = typical_spread(rule.measure)
        shows = detectable_difference(sd, n, ALPHA, POWER)
        needed = queries_needed(shows / 2, sd, ALPHA, POWER) if shows else None
        return RulePlan(kind, rule.measure, rule.value, n, sd, True, shows, None, needed)
    values, sd = _median_spread(columns)
    below = kind == "max"
    interval = partial(ends_by_measure, rule.measure)
    shows = shown_distance(values, len(values), interval, below=below, power=POWER)
    room = (rule.value if below else 1 - rule.value) if is_bounded(rule.measure) else inf
    if shows is None or shows > room:
        return RulePlan(kind, rule.measure, rule.value, len(values), sd, False, None, None, None)
    needed = queries_for_distance(values, shows / 2, interval, below=below)
    return RulePlan(kind, rule.measure, rule.value, len(values), sd, False, shows, None, needed)


def _median_spread(columns: Sequence[Floats]) -> tuple[Floats, float]:
    """Return the values whose spread is the median, and that."""
    spreads = [standard_deviation(values) for values in columns]
    sd = statistics.median_low(spreads)
    return columns[spreads.index(sd)], sd


def _planned_drop(rule: Threshold, runs: Mapping[str, Scores], n: int) -> RulePlan:
    couples = [
        diffs
        for a, b in combinations(runs, 2)
        for _, diffs in [_differences(runs[a], runs[b], rule.measure)]
        if len(diffs) > 1 and not is_constant(diffs)
    ]
    allowed, wanted = rule.value, not rule.is_sized and rule.value > 0
    if couples:
        diffs, sd = _median_spread(couples)
        n, interval = len(diffs), _interval_of(rule.measure)
        shows = shown_distance(diffs, n, interval, power=POWER)
        passes = shown_chance(diffs, allowed, interval) if wanted else 0.0
        needed = queries_for_distance(diffs, allowed, interval) if wanted else None
    else:
        sd = typical_spread(rule.measure)
        shows = detectable_difference(sd, n, ALPHA, POWER)
        passes = achieved_power(allowed, sd, n, ALPHA)
        needed = queries_needed(allowed, sd, ALPHA, POWER) if wanted else None
    return RulePlan(
        kind="max-drop",
        measure=rule.measure,
        threshold=None if rule.is_sized else allowed,
        n_queries=n,
        sd=sd,
        is_typical=not couples,
        shows=shows,
        passes_unchanged=POWER if rule.is_sized else passes,
        queries=needed,
    )
