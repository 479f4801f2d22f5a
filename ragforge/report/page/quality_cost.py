"""How good runs are beside how long they take, and beside what they cost."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import cost_of_thousand, duration, number
from ragforge.evaluating.runs import PRIMARY, Estimate, RunSummary
from ragforge.evaluating.summary import Summary
from ragforge.report.page.charts import Chart, Line, Point, legend, line_chart, round_range
from ragforge.report.page.markup import Html, element

_LEAST_S: Final = 1e-6
"""What a clock cannot tell from nothing."""
_NOTE: Final = (
    "Higher is better, further left is {}; each step across is ten times as {}. Upright lines are "
    "95 % intervals of the means{}"
)
_OF_LATENCY: Final = _NOTE.format(
    "faster", "long", "; latencies are those of the machine that made the run."
)
_OF_COST: Final = _NOTE.format("cheaper", "much", ".")
_FREE: Final = " What costs nothing has no place here: {}."


@dataclass(frozen=True, slots=True)
class _Across:
    """What runs are drawn by, from left to right, in powers of ten.

    Args:
        key: Of the chart.
        what: What it is, in the words of a title.
        axis: The name of the axis.
        caption: What the figure shows, and how to read it.
        shown: Tells a run's value.
        tick: Tells a value at a tick.
    """

    key: str
    what: str
    axis: str
    caption: str
    shown: Callable[[float], str]
    tick: Callable[[float], str]


def quality_latency_figure(summary: Summary) -> Html | None:
    """Return a point a run: mean of the primary measure against median latency.

    None where fewer than two runs were timed and measured.
    """
    latencies = {
        run.name: max(run.latency.median_s, _LEAST_S) for run in summary.runs if run.latency
    }
    caption = f"{PRIMARY} of each run beside its latency. {_OF_LATENCY}"
    what, axis = "median latency", "median latency of a query"
    across = _Across("quality-latency", what, axis, caption, duration, duration)
    return _figure(summary.runs, latencies, across)


def quality_cost_figure(summary: Summary) -> Html | None:
    """Return a point a run: mean of the primary measure against the cost of a thousand queries.

    None where fewer than two runs were measured whose queries are known to cost something.
    """
    costs = {run.name: run.usd_per_query for run in summary.runs if run.usd_per_query is not None}
    free = [name for name, usd in costs.items() if not usd]
    note = _FREE.format(", ".join(free)) if free else ""
    caption = f"{PRIMARY} of each run beside what its queries cost. {_OF_COST}{note}"
    what, axis = "cost of 1,000 queries", "cost of 1,000 queries, USD"
    across = _Across("quality-cost", what, axis, caption, _in_dollars, _thousand)
    return _figure(summary.runs, {name: usd for name, usd in costs.items() if usd}, across)


def _in_dollars(usd_per_query: float) -> str:
    return f"{cost_of_thousand(usd_per_query)} USD"


def _thousand(usd_per_query: float) -> str:
    return f"{1000 * usd_per_query:,g}"


def _figure(runs: Sequence[RunSummary], values: dict[str, float], across: _Across) -> Html | None:
    """Return the points of the runs that have a value above 0; None where there are no two."""
    drawn = [
        (tone, run)
        for tone, run in enumerate(runs)
        if run.name in values and _estimate(run).mean is not None
    ]
    if len(drawn) < 2:
        return None
    lines = [Line(run.name, tone, [_point(run, values[run.name])]) for tone, run in drawn]
    ends = [
        value
        for line in lines
        for point in line.points
        for value in (point.low, point.y, point.high)
        if value is not None
    ]
    places = [line.points[0].x for line in lines]
    powers = range(floor(min(places)), max(ceil(max(places)), floor(min(places)) + 1) + 1)
    chart = Chart(
        key=across.key,
        title=f"{PRIMARY} against {across.what}",
        description="; ".join(
            f"{run.name}: {number(_estimate(run).mean)} at {across.shown(values[run.name])}"
            for _, run in drawn
        ),
        lines=lines,
        x_ticks=[(power, across.tick(10.0**power)) for power in powers],
        y_ticks=round_range(ends),
        has_dots=True,
        axis_names=(across.axis, PRIMARY),
    )
    caption = element("figcaption", across.caption)
    return element("figure", caption, line_chart(chart), legend(lines), class_="wide")


def _estimate(run: RunSummary) -> Estimate:
    return run.estimates.get(PRIMARY, run.primary)


def _point(run: RunSummary, value: float) -> Point:
    estimate = _estimate(run)
    assert estimate.mean is not None
    low, high = (
        (estimate.interval.low, estimate.interval.high) if estimate.interval else (None, None)
    )
    return Point(log10(value), estimate.mean, low, high)
