"""How good runs and answers are beside how long they take, and beside what they cost."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.answers.rates import AnswerSummary
from ragforge.evaluating.formatting import cost_of_thousand, duration, number
from ragforge.evaluating.runs import Estimate, RunSummary
from ragforge.evaluating.summary import Summary
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate
from ragforge.report.page.charts import Chart, Line, Point, legend, line_chart, round_range
from ragforge.report.page.markup import Html, element

_CORRECT: Final = "correct answers"
_LEAST_S: Final = 1e-6
"""What a clock cannot tell from nothing."""
_NOTE: Final = (
    "Higher is better, further left is {}; each step across is ten times as {}. Upright lines are "
    "95 % intervals of the means{}"
)
_OF_LATENCY: Final = _NOTE.format(
    "faster", "long", "; latencies are those of the machine that made the run."
)
_OF_ANSWERING: Final = _NOTE.format(
    "faster", "long", "; latencies are those seen by the machine that asked."
)
_OF_COST: Final = _NOTE.format("cheaper", "much", ".")
_FREE: Final = " What costs nothing has no place here: {}."


@dataclass(frozen=True, slots=True)
class _Across:
    """What runs are drawn by, from left to right, in powers of ten.

    Args:
        key: Of the chart.
        quality: Drawn upwards.
        what: What it is, in the words of a title.
        axis: The name of the axis.
        caption: What the figure shows, and how to read it.
        shown: Tells a run's value.
        tick: Tells a value at a tick.
    """

    key: str
    quality: str
    what: str
    axis: str
    caption: str
    shown: Callable[[float], str]
    tick: Callable[[float], str]


def quality_latency_figure(summary: Summary) -> Html | None:
    """Return a point a run: mean of the measure that decides against median latency.

    None where fewer than two runs were timed and measured.
    """
    latencies = {
        run.name: max(run.latency.median_s, _LEAST_S) for run in summary.runs if run.latency
    }
    caption = f"{summary.primary} of each run beside its latency. {_OF_LATENCY}"
    what, axis = "median latency", "median latency of a query"
    across = _Across("quality-latency", summary.primary, what, axis, caption, duration, duration)
    return _figure(_quality(summary.runs), latencies, across)


def quality_cost_figure(summary: Summary) -> Html | None:
    """Return a point a run: mean of the measure that decides against what its queries cost.

    None where fewer than two runs were measured whose queries are known to cost something.
    """
    costs = {run.name: run.usd_per_query for run in summary.runs if run.usd_per_query is not None}
    caption = (
        f"{summary.primary} of each run beside what its queries cost. {_OF_COST}{_free(costs)}"
    )
    what, axis = "cost of 1,000 queries", "cost of 1,000 queries, USD"
    across = _Across("quality-cost", summary.primary, what, axis, caption, _in_dollars, _thousand)
    return _figure(_quality(summary.runs), costs, across)


def answers_latency_figure(systems: Sequence[AnswerSummary]) -> Html | None:
    """Return a point a system: correct answers against median latency; None for fewer than two."""
    latencies = {
        item.system: max(item.latency.median_s, _LEAST_S) for item in systems if item.latency
    }
    caption = f"Correct answers of each system beside its latency. {_OF_ANSWERING}"
    what, axis = "median latency", "median latency of an answer"
    across = _Across("answers-latency", _CORRECT, what, axis, caption, duration, duration)
    return _figure(_rates(systems), latencies, across)


def answers_cost_figure(systems: Sequence[AnswerSummary]) -> Html | None:
    """Return a point a system: correct answers against the cost of a thousand answers.

    None where there are fewer than two that were graded and whose answers cost something, each.
    """
    costs = {
        item.system: item.usd_per_query
        for item in systems
        if item.is_priced and item.usd_per_query is not None
    }
    caption = f"Correct answers of each system beside what they cost. {_OF_COST}{_free(costs)}"
    what, axis = "cost of 1,000 answers", "cost of 1,000 answers, USD"
    across = _Across("answers-cost", _CORRECT, what, axis, caption, _in_dollars, _thousand)
    return _figure(_rates(systems), costs, across)


def _quality(runs: Sequence[RunSummary]) -> dict[str, Estimate | Rate]:
    return {run.name: run.primary for run in runs}


def _rates(systems: Sequence[AnswerSummary]) -> dict[str, Estimate | Rate]:
    return {item.system: item.rates["correct"] for item in systems}


def _free(costs: Mapping[str, float]) -> str:
    free = [name for name, usd in costs.items() if not usd]
    return _FREE.format(", ".join(free)) if free else ""


def _in_dollars(usd_per_query: float) -> str:
    return f"{cost_of_thousand(usd_per_query)} USD"


def _thousand(usd_per_query: float) -> str:
    return f"{1000 * usd_per_query:,g}"


def _figure(
    quality: Mapping[str, Estimate | Rate], values: Mapping[str, float], across: _Across
) -> Html | None:
    """Return the points of what has a mean and a value above 0; None where there are no two."""
    lines = [
        Line(name, tone, [_point(of.mean, of.interval, values[name])])
        for tone, (name, of) in enumerate(quality.items())
        if of.mean is not None and values.get(name)
    ]
    if len(lines) < 2:
        return None
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
        title=f"{across.quality} against {across.what}",
        description="; ".join(
            f"{line.name}: {number(line.points[0].y)} at {across.shown(values[line.name])}"
            for line in lines
        ),
        lines=lines,
        x_ticks=[(power, across.tick(10.0**power)) for power in powers],
        y_ticks=round_range(ends),
        has_dots=True,
        axis_names=(across.axis, across.quality),
    )
    caption = element("figcaption", across.caption)
    return element("figure", caption, line_chart(chart), legend(lines), class_="wide")


def _point(mean: float, interval: Ends | None, value: float) -> Point:
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Point(log10(value), mean, low, high)
