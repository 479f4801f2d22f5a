"""Bar charts as inline SVG: readable by screen readers, coloured by the style sheet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.report.page.markup import Html, element, join
from ragforge.report.runs import BucketCount

_WIDTH: Final = 380
_FILLED: Final = 0.82
"""Share of the width that bars take; the rest is between them."""
_HEIGHT: Final = 110
_TOP: Final = 18
_BOTTOM: Final = 22
_METER: Final = 100


@dataclass(frozen=True, slots=True)
class Bars:
    """What a bar chart shows."""

    key: str
    """Unique on the page; goes into ids."""
    title: str
    description: str
    bars: Sequence[BucketCount]
    tone: str
    """Class that colours the bars."""
    muted: str = ""
    """Label of a bar that is shown apart, such as `none`."""
    labels: Sequence[str] = ()
    """Shorter names under the bars, aligned; the bars' own where empty."""


def bar_chart(chart: Bars) -> Html:
    """Return a bar chart; every bar carries its count, so that it reads without colour."""
    highest = max((bar.count for bar in chart.bars), default=0)
    labels = chart.labels or [bar.label for bar in chart.bars]
    step = _WIDTH / max(len(chart.bars), 1)
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
    return element(
        "svg",
        element("title", chart.title, id=f"{chart.key}-t"),
        element("desc", chart.description, id=f"{chart.key}-d"),
        join(bars),
        element("line", class_="axis", x1=0, x2=_WIDTH, y1=base, y2=base),
        class_=f"chart {chart.tone}",
        viewBox=f"0 0 {_WIDTH} {base + _BOTTOM}",
        role="img",
        aria_labelledby=f"{chart.key}-t {chart.key}-d",
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
    name = element("text", label, class_="label", x=middle, y=base + 15)
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
    return join([shape, element("text", bar.count, class_="count", x=middle, y=top), name])


def _place(value: float) -> str:
    return f"{_METER * value:.1f}"
