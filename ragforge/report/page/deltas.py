"""How each query fares under two runs: the differences, the greatest losses first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.report.page.markup import Html, element, join
from ragforge.report.page.scales import Scale
from ragforge.report.runs import PRIMARY, MeasuredRun
from ragforge.report.shown import plural

MOST_BARS: Final = 176
"""Bars of a chart; of more queries, evenly spaced ones are drawn."""
_ALIKE: Final = 1e-9
"""Differences that rounding makes."""
_WIDTH: Final = 380
_LEFT: Final = 38
_TOP: Final = 8
_HEIGHT: Final = 130


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


def delta_chart(found: Deltas, key: str) -> Html:
    """Return one bar a query, the greatest loss on the left, gains upwards.

    Args:
        found: At least one query.
        key: Unique on the page; goes into ids.
    """
    shown = _shown(found.items)
    reach = max((abs(item.diff) for item in shown), default=0) or 1.0
    up = Scale(-reach, reach, _TOP + _HEIGHT, _TOP)
    zero = up.place(0)
    step = (_WIDTH - _LEFT) / len(shown)
    bars = [_bar(_LEFT + step * n, step, zero, up.place(item.diff)) for n, item in enumerate(shown)]
    title = f"{PRIMARY} of {found.b} less that of {found.a}, query by query"
    ticks = [
        element("text", _signed(value), class_="tick", x=_LEFT - 3, y=f"{up.place(value) + 4:.1f}")
        for value in (reach, -reach)
    ]
    return element(
        "svg",
        element("title", title, id=f"{key}-t"),
        element("desc", found.in_words(), id=f"{key}-d"),
        *ticks,
        join(bars),
        element("line", class_="axis", x1=_LEFT, x2=_WIDTH, y1=f"{zero:.1f}", y2=f"{zero:.1f}"),
        class_="chart deltas",
        viewBox=f"0 0 {_WIDTH} {_TOP + _HEIGHT + 10}",
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\u2212")


def _values(run: MeasuredRun) -> dict[str, float]:
    if run.scores is None:
        return {}
    return dict(zip(run.scores.query_ids, run.scores.values(PRIMARY), strict=True))


def _shown(items: Sequence[Delta]) -> Sequence[Delta]:
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
