"""Two runs query by query: bars of what moved, and a scatter of the one against the other."""

from collections.abc import Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import both_ends, number, one_line, plural, signed
from ragforge.evaluating.runs import MeasuredRun
from ragforge.report.page.charts import WIDTH, Frame, Scale, framed
from ragforge.report.page.markup import Html, drawn_text, element, join
from ragforge.report.page.queries import query_hash

MOST_LISTED: Final = 10
"""Queries listed of a pair that lost most, and that gained most: they are always drawn."""
MOST_BARS: Final = 176
"""Bars of a chart; of more queries, those that moved most and evenly spaced others are drawn."""
MOST_POINTS: Final = 400
"""Points of a scatter, likewise."""
_ALIKE: Final = 1e-9
"""Differences that rounding makes."""
_LEFT: Final = 38
_TOP: Final = 8
_HEIGHT: Final = 130
_SIDE: Final = 230
"""Of the square that a scatter is drawn in."""
_UNDER: Final = 38
"""Room for what stands below the square."""
_FIELD: Final = 74
"""Where the square begins: it stands in the middle."""
_TICKS: Final = (0.0, 0.5, 1.0)
BARS_HEIGHT: Final = _TOP + _HEIGHT + 10
"""Of the bars, in the units of `WIDTH`."""
SCATTER_HEIGHT: Final = _TOP + _SIDE + _UNDER
"""Of the scatter, likewise."""


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
    measure: str

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

    def bars_in_words(self) -> str:
        """Return in words for which queries there are bars."""
        return self._drawn("one bar a query", MOST_BARS)

    def points_in_words(self) -> str:
        """Return in words for which queries there are points."""
        return self._drawn("one point a query", MOST_POINTS)

    def _drawn(self, every: str, most: int) -> str:
        n = len(self.items)
        if n <= most:
            return every
        return f"{most:,} of {n:,} queries, the largest differences among them"


def deltas_of(a: MeasuredRun, b: MeasuredRun, measure: str) -> Deltas:
    """Return the differences in a measure, sorted by loss, then by query."""
    of_a, of_b = a.by_query(measure), b.by_query(measure)
    items = [Delta(key, of_a[key], of_b[key]) for key in of_a if key in of_b]
    items.sort(key=lambda item: (item.diff, item.query_id))
    return Deltas(a.name, b.name, items, measure)


def delta_chart(deltas: Deltas, key: str) -> Html:
    """Return a bar for each query, the greatest loss on the left, gains upwards.

    Of more than `MOST_BARS` queries, so many have one.

    Args:
        deltas: At least one query.
        key: Unique on the page; goes into ids.
    """
    drawn = _drawn(deltas.items, MOST_BARS)
    reach = max((abs(item.diff) for item in drawn), default=0) or 1.0
    up = Scale(-reach, reach, _TOP + _HEIGHT, _TOP)
    zero = up.place(0)
    step = (WIDTH - _LEFT) / len(drawn)
    bars = [_bar(_LEFT + step * n, step, zero, up.place(item.diff)) for n, item in enumerate(drawn)]
    title = f"{deltas.measure} of {deltas.b} less that of {deltas.a}, {deltas.bars_in_words()}"
    ticks = [
        drawn_text(_signed(value), class_="tick", x=_LEFT - 3, y=f"{up.place(value) + 4:.1f}")
        for value in (reach, -reach)
    ]
    axis = element("line", class_="axis", x1=_LEFT, x2=WIDTH, y1=f"{zero:.1f}", y2=f"{zero:.1f}")
    frame = Frame(key, title, deltas.in_words(), BARS_HEIGHT)
    return framed(frame, *ticks, join(bars), axis, class_="deltas")


def _signed(value: float) -> str:
    return signed(value, 2)


def _drawn(items: Sequence[Delta], most: int) -> Sequence[Delta]:
    """Return so many: those that moved most either way, and evenly spaced ones between them."""
    if len(items) <= most:
        return items
    lost, gained = items[:MOST_LISTED], items[-MOST_LISTED:]
    between = items[MOST_LISTED:-MOST_LISTED]
    last = len(between) - 1
    n_spaced = most - 2 * MOST_LISTED
    spaced = [between[round(n * last / (n_spaced - 1))] for n in range(n_spaced)]
    return [*lost, *spaced, *gained]


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


def scatter(deltas: Deltas, texts: "dict[str, str]", key: str, *, is_linked: bool = True) -> Html:
    """Return a point for each query, A across and B up; each leads to its query.

    Of more than `MOST_POINTS` queries, so many have one.

    Args:
        deltas: At least one query.
        texts: Query id to text.
        key: Unique on the page; goes into ids.
        is_linked: Whether there is a page that it can lead to.
    """
    drawn = _drawn(deltas.items, MOST_POINTS)
    top = max(1.0, *(max(item.value_a, item.value_b) for item in drawn))
    across = Scale(0, top, _FIELD, _FIELD + _SIDE)
    up = Scale(0, top, _TOP + _SIDE, _TOP)
    grid = [line for value in _TICKS for line in _grid(value * top, across, up)]
    corners = dict(x1=_FIELD, x2=_FIELD + _SIDE, y1=_TOP + _SIDE, y2=_TOP)
    same = element("line", class_="same", **corners)
    points = [_point(item, texts, across, up) for item in drawn]
    if is_linked:
        points = [_linked(*pair) for pair in zip(points, drawn, strict=True)]
    low = SCATTER_HEIGHT - 6
    names = [
        drawn_text(f"A: {both_ends(deltas.a, 24)}", class_="label", x=_FIELD + _SIDE // 2, y=low),
        drawn_text(f"B: {both_ends(deltas.b, 24)}", class_="label of-a", x=2, y=_TOP + 12),
    ]
    title = (
        f"{deltas.measure} of {deltas.b} (up) against {deltas.a} (across), "
        f"{deltas.points_in_words()}"
    )
    told = f"Above the diagonal B is better. {deltas.in_words()}"
    frame = Frame(key, title, told, SCATTER_HEIGHT)
    role = "group" if is_linked else "img"
    return framed(frame, *grid, same, *names, join(points), class_="scatter", role=role)


def _grid(value: float, across: Scale, up: Scale) -> Sequence[Html]:
    x, y, label = f"{across.place(value):.1f}", f"{up.place(value):.1f}", f"{value:.3g}"
    end, base = _FIELD + _SIDE, _TOP + _SIDE
    return [
        element("line", class_="rule", x1=_FIELD, x2=end, y1=y, y2=y),
        element("line", class_="rule", x1=x, x2=x, y1=_TOP, y2=base),
        drawn_text(label, class_="tick", x=_FIELD - 5, y=f"{float(y) + 3.5:.1f}"),
        drawn_text(label, class_="label", x=x, y=base + 14),
    ]


def _point(item: Delta, texts: "dict[str, str]", across: Scale, up: Scale) -> Html:
    tone = "worse" if item.diff < -_ALIKE else "better" if item.diff > _ALIKE else "even"
    text = one_line(texts.get(item.query_id) or item.query_id, 80)
    told = f"{text}: A {number(item.value_a)}, B {number(item.value_b)}"
    x, y = f"{across.place(item.value_a):.1f}", f"{up.place(item.value_b):.1f}"
    return element("circle", element("title", told), class_=tone, cx=x, cy=y, r=4)


def _linked(point: Html, item: Delta) -> Html:
    # All of these queries are in the lists beside it: a keyboard need not stop at each point.
    return element("a", point, href=query_hash(item.query_id), tabindex=-1, aria_hidden="true")
