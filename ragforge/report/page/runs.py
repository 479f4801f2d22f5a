"""The parts of the page about runs: measures, spread over queries, slices."""

from collections.abc import Sequence

from ragforge.evaluating.formatting import MISSING, cost_of_thousand, from_to, number, plural, share
from ragforge.evaluating.runs import (
    DEPTH,
    NO_HIT,
    BucketCount,
    CurvePoint,
    Estimate,
    RunSummary,
    counts,
)
from ragforge.evaluating.summary import Summary
from ragforge.report.decision import pair_asked_for
from ragforge.report.notices import HOLES_NOTE, MEAN_NOTE
from ragforge.report.page.charts import (
    Bars,
    Chart,
    Line,
    Point,
    bar_chart,
    described,
    legend,
    line_chart,
    meter,
    round_range,
    run_column,
    run_label,
)
from ragforge.report.page.markup import (
    Html,
    element,
    join,
    scroll_table,
    table_block,
    table_row,
    with_code,
)
from ragforge.report.page.quality_cost import (
    answers_cost_figure,
    answers_latency_figure,
    quality_cost_figure,
    quality_latency_figure,
)
from ragforge.report.page.slice_differences import slice_differences_figure
from ragforge.report.tables import (
    CURVE_RANKS,
    FIRST_RELEVANT,
    answer_cost_and_time_table,
    attention_table,
    cost_and_time_table,
    cost_note,
    first_relevant_table,
    recall_table,
    slice_dimensions,
    slices_by_value,
    spending_table,
)

_NOT_TIMED = "No run was timed: latencies are known of runs that `ragforge retrieve` made."

_AT_ONCE = 9
"""Measures that fit a window of 1,280 pixels; more are folded up."""
_TICKS = (1, 2, 5, 10, 20, 50, 100)
_BANDS_NOTE = "Bands are the intervals, drawn for up to three runs."
_BIN_LABELS = ("0", ".1", ".2", ".3", ".4", ".5", ".6", ".7", ".8", ".9")


def spending_block(summary: Summary) -> Html:
    """Return what the set took, and how long each run did and what its queries cost."""
    known = table_block(cost_and_time_table(summary))
    untimed = f"{_NOT_TIMED} {cost_note(summary)}"
    unknown = element("p", *with_code(untimed), class_="empty") if summary.runs else None
    return join(
        [
            table_block(spending_table(summary.making.spent)),
            known or unknown,
            quality_latency_figure(summary),
            quality_cost_figure(summary),
            table_block(answer_cost_and_time_table(summary.answers)),
            answers_latency_figure(summary.answers),
            answers_cost_figure(summary.answers),
        ]
    )


def _curve_block(summary: Summary) -> Html | None:
    """Return recall by rank, all runs in one chart; None where nothing was measured."""
    runs = [run for run in summary.runs if run.curve]
    if not runs:
        return None
    lines = [
        Line(run.name, tone, [_point(point) for point in run.curve])
        for tone, run in enumerate(summary.runs)
        if run.curve
    ]
    deepest = max(run.curve[-1].k for run in runs)
    ticks = [(_place(k), str(k)) for k in _TICKS if k <= deepest]
    highest = max(value for run in runs for point in run.curve for value in _reach(point))
    chart = Chart(
        key="recall",
        title=f"Recall at k, down to rank {deepest}",
        description=_described(runs),
        lines=lines,
        x_ticks=ticks,
        y_ticks=round_range([0.0, highest]),
    )
    caption = element("figcaption", "Recall at k: how far down relevant chunks are found")
    figure = element("figure", caption, line_chart(chart), legend(lines))
    table = table_block(recall_table(summary), titled=False)
    note = element("p", _BANDS_NOTE, class_="note")
    return element("div", figure, element("div", table, note), class_="figures beside")


def all_grades_figure(summary: Summary) -> Html | None:
    """Return how often each grade was given, whoever gave it."""
    counts = [sum(source.counts[grade] for source in summary.grades) for grade in range(4)]
    if not sum(counts):
        return None
    failed = sum(source.n_failed for source in summary.grades)
    bars = [BucketCount(str(grade), count) for grade, count in enumerate(counts)]
    bars += [BucketCount("failed", failed)] if failed else []
    chart = Bars(
        key="grades-chart",
        title="Judgments by grade",
        description=described(bars, "Judgments by grade"),
        bars=bars,
        tone=0,
        muted="failed",
    )
    caption = element("figcaption", "Judgments by grade, all judges together")
    return element("div", element("figure", caption, bar_chart(chart)), class_="figures")


def _point(point: CurvePoint) -> Point:
    if point.interval is None:
        return Point(_place(point.k), point.mean)
    return Point(_place(point.k), point.mean, point.interval.low, point.interval.high)


def _reach(point: CurvePoint) -> tuple[float, ...]:
    return (point.mean,) if point.interval is None else (point.mean, point.interval.high)


def _place(k: int) -> float:
    """Return where a rank goes: the top ranks, which differ most, get the most room."""
    return float(k**0.5)


def _described(runs: Sequence[RunSummary]) -> str:
    return " ".join(
        f"{run.name}: "
        + ", ".join(f"{number(p.mean, 2)} at {p.k}" for p in run.curve if p.k in CURVE_RANKS)
        + "."
        for run in runs
    )


def run_name(summary: Summary, name: str) -> Html:
    """Return a run's name with the mark of its colour."""
    return run_label(name, [run.name for run in summary.runs].index(name))


def headline_block(summary: Summary) -> Html:
    """Return the table of runs by measures."""
    if not summary.runs:
        text = "There is no run yet; `ragforge retrieve` makes one."
        return element("p", *with_code(text), class_="empty")
    first, rest = summary.measures[:_AT_ONCE], summary.measures[_AT_ONCE:]
    table = _measures_table(summary, first)
    more = None
    if rest:
        title = element("summary", plural(len(rest), "more measure"))
        others = _measures_table(summary, rest)
        more = element("details", title, others, class_="others")
    note = element("p", *with_code(f"{MEAN_NOTE} {HOLES_NOTE}"), class_="note")
    judges = None
    if summary.several_judges:
        judges = element("p", f"Whose grades: {summary.several_judges}.")
    return join([table, more, judges, note, _patterns(summary)])


def _measures_table(summary: Summary, measures: Sequence[str]) -> Html:
    """Return runs by some measures; what they are over stands below a run's name."""
    body = [
        table_row(
            join([run_name(summary, run.name), element("span", _counted(run), class_="bounds")]),
            [_estimate_cell(run.estimates[measure]) for measure in measures],
        )
        for run in summary.runs
    ]
    numeric = [False, *[True] * len(measures)]
    return scroll_table("Runs by measures", ["run", *measures], body, numeric)


def _counted(run: RunSummary) -> str:
    """Return over how many queries a run's means are, and what is not known of its chunks."""
    failed = [f"{run.counted.n_failed:,} with failures"] if run.counted.n_failed else []
    holes = f"unjudged@10: {share(run.holes.share)}"
    is_known = run.usd_per_query is not None
    costs = [f"1,000 queries: {cost_of_thousand(run.usd_per_query)} USD"] if is_known else []
    return ", ".join([f"n {run.counted.n:,}", *failed, holes, *costs])


def _patterns(summary: Summary) -> Html | None:
    """Return what the measures of each run mean together; None where they say nothing more."""
    items = [
        element("li", run_name(summary, run.name), ": ", sentence)
        for run in summary.runs
        for sentence in run.patterns
    ]
    return element("ul", *items, class_="changes") if items else None


def spread_block(summary: Summary) -> Html:
    """Return recall by rank, and three charts a run: values, first relevant rank, top grades."""
    figures = [
        figure
        for index, run in enumerate(summary.runs)
        for figure in (
            _histogram(summary, run, index),
            _first_relevant(summary, run, index),
            _top_grades(summary, run, index),
        )
    ]
    return join(
        [
            element("div", *figures, class_="figures thirds"),
            element("p", first_relevant_table(summary).note, class_="note"),
            _curve_block(summary),
            table_block(attention_table(summary)),
        ]
    )


def slices_block(summary: Summary) -> Html:
    """Return the measure that decides by property of the query, a table each."""
    # The tables fill two columns one after the other: short ones share a column beside a long one.
    names = sorted(slice_dimensions(summary), key=lambda name: _n_values(summary, name))
    tables = element("div", *(_slice(summary, name) for name in names), class_="slices")
    return join([_slice_differences(summary), tables])


def _slice_differences(summary: Summary) -> Html | None:
    """Return the pair that a decision is between, by slice; None for one run, and for a sample.

    Slices of a sample are not drawn: their queries do not count alike.
    """
    is_sample = any(run.task and run.task.design for run in summary.table.records.runs)
    report = summary.comparison
    if report is None or is_sample:
        return None
    pair = pair_asked_for(report, summary.base)
    mine = [item for item in report.items if (item.comparison.a, item.comparison.b) == pair]
    is_known = not any(item.withheld for item in mine)
    table = summary.table
    return slice_differences_figure(table.runs, table.rows, pair, table.measure, is_known=is_known)


def _n_values(summary: Summary, dimension: str) -> int:
    return len(slices_by_value(summary, dimension))


def _slice(summary: Summary, dimension: str) -> Html:
    body, measure = [], summary.primary
    for value, parts in slices_by_value(summary, dimension).items():
        cells = [
            _estimate_cell(
                part.estimates[measure], counts(part.estimates[measure], "with failures")
            )
            if part
            else element("td", MISSING, class_="num")
            for part in parts
        ]
        count = element("td", f"{max(p.n_queries for p in parts if p):,}", class_="num")
        body.append(table_row(value, [count, *cells]))
    names = [run_column(run.name, place) for place, run in enumerate(summary.runs)]
    title = f"{measure} by {dimension}"
    table = scroll_table(
        title, [dimension, "queries", *names], body, [False, True, *[True] * len(names)]
    )
    return element("div", element("h3", title), table, class_="block")


def _estimate_cell(estimate: Estimate, note: str = "") -> Html:
    """Return a cell: a mean, its interval as a bar and in brackets, and bounds on failures."""
    ends, bounds = estimate.interval, None
    if estimate.is_bounded:
        bounds = f"[{number(estimate.low)}, {number(estimate.high)}]"
    interval = f"({from_to(ends.low, ends.high)})" if ends else None
    lines = [element("span", text, class_="bounds") for text in (interval, bounds, note) if text]
    mean = element("span", number(estimate.mean), class_="mean")
    return element("td", mean, _estimate_meter(estimate), *lines, class_="num estimate")


def _estimate_meter(estimate: Estimate) -> Html | None:
    if estimate.mean is None or estimate.mean > 1:
        return None
    low, high = (
        (estimate.interval.low, estimate.interval.high)
        if estimate.interval
        else (estimate.mean,) * 2
    )
    return meter(estimate.mean, low, min(high, 1.0))


def _histogram(summary: Summary, run: RunSummary, index: int) -> Html | None:
    if not run.histogram:
        return None
    chart = Bars(
        key=f"spread-{index}",
        title=f"{summary.primary} over the queries of {run.name}",
        description=described(run.histogram, f"Queries by {summary.primary}"),
        bars=run.histogram,
        tone=index,
        labels=_BIN_LABELS,
    )
    caption = f"Queries by {summary.primary}, in steps of 0.1; mean {number(run.primary.mean)}."
    return _figure(summary, run, bar_chart(chart), caption)


def _first_relevant(summary: Summary, run: RunSummary, index: int) -> Html:
    chart = Bars(
        key=f"first-{index}",
        title=f"Rank of the first relevant chunk, {run.name}",
        description=described(run.first_relevant, FIRST_RELEVANT),
        bars=run.first_relevant,
        tone=index,
        muted=NO_HIT,
        labels=("1", "2", "3", "4\u20135", "6\u201310", "11+", "none"),
    )
    without = plural(len(run.attention.without_hit), "query", "queries")
    caption = f"{FIRST_RELEVANT}; {without} without a hit."
    return _figure(summary, run, bar_chart(chart), caption)


def _top_grades(summary: Summary, run: RunSummary, index: int) -> Html | None:
    if not any(bar.count for bar in run.top_grades):
        return None
    signs = {"not judged": "?", "failed": "!"}
    chart = Bars(
        key=f"top-{index}",
        title=f"Grades in the top {DEPTH} of {run.name}",
        description=described(run.top_grades, "Chunks by grade"),
        bars=run.top_grades,
        tone=index,
        muted="not judged",
        labels=[signs.get(bar.label, bar.label) for bar in run.top_grades],
    )
    failed = "; !: judging failed" if run.holes.n_failed else ""
    caption = f"Chunks in the top {DEPTH} by grade; ?: not judged{failed}."
    return _figure(summary, run, bar_chart(chart), caption)


def _figure(summary: Summary, run: RunSummary, chart: Html, caption: str) -> Html:
    name = element("span", run_name(summary, run.name), class_="run")
    return element("figure", element("figcaption", name, " ", caption), chart)
