"""Reports of comparisons, made of values per query."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragforge.evaluating.comparison import Compared, ComparisonReport, MovedQuery, Unjudged
from ragforge.measures.comparing import Comparison, all_pairs, compare_pairs, letters
from ragforge.measures.intervals import Ends

Values = Mapping[str, Mapping[str, float]]
"""By measure and query."""

LOW = {f"q{n:02}": 0.1 + n / 100 for n in range(20)}
HIGH = {query_id: value + 0.4 + int(query_id[1:]) / 500 for query_id, value in LOW.items()}
"""Better than `LOW` in every query."""
OTHER = {query_id: LOW[f"q{(int(query_id[1:]) + 1) % 20:02}"] for query_id in LOW}
"""As good as `LOW` in the mean."""


def better(**changes: object) -> ComparisonReport:
    """Return a report in which `new` beats `old` in nDCG@10, and not in RR."""
    runs = {"old": {"nDCG@10": LOW, "RR": LOW}, "new": {"nDCG@10": HIGH, "RR": OTHER}}
    return replace(report_of(runs), **changes)  # type: ignore[arg-type]  # fields of the report


def three(**changes: object) -> ComparisonReport:
    """Return a report of three runs, of which `new` beats the two others."""
    runs = {"old": {"nDCG@10": LOW}, "same": {"nDCG@10": OTHER}, "new": {"nDCG@10": HIGH}}
    return replace(report_of(runs), **changes)  # type: ignore[arg-type]  # fields of the report


def report_of(runs: Mapping[str, Values]) -> ComparisonReport:
    """Return the report of runs, all of which have the same measures."""
    measures = tuple(next(iter(runs.values())))
    found = compare_pairs(all_pairs(runs, measures))
    means = {
        measure: {
            name: sum(run[measure].values()) / len(run[measure]) for name, run in runs.items()
        }
        for measure in measures
    }
    return ComparisonReport(
        of="runs",
        names=tuple(runs),
        measures=measures,
        items=tuple(item(comparison, runs) for comparison in found),
        letters={
            measure: letters(means[measure], differing(found, measure)) for measure in measures
        },
        means=means,
        alpha=0.05,
        rel_threshold=2,
        judged_by=("gpt-5-mini (language model)",),
        warnings=(),
    )


def differing(found: Sequence[Comparison], measure: str) -> list[tuple[str, str]]:
    """Return the pairs of runs with a difference in a measure."""
    return [(one.a, one.b) for one in found if one.measure == measure and one.winner != "TIE"]


def item(found: Comparison, runs: Mapping[str, Values]) -> Compared:
    """Return a comparison with the queries that moved."""
    of_a, of_b = runs[found.a][found.measure], runs[found.b][found.measure]
    moved = [MovedQuery(q, f"What is {q}?", of_a[q], of_b[q], 3, None) for q in of_a]
    return Compared(
        comparison=found,
        n_left_out=0,
        failure_bounds=None,
        unjudged=None,
        gained=tuple(sorted((m for m in moved if m.diff > 0), key=lambda m: -m.diff)[:10]),
        lost=tuple(sorted((m for m in moved if m.diff < 0), key=lambda m: m.diff)[:10]),
    )


def doubtful(low: float, high: float) -> ComparisonReport:
    """Return `better` with chunks that nobody graded and queries left out, and such bounds."""
    report = better()
    first = replace(
        report.items[0],
        n_left_out=2,
        n_open=3,
        failure_bounds=Ends(low, high),
        unjudged=Unjudged(n_only_a=4, n_only_b=7, bounds=Ends(low, high), n_both=1),
    )
    return replace(report, items=(first, *report.items[1:]))
