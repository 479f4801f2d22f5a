"""The report of a set, a document of notices and tables: as text, Markdown and JSON.

The JSON has what the overview says; the queries are in `ragforge evaluate --per-query`.
"""

from dataclasses import asdict
from pathlib import Path

from ragforge.evaluating.causes.catalogue import CAUSES
from ragforge.evaluating.formatting import Table
from ragforge.evaluating.graded_by import graded_json, graded_line
from ragforge.evaluating.history.run_history import changes_since_last, not_evaluated_yet, trends
from ragforge.evaluating.runs import Estimate, RunSummary
from ragforge.evaluating.summary import Summary
from ragforge.report.answers import answer_tables
from ragforge.report.comparison_json import comparison_json, ends_json
from ragforge.report.corrected_levels import corrected_table, levels_json
from ragforge.report.decision import decision_json, decision_listing, decision_of
from ragforge.report.document import Document
from ragforge.report.history import batches_table, changes_table, trends_table
from ragforge.report.judges import agreement_table, audit_tables
from ragforge.report.markdown import document_markdown
from ragforge.report.notices import notices, size_line
from ragforge.report.tables import (
    answer_comparison_tables,
    answer_cost_and_time_table,
    attention_table,
    causes_table,
    comparison_tables,
    cost_and_time_table,
    failures_table,
    first_relevant_table,
    grades_table,
    judges_table,
    meanings_table,
    measures_table,
    patterns_table,
    provenance_table,
    queries_table,
    recall_table,
    slice_tables,
    spread_table,
    worst_table,
)
from ragforge.report.text import REPORT_LAYOUT


def render_text(summary: Summary) -> str:
    """Return the report as plain text; no character of the data can steer a terminal."""
    return REPORT_LAYOUT.document(_report_document(summary)) + "\n"


def render_markdown(summary: Summary) -> str:
    """Return the report as Markdown; data in it is text and no markup, link or mention."""
    return document_markdown(_report_document(summary)) + "\n"


def _report_document(summary: Summary) -> Document:
    """Return the report as a document: the decision, what to be careful about, then all tables."""
    decision = decision_of(summary)
    return Document(
        title=f"ragforge report: {summary.making.name}",
        lead=(graded_line(summary.graded_by, summary.correction), size_line(summary)),
        blocks=(
            *([decision_listing(decision)] if decision else []),
            *notices(summary),
            *_all_tables(summary),
        ),
    )


def _all_tables(summary: Summary) -> list[Table]:
    """Return the tables that have rows, in the order of the report."""
    names = [run.name for run in summary.runs]
    tables = [
        changes_table(summary.history, names),
        measures_table(summary),
        *(
            [corrected_table(summary.calibration, summary.levels, names)]
            if summary.calibration
            else []
        ),
        patterns_table(summary),
        trends_table(summary.history, names, summary.primary),
        *([batches_table(summary.batches)] if summary.batches else []),
        *comparison_tables(summary),
        attention_table(summary),
        cost_and_time_table(summary),
        spread_table(summary),
        first_relevant_table(summary),
        recall_table(summary),
        *slice_tables(summary),
        causes_table(summary),
        worst_table(summary),
        *answer_comparison_tables(summary),
        *answer_tables(summary.answers),
        answer_cost_and_time_table(summary.answers),
        judges_table(summary),
        *map(agreement_table, summary.agreement),
        *audit_tables(summary.audit),
        grades_table(summary),
        failures_table(summary),
        queries_table(summary),
        meanings_table(summary),
        provenance_table(summary.making),
    ]
    return [table for table in tables if table.rows]


def report_json(summary: Summary, out: Path | None) -> dict[str, object]:
    """Return what `ragforge report --json` prints.

    Args:
        summary: What the report says.
        out: Where it was written; None where it was not.
    """
    names = [run.name for run in summary.runs]
    report = summary.comparison
    decision = decision_of(summary)
    return {
        "decision": None if decision is None else decision_json(decision),
        "report": None if out is None else str(out),
        "dataset": summary.making.name,
        "version": summary.making.version,
        "graded_by": graded_json(summary.graded_by),
        **(
            {"calibration": levels_json(summary.calibration, summary.levels)}
            if summary.calibration
            else {}
        ),
        "counts": asdict(summary.counts),
        "rel_threshold": summary.rel_threshold,
        "changes": [
            {"what": item.change.what, "text": item.change.text, "runs": list(item.runs) or names}
            for item in changes_since_last(summary.history, names)
        ],
        "trends": [asdict(trend) for trend in trends(summary.history, names, summary.primary)],
        "batches": None if summary.batches is None else asdict(summary.batches),
        "not_evaluated_yet": [run for run in not_evaluated_yet(summary.history) if run in names],
        "runs": [_run(summary, run) for run in summary.runs],
        "comparison": None if report is None else comparison_json(report),
        "answers_comparison": None
        if summary.answers_comparison is None
        else comparison_json(summary.answers_comparison),
        "not_compared": summary.not_compared,
        "warnings": list(summary.run_warnings),
        "chunks": None
        if summary.quality is None
        else {
            "chunks": summary.quality.n_chunks,
            "flagged": summary.quality.n_flagged,
            "findings": {item.kind: item.n_chunks for item in summary.quality.found},
        },
        "spent": summary.making.spent.model_dump(),
    }


def _run(summary: Summary, run: RunSummary) -> dict[str, object]:
    return {
        "name": run.name,
        "measures": {name: _estimate(estimate) for name, estimate in run.estimates.items()},
        "patterns": list(run.patterns),
        "holes": asdict(run.holes),
        "latency": None if run.latency is None else asdict(run.latency),
        "usd_per_query": run.usd_per_query,
        "recall": [
            {"k": point.k, **ends_json(point.interval), "mean": point.mean} for point in run.curve
        ],
        "top_grades": {bar.label: bar.count for bar in run.top_grades},
        "slices": [
            {
                "property": part.dimension,
                "value": part.value,
                "queries": part.n_queries,
                **{name: _estimate(estimate) for name, estimate in part.estimates.items()},
            }
            for part in run.slices
        ],
        "causes": [
            {
                "code": group.code,
                "title": CAUSES[group.code].title,
                "queries": list(group.query_ids),
                "share": group.share,
                "mean": group.mean,
            }
            for group in summary.causes.get(run.name, ())
        ],
    }


def _estimate(estimate: Estimate) -> dict[str, object]:
    return {
        "mean": estimate.mean,
        "n": estimate.n,
        "n_failed": estimate.n_failed,
        **ends_json(estimate.interval),
        "least": estimate.low,
        "most": estimate.high,
    }
