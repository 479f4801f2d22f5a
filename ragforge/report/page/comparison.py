"""The part of the page about which run is better, and for which queries it is not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.evaluating.comparison import Compared, ComparisonReport, MovedQuery
from ragforge.evaluating.formatting import MISSING, number, one_line, plural, share, signed
from ragforge.evaluating.runs import PRIMARY, MeasuredRun
from ragforge.evaluating.summary import Summary
from ragforge.report.comparison import (
    LEAST_SHOWN,
    SHORT,
    by_pair,
    detectable_text,
    findings,
    interval_text,
    means_table,
    p_text,
    part_sentences,
    survivors_table,
    unknown_tables,
)
from ragforge.report.page.charts import WIDTH, Frame, Scale, framed
from ragforge.report.page.markup import (
    Child,
    Html,
    element,
    join,
    scroll_table,
    table_block,
    table_row,
)
from ragforge.report.page.queries import query_link

MOST_BARS: Final = 176
"""Bars of a chart; of more queries, evenly spaced ones are drawn."""
_ALIKE: Final = 1e-9
"""Differences that rounding makes."""
_LEFT: Final = 38
_TOP: Final = 8
_HEIGHT: Final = 130

_LOST: Final = 10
"""Queries listed of each pair."""
_OPEN: Final = 5
"""Pairs that are shown at once; others are folded up."""
_HEADERS: Final = (
    "measure", "A", "B", "difference", "%", "p, corrected", "better / same / worse", "better is",
    "would show",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Delta:
    """A query with a value in two runs."""

    query_id: str
    value_a: float
    value_b: float

    @property
    def diff(self) -> float:
        """How much higher b is."""
        return self.value_b - self.value_a


@dataclass(frozen=True, slots=True)
class Deltas:
    """All queries with a value in both runs."""

    a: str
    b: str
    items: Sequence[Delta]
    """Those first in which b loses most."""

    @property
    def n_worse(self) -> int:
        """Queries in which b is worse."""
        return sum(item.diff < -_ALIKE for item in self.items)

    @property
    def n_better(self) -> int:
        """Queries in which b is better."""
        return sum(item.diff > _ALIKE for item in self.items)

    def in_words(self) -> str:
        """Count the queries that are worse, better and the same."""
        n_same = len(self.items) - self.n_worse - self.n_better
        return (
            f"{self.b} is worse in {plural(self.n_worse, 'query', 'queries')}, better in "
            f"{self.n_better:,} and the same in {n_same:,}."
        )


def deltas_of(a: MeasuredRun, b: MeasuredRun) -> Deltas:
    """Return the differences in the primary measure, sorted by loss, then by query."""
    of_a, of_b = _values(a), _values(b)
    items = [Delta(key, of_a[key], of_b[key]) for key in of_a if key in of_b]
    return Deltas(a.name, b.name, sorted(items, key=lambda item: (item.diff, item.query_id)))


def delta_chart(deltas: Deltas, key: str) -> Html:
    """Return one bar a query, the greatest loss on the left, gains upwards.

    Args:
        deltas: At least one query.
        key: Unique on the page; goes into ids.
    """
    drawn = _evenly_spaced(deltas.items)
    reach = max((abs(item.diff) for item in drawn), default=0) or 1.0
    up = Scale(-reach, reach, _TOP + _HEIGHT, _TOP)
    zero = up.place(0)
    step = (WIDTH - _LEFT) / len(drawn)
    bars = [_bar(_LEFT + step * n, step, zero, up.place(item.diff)) for n, item in enumerate(drawn)]
    title = f"{PRIMARY} of {deltas.b} less that of {deltas.a}, query by query"
    ticks = [
        element("text", _signed(value), class_="tick", x=_LEFT - 3, y=f"{up.place(value) + 4:.1f}")
        for value in (reach, -reach)
    ]
    axis = element("line", class_="axis", x1=_LEFT, x2=WIDTH, y1=f"{zero:.1f}", y2=f"{zero:.1f}")
    frame = Frame(key, title, deltas.in_words(), _TOP + _HEIGHT + 10)
    return framed(frame, *ticks, join(bars), axis, class_="deltas")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\u2212")


def _values(run: MeasuredRun) -> dict[str, float]:
    if run.scores is None:
        return {}
    return dict(zip(run.scores.query_ids, run.scores.values(PRIMARY), strict=True))


def _evenly_spaced(items: Sequence[Delta]) -> Sequence[Delta]:
    """Return evenly spaced ones, both ends among them."""
    if len(items) <= MOST_BARS:
        return items
    last = len(items) - 1
    return [items[round(n * last / (MOST_BARS - 1))] for n in range(MOST_BARS)]


def _bar(left: float, step: float, zero: float, end: float) -> Html | None:
    height = abs(end - zero)
    if height < 0.05:
        return None
    width = step * 0.8 if step > 3 else step
    return element(
        "rect",
        class_="worse" if end > zero else "better",
        x=f"{left + (step - width) / 2:.1f}",
        y=f"{min(end, zero):.1f}",
        width=f"{width:.2f}",
        height=f"{height:.1f}",
    )


def comparison_block(summary: Summary) -> Html:
    """Return who wins, pair by pair, with the queries that lose."""
    report = summary.comparison
    if report is None:
        return element("p", _why_not(summary), class_="empty")
    pairs = by_pair(report.items)
    first = [items for items in pairs if summary.base in _names(items)]
    others = [items for items in pairs if summary.base not in _names(items)]
    opened = [_pair(summary, items, place) for place, items in enumerate(first[:_OPEN])]
    folded = [*first[_OPEN:], *others]
    return join(
        [
            *(element("p", f"{text}.", class_="note") for text in report.warnings),
            *(element("p", f"{text}.", class_="note") for text in part_sentences(report)),
            *(_several(report) if len(report.names) > 2 else ()),
            *opened,
            _folded(folded) if folded else None,
            element("p", _note(report), class_="note"),
        ]
    )


def answers_comparison(summary: Summary) -> Html | None:
    """Return which answer system is better; None where there are no two to compare."""
    report = summary.answers_comparison
    if report is None:
        return None
    return element(
        "div",
        element("h3", "Which system is better"),
        *(_several(report) if len(report.names) > 2 else ()),
        *(_answer_pair(summary, items) for items in by_pair(report.items)[:_OPEN]),
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


def _why_not(summary: Summary) -> str:
    if len(summary.runs) < 2:
        return "A comparison needs two runs; `ragforge retrieve` makes another one."
    return summary.not_compared or "These runs cannot be compared."


def _several(report: ComparisonReport) -> Iterable[Html | None]:
    yield table_block(means_table(report))
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
        f"holds 0 it is a TIE. “Would show” is {LEAST_SHOWN}."
    )


def _names(items: Sequence[Compared]) -> tuple[str, str]:
    return items[0].comparison.a, items[0].comparison.b


def _pair(summary: Summary, items: Sequence[Compared], place: int) -> Html:
    a, b = _names(items)
    runs = {run.name: run for run in summary.table.records.runs}
    deltas = deltas_of(runs[a], runs[b]) if {a, b} <= runs.keys() else None
    return element(
        "div",
        element("h3", _heading_text(a, b)),
        *(element("p", text, class_="verdict") for text in findings(items)),
        _table(items),
        _unknown(items),
        _moved(summary, deltas, place) if deltas and deltas.items else None,
        class_="block pair",
    )


def _unknown(items: Sequence[Compared]) -> Html | None:
    """Return what failures and holes leave open; folded up: `lead_caveats` has what matters."""
    tables = unknown_tables(items)
    if not tables:
        return None
    heading = element("summary", "What is not known, and how far it could move the differences")
    return element("details", heading, *map(table_block, tables), class_="others")


def _table(items: Sequence[Compared]) -> Html:
    body = [table_row(item.comparison.measure, _cells(item)) for item in items]
    numeric = [False, *[True] * 6, False, True]
    a, b = _names(items)
    return scroll_table(f"{b} against {a}", _HEADERS, body, numeric)


def _cells(item: Compared) -> Iterable[Html]:
    comparison = item.comparison
    bounds = element("span", interval_text(comparison.interval), class_="bounds")
    yield element("td", number(comparison.mean_a), class_="num")
    yield element("td", number(comparison.mean_b), class_="num")
    difference = element("span", signed(comparison.diff, SHORT), class_="mean")
    yield element("td", difference, bounds, class_="num")
    percent = MISSING if comparison.percent is None else f"{comparison.percent:+.1f}"
    yield element("td", percent, class_="num")
    yield element("td", p_text(comparison.p_corrected), class_="num")
    yield element(
        "td", f"{comparison.wins:,} / {comparison.ties:,} / {comparison.losses:,}", class_="num"
    )
    yield element("td", _winner(item))
    yield element("td", detectable_text(comparison), class_="num")


def _winner(item: Compared) -> Child:
    if item.better is None:
        return element("span", item.outcome, class_="tie", title=item.withheld or None)
    name = element("bdi", one_line(item.better, 40))
    return element("span", f"{item.outcome} ", name, class_="won")


def _moved(summary: Summary, deltas: Deltas, place: int) -> Html:
    lost = [item for item in deltas.items[:_LOST] if item.diff < 0]
    gained = [item for item in reversed(deltas.items[-_LOST:]) if item.diff > 0]
    caption = f"{PRIMARY}, one bar a query, the greatest loss first. {deltas.in_words()}"
    figure = element(
        "figure", element("figcaption", caption), delta_chart(deltas, f"deltas-{place}")
    )
    lists = [
        _list(summary, f"Lost most in {PRIMARY}", lost),
        _list(summary, f"Gained most in {PRIMARY}", gained),
    ]
    return element("div", figure, element("div", *lists), class_="figures moved")


def _list(summary: Summary, title: str, items: Sequence[Delta]) -> Html | None:
    if not items:
        return element("p", f"{title}: no query.", class_="empty")
    rows = [
        element(
            "li",
            element("span", f"{item.diff:+.3f}", class_="value"),
            query_link(item.query_id, summary.queries.get(item.query_id, "")),
        )
        for item in items
    ]
    heading = element("summary", title)
    return element(
        "details", heading, element("ol", *rows), class_="moves", open=title.startswith("Lost")
    )


def _folded(pairs: Sequence[Sequence[Compared]]) -> Html:
    blocks = [
        element("div", element("h4", _heading_text(*_names(items))), _table(items), class_="block")
        for items in pairs
    ]
    title = element("summary", f"The other {plural(len(pairs), 'pair')}")
    return element("details", title, *blocks, class_="others")


def _heading_text(a: str, b: str) -> Html:
    return join([element("bdi", b), " (B) against ", element("bdi", a), " (A)"])
