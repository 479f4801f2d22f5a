"""The figures of completed pools: yield of probes, depths, and estimated completeness.

Figures are over queries that the corpus answers; what is relevant to one that it should not answer
is a conflict.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from ragforge.evaluating.completion import CompletionSummary
from ragforge.evaluating.formatting import MISSING, number, one_line, plural, share
from ragforge.evaluating.text_table import render_table
from ragforge.measures.capture_recapture import (
    Completeness,
)

_SHOWN: Final = 5


def completion_json(summary: CompletionSummary) -> dict[str, object]:
    """Return the figures for a program."""
    figures = asdict(summary)
    figures["grades"] = {str(grade): count for grade, count in enumerate(summary.grades)}
    figures |= {"completeness": summary.completeness, "low": summary.low, "high": summary.high}
    figures["depths"] = {str(depth): count for depth, count in summary.depths}
    return figures


def completion_text(summary: CompletionSummary) -> str:
    """Return the figures for a reader, without a line feed at the end."""
    rows = [[one.probe, f"{one.n_found:,}", f"{one.n_only:,}"] for one in summary.probes]
    table = render_table(["probe", "relevant beyond the source", "found by it alone"], rows)
    return "\n".join([table, "", *_lines(summary)] if rows else [*_lines(summary)])


def _lines(summary: CompletionSummary) -> Iterator[str]:
    n = summary.n_items or 1
    failed = f", {summary.n_ungraded:,} without a grade" if summary.n_ungraded else ""
    yield (
        f"pools: {plural(summary.n_items, 'query', 'queries')}, "
        f"{plural(summary.n_pairs, 'chunk')} ({summary.n_pairs / n:.1f} each){failed}; "
        f"{summary.n_calls / n:.1f} calls a query"
    )
    grades = ", ".join(f"{grade}: {count:,}" for grade, count in enumerate(summary.grades))
    depths = ", ".join(f"{depth}: {count:,}" for depth, count in summary.depths)
    yield f"grades {grades}; queries by depth of the pool {depths or MISSING}"
    high = f" to {number(summary.others_high, 2)}" if summary.n_ungraded else ""
    yield (
        f"relevant beyond the source: {number(summary.others_mean, 2)}{high} a query; "
        f"{share(summary.several_share)} of {summary.n_answerable:,} queries have more than one "
        "relevant chunk"
    )
    yield f"completeness: {_completeness(summary)}"
    if summary.n_outside:
        yield f"relevant chunks known from elsewhere that no pool holds: {summary.n_outside:,}"
    if summary.conflicts:
        named = ", ".join(one_line(each) for each in summary.conflicts[:_SHOWN])
        more = len(summary.conflicts) - _SHOWN
        yield (
            f"unanswerable, yet the corpus answers: {named}"
            f"{f' and {more:,} more' if more > 0 else ''}"
        )


def _completeness(summary: CompletionSummary) -> str:
    estimate = summary.at_most
    if estimate.share is None:
        return "cannot be told; it takes relevant chunks beyond the source and two probes"
    by_all, by_two = (_estimate(each) for each in (summary.by_all, summary.by_two))
    return (
        f"at most {_estimate(estimate)} of the relevant chunks are in the pools, "
        f"{number(estimate.n_missing, 0)} or more are not (by all probes {by_all}, by query "
        f"against source {by_two})"
    )


def _estimate(completeness: Completeness) -> str:
    if completeness.interval is None:
        return number(completeness.share, 2)
    ends = f"[{number(completeness.interval.low, 2)}, {number(completeness.interval.high, 2)}]"
    return f"{number(completeness.share, 2)} {ends}"
