"""The parts of the page about the past: what changed, and where each run went."""

from collections.abc import Iterable, Sequence

from ragforge.evaluating.wording import MISSING, number, one_line
from ragforge.report.page.charts import Chart, Line, Mark, Point, legend, line_chart, round_range
from ragforge.report.page.markup import Child, Html, element, join
from ragforge.report.page.table import scroll_table, table_block, table_row
from ragforge.report.past import (
    NEWER,
    Changed,
    Sitting,
    changes_at,
    followed,
    since,
    sittings,
    trends_table,
    unkept,
)
from ragforge.report.summary import Summary

_TICKS = 6
_OPEN = 4
"""Changes of a sitting that are shown at once."""
_NONE = (
    "The history is empty: `ragforge evaluate --dataset DIR` writes a line of it, and from the "
    "second on this page says what changed."
)
_ONCE = "No run has been evaluated twice so far: there is nothing to hold it against yet."
_SAME = "Nothing changed: corpus, items, judgments, judge, prompts, rankings and tool are the same."
_TREND_NOTE = (
    "Full lines are the means of all items as the set was then, with their 95 % intervals. Dotted "
    "lines are the same run on the items that did not change between two evaluations: where they "
    "go another way than the full line, the set changed, and not the system."
)


def changes_block(summary: Summary) -> Html:
    """Return what changed since the last evaluation of the runs."""
    history, runs = summary.history, [run.name for run in summary.runs]
    notes = [element("p", f"{one_line(note, 300)}", class_="note") for note in history.notes[:3]]
    if not history.evaluations:
        return join([element("p", _NONE, class_="empty"), *notes])
    found = since(history, runs)
    if found is None:
        return join([element("p", _ONCE, class_="empty"), _newer(summary), *notes])
    before = found.evaluation
    when = f"Since the evaluation of {before.at[:16].replace('T', ' ')}, version {before.version}:"
    return join(
        [
            element("p", when, class_="lede"),
            _list(found.changed) if found.changed else element("p", _SAME),
            _newer(summary),
            table_block(trends_table(history, runs)),
            *notes,
        ]
    )


def trend_block(summary: Summary) -> Html | None:
    """Return the chart of the means over time; None with fewer than two sittings."""
    found = sittings(summary.history)
    measure = followed(summary.history)
    lines = list(_lines(summary, found, measure))
    if len(found) < 2 or not lines:
        return None
    marked = [(place, changes_at(found, place)) for place in range(len(found))]
    told = [(place, changed) for place, changed in marked if changed]
    ends = [
        value
        for line in lines
        for point in line.points
        for value in (point.low, point.y, point.high)
        if value is not None
    ]
    chart = Chart(
        key="trend",
        title=f"{measure} over {len(found)} evaluations",
        description=_described(found, measure),
        lines=lines,
        x_ticks=_ticks(found),
        y_ticks=round_range(ends),
        marks=[Mark(place, str(n)) for n, (place, _) in enumerate(told, start=1)],
        has_dots=True,
    )
    full = [line for line in lines if not line.is_dotted]
    caption = element("figcaption", f"{measure} over time; numbers on top say what changed")
    figure = element("figure", caption, line_chart(chart), legend(full))
    numbers = element("details", element("summary", "As numbers"), _table(found, measure))
    listed = [_told(n, found[place], changed) for n, (place, changed) in enumerate(told, start=1)]
    return join(
        [
            element("div", figure, element("ol", *listed, class_="told"), class_="figures"),
            numbers,
            element("p", _TREND_NOTE, class_="note"),
        ]
    )


def _newer(summary: Summary) -> Html | None:
    """Say that the state of the set is not the one that was evaluated last."""
    runs = set(unkept(summary.history)) & {run.name for run in summary.runs}
    return element("p", NEWER, class_="note") if runs else None


def _list(found: Sequence[Changed]) -> Html:
    return element("ul", *map(_item, found), class_="changes")


def _item(item: Changed) -> Html:
    runs = [element("span", " (", element("bdi", ", ".join(item.runs)), ")")] if item.runs else []
    return element("li", element("strong", item.change.what), " ", item.change.text, *runs)


def _told(number_on_chart: int, sitting: Sitting, changed: Sequence[Changed]) -> Html:
    what = ", ".join(dict.fromkeys(item.change.what for item in changed))
    texts = [element("li", item.change.text) for item in changed]
    head = element("summary", f"{sitting.day}: {what}")
    folded = element("details", head, element("ul", *texts), open=len(texts) <= _OPEN)
    return element("li", folded, value=number_on_chart)


def _lines(summary: Summary, found: Sequence[Sitting], measure: str) -> Iterable[Line]:
    names = [run.name for run in summary.runs]
    for tone, name in enumerate(names):
        points = []
        for place, sitting in enumerate(found):
            of_run = sitting.evaluations.get(name)
            mean = of_run.measures.get(measure) if of_run else None
            if mean is not None and mean.mean is not None:
                points.append(Point(place, mean.mean, mean.low, mean.high))
        if points:
            yield Line(name, tone, points)
            yield from _bridges(found, name, tone, measure)


def _bridges(found: Sequence[Sitting], name: str, tone: int, measure: str) -> Iterable[Line]:
    place_of = {
        of_run.evaluation_id: place
        for place, sitting in enumerate(found)
        if (of_run := sitting.evaluations.get(name))
    }
    for place, sitting in enumerate(found):
        of_run = sitting.evaluations.get(name)
        bridge = of_run.bridge.get(measure) if of_run else None
        if of_run and bridge and of_run.bridge_to in place_of:
            ends = [Point(place_of[of_run.bridge_to], bridge.before), Point(place, bridge.now)]
            yield Line(name, tone, ends, is_dotted=True)


def _ticks(found: Sequence[Sitting]) -> list[tuple[float, str]]:
    step = max(1, -(-len(found) // _TICKS))
    return [(place, found[place].day[5:]) for place in range(0, len(found), step)]


def _described(found: Sequence[Sitting], measure: str) -> str:
    parts = []
    for sitting in found:
        means = ", ".join(
            f"{name} {number(item.measures[measure].mean)}"
            for name, item in sitting.evaluations.items()
            if measure in item.measures
        )
        parts.append(f"{sitting.day}: {means}.")
    return " ".join(parts)


def _table(found: Sequence[Sitting], measure: str) -> Html:
    names = sorted({name for sitting in found for name in sitting.evaluations})
    body = [
        table_row(
            f"{place}. {sitting.day}",
            [element("td", _cell(sitting, name, measure), class_="num") for name in names],
        )
        for place, sitting in enumerate(found, start=1)
    ]
    heads: list[Child] = ["evaluation", *(element("bdi", name) for name in names)]
    return scroll_table(f"{measure} over time", heads, body, [False, *[True] * len(names)])


def _cell(sitting: Sitting, name: str, measure: str) -> str:
    of_run = sitting.evaluations.get(name)
    found = of_run.measures.get(measure) if of_run else None
    if found is None:
        return MISSING
    ends = f" ({number(found.low)}-{number(found.high)})" if found.low is not None else ""
    return f"{number(found.mean)}{ends}"
