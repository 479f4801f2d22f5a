"""What comparing runs and comparing answer systems have in common: values in, a report out."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.comparison import Compared, ComparisonReport, MovedQuery, Unjudged
from ragforge.evaluating.formatting import enumerated, plural
from ragforge.evaluating.graded_by import GradedBy
from ragforge.evaluating.selection import Part
from ragforge.measures.checked_numbers import check_share
from ragforge.measures.checked_samples import differences
from ragforge.measures.comparing import (
    ALPHA,
    Comparison,
    RunPair,
    all_pairs,
    compare_pairs,
    letters,
)
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES
from ragforge.measures.strata import Design, mean_over_queries

Values = Mapping[str, float]
"""By query id."""
Key: TypeAlias = tuple[str, str, str]
"""Runs a and b, and a measure."""


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """How to compare."""

    alpha: float = ALPHA
    """Chance of any false finding among all comparisons, between 0 and 1."""
    baseline: str | None = None
    """Hold every other run against this one, rather than comparing each two."""
    only_retrieved: bool = False
    """Leave queries out that a run lacks, rather than count them as 0."""
    n_moved: int = 10
    """Queries to name that gained, and that lost, of each comparison."""


AS_USUAL: Final[ComparisonOptions] = ComparisonOptions()


@dataclass(frozen=True, slots=True)
class Contender:
    """One of those that are compared."""

    name: str
    values: Mapping[str, Values]
    """By measure; only of queries that have a value."""
    first_relevant: Mapping[str, int | None] = field(default_factory=dict)
    """Rank of the first relevant chunk by query."""

    @property
    def has_values(self) -> bool:
        """Whether it has a value at all; without one it would only widen what is said of others."""
        return any(self.values.values())

    @property
    def n_values(self) -> int:
        """Queries with a value, by the measure of which it has most."""
        return max(map(len, self.values.values()), default=0)


@dataclass(frozen=True, slots=True)
class MoreText:
    """That one of two runs returns much more text than the other, with which a measure rises.

    Args:
        name: Of the run with more.
        reason: In words: a clause that follows a colon.
        fair_measure: By what to compare the two instead.
    """

    name: str
    reason: str
    fair_measure: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """What is open about one measure of two runs: by failures, holes, and who graded."""

    n_left_out: int = 0
    failure_bounds: Ends | None = None
    n_open: int = 0
    """As in `Compared`."""
    unjudged: Unjudged | None = None
    withheld: str = ""
    """As in `Compared`."""
    more_text: MoreText | None = None
    """None where both return about as much, or the measure does not rise with it."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What is compared, and by what."""

    of: str
    """As in `ComparisonReport`."""
    contenders: Sequence[Contender]
    measures: Sequence[str]
    undecided: Mapping[Key, Undecided]
    """By the names of both and the measure."""
    texts: Mapping[str, str]
    """Of queries, as far as they are known."""
    lower_is_better: frozenset[str] = frozenset()
    """Measures of which that is so."""
    rel_threshold: int | None = None
    by_lists: bool = False
    other_judges: str = ""
    """Whose grades are left out of the values, in a sentence; "" where none are."""
    reading: str = ""
    judged_by: tuple[str, ...] = ()
    graded_by: tuple[GradedBy, ...] = ()
    alike: frozenset[tuple[str, str]] = frozenset()
    """Couples with the same rankings: nothing differs."""
    warnings: tuple[str, ...] = ()
    is_named: bool = False
    """Whether somebody named what to compare, so that nobody is left out unasked."""
    part: Part | None = None
    """The part of the queries that is compared on; None where that is all."""
    designs: Mapping[str, Design] = field(default_factory=dict)
    """What the queries are a sample of, by measure, where they are not those of the part."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Which query each variant of a question is one of, see `query_variants`."""

    @property
    def design(self) -> Design | None:
        """What the queries are a sample of; None where they are all there is."""
        return self.part.design if self.part else None


def check_names(names: Sequence[str], baseline: str | None, kind: str, hint: str = "") -> None:
    """Refuse names that cannot be compared with each other.

    Args:
        names: Of what is to be compared.
        baseline: One of them, if any.
        kind: What they are, such as "run".
        hint: What to do where there are too few.

    Raises:
        UsageError: There are fewer than two, one comes twice, or the baseline is not among them.
    """
    listed = ", ".join(names) or "none"
    if len(names) < 2:
        raise UsageError(f"a comparison needs at least two {kind}s, got {listed}{hint}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{kind} {twice!r} is given twice; a comparison needs different {kind}s")
    if baseline is not None and baseline not in names:
        raise UsageError(f"baseline {baseline!r}: expected one of the {kind}s compared: {listed}")


def check_options(options: ComparisonOptions) -> None:
    """Refuse options that no comparison can be made by.

    Raises:
        UsageError: One is out of its range.
    """
    check_share(options.alpha, "alpha")
    if options.n_moved < 0:
        raise UsageError(f"queries to name: expected a whole number from 0, got {options.n_moved}")


def decide(contest: Contest, options: ComparisonOptions) -> ComparisonReport:
    """Compare each two, or each with the baseline, by every measure; all is one family.

    Those without any value are no part of it, nor is a couple of too few values to show anything.

    Raises:
        UsageError: The options cannot be taken.
        DataError: Fewer than two have a value, or the baseline has none.
    """
    check_options(options)
    by_name = {item.name: item for item in contest.contenders if item.has_values}
    without_values = [item.name for item in contest.contenders if not item.has_values]
    _require_enough(contest.of, by_name, without_values, options.baseline)
    few = _with_few_values(by_name)
    if not contest.is_named and options.baseline not in few and len(by_name) > len(few) + 1:
        by_name = {name: item for name, item in by_name.items() if name not in few}
    pairs = all_pairs(
        {name: item.values for name, item in by_name.items()},
        contest.measures,
        baseline=options.baseline,
        lower_is_better=contest.lower_is_better,
        alike=contest.alike,
        design=contest.design,
        designs=contest.designs,
    )
    comparisons = _compare_families(pairs, few, options.alpha)
    items = tuple(
        _withheld_of_variants(
            _withheld_of_more_text(
                _withheld_of_failures(
                    _withheld_of_few(_compared(comparison, by_name, contest, options.n_moved), few)
                ),
                contest,
            ),
            by_name,
            contest,
        )
        for comparison in comparisons
    )
    means = _means(by_name, contest)
    return ComparisonReport(
        of=contest.of,
        names=tuple(by_name),
        measures=tuple(contest.measures),
        items=items,
        letters={} if options.baseline else _letters(items, means, contest, few),
        means=means,
        n_values={
            measure: {name: len(item.values[measure]) for name, item in by_name.items()}
            for measure in contest.measures
        },
        alpha=options.alpha,
        rel_threshold=contest.rel_threshold,
        by_lists=contest.by_lists,
        reading=contest.reading,
        other_judges=contest.other_judges,
        judged_by=contest.judged_by,
        warnings=(
            *contest.warnings,
            *_left_out(without_values, {name: few[name] for name in few if name not in by_name}),
            *_remarks(contest.of, [one.comparison for one in items if not _is_of_few(one, few)]),
        ),
        graded_by=contest.graded_by,
        baseline=options.baseline,
        part=contest.part,
    )


def _means(
    by_name: Mapping[str, Contender], contest: Contest
) -> dict[str, dict[str, float | None]]:
    """Return the mean of each contender, by measure and name."""
    return {
        measure: {
            name: mean_over_queries(
                contest.designs.get(measure, contest.design), item.values[measure]
            )
            for name, item in by_name.items()
        }
        for measure in contest.measures
    }


def _left_out(without_values: Iterable[str], few: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each run or system that is not compared."""
    for name in without_values:
        yield f"{name}: has no value in any query, and is left out"
    for name, n in few.items():
        yield (
            f"{name}: has a value in {plural(n, 'query', 'queries')} only, and is left out: "
            f"an interval takes {LEAST_VALUES}"
        )


def _with_few_values(by_name: Mapping[str, Contender]) -> dict[str, int]:
    """Return the numbers of values of those with too few for an interval, if others have enough."""
    most = max(item.n_values for item in by_name.values())
    return {
        name: item.n_values
        for name, item in by_name.items()
        if item.n_values < LEAST_VALUES <= most
    }


def _compare_families(
    pairs: Sequence[RunPair], few: Collection[str], alpha: float
) -> list[Comparison]:
    """Compare pairs in their order, those with few values or none apart from the family of others.

    They can show nothing, and would only widen what is said of the others.
    """
    is_apart = [pair.a in few or pair.b in few or not len(pair.values_a) for pair in pairs]
    family = [pair for pair, apart in zip(pairs, is_apart, strict=True) if not apart]
    others = [pair for pair, apart in zip(pairs, is_apart, strict=True) if apart]
    of_family = iter(compare_pairs(family, alpha) if family else ())
    of_others = iter(compare_pairs(others, alpha) if others else ())
    return [next(of_others if apart else of_family) for apart in is_apart]


def _withheld_of_few(item: Compared, few: Mapping[str, int]) -> Compared:
    """Return a comparison with nobody called better where failures left one side too few values."""
    names = [name for name in (item.comparison.a, item.comparison.b) if name in few]
    if not names or not item.n_left_out or item.comparison.is_identity:
        return item
    counts = " and ".join(
        f"{name} has a value in {plural(few[name], 'query', 'queries')} only" for name in names
    )
    reason = f"{counts}, and an interval takes {LEAST_VALUES}"
    return replace(item, withheld="; ".join(filter(None, (item.withheld, reason))))


def _withheld_of_failures(item: Compared) -> Compared:
    """Return a comparison with nobody called better where failures could take the lead away.

    Nor are two called equal by a measure of which no query has a value of both.
    """
    has_none = item.comparison.n == 0 and not item.comparison.is_identity
    why = f"no query has a value of {item.comparison.measure} for both" if has_none else ""
    return replace(item, withheld=item.withheld or why or item.why_open)


def _withheld_of_more_text(item: Compared, contest: Contest) -> Compared:
    """Return a comparison with nobody called better where the one ahead returns much more text."""
    comparison = item.comparison
    more = contest.undecided[comparison.a, comparison.b, comparison.measure].more_text
    if more is None or item.better != more.name:
        return item
    return replace(item, withheld=more.reason, fair_measure=more.fair_measure)


def _withheld_of_variants(
    item: Compared, by_name: Mapping[str, Contender], contest: Contest
) -> Compared:
    """Return a comparison with nobody called better where questions, counted once, show nobody.

    Of a sample, queries count by their strata, and variants as the queries that they are.
    """
    comparison = item.comparison
    measure, level = comparison.measure, 1 - comparison.level
    if not contest.variants or contest.designs.get(measure, contest.design) is not None:
        return item
    values = [by_name[name].values[measure] for name in (comparison.a, comparison.b)]
    shared = [query_id for query_id in values[0] if query_id in values[1]]
    n_variants = sum(query_id in contest.variants for query_id in shared)
    if not n_variants:
        return item
    by_question: dict[str, list[str]] = {}
    for query_id in shared:
        by_question.setdefault(contest.variants.get(query_id, query_id), []).append(query_id)
    once = {
        name: {
            measure: {
                key: sum(map(of.__getitem__, ids)) / len(ids) for key, ids in by_question.items()
            }
        }
        for name, of in zip((comparison.a, comparison.b), values, strict=True)
    }
    [found] = compare_pairs(
        all_pairs(once, [measure], lower_is_better=contest.lower_is_better), level
    )
    if found.winner != "TIE" and comparison.winner in ("TIE", found.winner):
        return item
    reason = (
        f"{n_variants:,} of {plural(len(shared), 'query asks', 'queries ask')} for what another "
        "one asks for, and with each question counted once neither is shown to be better"
    )
    withheld = item.withheld if item.better is None else reason
    return replace(item, withheld=withheld, not_by_question=reason)


def _is_of_few(item: Compared, few: Collection[str]) -> bool:
    """Whether it is said of the comparison already that one side has too few values."""
    return bool(item.withheld and item.n_left_out) and bool(
        {item.comparison.a, item.comparison.b} & {*few}
    )


def _require_enough(
    of: str, valued: Collection[str], without_values: Sequence[str], baseline: str | None
) -> None:
    """Refuse to compare with what has no value.

    Raises:
        DataError: Fewer than two have one, or the baseline has none.
    """
    if not without_values or (len(valued) > 1 and baseline not in without_values):
        return
    names, there = ", ".join(without_values), ", ".join(valued) or "none"
    why = ", as all failed" if of == "runs" else " by these measures"
    raise DataError(
        f"nothing to compare: no query has a value in {names}{why}; {of} with values: {there}"
    )


def _compared(
    comparison: Comparison, by_name: Mapping[str, Contender], contest: Contest, n_moved: int
) -> Compared:
    found = contest.undecided[comparison.a, comparison.b, comparison.measure]
    a, b = by_name[comparison.a], by_name[comparison.b]
    moved = _moved(a, b, comparison.measure, contest.texts)
    upwards = [query for query in moved if query.diff > 0][:n_moved]
    downwards = [query for query in moved if query.diff < 0][:n_moved]
    if comparison.measure in contest.lower_is_better:
        upwards, downwards = downwards, upwards
    return Compared(
        comparison=comparison,
        n_left_out=found.n_left_out,
        failure_bounds=found.failure_bounds,
        n_open=found.n_open,
        unjudged=found.unjudged,
        gained=tuple(upwards),
        lost=tuple(downwards),
        # Whoever graded: one and the same ranking is not better than itself.
        withheld="" if comparison.is_identity else found.withheld,
    )


def _moved(a: Contender, b: Contender, measure: str, texts: Mapping[str, str]) -> list[MovedQuery]:
    """Return the queries with a difference beyond float noise, those of the largest first."""
    of_a, of_b = a.values[measure], b.values[measure]
    shared = sorted(of_a.keys() & of_b.keys())
    found = differences([of_a[one] for one in shared], [of_b[one] for one in shared]).tolist()
    order = sorted(
        (-abs(difference), query_id)
        for difference, query_id in zip(found, shared, strict=True)
        if difference
    )
    return [
        MovedQuery(
            query_id,
            texts.get(query_id, ""),
            of_a[query_id],
            of_b[query_id],
            a.first_relevant.get(query_id),
            b.first_relevant.get(query_id),
        )
        for _, query_id in order
    ]


def _letters(
    items: Sequence[Compared],
    means: Mapping[str, Mapping[str, float | None]],
    contest: Contest,
    few: Collection[str],
) -> dict[str, dict[str, str]]:
    """Return letters by measure; those with few values have none."""
    by_measure = {}
    items = [item for item in items if not {item.comparison.a, item.comparison.b} & {*few}]
    unknown = {item.comparison.measure for item in items if item.withheld}
    for measure in contest.measures:
        if measure in unknown:
            continue
        sign = -1 if measure in contest.lower_is_better else 1
        signed = {
            name: None if mean is None else sign * mean
            for name, mean in means[measure].items()
            if name not in few
        }
        differing = [
            (item.comparison.a, item.comparison.b)
            for item in items
            if item.comparison.measure == measure and item.better is not None
        ]
        by_measure[measure] = letters(signed, differing)
    return by_measure


def _remarks(of: str, comparisons: Sequence[Comparison]) -> list[str]:
    """Return remarks on comparisons that tell nothing: too few queries, or equal runs.

    Args:
        of: As in `ComparisonReport`.
        comparisons: All that were made.
    """
    couples: dict[tuple[str, str], list[Comparison]] = {}
    for item in comparisons:
        couples.setdefault((item.a, item.b), []).append(item)
    alike: dict[str, list[tuple[str, str]]] = {}
    for couple, items in couples.items():
        if text := _remark(of, items):
            alike.setdefault(text, []).append(couple)
    return [
        f"{enumerated(names)}: {text}" for text, found in alike.items() for names in _groups(found)
    ]


def _remark(of: str, items: Sequence[Comparison]) -> str:
    """Return why the comparisons of two runs tell nothing; "" where they may."""
    n = max(item.n for item in items)
    if n == 0:
        return "no query has a value in both: nothing can be compared"
    if n == 1:
        return "one query tells nothing about others: all is a tie"
    if all(item.is_identity for item in items):
        return "the same rankings, as of copies of one run"
    if all(item.ties == item.n and not item.mean_a for item in items):
        return "every value is 0: nothing tells them apart"
    if all(item.ties == item.n for item in items):
        return "all values are the same" + (", of rankings that differ" if of == "runs" else "")
    return ""


def _groups(couples: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return runs of which every two are among the couples, in the order they come in."""
    groups: list[list[str]] = []
    left = dict.fromkeys(couples)
    while left:
        group = list(next(iter(left)))
        for name in dict.fromkeys(name for couple in left for name in couple):
            if all((one, name) in left or (name, one) in left for one in group):
                group.append(name)
        for couple in [*left]:
            if {*couple} <= {*group}:
                del left[couple]
        groups.append(group)
    return groups
