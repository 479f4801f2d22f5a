"""The parts of the page about the past: what changed, and where each run went."""

from collections.abc import Iterable, Sequence

from ragforge.evaluating.formatting import MISSING, from_to, number, one_line
from ragforge.evaluating.history.run_history import (
    Changed,
    EvaluationRound,
    changes_at,
    changes_since,
    evaluation_rounds,
    followed_measure,
    not_evaluated_yet,
)
from ragforge.evaluating.summary import Summary
from ragforge.files.set.history import History
from ragforge.report.history import NEWER, trends_table
from ragforge.report.page.charts import Chart, Line, Mark, Point, legend, line_chart, round_range
from ragforge.report.page.markup import (
    Child,
    Html,
    element,
    join,
    scroll_table,
    table_block,
    table_row,
    with_code,
)

_TICKS = 6
_OPEN = 4
"""Changes of a round that are shown at once."""
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
        return join([element("p", *with_code(_NONE), class_="empty"), *notes])
    changes = changes_since(history, runs)
    if changes is None:
        return join([element("p", _ONCE, class_="empty"), _newer(summary), *notes])
    before = changes.evaluation
    when = f"Since the evaluation of {before.at[:16].replace('T', ' ')}, version {before.version}:"
    return join(
        [
            element("p", when, class_="lede"),
            _list(changes.changed) if changes.changed else element("p", _SAME),
            _newer(summary),
            table_block(trends_table(history, runs, summary.primary)),
            *notes,
        ]
    )


def trend_chart(summary: Summary) -> Chart | None:
    """Return the means over time; None with fewer than two rounds."""
    measure = followed_measure(summary.history, summary.primary)
    rounds = _rounds_with(summary.history, measure)
    lines = list(_lines(summary, rounds, measure))
    if len(rounds) < 2 or not lines:
        return None
    ends = [
        value
        for line in lines
        for point in line.points
        for value in (point.low, point.y, point.high)
        if value is not None
    ]
    marked = enumerate(_marked_changes(rounds), start=1)
    return Chart(
        key="trend",
        title=f"{measure} over {len(rounds)} evaluations",
        description=_described(rounds, measure),
        lines=lines,
        x_ticks=_ticks(rounds),
        y_ticks=round_range(ends),
        marks=[Mark(place, str(n)) for n, (place, _) in marked],
        has_dots=True,
    )


def _rounds_with(history: History, measure: str) -> list[EvaluationRound]:
    """Return the rounds in which a measure was taken: others have nothing to show."""
    of_measure = (
        item
        for item in history.evaluations
        if measure in item.measures and item.measures[measure].mean is not None
    )
    return evaluation_rounds(History(tuple(of_measure)))


def _marked_changes(rounds: Sequence[EvaluationRound]) -> list[tuple[int, Sequence[Changed]]]:
    """Return the rounds at which something changed, with what."""
    marked = [(place, changes_at(rounds, place)) for place in range(len(rounds))]
    return [(place, changed) for place, changed in marked if changed]


def trend_block(summary: Summary) -> Html | None:
    """Return the chart of the means over time; None with fewer than two rounds."""
    chart = trend_chart(summary)
    if chart is None:
        return None
    measure = followed_measure(summary.history, summary.primary)
    rounds = _rounds_with(summary.history, measure)
    full = [line for line in chart.lines if not line.is_dotted]
    caption = element("figcaption", f"{measure} over time; numbers on top say what changed")
    figure = element("figure", caption, line_chart(chart), legend(full))
    numbers = element("details", element("summary", "As numbers"), _table(rounds, measure))
    listed = [
        _changes_item(n, rounds[place].day, changed)
        for n, (place, changed) in enumerate(_marked_changes(rounds), start=1)
    ]
    return join(
        [
            element("div", figure, element("ol", *listed, class_="told"), class_="figures"),
            numbers,
            element("p", _TREND_NOTE, class_="note"),
        ]
    )


def _newer(summary: Summary) -> Html | None:
    """Say that the state of the set is not the one that was evaluated last."""
    runs = set(not_evaluated_yet(summary.history)) & {run.name for run in summary.runs}
    return element("p", NEWER, class_="note") if runs else None


def _list(changes: Sequence[Changed]) -> Html:
    return element("ul", *map(_item, changes), class_="changes")


def _item(item: Changed) -> Html:
    runs = [element("span", " (", element("bdi", ", ".join(item.runs)), ")")] if item.runs else []
    return element("li", element("strong", item.change.what), " ", item.change.text, *runs)


def _changes_item(number_on_chart: int, day: str, changed: Sequence[Changed]) -> Html:
    what = ", ".join(dict.fromkeys(item.change.what for item in changed))
    texts = [element("li", item.change.text) for item in changed]
    head = element("summary", f"{day}: {what}")
    folded = element("details", head, element("ul", *texts), open=len(texts) <= _OPEN)
    return element("li", folded, value=number_on_chart)


def _lines(summary: Summary, rounds: Sequence[EvaluationRound], measure: str) -> Iterable[Line]:
    names = [run.name for run in summary.runs]
    for tone, name in enumerate(names):
        points = []
        for place, evaluation_round in enumerate(rounds):
            of_run = evaluation_round.evaluations.get(name)
            mean = of_run.measures.get(measure) if of_run else None
            if mean is not None and mean.mean is not None:
                points.append(Point(place, mean.mean, mean.low, mean.high))
        if points:
            yield Line(name, tone, points)
            yield from _bridges(rounds, name, tone, measure)


def _bridges(
    rounds: Sequence[EvaluationRound], name: str, tone: int, measure: str
) -> Iterable[Line]:
    place_of = {
        of_run.evaluation_id: place
        for place, evaluation_round in enumerate(rounds)
        if (of_run := evaluation_round.evaluations.get(name))
    }
    for place, evaluation_round in enumerate(rounds):
        of_run = evaluation_round.evaluations.get(name)
        bridge = of_run.bridge.get(measure) if of_run else None
        if of_run and bridge and of_run.bridge_to in place_of:
            ends = [Point(place_of[of_run.bridge_to], bridge.before), Point(place, bridge.now)]
            yield Line(name, tone, ends, is_dotted=True)


def _ticks(rounds: Sequence[EvaluationRound]) -> list[tuple[float, str]]:
    step = max(1, -(-len(rounds) // _TICKS))
    return [(place, rounds[place].day[5:]) for place in range(0, len(rounds), step)]


def _described(rounds: Sequence[EvaluationRound], measure: str) -> str:
    parts = []
    for evaluation_round in rounds:
        means = ", ".join(
            f"{name} {number(item.measures[measure].mean)}"
            for name, item in evaluation_round.evaluations.items()
            if measure in item.measures
        )
        parts.append(f"{evaluation_round.day}: {means}.")
    return " ".join(parts)


def _table(rounds: Sequence[EvaluationRound], measure: str) -> Html:
    names = sorted({name for evaluation_round in rounds for name in evaluation_round.evaluations})
    body = [
        table_row(
            f"{place}. {evaluation_round.day}",
            [element("td", _cell(evaluation_round, name, measure), class_="num") for name in names],
        )
        for place, evaluation_round in enumerate(rounds, start=1)
    ]
    heads: list[Child] = ["evaluation", *(element("bdi", name) for name in names)]
    return scroll_table(f"{measure} over time", heads, body, [False, *[True] * len(names)])


def _cell(evaluation_round: EvaluationRound, name: str, measure: str) -> str:
    of_run = evaluation_round.evaluations.get(name)
    mean = of_run.measures.get(measure) if of_run else None
    if mean is None:
        return MISSING
    ends = f" ({from_to(mean.low, mean.high)})" if mean.low is not None else ""
    return f"{number(mean.mean)}{ends}"
