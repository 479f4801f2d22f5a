"""The tables of a report on which a decision rests: which is better, how far down, and why."""

from dataclasses import replace
from typing import Final

from ragforge.report.causes.catalogue import CAUSES
from ragforge.report.comparison.text import means_table, pair_table, survivors_table
from ragforge.report.comparison.words import by_pair, legend, verdict
from ragforge.report.runs import PRIMARY, RunSummary
from ragforge.report.shown import MISSING, duration, number, share
from ragforge.report.summary import Summary
from ragforge.report.table import Table

CURVE_RANKS: Final = (1, 2, 3, 5, 10, 20, 50, 100)
CURVE_NOTE: Final = (
    "Recall at k: share of the known relevant chunks among the first k, in the mean over the "
    "queries, with its 95 % interval."
)


def comparison_tables(summary: Summary) -> list[Table]:
    """Which run is better: means with letters, then a table a pair with the base."""
    report = summary.comparison
    if report is None:
        return []
    pairs = [
        items
        for items in by_pair(report.items)
        if summary.base in (items[0].comparison.a, items[0].comparison.b)
    ]
    note = " ".join(legend(report))
    tables = [replace(pair_table(items), note=" ".join(verdict(items))) for items in pairs]
    several = [means_table(report), survivors_table(report)] if len(report.names) > 2 else []
    return [
        *several,
        *tables[:-1],
        *(replace(last, note=f"{last.note} {note}") for last in tables[-1:]),
    ]


def answer_comparison_tables(summary: Summary) -> list[Table]:
    """Which answer system is better, a table a pair."""
    report = summary.answers_comparison
    pairs = by_pair(report.items) if report else []
    return [replace(pair_table(items), note=" ".join(verdict(items))) for items in pairs]


def recall(summary: Summary) -> Table:
    """How much is found by how far down one looks."""
    runs = [run for run in summary.runs if run.curve]
    ranks = [k for k in CURVE_RANKS if any(point.k == k for run in runs for point in run.curve)]
    rows = tuple((f"R@{k}", *(_recall(run, k) for run in runs)) for k in ranks)
    headers = ("recall at", *(run.name for run in runs))
    return Table("Recall by how far down one looks", headers, rows, CURVE_NOTE)


def patterns(summary: Summary) -> Table:
    """What the measures of each run mean together."""
    rows = tuple((run.name, sentence) for run in summary.runs for sentence in run.patterns)
    return Table("What the measures mean together", ("run", "pattern, and where to look"), rows)


def causes(summary: Summary) -> Table:
    """Why queries did badly."""
    rows = tuple(
        (
            run,
            CAUSES[group.code].title,
            f"{len(group.query_ids):,}",
            share(group.share),
            number(group.mean),
            CAUSES[group.code].remedy,
        )
        for run, groups in summary.causes.items()
        for group in groups
    )
    headers = ("run", "likely cause", "queries", "share", f"mean {PRIMARY}", "remedy")
    return Table("Likely causes of bad queries", headers, rows)


def latencies(summary: Summary) -> Table:
    """How long each run took for a query."""
    rows = tuple(
        (
            run.name,
            f"{run.latency.n:,}",
            *map(
                duration,
                (
                    run.latency.mean_s,
                    run.latency.median_s,
                    run.latency.p95_s,
                    run.latency.p99_s,
                ),
            ),
        )
        for run in summary.runs
        if run.latency is not None
    )
    headers = ("run", "queries timed", "mean", "median", "p95", "p99")
    return Table("Time per query", headers, rows)


def _recall(run: RunSummary, k: int) -> str:
    point = next((point for point in run.curve if point.k == k), None)
    if point is None:
        return MISSING
    if point.interval is None:
        return number(point.mean)
    return f"{number(point.mean)} ({number(point.interval.low)}-{number(point.interval.high)})"
