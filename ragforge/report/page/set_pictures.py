"""What a set's report draws, as pictures: two runs held together, means over time, corrections."""

from collections.abc import Iterable, Iterator
from typing import Final

from ragforge.errors import DataError
from ragforge.evaluating.formatting import both_ends, number, one_line
from ragforge.evaluating.graded_by import graded_line
from ragforge.evaluating.history.run_history import followed_measure
from ragforge.evaluating.summary import Summary
from ragforge.measures.intervals import Ends
from ragforge.records import Calibration, CorrectedFigure, CorrectedValue
from ragforge.report.comparison import findings
from ragforge.report.page.charts import NAMED_HEIGHT, line_chart
from ragforge.report.page.deltas import BARS_HEIGHT, SCATTER_HEIGHT, delta_chart, deltas_of, scatter
from ragforge.report.page.history import trend_chart
from ragforge.report.page.interval_rows import IntervalRow, IntervalRows, interval_chart
from ragforge.report.page.picture import Panel, Picture
from ragforge.report.page.slice_differences import slice_differences, slice_rows

_NAME_CHARS: Final = 40
_MOST_MEASURES: Final = 4


def comparison_picture(summary: Summary, pair: tuple[str, str]) -> Picture:
    """Return two runs query by query, and by slice where there are slices.

    They are drawn by the measure that decides.

    Args:
        summary: Of a report; has a comparison.
        pair: A and B.

    Raises:
        DataError: No query has a value in both.
    """
    a, b = pair
    runs = {run.name: run for run in summary.table.records.runs}
    measure = summary.primary
    deltas = deltas_of(runs[a], runs[b], measure)
    if not deltas.items:
        raise DataError(
            f"{a}, {b}: no query has {measure} in both; judge what they retrieved first"
        )
    short = both_ends(a, _NAME_CHARS), both_ends(b, _NAME_CHARS)
    points = scatter(deltas, summary.queries, "scatter", is_linked=False)
    panels = [
        Panel(deltas.bars_in_words(), delta_chart(deltas, "deltas"), BARS_HEIGHT, shows=deltas),
        Panel(deltas.points_in_words(), points, SCATTER_HEIGHT),
    ]
    differences = {item.query_id: item.diff for item in deltas.items}
    items = slice_differences(summary.table.rows, differences, measure)
    if items:
        sliced = slice_rows(items, *short, measure)
        drawn = interval_chart(sliced)
        panels.append(Panel("by slice, intervals widened", drawn, sliced.height, shows=sliced))
    title = f"{measure} of {short[1]} (B) less {short[0]} (A)"
    found = list(_findings(summary, pair, measure))
    told = f"{title}. {' '.join(found)} {deltas.in_words()}"
    return Picture(title, told, [panels], [*found, *_graded(summary)])


def _findings(summary: Summary, pair: tuple[str, str], measure: str) -> Iterator[str]:
    """Yield what the comparison comes to, in words."""
    report = summary.comparison
    items = [] if report is None else report.items
    mine = [one for one in items if (one.comparison.a, one.comparison.b) == pair]
    yield from findings([one for one in mine if one.comparison.measure == measure])


def _graded(summary: Summary) -> Iterator[str]:
    """Yield who graded: a picture goes round without the page about it."""
    if summary.graded_by:
        line = graded_line(summary.graded_by, summary.correction)
        yield f"{line[0].upper()}{line[1:]}."


def trend_picture(summary: Summary) -> Picture:
    """Return the means of each run over the evaluations of a set.

    Raises:
        DataError: There are fewer than two.
    """
    chart = trend_chart(summary)
    if chart is None:
        measure = followed_measure(summary.history, summary.primary)
        raise DataError(
            f"the history has fewer than two evaluations with {measure}: there is no line to draw; "
            "`ragforge evaluate` adds one, and -m NAME follows another measure"
        )
    lines = [line for line in chart.lines if not line.is_dotted]
    panel = Panel(
        "numbers on top: something changed", line_chart(chart), NAMED_HEIGHT, lines, chart
    )
    return Picture(chart.title, chart.description, [[panel]], list(_graded(summary)))


def calibration_picture(calibration: Calibration) -> Picture:
    """Return levels of runs as the judge has them, as people have them, and corrected.

    Raises:
        DataError: There is nothing but differences.
    """
    levels = [figure for figure in calibration.figures if not figure.is_difference]
    measures = list(dict.fromkeys(figure.measure for figure in levels))[:_MOST_MEASURES]
    if not measures:
        raise DataError(f"calibration {calibration.name}: has levels of no run")
    charts = [
        IntervalRows(
            f"calibration-{place}",
            f"{measure}, by the judge, by people and corrected",
            list(_rows(figure for figure in levels if figure.measure == measure)),
        )
        for place, measure in enumerate(measures)
    ]
    panels = [
        Panel(measure, interval_chart(chart), chart.height, shows=chart)
        for measure, chart in zip(measures, charts, strict=True)
    ]
    n = calibration.labels.n_used
    verb = "Corrected" if any(level.corrected for level in levels) else "Not corrected"
    title = f"{verb} by {n:,} labels of people: {both_ends(calibration.name, _NAME_CHARS)}"
    told = "; ".join(row.told for chart in charts for row in chart.rows)
    return Picture(title, told, [panels[at : at + 2] for at in range(0, len(panels), 2)])


def _rows(figures: Iterable[CorrectedFigure]) -> Iterator[IntervalRow]:
    for figure in figures:
        run = one_line(figure.run, 11)
        kinds = (("judge", figure.judge_only), ("people", figure.people_only))
        for kind, value in kinds:
            if value is not None:
                yield _row(f"{run}, {kind}", figure.run, value, is_second=True)
        if figure.corrected is not None:
            yield _row(f"{run}, corrected", figure.run, figure.corrected, is_second=False)


def _row(name: str, run: str, value: CorrectedValue, *, is_second: bool) -> IntervalRow:
    interval, span = None, ""
    if value.low is not None and value.high is not None:
        interval = Ends(value.low, value.high)
        span = f" [{number(value.low)}, {number(value.high)}]"
    kind = name.rpartition(", ")[2]
    told = f"{both_ends(run, _NAME_CHARS)}, {kind} {number(value.value)}{span}"
    return IntervalRow(name, told, value.value, interval, is_second)
