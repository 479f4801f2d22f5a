"""How good runs are beside how long they take."""

from math import ceil, floor, log10
from typing import Final

from ragforge.evaluating.formatting import duration, number
from ragforge.evaluating.runs import PRIMARY, Estimate, Latency, RunSummary
from ragforge.evaluating.summary import Summary
from ragforge.report.page.charts import Chart, Line, Point, legend, line_chart, round_range
from ragforge.report.page.markup import Html, element

_LEAST_S: Final = 1e-6
"""What a clock cannot tell from nothing."""
_NOTE: Final = (
    "Higher is better, further left is faster; each step across is ten times as long. Upright "
    "lines are 95 % intervals of the means; latencies are those of the machine that made the run."
)


def quality_latency_figure(summary: Summary) -> Html | None:
    """Return a point a run: mean of the primary measure against median latency.

    None where fewer than two runs were timed and measured.
    """
    timed = [
        (tone, run, run.latency)
        for tone, run in enumerate(summary.runs)
        if run.latency is not None and _estimate(run).mean is not None
    ]
    if len(timed) < 2:
        return None
    lines = [Line(run.name, tone, [_point(run, latency)]) for tone, run, latency in timed]
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
        key="quality-latency",
        title=f"{PRIMARY} against median latency",
        description="; ".join(
            f"{run.name}: {number(_estimate(run).mean)} at {duration(latency.median_s)}"
            for _, run, latency in timed
        ),
        lines=lines,
        x_ticks=[(power, duration(10.0**power)) for power in powers],
        y_ticks=round_range(ends),
        has_dots=True,
        axis_names=("median latency of a query", PRIMARY),
    )
    caption = element("figcaption", f"{PRIMARY} of each run beside its latency. {_NOTE}")
    return element("figure", caption, line_chart(chart), legend(lines), class_="wide")


def _estimate(run: RunSummary) -> Estimate:
    return run.estimates.get(PRIMARY, run.primary)


def _point(run: RunSummary, latency: Latency) -> Point:
    estimate = _estimate(run)
    assert estimate.mean is not None
    low, high = (
        (estimate.interval.low, estimate.interval.high) if estimate.interval else (None, None)
    )
    return Point(log10(max(latency.median_s, _LEAST_S)), estimate.mean, low, high)
