"""The page of a dataset with its history, and what all pages have in common."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from ragforge.evaluating.formatting import MISSING, from_to, number, one_line, plural, signed
from ragforge.evaluating.graded_by import silent_of
from ragforge.evaluating.history.changes import changes
from ragforge.evaluating.history.trends import trend
from ragforge.evaluating.runs import primary_of
from ragforge.files.manifest import Spent
from ragforge.files.set.answer_labels import answer_calibration_names
from ragforge.files.set.history import History
from ragforge.files.set.opening import open_dataset
from ragforge.measures.measure_names import parse_measure
from ragforge.records import Evaluation, MeasuredMean
from ragforge.report.page.charts import TONES, Chart, Line, Point, legend, line_chart, round_range
from ragforge.report.page.markup import (
    Html,
    element,
    join,
    scroll_table,
    site_link,
    site_page,
    table_row,
    with_code,
)
from ragforge.viewer.access import READER, Writer
from ragforge.viewer.served import ServedDataset

CSS: Final = "view.css"
SCRIPT: Final = "view.js"
_MEASURES: Final = 4
"""Columns of a table."""
_ROWS: Final = 200
"""Evaluations listed, the newest."""
_LINES: Final = TONES
"""Runs drawn, those evaluated last."""
_DAY_S: Final = 86_400
_SIGNS: Final = {"IMPROVING": "▲", "DEGRADING": "▼", "STABLE": "●", "UNKNOWN": "·"}


def dataset_page(served: ServedDataset, writer: Writer = READER) -> str:
    """Return the page of one dataset; with ways to review and label it for who may."""
    title, history = one_line(served.title), served.history()
    return page(
        title,
        element("p", site_link("../", "All datasets"), class_="eyebrow"),
        element("h1", title, dir="auto"),
        *_about(served),
        _review_links(served, writer) if writer.decides and not served.problem else None,
        _label_link(served, writer.name) if writer.name and not served.problem else None,
        element("section", element("h2", "Latest"), _latest(served)),
        element("section", element("h2", "Trend"), _trend_chart(history)),
        element("section", element("h2", "History"), _history(history))
        if history.evaluations
        else None,
        depth=1,
    )


def problem_page(title: str, problem: str, *, depth: int = 2) -> str:
    """Return a page that says why there is nothing to show."""
    return page(
        title,
        element("p", site_link("../" * depth or "./", "All datasets"), class_="eyebrow"),
        element("h1", one_line(title), dir="auto"),
        notice("This cannot be shown", problem),
        depth=depth,
    )


def page(title: str, *live: Html | None, top: Iterable[Html] = (), depth: int = 0) -> str:
    """Return a page of the site.

    Args:
        title: Of the window.
        live: What a new state of the site replaces.
        top: What stays above it.
        depth: Folders below the site's own: links are relative, wherever a proxy shows the site.
    """
    head = [
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title}: ragforge view"),
    ]
    no_script = element("noscript", element("p", "Reload to see what is new.", class_="note"))
    body = [
        element("a", "Skip to the results", href="#live", class_="skip"),
        element("main", *top, element("div", *live, id="live")),
        element(
            "footer",
            element("p", "Live: new evaluations appear by themselves.", id="state", role="status"),
            no_script,
        ),
    ]
    home = "../" * depth
    return site_page(
        lang="en", head=head, body=body, css_path=f"{home}{CSS}", script_path=f"{home}{SCRIPT}"
    ).code


def _about(served: ServedDataset) -> Iterator[Html | None]:
    if served.problem:
        yield notice("This dataset cannot be read", served.problem)
    if served.manifest is not None:
        runs = plural(len(served.recent.runs), "run")
        count = plural(served.n_evaluations, "evaluation")
        facts = [f"version {served.manifest.version}", f"{count} of {runs}"]
        if served.name != served.title:
            facts.insert(0, f"in {served.name}")
        report = site_link(f"{served.name}/report", "full report")
        queries = site_link(f"{served.name}/queries", "queries, two runs side by side")
        nights = site_link(f"{served.name}/nights", "nights")
        ways = [part for way in (report, queries, nights) for part in (" · ", way)]
        yield element("p", " · ".join(facts), *ways, class_="note")
        yield element("p", _spent(served.manifest.spent), class_="note")
    if served.recent.notes:
        yield notice("Lines of the history were passed over", " ".join(served.recent.notes))


def _spent(spent: Spent) -> str:
    """Return what the calls behind a dataset took."""
    if not spent.calls:
        return "Spent so far: no call of a model."
    tokens = spent.prompt_tokens + spent.completion_tokens
    cost = "price unknown" if spent.cost_usd is None else f"{spent.cost_usd:,.2f} $"
    return f"Spent so far: {plural(spent.calls, 'call')}, {tokens:,} tokens, {cost}."


def _review_links(served: ServedDataset, writer: Writer) -> Html:
    orders = (("", "by doubt"), ("document", "by document"), ("random", "at random"))
    links: list[Html | str] = ["Review "]
    for order, text in orders:
        links += [site_link(f"{served.name}/review", text, query={"order": order}), ", "]
    return element("p", *links[:-1], f" as {one_line(writer.name)}", class_="note")


def _label_link(served: ServedDataset, labeller: str) -> Html:
    label = f"{served.name}/label"
    by_document = site_link(label, "in batches by document", query={"order": "document"})
    links: list[Html | str] = [site_link(label, "Label pairs"), ", ", by_document]
    if answer_calibration_names(open_dataset(served.path)):
        links += [" or ", site_link(f"{served.name}/label-answers", "answers")]
    return element("p", *links, f" as {one_line(labeller)}", class_="note")


def notice(title: str, text: str) -> Html:
    """Return what a reader has to know before the rest."""
    sentence = element("p", one_line(text, 600))
    return element("div", element("strong", title), sentence, class_="notice loud", role="note")


def _latest(served: ServedDataset) -> Html:
    runs = [served.recent.of_run(run) for run in served.recent.runs]
    if not runs:
        none = "Not evaluated yet: `ragforge evaluate` adds to the history."
        return element("p", *with_code(none), class_="empty")
    measures = _measures([of_run[-1] for of_run in runs])
    rows = [_run_row(of_run, measures) for of_run in runs]
    headers = ["run", *measures, "queries", "failed", "holes", "evaluated"]
    numeric = [False, *(True for _ in measures), True, True, True, False]
    return scroll_table("Latest evaluations", headers, rows, numeric)


def _run_row(of_run: Sequence[Evaluation], measures: Sequence[str]) -> Html:
    now = of_run[-1]
    cells = [mean_cell(now.measures.get(measure), *notes(of_run, measure)) for measure in measures]
    return table_row(one_line(now.run), [*cells, *_count_cells(now), element("td", _when(now))])


def notes(of_run: Sequence[Evaluation], measure: str) -> tuple[Html | None, Html | None]:
    """Return what to know of the last mean of a measure: who made its grades up, where it goes."""
    silent = silent_of(of_run[-1].graders)
    is_silent = silent.any and not parse_measure(measure).is_of_evidence
    basis = element("span", silent.basis, class_="bounds silent") if is_silent else None
    return basis, _verdict_note(of_run, measure)


def _verdict_note(of_run: Sequence[Evaluation], measure: str) -> Html | None:
    """Return where a measure goes, in a word and a number; None where there is nothing before."""
    if measure not in of_run[-1].measures:
        return None
    movement = trend(of_run, measure)
    if not movement.since:
        return None
    diff = signed(movement.diff)
    text = f"{_SIGNS[movement.verdict]} {movement.verdict} {diff}"
    return element("span", text, class_=f"went {movement.verdict.lower()}")


def mean_cell(mean: MeasuredMean | None, *notes: Html | None) -> Html:
    """Return a cell with a mean, its interval and what to know of it."""
    if mean is None:
        return element("td", MISSING, class_="num")
    ends = from_to(mean.low, mean.high) if mean.low is not None else None
    return element(
        "td",
        element("span", number(mean.mean), class_="mean"),
        element("span", ends, class_="bounds", title="95 % interval") if ends else None,
        *notes,
        class_="num estimate",
        data_value=None if mean.mean is None else f"{mean.mean:.6f}",
    )


def _count_cells(now: Evaluation) -> Iterator[Html]:
    yield element(
        "td", f"{now.n_queries:,}", selection_note(now), class_="num", data_value=str(now.n_queries)
    )
    for count in (now.n_failed, now.n_holes):
        yield element("td", f"{count:,}", class_="num")


def selection_note(evaluation: Evaluation) -> Html | None:
    """Return which queries were measured; None where it was all of them."""
    if evaluation.selection is None:
        return None
    return element("span", one_line(evaluation.selection.in_words), class_="bounds")


def _when(evaluation: Evaluation) -> str:
    return one_line(evaluation.at.replace("T", " ").removesuffix("+00:00"), 40)


def _measures(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the measures that are shown: that of the last evaluation that decides comes first."""
    named = dict.fromkeys(name for item in evaluations for name in item.measures)
    decides = primary_of(list(evaluations[-1].measures)) if evaluations else ""
    ordered = sorted(named, key=lambda name: name != decides)
    return ordered[:_MEASURES]


def _trend_chart(history: History) -> Html:
    evaluations = history.evaluations
    names = _measures(evaluations[-1:]) if evaluations else []
    lines = list(_lines(evaluations, names[0])) if names else []
    if not lines:
        return element("p", "Nothing to draw yet.", class_="empty")
    ends = [
        end
        for line in lines
        for point in line.points
        for end in (point.y, point.low, point.high)
        if end is not None
    ]
    chart = Chart(
        key="trend",
        title=f"{names[0]} over time",
        description="; ".join(
            f"{line.name}: {', '.join(number(point.y) for point in line.points[-10:])}"
            for line in lines
        ),
        lines=lines,
        x_ticks=_date_ticks([point.x for line in lines for point in line.points]),
        y_ticks=round_range(ends),
        has_dots=True,
    )
    note = "By the date of each evaluation (UTC); bars and bands are 95 % intervals."
    return join([
        element("h3", chart.title), line_chart(chart), legend(lines),
        element("p", note, class_="note"),
    ])  # fmt: skip


def _date_ticks(times: Sequence[float]) -> list[tuple[float, str]]:
    """Return the first and the last day, and the one between where there is room for it.

    What was of one day stands between its two ends: a second is no trend.
    """
    first, last = min(times), max(times)
    places = [first, (first + last) / 2, last] if last - first > 2 * _DAY_S else [first, last]
    if _day(first) == _day(last):
        places = [first - first % _DAY_S, first - first % _DAY_S + _DAY_S]
    return [(at, _day(at)) for at in places]


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _seconds(at: str) -> float | None:
    """Return a moment in seconds since 1970; None where it is none."""
    try:
        moment = datetime.fromisoformat(at)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _lines(evaluations: Sequence[Evaluation], measure: str) -> Iterator[Line]:
    latest = dict.fromkeys(item.run for item in reversed(evaluations))
    for tone, run in enumerate(sorted(list(latest)[:_LINES])):
        points = [
            Point(at, mean.mean, mean.low, mean.high)
            for item in evaluations
            if item.run == run
            and (mean := item.measures.get(measure)) is not None
            and mean.mean is not None
            and (at := _seconds(item.at)) is not None
        ]
        if points:
            yield Line(one_line(run, 60), tone, sorted(points, key=lambda point: point.x))


def _history(history: History) -> Html:
    evaluations = history.evaluations
    measures = _measures(evaluations[::-1])
    first = max(0, len(evaluations) - _ROWS)
    before = {item.run: item for item in evaluations[:first]}
    rows = []
    for now in evaluations[first:]:
        rows.append(_history_row(now, before.get(now.run), measures))
        before[now.run] = now
    headers = ["evaluated", "run", "version", *measures, "queries", "failed", "holes", "changed"]
    numeric = [False, False, True, *(True for _ in measures), True, True, True, False]
    note = f"The newest {_ROWS} of {len(evaluations):,}." if first else None
    return join([
        scroll_table("History", headers, rows[::-1], numeric),
        element("p", note, class_="note") if note else None,
    ])  # fmt: skip


def _history_row(now: Evaluation, before: Evaluation | None, measures: Sequence[str]) -> Html:
    differences = [] if before is None else changes(before, now)
    changed = "first" if before is None else ", ".join(change.what for change in differences)
    details = " ".join(change.text for change in differences)
    cells = [
        element("td", one_line(now.run)),
        element("td", now.version, class_="num"),
        *(mean_cell(now.measures.get(measure)) for measure in measures),
        *_count_cells(now),
        element("td", changed or "nothing", title=details or None),
    ]
    return table_row(_when(now), cells)
