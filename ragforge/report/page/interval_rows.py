"""A chart of values with intervals, a row each, on one axis."""

from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.measures.intervals import Ends
from ragforge.report.page.charts import WIDTH, Frame, Scale, framed, round_range
from ragforge.report.page.markup import Html, drawn_text, element, join

_ROW: Final = 19
_TOP: Final = 20
_BOTTOM: Final = 18
_LABELS: Final = 128
"""What names take of the width."""
_RIGHT: Final = 18
"""Half of the last number below needs as much."""


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """A value with its interval."""

    name: str
    """Stands in front: some 20 letters."""
    told: str
    """Says the numbers."""
    value: float
    interval: Ends | None
    is_second: bool = False
    """Whether it stands beside what the chart is about, and is drawn fainter."""


@dataclass(frozen=True, slots=True)
class IntervalRows:
    """What a chart shows."""

    key: str
    """Unique on the page; goes into ids."""
    title: str
    rows: Sequence[IntervalRow]
    has_zero: bool = False
    """Whether 0 belongs to the axis: of differences."""

    @property
    def height(self) -> int:
        """In the units of `WIDTH`."""
        return _TOP + _ROW * len(self.rows) + _BOTTOM


def interval_chart(chart: IntervalRows) -> Html:
    """Return the chart of at least one row."""
    ends = [value for row in chart.rows for value in _reach(row)]
    ticks = round_range([0.0, *ends] if chart.has_zero else ends)
    across = Scale(ticks[0], ticks[-1], _LABELS, WIDTH - _RIGHT)
    base = _TOP + _ROW * len(chart.rows)
    grid = [drawn for value in ticks for drawn in _grid(chart, value, across, base)]
    rows = [_row(row, _TOP + _ROW * (place + 0.5), across) for place, row in enumerate(chart.rows)]
    told = "; ".join(row.told for row in chart.rows)
    frame = Frame(chart.key, chart.title, told, chart.height)
    return framed(frame, *grid, join(rows), class_="difference interval-rows")


def _reach(row: IntervalRow) -> Iterable[float]:
    yield row.value
    if row.interval is not None:
        yield from (row.interval.low, row.interval.high)


def _grid(chart: IntervalRows, value: float, across: Scale, base: int) -> Iterable[Html]:
    x = f"{across.place(value):.1f}"
    class_ = "zero" if chart.has_zero and abs(value) < 1e-9 else "rule"
    yield element("line", class_=class_, x1=x, x2=x, y1=_TOP, y2=base)
    yield drawn_text(f"{value:.3g}", class_="label", x=x, y=base + 14)


def _row(row: IntervalRow, y: float, across: Scale) -> Html:
    place = f"{y:.1f}"
    x = f"{across.place(row.value):.1f}"
    drawn = [drawn_text(row.name, class_="of-a", x=2, y=f"{y + 3.5:.1f}")]
    if row.interval is not None:
        low, high = (f"{across.place(end):.1f}" for end in (row.interval.low, row.interval.high))
        drawn.append(element("line", class_="reach", x1=low, x2=high, y1=place, y2=place))
    drawn.append(element("circle", class_="middle", cx=x, cy=place, r="3.5"))
    class_ = "second" if row.is_second else None
    return element("g", element("title", row.told), *drawn, class_=class_)
