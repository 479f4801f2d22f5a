"""The tables of a report, as rows of text: what terminal, Markdown and page have in common."""

from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.files.manifest import Spent
from ragforge.report.agreement import agreement_table
from ragforge.report.answers.tables import answer_tables
from ragforge.report.audit import audit_tables
from ragforge.report.estimate import with_counts, with_interval
from ragforge.report.history.batches import batches_table
from ragforge.report.history.past import changes_table, trends_table
from ragforge.report.judging import GRADE_MEANINGS, GRADES
from ragforge.report.overview_tables import (
    answer_comparison_tables,
    causes,
    comparison_tables,
    latencies,
    patterns,
    recall,
)
from ragforge.report.runs import PRIMARY, RunSummary
from ragforge.report.shown import MISSING, number, one_line, share
from ragforge.report.slices import DIMENSIONS
from ragforge.report.summary import Making, Summary
from ragforge.report.table import Table
from ragforge.report.words import MEAN_NOTE, judge_name, meaning, threshold_note

UNKNOWN: Final = "unknown"


def all_tables(summary: Summary) -> list[Table]:
    """Return the tables that have rows, in the order of the report."""
    names = [run.name for run in summary.runs]
    tables = [
        changes_table(summary.history, names),
        headline(summary),
        patterns(summary),
        trends_table(summary.history, names),
        *([batches_table(summary.batches)] if summary.batches else []),
        *comparison_tables(summary),
        attention(summary),
        latencies(summary),
        spread(summary),
        first_relevant(summary),
        recall(summary),
        *slices(summary),
        causes(summary),
        worst(summary),
        *answer_comparison_tables(summary),
        *answer_tables(summary.answers),
        judged_by(summary),
        *map(agreement_table, summary.agreement),
        *audit_tables(summary.audit),
        grades(summary),
        failures(summary),
        queries_by(summary),
        measures(summary),
        making(summary.making),
    ]
    return [table for table in tables if table.rows]


def headline(summary: Summary) -> Table:
    """Measures by runs: bounds are wide, and runs are fewer than measures."""
    means = [[run.estimates[name] for run in summary.runs] for name in summary.measures]
    rows = [
        (name, *map(with_interval, row)) for name, row in zip(summary.measures, means, strict=True)
    ]
    primary = [run.primary for run in summary.runs]
    if summary.runs:
        rows.append(("n", *(f"{found.n:,}" for found in primary)))
        rows.append(("with failures", *(f"{found.n_failed:,}" for found in primary)))
        rows.append(("unjudged@10", *(share(run.holes.share) for run in summary.runs)))
    headers = ("measure", *(run.name for run in summary.runs))
    return Table("Retrieval", headers, tuple(rows) if summary.runs else (), MEAN_NOTE)


def attention(summary: Summary) -> Table:
    """What each run calls attention to."""
    headers = (
        "run",
        "without a hit",
        "perfect",
        "retriever failed",
        "missing",
        "no relevant known",
        "not judged",
        "all judging failed",
    )
    rows = tuple((run.name, *_attention(run)) for run in summary.runs)
    return Table("Queries to look at", headers, rows, "Counts are queries.")


def spread(summary: Summary) -> Table:
    """How the primary measure spreads over the queries."""
    labels = summary.runs[0].histogram if summary.runs else ()
    rows = tuple((run.name, *(str(bar.count) for bar in run.histogram)) for run in summary.runs)
    headers = ("run", *(bar.label for bar in labels))
    return Table(f"Queries by {PRIMARY}", headers, rows)


def first_relevant(summary: Summary) -> Table:
    """How far down the first relevant chunk is."""
    labels = summary.runs[0].first_relevant if summary.runs else ()
    rows = tuple((r.name, *(str(bar.count) for bar in r.first_relevant)) for r in summary.runs)
    headers = ("run", *(bar.label for bar in labels))
    note = "Queries without any known relevant chunk are left out."
    return Table("Queries by rank of the first relevant chunk", headers, rows, note)


def sliced_by(summary: Summary) -> list[str]:
    """Return the properties that part the queries; one value for all would repeat the mean."""
    values: dict[str, set[str]] = {}
    for run in summary.runs:
        for part in run.slices:
            values.setdefault(part.dimension, set()).add(part.value)
    return [dimension for dimension in DIMENSIONS if len(values.get(dimension, ())) > 1]


def slices(summary: Summary) -> list[Table]:
    """The primary measure by property of the query, a table each."""
    tables = []
    for dimension in sliced_by(summary):
        by_value: dict[str, list[str]] = {}
        for run in summary.runs:
            for part in run.slices:
                if part.dimension == dimension:
                    row = by_value.setdefault(part.value, [part.value, f"{part.n_queries:,}"])
                    row.append(with_counts(part.estimates[PRIMARY]))
        headers = (dimension, "queries", *(run.name for run in summary.runs))
        rows = tuple(map(tuple, by_value.values()))
        tables.append(Table(f"{PRIMARY} by {dimension}", headers, rows))
    return tables


def worst(summary: Summary) -> Table:
    """The queries the runs did worst on."""
    rows = []
    for run, query_id, cell in summary.table.worst_cells():
        first = MISSING if cell.first is None else str(cell.first)
        text = one_line(summary.queries[query_id], 80)
        rows.append((run, one_line(query_id, 40), number(cell.value), first, text))
    headers = ("run", "query_id", PRIMARY, "first relevant rank", "query")
    return Table("Worst queries", headers, tuple(rows))


def judged_by(summary: Summary) -> Table:
    """Who judged."""
    rows = tuple(
        (
            judge.task,
            judge_name(judge),
            judge.prompt or MISSING,
            judge.prompt_sha256[:12] or MISSING,
            f"{judge.count:,}",
            f"{judge.n_failed:,}",
        )
        for judge in summary.judges
    )
    headers = ("what", "judge", "prompt", "prompt sha256", "records", "failed")
    return Table("Judged by", headers, rows)


def grades(summary: Summary) -> Table:
    """How often each source gave each grade."""
    has_lists = any(item.n_listed for item in summary.grades)
    rows = tuple(
        (
            item.source,
            *(f"{count:,}" for count in item.counts),
            f"{item.n_failed:,}",
            *([f"{item.n_listed:,}"] if has_lists else []),
        )
        for item in summary.grades
    )
    note = "; ".join(f"{grade}: {GRADE_MEANINGS[grade]}" for grade in GRADES)
    listed = ["listed, no grade"] if has_lists else []
    headers = ("source", *(f"grade {grade}" for grade in GRADES), "failed", *listed)
    return Table("Grades", headers, rows, f"{note}.")


def failures(summary: Summary) -> Table:
    """Failures by stage and kind."""
    rows = tuple((item.what, item.kind, f"{item.count:,}") for item in summary.failures)
    return Table("Failures", ("stage", "kind", "count"), rows)


def queries_by(summary: Summary) -> Table:
    """Numbers of queries by property."""
    total = summary.counts.n_queries
    rows = tuple(
        (name, value, f"{count:,}", share(count, total))
        for name, counts in summary.counts.queries_by.items()
        for value, count in counts.items()
    )
    return Table("Queries", ("property", "value", "queries", "share"), rows)


def measures(summary: Summary) -> Table:
    """What the measures mean."""
    rows = tuple((name, meaning(name)) for name in summary.measures)
    note = threshold_note(
        summary.rel_threshold,
        is_complete=summary.is_complete,
        by_lists=summary.by_lists,
        n_by_document=summary.n_by_document,
    )
    return Table("How to read the measures", ("measure", "meaning"), rows, note)


def spending(spent: Spent) -> Table:
    """What the set took."""
    return Table("What the set took", ("what", "how much"), tuple(_spent(spent)))


def making(made: Making) -> Table:
    """How the dataset came to be, and what it cost."""
    rows = [
        ("dataset", f"{made.name}, version {made.version}"),
        ("tool", f"ragforge {made.tool_version}" if made.tool_version else UNKNOWN),
        ("models", ", ".join(made.models) or MISSING),
        ("licence", made.licence or "not stated"),
        ("reviewed", made.audit.in_words() if made.audit else "by nobody"),
        *_spent(made.spent),
        *((f"made from: {name}", value or MISSING) for name, value in made.made_from.items()),
        *((f"prompt {name}", f"sha256 {digest}") for name, digest in made.prompts.items()),
    ]
    return Table("Provenance and cost", ("fact", "value"), tuple(rows))


def _attention(run: RunSummary) -> Iterable[str]:
    listed = run.attention
    counts: Sequence[Sequence[str]] = (
        listed.without_hit,
        listed.perfect,
        listed.failed,
        listed.missing,
        listed.without_relevant,
        listed.without_judgments,
        listed.judgments_failed,
    )
    yield from (f"{len(query_ids):,}" for query_ids in counts)


def _spent(spent: Spent) -> Iterable[tuple[str, str]]:
    yield "calls", f"{spent.calls:,}"
    yield "tokens", f"{spent.prompt_tokens:,} in, {spent.completion_tokens:,} out"
    yield "cost", UNKNOWN if spent.cost_usd is None else f"{spent.cost_usd:,.4f} USD"
