"""The parts of the page about how far down one has to look, and what the top ranks hold."""

from collections.abc import Sequence

from ragforge.report.overview_tables import CURVE_RANKS, recall
from ragforge.report.page.charts import Bars, bar_chart, described
from ragforge.report.page.line_charts import Chart, Line, Point, legend, line_chart
from ragforge.report.page.markup import Html, element
from ragforge.report.page.scales import round_range
from ragforge.report.page.table import table_block
from ragforge.report.runs import BucketCount, CurvePoint, RunSummary
from ragforge.report.shown import number
from ragforge.report.summary import Summary

_TICKS = (1, 2, 5, 10, 20, 50, 100)
_BANDS_NOTE = "Bands are the intervals, drawn for up to three runs."


def curve_block(summary: Summary) -> Html | None:
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
    table = table_block(recall(summary), titled=False)
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
        tone="tone-0",
        muted="failed",
    )
    caption = element("figcaption", "Judgments by grade, all judges together")
    return element("div", element("figure", caption, bar_chart(chart)), class_="figures")


def _point(found: CurvePoint) -> Point:
    if found.interval is None:
        return Point(_place(found.k), found.mean)
    return Point(_place(found.k), found.mean, found.interval.low, found.interval.high)


def _reach(found: CurvePoint) -> tuple[float, ...]:
    return (found.mean,) if found.interval is None else (found.mean, found.interval.high)


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
