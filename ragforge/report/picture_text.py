"""Pictures as text, for a terminal: bars, sparklines, intervals and points, as wide as it is."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import floor
from string import ascii_letters
from textwrap import wrap
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import both_ends, number, plural, signed, visible
from ragforge.report.page.charts import Chart, Line, Scale, round_range
from ragforge.report.page.deltas import Deltas
from ragforge.report.page.interval_rows import IntervalRow, IntervalRows
from ragforge.report.page.picture import Panel, Picture

_EDGES: Final = (0.5, 0.2, 0.05, 1e-9)
"""Between the bars of differences, in size."""
_NAME: Final = 28
"""Characters of a name, at most."""
_LEAST_ACROSS: Final = 16
"""Characters of a chart, without names and numbers; a narrower terminal breaks lines."""
_ROWS_A_TICK: Final = 3
_SEVERAL: Final = "*"
"""Where points of several lines fall on one place."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What is drawn with."""

    levels: str
    """From low to high, of sparklines."""
    parts: str
    """What ends a bar, from an eighth to the whole, if there are any; else of whole characters."""
    reach: str
    middle: str
    second: str
    zero: str


BLOCKS: Final = Marks("▁▂▃▄▅▆▇█", "▏▎▍▌▋▊▉█", "─", "●", "○", "┊")
ASCII: Final = Marks("_.-:=+*#", "#", "-", "o", "x", "|")
"""Where an encoding has no blocks."""


def picture_text(picture: Picture, width: int = 80, marks: Marks = BLOCKS) -> str:
    """Return a picture as text, its title on the first line, without a line feed at its end.

    Args:
        picture: What it shows; charts that text cannot draw are left out.
        width: Columns.
        marks: What is drawn with.
    """
    notes = [
        line
        for note in picture.notes
        for line in wrap(visible(note), width, break_on_hyphens=False)
    ]
    blocks = ["\n".join([visible(picture.title), *notes])]
    for panel in (panel for row in picture.rows for panel in row):
        lines = list(_lines(panel, width, marks))
        if lines:
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _lines(panel: Panel, width: int, marks: Marks) -> Iterator[str]:
    """Yield the lines of a chart; there are none of one that text cannot draw."""
    shows = panel.shows
    if isinstance(shows, Deltas):
        yield "queries by how much higher B is"
        yield from _differences(shows, width, marks)
    elif isinstance(shows, IntervalRows):
        yield visible(panel.caption)
        yield from _intervals(shows, width, marks)
    elif shows is not None and any(shows.axis_names):
        yield visible(panel.caption)
        yield from _points(shows, width, marks)
    elif shows is not None:
        yield "evaluations from left to right, the oldest first"
        yield from _sparklines(shows, width, marks)


def _differences(deltas: Deltas, width: int, marks: Marks) -> Iterator[str]:
    """Yield a bar for each size of the differences, gains first, with the number of queries."""
    counts = dict.fromkeys(range(len(_EDGES), -len(_EDGES) - 1, -1), 0)
    for item in deltas.items:
        size = sum(abs(item.diff) > edge for edge in _EDGES)
        counts[size if item.diff > 0 else -size] += 1
    names = {place: _size(place) for place in counts}
    most = max(counts.values())
    wide = max(map(len, names.values()))
    across = max(width - wide - len(f"{most:,}") - 2, _LEAST_ACROSS)
    for place, count in counts.items():
        drawn = _bar(count / most * across, marks)
        yield " ".join(filter(None, (f"{names[place]:>{wide}}", drawn, f"{count:,}")))
    yield from wrap(visible(deltas.in_words()), width)


def _size(place: int) -> str:
    """Return which differences a bar counts, in words."""
    if not place:
        return "the same"
    sign = "-" if place < 0 else "+"
    edges = [f"{sign}{edge:g}" for edge in _EDGES[:-1]]
    above = len(_EDGES) - abs(place)
    if not above:
        return f"beyond {edges[0]}"
    return f"{[*edges, '0'][above]} to {edges[above - 1]}"


def _bar(length: float, marks: Marks) -> str:
    """Return a bar of a length in characters; what is there is never without one."""
    n = len(marks.parts)
    parts = max(round(length * n), int(length > 0))
    whole, rest = divmod(parts, n)
    return marks.parts[-1] * whole + (marks.parts[rest - 1] if rest else "")


def _intervals(chart: IntervalRows, width: int, marks: Marks) -> Iterator[str]:
    """Yield a row for each value: its name, its place and reach on one axis, its numbers."""
    ends = [end for row in chart.rows for end in _ends(row)]
    ticks = round_range([0.0, *ends] if chart.has_zero else ends)
    names = [both_ends(row.name, _NAME) for row in chart.rows]
    numbers = [_numbers(row, is_signed=chart.has_zero) for row in chart.rows]
    left, right = max(map(len, names)), max(map(len, numbers))
    across = max(width - left - right - 2, _LEAST_ACROSS)
    scale = Scale(ticks[0], ticks[-1], 0, across - 1)
    for row, name, told in zip(chart.rows, names, numbers, strict=True):
        drawn = [" "] * across
        if row.interval is not None:
            low, high = (round(scale.place(end)) for end in (row.interval.low, row.interval.high))
            drawn[low : high + 1] = marks.reach * (high + 1 - low)
        if chart.has_zero:
            drawn[round(scale.place(0))] = marks.zero
        drawn[round(scale.place(row.value))] = marks.second if row.is_second else marks.middle
        yield f"{name:<{left}} {''.join(drawn)} {told}".rstrip()
    first, last = f"{ticks[0]:.3g}", f"{ticks[-1]:.3g}"
    yield f"{'':<{left}} {first}{last:>{across - len(first)}}"


def _ends(row: IntervalRow) -> list[float]:
    return [row.value, *((row.interval.low, row.interval.high) if row.interval else ())]


def _numbers(row: IntervalRow, *, is_signed: bool) -> str:
    form = signed if is_signed else number
    ends = f" [{form(row.interval.low)}, {form(row.interval.high)}]" if row.interval else ""
    return f"{form(row.value)}{ends}"


def _points(chart: Chart, width: int, marks: Marks) -> Iterator[str]:
    """Yield the points of lines between two axes, a letter a line, and what the letters mean."""
    lines = dict(zip(ascii_letters, (line for line in chart.lines if line.points), strict=False))
    n_rows = _ROWS_A_TICK * (len(chart.y_ticks) - 1)
    labels = {n_rows - _ROWS_A_TICK * at: f"{y:.3g}" for at, y in enumerate(chart.y_ticks)}
    left = max(map(len, labels.values()))
    last = max(width - left - 2, _LEAST_ACROSS) - 1
    xs = [x for x, _ in chart.x_ticks] + [p.x for line in lines.values() for p in line.points]
    across = Scale(min(xs), max(xs), 0, last)
    up = Scale(chart.y_ticks[0], chart.y_ticks[-1], n_rows, 0)
    drawn: dict[tuple[int, int], str] = {}
    for letter, line in lines.items():
        for point in line.points:
            place = round(up.place(point.y)), round(across.place(point.x))
            drawn[place] = letter if drawn.get(place, letter) == letter else _SEVERAL
    yield chart.axis_names[1]
    for row in range(n_rows + 1):
        cells = "".join(drawn.get((row, column), " ") for column in range(last + 1))
        yield f"{labels.get(row, ''):>{left}} {marks.zero}{cells}".rstrip()
    below = [" "] * (left + 2)
    for x, label in chart.x_ticks:
        at = left + 2 + min(round(across.place(x)), last + 1 - len(label))
        if at > len(below) or at == left + 2:
            below += [" "] * (at - len(below)) + list(label)
    yield "".join(below)
    yield f"{chart.axis_names[0]:>{left + 3 + last}}"
    keys = [f"{letter} {both_ends(line.name, 60)}" for letter, line in lines.items()]
    several = [f"{_SEVERAL} several"] if _SEVERAL in drawn.values() else []
    yield from wrap("; ".join([*keys, *several]), width, break_on_hyphens=False)


def _sparklines(chart: Chart, width: int, marks: Marks) -> Iterator[str]:
    """Yield a sparkline for each line, all on one scale, with its first and last value."""
    lines = [line for line in chart.lines if not line.is_second and line.points]
    low, high = chart.y_ticks[0], chart.y_ticks[-1]
    names = [both_ends(line.name, _NAME) for line in lines]
    left = max(map(len, names), default=0)
    last = round(max(point.x for line in lines for point in line.points))
    room = max(width - left - 22, _LEAST_ACROSS)
    for line, name in zip(lines, names, strict=True):
        drawn = "".join(_spark(line, last, (low, high), marks))[-room:]
        values = f"{number(line.points[0].y)} to {number(line.points[-1].y)}"
        yield f"{name:<{left}} {drawn} {values}"
    heights = f"{marks.levels[0]} is {low:.3g}, {marks.levels[-1]} is {high:.3g}"
    yield f"{plural(last + 1, 'evaluation')}; {heights}"


def _spark(line: Line, last: int, ends: Sequence[float], marks: Marks) -> Iterator[str]:
    """Yield a character for each place across; a blank where there is no value."""
    n = len(marks.levels)
    scale = Scale(ends[0], ends[1], 0, n)
    values = {place: list(of) for place, of in groupby(line.points, lambda point: round(point.x))}
    for place in range(last + 1):
        level = scale.place(values[place][-1].y) if place in values else None
        yield " " if level is None else marks.levels[min(floor(level + 1e-9), n - 1)]
