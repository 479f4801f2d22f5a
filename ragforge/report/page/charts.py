"""Bar and line charts as inline SVG: readable by screen readers, coloured by the style sheet."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import both_ends
from ragforge.evaluating.runs import BucketCount
from ragforge.report.page.markup import Html, drawn_text, element, join

_STEPS = (1, 2, 2.5, 5, 10)

WIDTH: Final = 380
_FILLED: Final = 0.82
"""Share of the width that bars take; the rest is between them."""
_HEIGHT: Final = 110
_TOP: Final = 18
_BOTTOM: Final = 22
_METER: Final = 100
TONES: Final = 6
_HEAD_CHARS: Final = 24
_LINES_HEIGHT: Final = 210
_LEFT: Final = 34
_RIGHT: Final = 20
_HALF_LETTER: Final = 3.3
"""Half the width of a letter below the axis, in a wide face."""
_LINES_TOP: Final = 12
_LINES_BOTTOM: Final = 26
CHART_HEIGHT: Final = _LINES_TOP + _LINES_HEIGHT + _LINES_BOTTOM
"""Of a line chart without names of its axes, `WIDTH` wide."""
_Y_NAME: Final = 12
_X_NAME: Final = 16
NAMED_HEIGHT: Final = CHART_HEIGHT + _Y_NAME + _X_NAME
"""Of one with names."""
_MOST_BANDS: Final = 3
"""Lines up to which bands can be told apart."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from values to places."""

    low: float
    high: float
    start: float
    """Place of `low`."""
    end: float

    def place(self, value: float) -> float:
        """Return where a value goes."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


def round_range(values: Sequence[float], *, parts: int = 4) -> tuple[float, ...]:
    """Return round values, evenly apart, from below the least to above the greatest of some.

    Args:
        values: At least one.
        parts: About how many steps to take.
    """
    low, high = min(values), max(values)
    reach = high - low or abs(high) / 10 or 0.1
    rough = reach / parts
    unit = 10 ** floor(log10(rough))
    step = unit * next(size for size in _STEPS if size * unit >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return tuple(index * step for index in range(first, max(last, first + 1) + 1))


@dataclass(frozen=True, slots=True)
class Bars:
    """What a bar chart shows."""

    key: str
    """Unique on the page; goes into ids."""
    title: str
    description: str
    bars: Sequence[BucketCount]
    tone: int
    """Which colour the bars have."""
    muted: str = ""
    """Label of a bar that is shown apart, such as `none`."""
    labels: Sequence[str] = ()
    """Shorter names under the bars, aligned; the bars' own where empty."""


def bar_chart(chart: Bars) -> Html:
    """Return a bar chart; every bar carries its count, so that it reads without colour."""
    highest = max((bar.count for bar in chart.bars), default=0)
    labels = chart.labels or [bar.label for bar in chart.bars]
    step = WIDTH / max(len(chart.bars), 1)
    base = _TOP + _HEIGHT
    bars = [
        _bar(
            _Place(index * step, step),
            bar,
            label,
            highest=highest,
            tone="bar muted" if bar.label == chart.muted else "bar",
        )
        for index, (bar, label) in enumerate(zip(chart.bars, labels, strict=True))
    ]
    axis = element("line", class_="axis", x1=0, x2=WIDTH, y1=base, y2=base)
    frame = Frame(chart.key, chart.title, chart.description, base + _BOTTOM)
    return framed(frame, join(bars), axis, class_=_tone_class(chart.tone))


@dataclass(frozen=True, slots=True)
class Frame:
    """What a chart says of itself, and how high it is."""

    key: str
    """Unique on the page; goes into ids."""
    title: str
    description: str
    height: int


def framed(frame: Frame, *drawn: Html, class_: str, role: str = "img") -> Html:
    """Return a chart that a screen reader tells by its title and description.

    Args:
        frame: What it says of itself.
        drawn: What is in it.
        class_: Classes beside its own.
        role: "group" for one with links in it, which a picture cannot have.
    """
    return element(
        "svg",
        element("title", frame.title, id=f"{frame.key}-t"),
        element("desc", frame.description, id=f"{frame.key}-d"),
        *drawn,
        class_=f"chart {class_}",
        viewBox=f"0 0 {WIDTH} {frame.height}",
        role=role,
        aria_labelledby=f"{frame.key}-t {frame.key}-d",
    )


def meter(mean: float, low: float, high: float) -> Html:
    """Return a thin bar for a mean in [0, 1] with its bounds; the number stands beside it."""
    span = element("rect", class_="bounds", x=_place(low), y=0, width=_place(high - low), height=6)
    return element(
        "svg",
        element("rect", class_="track", x=0, y=2, width=_METER, height=2),
        element("rect", class_="fill", x=0, y=2, width=_place(mean), height=2),
        span if high > low else None,
        element("rect", class_="mark", x=_place(min(mean, 0.985)), y=0, width="1.5", height=6),
        class_="meter",
        viewBox=f"0 0 {_METER} 6",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def described(bars: Sequence[BucketCount], noun: str) -> str:
    """Return the data of a chart as a sentence."""
    listed = ", ".join(f"{bar.label}: {bar.count}" for bar in bars)
    return f"{noun} by bucket: {listed}."


@dataclass(frozen=True, slots=True)
class _Place:
    left: float
    width: float


def _bar(place: _Place, bar: BucketCount, label: str, *, highest: int, tone: str) -> Html:
    middle = f"{place.left + place.width / 2:.1f}"
    height = _HEIGHT * bar.count / highest if highest else 0
    base = _TOP + _HEIGHT
    name = drawn_text(label, class_="label", x=middle, y=base + 15)
    if not bar.count:
        return name
    shape = element(
        "rect",
        class_=tone,
        x=f"{place.left + place.width * (1 - _FILLED) / 2:.1f}",
        y=f"{base - height:.1f}",
        width=f"{place.width * _FILLED:.1f}",
        height=f"{height:.1f}",
    )
    top = f"{base - height - 5:.1f}"
    return join([shape, drawn_text(bar.count, class_="count", x=middle, y=top), name])


def _place(value: float) -> str:
    return f"{_METER * value:.1f}"


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line; the interval may be unknown."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart."""

    name: str
    tone: int
    points: Sequence[Point]
    is_dotted: bool = False
    """Whether it goes with another line of its tone, and is drawn thinner."""
    has_rings: bool = False
    """Likewise, but dashed as its tone is, with rings for points; they need `has_dots`."""

    @property
    def is_second(self) -> bool:
        """Whether it goes with another line of its tone; it has no intervals then."""
        return self.is_dotted or self.has_rings


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at a place of the x axis."""

    x: float
    label: str
    """A few characters; what it stands for is told elsewhere."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What a line chart shows."""

    key: str
    """Unique on the page; goes into ids."""
    title: str
    description: str
    lines: Sequence[Line]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[float]
    marks: Sequence[Mark] = ()
    has_dots: bool = False
    axis_names: tuple[str, str] = ("", "")
    """Of x and y; both or none."""

    @property
    def height(self) -> int:
        """In the units of `WIDTH`."""
        return NAMED_HEIGHT if any(self.axis_names) else CHART_HEIGHT


def line_chart(chart: Chart) -> Html:
    """Return the chart."""
    xs = [x for x, _ in chart.x_ticks] + [p.x for line in chart.lines for p in line.points]
    across = Scale(min(xs), max(xs), _LEFT, WIDTH - _RIGHT)
    up = Scale(chart.y_ticks[0], chart.y_ticks[-1], _LINES_TOP + _LINES_HEIGHT, _LINES_TOP)
    n_first = sum(not line.is_second for line in chart.lines)
    # Rings on top of bands are a blot.
    with_bands = n_first <= _MOST_BANDS and not any(line.has_rings for line in chart.lines)
    bands = [_band(line, across, up) for line in chart.lines] if with_bands else []
    lines = [_line(line, across, up, with_dots=chart.has_dots) for line in chart.lines]
    frame = Frame(chart.key, chart.title, chart.description, chart.height)
    drawn = [join(_grid(chart, across, up)), join(bands), join(lines)]
    if any(chart.axis_names):
        moved = element("g", *drawn, transform=f"translate(0 {_Y_NAME})")
        drawn = [join(_axis_names(chart)), moved]
    return framed(frame, *drawn, class_="lines")


def _axis_names(chart: Chart) -> Iterable[Html]:
    across, up = chart.axis_names
    yield drawn_text(up, class_="axis-title of-y", x=2, y=11)
    x, y = WIDTH - _RIGHT, NAMED_HEIGHT - 4
    yield drawn_text(across, class_="axis-title of-x", x=x, y=y)


def run_label(name: str, place: int) -> Html:
    """Return a run's name after a dot of the colour that its place gives it."""
    return join([element("span", class_=f"dot {_tone_class(place)}"), element("bdi", name)])


def run_column(name: str, place: int) -> Html:
    """Return a run's name over a column, without the middle of a long one."""
    shown = both_ends(name, _HEAD_CHARS)
    return element("span", run_label(shown, place), title=None if shown == name else name)


def _tone_class(place: int) -> str:
    """Return the class of a colour; they repeat."""
    return f"tone-{place % TONES}"


def legend(lines: Iterable[Line]) -> Html:
    """Return the names of lines, each beside a piece of its line."""
    return element("ul", *(_entry(line) for line in lines), class_="keys")


def _entry(line: Line) -> Html:
    piece = element(
        "svg",
        element("line", x1=0, x2=28, y1=4, y2=4, class_=line_class(line)),
        element("circle", cx=14, cy=4, r=3, class_=ring_class(line)) if line.has_rings else None,
        class_="key",
        viewBox="0 0 28 8",
        aria_hidden="true",
    )
    return element("li", piece, element("bdi", line.name))


def _grid(chart: Chart, across: Scale, up: Scale) -> Iterable[Html]:
    right, base = WIDTH - _RIGHT, _LINES_TOP + _LINES_HEIGHT
    for value in chart.y_ticks:
        y = f"{up.place(value):.1f}"
        yield element("line", class_="rule", x1=_LEFT, x2=right, y1=y, y2=y)
        yield drawn_text(f"{value:.3g}", class_="tick", x=_LEFT - 5, y=f"{float(y) + 3.5:.1f}")
    for value, label in chart.x_ticks:
        # A date below the last point would reach out of the picture.
        half = _HALF_LETTER * len(label)
        x = f"{min(max(across.place(value), half), WIDTH - half):.1f}"
        yield drawn_text(label, class_="label", x=x, y=base + 16)
    for mark in chart.marks:
        x = f"{across.place(mark.x):.1f}"
        yield element("line", class_="change", x1=x, x2=x, y1=_LINES_TOP, y2=base)
        yield drawn_text(mark.label, class_="label change", x=x, y=_LINES_TOP - 3)
    yield element("line", class_="axis", x1=_LEFT, x2=right, y1=base, y2=base)


def _band(line: Line, across: Scale, up: Scale) -> Html | None:
    known = [
        (across.place(point.x), up.place(point.low), up.place(point.high))
        for point in line.points
        if point.low is not None and point.high is not None
    ]
    if len(known) < 2 or line.is_second:
        return None
    lower = [f"{x:.1f},{low:.1f}" for x, low, _ in known]
    upper = [f"{x:.1f},{high:.1f}" for x, _, high in reversed(known)]
    tone = f"band {_tone_class(line.tone)}"
    return element("polygon", class_=tone, points=" ".join([*lower, *upper]))


def _line(line: Line, across: Scale, up: Scale, *, with_dots: bool) -> Html:
    places = [(across.place(point.x), up.place(point.y)) for point in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    drawn = element("polyline", class_=line_class(line), points=path)
    if not with_dots and len(places) > 1:
        return drawn
    tone = f"{_spot(line)} {_tone_class(line.tone)}"
    dots = [element("circle", class_=tone, cx=f"{x:.1f}", cy=f"{y:.1f}", r=3) for x, y in places]
    whiskers = [_whisker(point, line, across, up) for point in line.points]
    return join([*whiskers, drawn, *dots])


def _whisker(point: Point, line: Line, across: Scale, up: Scale) -> Html | None:
    if point.low is None or point.high is None or line.is_second:
        return None
    x = f"{across.place(point.x):.1f}"
    ends = {"y1": f"{up.place(point.low):.1f}", "y2": f"{up.place(point.high):.1f}"}
    return element("line", class_=f"whisker {_tone_class(line.tone)}", x1=x, x2=x, **ends)


def _spot(line: Line) -> str:
    return "spot ring" if line.has_rings else "spot"


def line_class(line: Line) -> str:
    """Return the classes of a line."""
    second = " dotted" if line.is_dotted else " thin" if line.has_rings else ""
    return f"drawn {_tone_class(line.tone)} dash-{line.tone % TONES}{second}"


def ring_class(line: Line) -> str:
    """Return the classes of the ring that stands on a line."""
    return f"spot ring {_tone_class(line.tone)}"
