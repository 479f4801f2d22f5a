"""The tables of a report, as rows of text: what terminal, Markdown and page have in common."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ragforge.evaluating.answers.rates import AnswerSummary
from ragforge.evaluating.causes.catalogue import CAUSES
from ragforge.evaluating.formatting import (
    MISSING,
    Table,
    both_ends,
    cost_of_thousand,
    duration,
    from_to,
    number,
    one_line,
    share,
)
from ragforge.evaluating.graded_by import judge_name
from ragforge.evaluating.judgments import GRADE_MEANINGS, GRADES
from ragforge.evaluating.runs import (
    Latency,
    RunSummary,
    Slice,
    with_counts,
    with_interval,
)
from ragforge.evaluating.slices import DIMENSIONS
from ragforge.evaluating.summary import Making, Summary
from ragforge.files.manifest import Spent
from ragforge.report.comparison import (
    by_pair,
    corrected_tables,
    is_of_evidence,
    legend,
    means_table,
    pair_table,
    survivors_table,
    verdict,
)
from ragforge.report.notices import MEAN_NOTE, meaning, threshold_note
from ragforge.report.worst import cause_cells

CURVE_RANKS: Final = (1, 2, 3, 5, 10, 20, 50, 100)
FIRST_RELEVANT: Final = "Queries by rank of the first relevant chunk"
_CURVE_NOTE: Final = (
    "Recall at k: share of the known relevant chunks among the first k, in the mean over the "
    "queries, with its 95 % interval."
)

_ANSWER_COST_NOTE: Final = (
    "What an answer cost is known where its system says it (`cost_usd`), and of a service where "
    "the settings do (`cost` or `usd_per_query` in `[systems.NAME]`)."
)
_UNKNOWN: Final = "unknown"


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
    tables = [
        table
        for items in pairs
        for table in (
            *corrected_tables(items),
            replace(pair_table(items), note=" ".join(verdict(items))),
        )
    ]
    if is_of_evidence(report) and tables:
        why = " ".join(f"{text}." for text in report.warnings)
        tables[-1] = replace(tables[-1], note=f"{tables[-1].note} {why}")
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


def recall_table(summary: Summary) -> Table:
    """How much is found by how far down one looks."""
    runs = [run for run in summary.runs if run.curve]
    ranks = [k for k in CURVE_RANKS if any(point.k == k for run in runs for point in run.curve)]
    rows = tuple((f"R@{k}", *(_recall(run, k) for run in runs)) for k in ranks)
    headers = ("recall at", *(run.name for run in runs))
    return Table("Recall by how far down one looks", headers, rows, _CURVE_NOTE)


def patterns_table(summary: Summary) -> Table:
    """What the measures of each run mean together."""
    rows = tuple((run.name, sentence) for run in summary.runs for sentence in run.patterns)
    return Table("What the measures mean together", ("run", "pattern, and where to look"), rows)


def causes_table(summary: Summary) -> Table:
    """Why queries did badly."""
    rows = tuple(
        (run, *cause_cells(group), CAUSES[group.code].remedy)
        for run, groups in summary.causes.items()
        for group in groups
    )
    headers = ("run", "likely cause", "queries", "share", f"mean {summary.primary}", "remedy")
    return Table("Likely causes of bad queries", headers, rows)


def cost_and_time_table(summary: Summary) -> Table:
    """How long each run took for a query, and what queries cost where that is known."""
    known = [run for run in summary.runs if run.latency or run.usd_per_query is not None]
    has_costs = any(run.usd_per_query is not None for run in known)
    rows = tuple(
        (
            run.name,
            *_times(run.latency),
            *([cost_of_thousand(run.usd_per_query)] if has_costs else []),
        )
        for run in known
    )
    costs = ["USD/1,000 queries"] if has_costs else []
    headers = ("run", "queries timed", "mean", "median", "p95", "p99", *costs)
    title = "Time and cost of queries" if has_costs else "Time per query"
    return Table(title, headers, rows, cost_note(summary))


def cost_note(summary: Summary) -> str:
    """Return for which runs no cost of a query is known, and how it is made known; "" for none."""
    names = [both_ends(run.name, 40) for run in summary.runs if run.usd_per_query is None]
    if not names:
        return ""
    whose = "any run" if len(names) == len(summary.runs) else ", ".join(names)
    return (
        f"What a query costs is not known of {whose}. It is known where an endpoint with a price "
        "makes the query's vector, and where the settings say it (`usd_per_query` in "
        "`[retrievers.NAME]`)."
    )


def answer_cost_and_time_table(systems: Sequence[AnswerSummary]) -> Table:
    """How long each system took for an answer, and what answers cost where that is known."""
    known = [item for item in systems if item.latency or item.n_priced]
    has_costs = any(item.n_priced for item in known)
    rows = tuple(
        (item.system, *_times(item.latency), *(_prices(item) if has_costs else ()))
        for item in known
    )
    costs = ["answers priced", "USD/1,000 answers"] if has_costs else []
    headers = ("system", "answers timed", "mean", "median", "p95", "p99", *costs)
    title = "Time and cost of answers" if has_costs else "Time per answer"
    note = "" if all(item.is_priced for item in known) else _ANSWER_COST_NOTE
    return Table(title, headers, rows, note)


def _prices(item: AnswerSummary) -> tuple[str, str]:
    priced = f"{item.n_priced:,}"
    return priced if item.is_priced else f"{priced} of {item.n_answers:,}", cost_of_thousand(
        item.usd_per_query
    )


def _times(timed: Latency | None) -> tuple[str, ...]:
    if timed is None:
        return (MISSING,) * 5
    seconds = (timed.mean_s, timed.median_s, timed.p95_s, timed.p99_s)
    return (f"{timed.n:,}", *map(duration, seconds))


def _recall(run: RunSummary, k: int) -> str:
    point = next((point for point in run.curve if point.k == k), None)
    if point is None:
        return MISSING
    if point.interval is None:
        return number(point.mean)
    return f"{number(point.mean)} ({from_to(point.interval.low, point.interval.high)})"


def measures_table(summary: Summary) -> Table:
    """Measures by runs: bounds are wide, and runs are fewer than measures."""
    means = [[run.estimates[name] for run in summary.runs] for name in summary.measures]
    rows = [
        (name, *map(with_interval, row)) for name, row in zip(summary.measures, means, strict=True)
    ]
    counted = [run.counted for run in summary.runs]
    if summary.runs:
        rows.append(("n", *(f"{estimate.n:,}" for estimate in counted)))
        rows.append(("with failures", *(f"{estimate.n_failed:,}" for estimate in counted)))
        rows.append(("unjudged@10", *(share(run.holes.share) for run in summary.runs)))
    headers = ("measure", *(run.name for run in summary.runs))
    return Table("Retrieval", headers, tuple(rows) if summary.runs else (), MEAN_NOTE)


_ATTENTION_NOTE: Final = (
    "Counts are queries. Perfect: the whole ranking could not be better, down to the last relevant "
    "chunk that is judged; a measure @k looks at k ranks alone."
)


def attention_table(summary: Summary) -> Table:
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
    return Table("Queries to look at", headers, rows, _ATTENTION_NOTE)


def spread_table(summary: Summary) -> Table:
    """How the measure that decides spreads over the queries."""
    labels = summary.runs[0].histogram if summary.runs else ()
    rows = tuple(
        (run.name, *(str(bar.count) for bar in run.histogram))
        for run in summary.runs
        if run.histogram
    )
    headers = ("run", *(bar.label for bar in labels))
    return Table(f"Queries by {summary.primary}", headers, rows)


def first_relevant_table(summary: Summary) -> Table:
    """How far down the first relevant chunk is."""
    labels = summary.runs[0].first_relevant if summary.runs else ()
    rows = tuple((r.name, *(str(bar.count) for bar in r.first_relevant)) for r in summary.runs)
    headers = ("run", *(bar.label for bar in labels))
    note = "Queries without any known relevant chunk are left out."
    return Table(FIRST_RELEVANT, headers, rows, note)


def slice_dimensions(summary: Summary) -> list[str]:
    """Return the properties that part the queries; one value for all would repeat the mean."""
    values: dict[str, set[str]] = {}
    for run in summary.runs:
        for part in run.slices:
            values.setdefault(part.dimension, set()).add(part.value)
    return [dimension for dimension in DIMENSIONS if len(values.get(dimension, ())) > 1]


def slice_tables(summary: Summary) -> list[Table]:
    """The measure that decides by property of the query, a table each."""
    tables = []
    for dimension in slice_dimensions(summary):
        rows = tuple(
            (
                value,
                f"{max(part.n_queries for part in parts if part):,}",
                *(
                    with_counts(part.estimates[summary.primary]) if part else MISSING
                    for part in parts
                ),
            )
            for value, parts in slices_by_value(summary, dimension).items()
        )
        headers = (dimension, "queries", *(run.name for run in summary.runs))
        tables.append(Table(f"{summary.primary} by {dimension}", headers, rows))
    return tables


def slices_by_value(summary: Summary, dimension: str) -> dict[str, list[Slice | None]]:
    """Return the slices of a dimension by value, one of each run; None where a run has none.

    A run of a sample may lack what another one has.
    """
    by_run = [
        {part.value: part for part in run.slices if part.dimension == dimension}
        for run in summary.runs
    ]
    fullest_first = sorted(by_run, key=len, reverse=True)
    values = dict.fromkeys(value for parts in fullest_first for value in parts)
    return {value: [parts.get(value) for parts in by_run] for value in values}


def worst_table(summary: Summary) -> Table:
    """The queries the runs did worst on."""
    rows = []
    for run, query_id, cell in summary.table.worst_cells():
        first = MISSING if cell.first is None else str(cell.first)
        text = one_line(summary.queries[query_id], 80)
        rows.append((run, one_line(query_id, 40), number(cell.value), first, text))
    headers = ("run", "query_id", summary.primary, "first relevant rank", "query")
    return Table("Worst queries", headers, tuple(rows))


def judges_table(summary: Summary) -> Table:
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


def grades_table(summary: Summary) -> Table:
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


def failures_table(summary: Summary) -> Table:
    """Failures by stage and kind."""
    rows = tuple((item.what, item.kind, f"{item.count:,}") for item in summary.failures)
    return Table("Failures", ("stage", "kind", "count"), rows)


def queries_table(summary: Summary) -> Table:
    """Numbers of queries by property."""
    total = summary.counts.n_queries
    rows = tuple(
        (name, value, f"{count:,}", share(count, total))
        for name, counts in summary.counts.queries_by.items()
        for value, count in counts.items()
    )
    return Table("Queries", ("property", "value", "queries", "share"), rows)


def meanings_table(summary: Summary) -> Table:
    """What the measures mean."""
    rows = tuple((name, meaning(name)) for name in summary.measures)
    note = threshold_note(
        summary.rel_threshold,
        is_complete=summary.is_complete,
        by_lists=summary.by_lists,
        n_by_document=summary.n_by_document,
    )
    return Table("How to read the measures", ("measure", "meaning"), rows, note)


def spending_table(spent: Spent) -> Table:
    """What the set took."""
    return Table("What the set took", ("what", "how much"), tuple(_spent(spent)))


def provenance_table(made: Making) -> Table:
    """How the dataset came to be, and what it cost."""
    rows = [
        ("dataset", f"{made.name}, version {made.version}"),
        ("tool", f"ragforge {made.tool_version}" if made.tool_version else _UNKNOWN),
        ("models", ", ".join(made.models) or MISSING),
        ("licence", made.licence or "not stated"),
        ("reviewed", made.audit.in_words() if made.audit else "by nobody"),
        *_spent(made.spent),
        *((f"made from: {name}", value or MISSING) for name, value in made.made_from.items()),
        *((f"prompt {name}", f"sha256 {digest}") for name, digest in made.prompts.items()),
    ]
    return Table("Provenance and cost", ("fact", "value"), tuple(rows))


def _attention(run: RunSummary) -> Iterable[str]:
    queries = run.attention
    counts: Sequence[Sequence[str]] = (
        queries.without_hit,
        queries.perfect,
        queries.failed,
        queries.missing,
        queries.without_relevant,
        queries.without_judgments,
        queries.judgments_failed,
    )
    yield from (f"{len(query_ids):,}" for query_ids in counts)


def _spent(spent: Spent) -> Iterable[tuple[str, str]]:
    yield "calls", f"{spent.calls:,}"
    yield "tokens", f"{spent.prompt_tokens:,} in, {spent.completion_tokens:,} out"
    usd = spent.usd
    yield "cost", _UNKNOWN if usd is None else f"{usd:,.4f} USD"
