"""Which of two runs is better, measure by measure, with all that such a claim must rest on.

All comparisons of one call are one family: p values are Holm's, and each interval has the level at
which Holm held its comparison, so that both speak of the same chance of any false finding. With a
run that was picked as the best, they are those of any two runs: see `chosen_best`. A run wins where
its interval leaves 0 out and the test agrees; anything else is a tie.

An interval reaches as far as that of the paired bootstrap (BCa) or that of Student's t, whichever
goes further: at the high levels that many comparisons need, the bootstrap of some dozen queries
alone is too short. Differences that hardly spread get what so many like them allow: see
`unseen_values`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import ceil
from typing import Final, Literal, NamedTuple, TypeAlias

from ragforge.deferred import dataclass, string
from ragforge.errors import UsageError
from ragforge.measures.checked_numbers import check_share
from ragforge.measures.checked_samples import (
    Floats,
    Values,
    differences,
    is_constant,
    mean,
    sample,
    standard_deviation,
)
from ragforge.measures.chosen_best import LargestDifference
from ragforge.measures.intervals import HIGHEST_LEVEL, Ends
from ragforge.measures.paired import PairedTest, randomisation_test, t_test
from ragforge.measures.power import (
    EffectSize,
    detectable_by_error,
    effect_size,
    shown_difference,
)
from ragforge.measures.strata import Design, Stratified, weighted_mean
from ragforge.measures.stratified import (
    is_whole,
    sample_difference_interval,
    sample_error,
    sample_t_p,
    scaled,
)
from ragforge.measures.unseen_values import difference_interval, is_bounded, is_identity

Winner: TypeAlias = Literal["A", "B", "TIE"]
ALPHA: Final = 0.05
SEED: Final = 0
"""Of the sign flips, where they are drawn; the same for every comparison."""
_FLIPS: Final = 10_000
_FLIPS_AT_ALPHA: Final = 10
"""Flips that are to reach a difference by chance where its p value is the least that Holm asks
for: with fewer, no difference among many comparisons could ever be found."""
_SELDOM: Final = 10
"""Up to so many of the first flips that reach a difference, more are drawn."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted so that alpha bounds the chance of any false finding.

    Args:
        p_values: Of the tests of one family, in any order; there may be none.

    Returns:
        Adjusted p values in the same order, none below its p value and none above 1.

    Raises:
        UsageError: A p value lies outside of [0, 1].

    Source: Holm 1979, Scandinavian Journal of Statistics 6(2).
    """
    order = _ascending(p_values)
    adjusted = [0.0] * len(order)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted so that alpha bounds the expected share of false findings.

    Holds for independent tests and for those that depend positively, as measures of one run do.

    Args:
        p_values: Of the tests of one family, in any order; there may be none.

    Returns:
        Adjusted p values in the same order, none below its p value and none above 1.

    Raises:
        UsageError: A p value lies outside of [0, 1].

    Source: Benjamini and Hochberg 1995, JRSS B 57(1).
    """
    order = _ascending(p_values)
    adjusted = [0.0] * len(order)
    lowest = 1.0
    for place, index in reversed(list(enumerate(order, start=1))):
        lowest = min(lowest, len(order) / place * p_values[index])
        adjusted[index] = lowest
    return adjusted


def _ascending(p_values: Sequence[float]) -> list[int]:
    for index, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise UsageError(f"p value {index}: expected a number from 0 to 1, got {p}")
    return sorted(range(len(p_values)), key=lambda index: p_values[index])


def letters(
    means: Mapping[str, float | None], differing: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return letters that two runs share where, and only where, no difference was found.

    Args:
        means: By run; the higher the mean, the earlier its letters. Runs without one come last.
        differing: Pairs of runs between which a difference was found.

    Returns:
        By run, in the order of `means`: its letters in alphabetical order, at least one. Beyond
        the 52 letters numbers in brackets follow.

    Source: Piepho 2004, Journal of Computational and Graphical Statistics 13(2): insert and absorb.
    """
    ranked = sorted(means, key=lambda run: (means[run] is None, -(means[run] or 0.0), run))
    place = {run: index for index, run in enumerate(ranked)}
    groups = [frozenset(place.values())] if place else []
    for a, b in differing:
        groups = _parted(groups, place[a], place[b])
    ordered = sorted(groups, key=sorted)
    return {
        run: "".join(_letter(n) for n, group in enumerate(ordered) if place[run] in group)
        for run in means
    }


def _parted(groups: list[frozenset[int]], a: int, b: int) -> list[frozenset[int]]:
    """Split each group that holds both in one without a and one without b, and absorb subsets."""
    kept = [group for group in groups if not {a, b} <= group]
    split = [group - {one} for group in groups if {a, b} <= group for one in (a, b)]
    for part in split:
        if not any(part <= group for group in kept):
            kept = [group for group in kept if not group <= part]
            kept.append(part)
    return kept


def _letter(n: int) -> str:
    letters = string.ascii_letters
    return letters[n] if n < len(letters) else f"({n + 1})"


class RunPair(NamedTuple):
    """Two runs by one measure, over the queries in which both have a value."""

    a: str
    b: str
    measure: str
    values_a: Sequence[float]
    values_b: Sequence[float]
    """Aligned with `values_a`."""
    lower_is_better: bool = False
    same_rankings: bool = False
    """Whether both rank alike in every query; see `unseen_values`."""
    drawn: Stratified | None = None
    """The strata of the queries, where they are a sample; see `stratified`."""


@dataclass(frozen=True, slots=True)
class Power:
    """What so many queries can show."""

    sd: float
    """Standard deviation of the differences per query."""
    detectable: float | None
    """Least true difference shown with a probability of 80 %, at the level of one comparison; None
    where there is no spread, or no values of the measure differ so much. In a sample it is by the
    standard error of that, as the interval is. Where most queries tie it takes more than this: the
    few that do not tell little of the spread."""
    n_for_half: int | None
    """Queries that would show half of that; None where that is None, and in a sample, as it would
    depend on the strata that they are drawn from."""
    is_lower_bound: bool = False
    """Whether it takes more than `detectable`, which is how far the interval reaches: the spread is
    so small that one query that nobody saw could outweigh it; see `unseen_values`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measure of two runs, b held against a."""

    a: str
    b: str
    measure: str
    n: int
    """Queries in which both have a value."""
    mean_a: float | None
    mean_b: float | None
    """Of a sample, those of the set that it was drawn from; so is `diff`."""
    diff: float | None
    """Mean of b less mean of a, over these queries."""
    percent: float | None
    """Of the mean of a; None where that is 0."""
    interval: Ends | None
    """Of the difference, at `level`; None with fewer than two queries, and where all differences
    are the same and the measure has no bounds."""
    level: float
    """1 less the level at which Holm held this comparison, or that of any two of several runs."""
    interval_alone: Ends | None
    """At 1 less alpha, as if this were the only comparison."""
    p: float
    """Of the paired randomisation test."""
    p_t: float
    """Of the paired t test."""
    p_corrected: float
    winner: Winner
    wins: int
    """Queries in which b is better."""
    ties: int
    losses: int
    effect: EffectSize
    power: Power | None
    """None with fewer than two queries."""
    is_identity: bool = False
    """Whether both have the same rankings, so that nothing differs."""


def compare_pairs(pairs: Iterable[RunPair], alpha: float = ALPHA) -> list[Comparison]:
    """Compare runs, all comparisons together being one family.

    Args:
        pairs: What to compare.
        alpha: Chance of any false finding among them all, between 0 and 1.

    Returns:
        One comparison a pair, in the same order.

    Raises:
        UsageError: Values are not aligned, or alpha cannot be taken.
        DataError: A value is no finite number.

    Source: paired bootstrap: Efron and Tibshirani 1993, section 16; step-down: Holm 1979.
    """
    check_share(alpha, "alpha")
    listed = list(pairs)
    flips = max(_FLIPS, ceil(_FLIPS_AT_ALPHA * len(listed) / alpha))
    tests = [_test(pair, flips) for pair in listed]
    p_values = [test.p for test in tests]
    corrected = holm(p_values)
    p_ts = list(map(_p_t, listed))
    levels = _levels(p_values, list(map(_tie_break, listed, p_ts)), alpha)
    return [
        _comparison(pair, test, p_t, p_corrected, level, alpha)
        for pair, test, p_t, p_corrected, level in zip(
            listed, tests, p_ts, corrected, levels, strict=True
        )
    ]


def compare_with_chosen(
    pairs: Iterable[RunPair], by_chance: LargestDifference, alpha: float = ALPHA
) -> list[Comparison]:
    """Compare runs with one that was picked by the same values, such as the best of them.

    Args:
        pairs: What to compare.
        by_chance: What any two of all runs, that one and the others, may differ by.
        alpha: Chance of any false finding among any two of all these runs, between 0 and 1.

    Returns:
        One comparison a pair, in the same order.

    Raises:
        UsageError: Values are not aligned, or alpha cannot be taken.
        DataError: A value is no finite number.
    """
    check_share(alpha, "alpha")
    level = by_chance.level(alpha)
    flips = max(_FLIPS, ceil(_FLIPS_AT_ALPHA / level))
    found = []
    for pair in pairs:
        test = _test(pair, flips)
        corrected = by_chance.corrected(test.p)
        kept = min(1 - level, HIGHEST_LEVEL)
        found.append(_comparison(pair, test, _p_t(pair), corrected, kept, alpha))
    return found


def couples(names: Sequence[str], baseline: str | None = None) -> list[tuple[str, str]]:
    """Return which runs are compared: each two, or the baseline with each other one."""
    if baseline is None:
        return list(combinations(names, 2))
    return [(baseline, name) for name in names if name != baseline]


def all_pairs(
    values: Mapping[str, Mapping[str, Mapping[str, float]]],
    measures: Sequence[str],
    *,
    baseline: str | None = None,
    lower_is_better: Collection[str] = (),
    alike: Collection[tuple[str, str]] = (),
    design: Design | None = None,
    designs: Mapping[str, Design] | None = None,
) -> list[RunPair]:
    """Return couples of runs by each measure, over the queries in which both have a value.

    Args:
        values: Run to measure to query id to value; runs are paired in their order.
        measures: By which to compare, in the order wanted.
        baseline: As for `couples`.
        lower_is_better: Measures of which that is so.
        alike: Couples with the same rankings.
        design: What the queries are a sample of; None where they are all there is.
        designs: The same by measure, of those whose queries are others.
    """
    own = designs or {}
    return [
        _pair(a, b, measure, values, own.get(measure, design))._replace(
            same_rankings=(a, b) in alike, lower_is_better=measure in lower_is_better
        )
        for a, b in couples(list(values), baseline)
        for measure in measures
    ]


def _pair(
    a: str,
    b: str,
    measure: str,
    values: Mapping[str, Mapping[str, Mapping[str, float]]],
    design: Design | None,
) -> RunPair:
    of_a, of_b = values[a][measure], values[b][measure]
    shared = sorted(of_a.keys() & of_b.keys())
    paired_a, paired_b = [of_a[item] for item in shared], [of_b[item] for item in shared]
    drawn = design.stratified(shared) if design else None
    return RunPair(a, b, measure, paired_a, paired_b, drawn=drawn)


def _p_t(pair: RunPair) -> float:
    if pair.drawn is None:
        return t_test(pair.values_a, pair.values_b).p
    return sample_t_p(differences(pair.values_a, pair.values_b), pair.drawn)


def _tie_break(pair: RunPair, p_t: float) -> tuple[float | str, ...]:
    """Return what parts equal p values, so that the order of runs moves no interval.

    Randomisation tests often have equal ones: the least that so many flips can show.
    """
    return p_t, pair.measure, *sorted((pair.a, pair.b))


def _levels(
    p_values: Sequence[float], ties: Sequence[tuple[float | str, ...]], alpha: float
) -> list[float]:
    """Return 1 less the level at which Holm's procedure held each hypothesis, or stopped."""
    order = sorted(range(len(p_values)), key=lambda index: (p_values[index], *ties[index]))
    levels = [0.0] * len(order)
    divisor = len(order)
    for place, index in enumerate(order):
        levels[index] = min(1 - alpha / divisor, HIGHEST_LEVEL)
        if p_values[index] <= alpha / divisor and place + 1 < len(order):
            divisor -= 1
    return levels


def _test(pair: RunPair, flips: int) -> PairedTest:
    """Test a pair, with all flips only where the first ones leave open how small p is."""
    of_a: Values = pair.values_a
    of_b: Values = pair.values_b
    if pair.drawn is not None:
        # The signs are as fair whatever a query stands for.
        of_a, of_b = scaled(of_a, pair.drawn), scaled(of_b, pair.drawn)
    first = randomisation_test(of_a, of_b, seed=SEED, n_permutations=_FLIPS)
    if flips == _FLIPS or first.p > (_SELDOM + 1) / (_FLIPS + 1):
        return first
    return randomisation_test(of_a, of_b, seed=SEED, n_permutations=flips)


def _comparison(
    pair: RunPair, test: PairedTest, p_t: float, p_corrected: float, level: float, alpha: float
) -> Comparison:
    diffs = differences(pair.values_a, pair.values_b)
    a, b = sample(pair.values_a), sample(pair.values_b)
    mean_a = _mean(a, pair.drawn)
    interval = _interval(pair, diffs, level)
    alone = min(1 - alpha, HIGHEST_LEVEL)
    return Comparison(
        a=pair.a,
        b=pair.b,
        measure=pair.measure,
        n=len(diffs),
        mean_a=mean_a,
        mean_b=_mean(b, pair.drawn),
        diff=test.mean_difference,
        percent=_percent(test.mean_difference, mean_a),
        interval=interval,
        level=level,
        interval_alone=_interval(pair, diffs, alone),
        p=test.p,
        p_t=p_t,
        p_corrected=p_corrected,
        winner=_winner(interval, p_corrected <= alpha, pair.lower_is_better),
        wins=test.losses if pair.lower_is_better else test.wins,
        ties=test.ties,
        losses=test.wins if pair.lower_is_better else test.losses,
        effect=effect_size(pair.values_a, pair.values_b),
        power=_power(pair, diffs, 1 - level, interval),
        is_identity=is_identity(diffs, same_rankings=pair.same_rankings),
    )


def _mean(values: Floats, drawn: Stratified | None) -> float | None:
    if not len(values):
        return None
    return mean(values) if drawn is None else weighted_mean(values.tolist(), drawn.weights)


def _interval(pair: RunPair, diffs: Floats, level: float) -> Ends | None:
    """Return the interval of a difference; one of bounded values lies within [-1, 1]."""
    bounded = _is_bounded(pair.measure, sample(pair.values_a), sample(pair.values_b))
    same = pair.same_rankings
    if pair.drawn is None:
        ends = difference_interval(diffs, level, bounded=bounded, same_rankings=same)
    else:
        ends = sample_difference_interval(
            diffs, pair.drawn, level, bounded=bounded, same_rankings=same
        )
    return ends if ends is None or not bounded else Ends(max(ends.low, -1.0), min(ends.high, 1.0))


def _is_bounded(measure: str, a: Floats, b: Floats) -> bool:
    """Whether values are of a measure in [0, 1]; a name that is unknown here tells nothing."""
    return is_bounded(measure) and all(
        item.min(initial=0) >= 0 and item.max(initial=1) <= 1 for item in (a, b)
    )


def _percent(difference: float | None, mean_a: float | None) -> float | None:
    return None if difference is None or not mean_a else 100 * difference / mean_a


def _winner(interval: Ends | None, is_significant: bool, lower_is_better: bool) -> Winner:
    if interval is None or not is_significant or interval.low <= 0 <= interval.high:
        return "TIE"
    return "B" if (interval.low > 0) != lower_is_better else "A"


def _power(pair: RunPair, diffs: Floats, alpha: float, interval: Ends | None) -> Power | None:
    n = len(diffs)
    if n < 2:
        return None
    if is_constant(diffs):
        return Power(0.0, None, None)
    sd = standard_deviation(diffs)
    half: int | None = None
    if pair.drawn is None or is_whole(pair.drawn):
        shown = shown_difference(diffs, alpha)
        detectable, half = shown.difference, shown.n_for_half
    else:
        off = sample_error(diffs, pair.drawn)
        detectable = detectable_by_error(off.error, off.degrees, alpha)
    if not _can_be(pair, detectable):
        return Power(sd, None, None)
    reach = _reach(diffs, pair, interval)
    if reach > detectable:
        return Power(sd, reach, None, is_lower_bound=True)
    return Power(sd, detectable, half)


def _reach(diffs: Floats, pair: RunPair, interval: Ends | None) -> float:
    """Return how far an interval reaches from the difference towards 0; 0.0 where there is none."""
    difference = _mean(diffs, pair.drawn)
    if interval is None or difference is None:
        return 0.0
    return difference - interval.low if difference > 0 else interval.high - difference


def _can_be(pair: RunPair, detectable: float | None) -> bool:
    """Whether values of the measure can differ so much."""
    a, b = sample(pair.values_a), sample(pair.values_b)
    return detectable is None or detectable <= 1 or not _is_bounded(pair.measure, a, b)
