"""The part of the page about which run is better, and for which queries it is not."""

from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.evaluating.comparison import Compared, ComparisonReport, MovedQuery
from ragforge.evaluating.formatting import number, one_line, plural, share, signed
from ragforge.evaluating.summary import Summary
from ragforge.report.comparison import (
    LEAST_SHOWN,
    SHORT,
    by_pair,
    corrected_tables,
    detectable_text,
    findings,
    interval_text,
    means_table,
    p_text,
    part_sentences,
    survivors_table,
    unknown_tables,
)
from ragforge.report.decision import pair_asked_for
from ragforge.report.page.charts import run_column
from ragforge.report.page.deltas import (
    MOST_LISTED,
    Delta,
    Deltas,
    delta_chart,
    deltas_of,
    scatter,
)
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
from ragforge.report.page.queries import query_link
from ragforge.report.page.runs import run_name

_MOST_SYSTEMS: Final = 5
"""Pairs of answer systems that are shown."""
_HEADERS: Final = (
    "measure", "A", "B", "difference", "%", "p, corrected", "better / same / worse", "better is",
    "would show",
)  # fmt: skip


def comparison_block(summary: Summary) -> Html:
    """Return who wins, pair by pair, with the queries that lose."""
    report = summary.comparison
    if report is None:
        text = summary.not_compared or "These runs cannot be compared."
        return element("p", text, class_="empty")
    pairs = by_pair(report.items)
    asked = pair_asked_for(report, summary.base)
    several = len(report.names) > 2
    return join(
        [
            *(element("p", *with_code(f"{text}."), class_="note") for text in report.every_warning),
            *(element("p", f"{text}.", class_="note") for text in part_sentences(report)),
            *((_matrix(summary, report), *_several(report)) if several else ()),
            *(
                _pair(summary, items, place, is_open=_names(items) == asked)
                for place, items in enumerate(pairs)
            ),
            element("p", _note(report), class_="note"),
        ]
    )


def _matrix(summary: Summary, report: ComparisonReport) -> Html:
    """Return the differences of all pairs by the first measure; each leads to its pair."""
    measure = report.measures[0]
    places = {_names(items): place for place, items in enumerate(by_pair(report.items))}
    found = {(item.comparison.a, item.comparison.b): item for item in report.of_measure(measure)}
    body = []
    for row in report.names:
        cells = []
        for column in report.names:
            item = found.get((column, row)) or found.get((row, column))
            place = places.get((column, row), places.get((row, column)))
            cells.append(
                element("td", class_="num none")
                if item is None or place is None
                else _matrix_cell(item, row, place)
            )
        body.append(table_row(run_name(summary, row), cells))
    tones = [run.name for run in summary.runs]
    headers: list[Child] = ["", *(run_column(name, tones.index(name)) for name in report.names)]
    table = scroll_table(
        f"{measure}: each run less each", headers, body, [False] + [True] * len(report.names)
    )
    note = (
        f"{measure} of the run of the row less that of the column; + or - in colour where "
        "the one is shown to be better. A number leads to its pair."
    )
    return element("div", table, element("p", note, class_="note"), class_="block matrix")


def _matrix_cell(item: Compared, row: str, place: int) -> Html:
    sign = 1 if item.comparison.b == row else -1
    text = signed(None if item.diff is None else sign * item.diff, SHORT)
    tone = "tie" if item.better is None else "ahead" if item.better == row else "behind"
    word = item.outcome if item.better is None else "better" if tone == "ahead" else "worse"
    link = element("a", text, href=f"#pair-{place}")
    return element("td", link, element("span", word, class_="bounds"), class_=f"num {tone}")


def answers_comparison(summary: Summary) -> Html | None:
    """Return which answer system is better; None where there are no two to compare."""
    report = summary.answers_comparison
    if report is None:
        return None
    return element(
        "div",
        element("h3", "Which system is better"),
        *(_several(report) if len(report.names) > 2 else ()),
        *(_answer_pair(summary, items) for items in by_pair(report.items)[:_MOST_SYSTEMS]),
        element("p", _note(report), class_="note"),
        class_="block",
    )


def _answer_pair(summary: Summary, items: Sequence[Compared]) -> Html:
    lost = [_delta(query) for query in items[0].lost]
    gained = [_delta(query) for query in items[0].gained]
    measure = items[0].comparison.measure
    lists = [
        _list(summary, f"Lost most in {measure}", lost),
        _list(summary, f"Gained most in {measure}", gained),
    ]
    return element(
        "div",
        element("h4", _heading_text(*_names(items))),
        *(element("p", text, class_="verdict") for text in findings(items)),
        _table(items),
        _unknown(items),
        element("div", *lists, class_="figures moved"),
        class_="block pair",
    )


def _delta(query: MovedQuery) -> Delta:
    return Delta(query.query_id, query.value_a, query.value_b)


def _several(report: ComparisonReport) -> Iterable[Html | None]:
    yield table_block(means_table(report, SHORT), has_values=True)
    survivors = survivors_table(report)
    sentence = element("p", f"{survivors.title}. {survivors.note}".strip(), class_="verdict")
    if survivors.rows:
        table = table_block(survivors, titled=False)
        yield element("details", element("summary", survivors.title), table, class_="others")
    else:
        yield sentence


def _note(report: ComparisonReport) -> str:
    return (
        "A difference is B less A, with its interval below. Intervals are widened and p values "
        f"raised (Holm) so that the chance of any false finding among all "
        f"{plural(len(report.items), 'comparison')} is {share(report.alpha)}; where an interval "
        f"holds 0, or a p is above that, it is a TIE. “Would show” is {LEAST_SHOWN}."
    )


def _names(items: Sequence[Compared]) -> tuple[str, str]:
    return items[0].comparison.a, items[0].comparison.b


def _pair(summary: Summary, items: Sequence[Compared], place: int, *, is_open: bool) -> Html:
    """Return a pair: folded up but for the one asked for, which has the scatter too."""
    a, b = _names(items)
    runs = {run.name: run for run in summary.table.records.runs}
    deltas = deltas_of(runs[a], runs[b], summary.primary) if {a, b} <= runs.keys() else None
    return element(
        "details",
        element("summary", element("h3", _heading_text(a, b))),
        *(element("p", text, class_="verdict") for text in findings(items)),
        _table(items),
        _unknown(items),
        _moved(summary, deltas, place, is_open=is_open) if deltas and deltas.items else None,
        class_="block pair",
        id=f"pair-{place}",
        open=is_open,
    )


def _unknown(items: Sequence[Compared]) -> Html | None:
    """Return what failures and holes leave open; folded up: `lead_caveats` has what matters."""
    tables = unknown_tables(items)
    if not tables:
        return None
    heading = element("summary", "What is not known, and how far it could move the differences")
    return element("details", heading, *map(table_block, tables), class_="others")


def _table(items: Sequence[Compared]) -> Html:
    """Return the measures of one pair, corrected ones above the uncorrected."""
    corrected = corrected_tables(items)
    has_winner = not corrected
    columns = [
        (header, header not in {"measure", "better is"})
        for header in _HEADERS
        if has_winner or header != "better is"
    ]
    body = [
        table_row(item.comparison.measure, _cells(item, has_winner=has_winner)) for item in items
    ]
    a, b = _names(items)
    title = f"{b} against {a}" if has_winner else f"{b} against {a}, uncorrected"
    headers, numeric = [header for header, _ in columns], [number for _, number in columns]
    return join([*map(table_block, corrected), scroll_table(title, headers, body, numeric)])


def _cells(item: Compared, *, has_winner: bool) -> Iterable[Html]:
    comparison = item.comparison
    bounds = element("span", interval_text(comparison.interval), class_="bounds")
    yield element("td", number(comparison.mean_a), class_="num")
    yield element("td", number(comparison.mean_b), class_="num")
    difference = element("span", signed(comparison.diff, SHORT), class_="mean")
    yield element("td", difference, bounds, class_="num")
    percent = signed(comparison.percent, 1)
    yield element("td", percent, class_="num")
    yield element("td", p_text(comparison.p_corrected), class_="num")
    yield element(
        "td", f"{comparison.wins:,} / {comparison.ties:,} / {comparison.losses:,}", class_="num"
    )
    if has_winner:
        yield element("td", _winner(item))
    yield element("td", detectable_text(comparison), class_="num")


def _winner(item: Compared) -> Child:
    if item.better is None:
        return element("span", item.outcome, class_="tie", title=item.withheld or None)
    name = element("bdi", one_line(item.better, 40))
    return element("span", f"{item.outcome} ", name, class_="won")


def _moved(summary: Summary, deltas: Deltas, place: int, *, is_open: bool) -> Html:
    lost = [item for item in deltas.items[:MOST_LISTED] if item.diff < 0]
    gained = [item for item in reversed(deltas.items[-MOST_LISTED:]) if item.diff > 0]
    drawn = deltas.bars_in_words()
    caption = f"{deltas.measure}, {drawn}, the greatest loss first. {deltas.in_words()}"
    bars = element("figure", element("figcaption", caption), delta_chart(deltas, f"deltas-{place}"))
    lists = [
        _list(summary, f"Lost most in {deltas.measure}", lost),
        _list(summary, f"Gained most in {deltas.measure}", gained),
    ]
    stacked = lists if not is_open else [bars, *lists]
    beside = _scatter(summary, deltas, place) if is_open else bars
    return element("div", beside, element("div", *stacked), class_="figures moved")


def _scatter(summary: Summary, deltas: Deltas, place: int) -> Html:
    caption = (
        f"{deltas.measure}, {deltas.points_in_words()}: above the diagonal B is better. A point "
        "leads to its query."
    )
    drawn = scatter(deltas, summary.queries, f"scatter-{place}")
    return element("figure", element("figcaption", caption), drawn)


def _list(summary: Summary, title: str, items: Sequence[Delta]) -> Html | None:
    if not items:
        return element("p", f"{title}: no query.", class_="empty")
    rows = [
        element(
            "li",
            element("span", signed(item.diff), class_="value"),
            query_link(item.query_id, summary.queries.get(item.query_id, "")),
        )
        for item in items
    ]
    heading = element("summary", title)
    return element(
        "details", heading, element("ol", *rows), class_="moves", open=title.startswith("Lost")
    )


def _heading_text(a: str, b: str) -> Html:
    return join([element("bdi", b), " (B) against ", element("bdi", a), " (A)"])
