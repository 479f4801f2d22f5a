"""Charts as one picture that is a file of its own, readable wherever SVG is.

Not every viewer knows variables of style sheets: colours stand in the file as they are, and dark
ones beside them for those who ask their windows for dark.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import both_ends
from ragforge.report.page.charts import WIDTH, Chart, Line, line_class, ring_class
from ragforge.report.page.markup import Html, element, join, page_file, svg_file

if TYPE_CHECKING:
    from ragforge.report.page.deltas import Deltas
    from ragforge.report.page.interval_rows import IntervalRows

Theme = Literal["auto", "light", "dark"]
"""Auto follows the reader's window where the viewer can."""

_GAP: Final = 24
_HEAD: Final = 42
_HEAD_LINE: Final = 21
_HEAD_LETTER: Final = 10
_CAPTION: Final = 22
_KEY_HEIGHT: Final = 20
_KEY_PIECE: Final = 50
_KEY_LETTER: Final = 7
_KEY_CHARS: Final = 44
_NOTE_HEIGHT: Final = 17
_NOTE_LETTER: Final = 7
_CSS: Final = (
    ".chart { max-width: none; } "
    "text { font: 13px var(--sans); fill: var(--ink); } "
    ".sheet { fill: var(--paper); } .head { font: 600 17px var(--serif); } "
    ".axis-name { font-size: 12px; fill: var(--soft); }"
)
_DARK: Final = "@media (prefers-color-scheme: dark)"
_COMMENT: Final = re.compile(r"/\*[^*]*\*/")
_BLOCK_START: Final = re.compile(r"[^{}]*\{")
_VARIABLE: Final = re.compile(r"(--[\w-]{1,40}):([^;}]{1,300})")
_USE: Final = re.compile(r"var\((--[\w-]{1,40})\)")


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of a picture."""

    caption: str
    drawn: Html
    height: int
    """Of the chart, in the units of `WIDTH`."""
    lines: Sequence[Line] = ()
    """Those that the key names."""
    shows: "Chart | Deltas | IntervalRows | None" = None
    """What is drawn, for those who draw it as text; None where text cannot."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Charts below and beside one another."""

    title: str
    told: str
    """What a screen reader says of it."""
    rows: Sequence[Sequence[Panel]]
    """At least one, with at least one panel each."""
    notes: Sequence[str] = ()
    """What nobody should read it without, below the title."""


def picture_svg(picture: Picture, theme: Theme = "auto") -> str:
    """Return the picture as SVG. All data in it is text."""
    width = max(map(len, picture.rows)) * (WIDTH + _GAP) + _GAP
    keys = _keys((panel.lines for row in picture.rows for panel in row), width)
    step = _key_width(line for row in keys for line in row)
    wide = (width - 2 * _GAP) // _NOTE_LETTER
    notes = [line for note in picture.notes for line in textwrap.wrap(note, wide)]
    titles = textwrap.wrap(picture.title, (width - 2 * _GAP) // _HEAD_LETTER)
    below = _HEAD_LINE * (len(titles) - 1)
    behind = below + _NOTE_HEIGHT * len(notes)
    top = _HEAD + behind + _KEY_HEIGHT * len(keys)
    drawn = [
        *(
            element("text", line, class_="head", x=_GAP, y=30 + _HEAD_LINE * number)
            for number, line in enumerate(titles)
        ),
        *(
            element("text", line, class_="axis-name", x=_GAP, y=50 + below + _NOTE_HEIGHT * number)
            for number, line in enumerate(notes)
        ),
        *(
            _key(line, _GAP + at * step, 46 + behind + _KEY_HEIGHT * number)
            for number, row in enumerate(keys)
            for at, line in enumerate(row)
        ),
    ]
    for row in picture.rows:
        for at, panel in enumerate(row):
            drawn += _placed(panel, _GAP + at * (WIDTH + _GAP), top)
        top += _CAPTION + max(panel.height for panel in row) + _GAP
    height = top + _GAP
    sheet = element("rect", class_="sheet", width=width, height=height)
    css = _themed(page_file("page.css") + page_file("charts.css") + page_file("queries.css"), theme)
    return svg_file(
        join([sheet, *drawn]), title=picture.told, width=width, height=height, css=css
    ).code


def _placed(panel: Panel, left: int, top: int) -> list[Html]:
    place = {"x": left, "y": top + _CAPTION, "width": WIDTH, "height": panel.height}
    return [
        element("text", panel.caption, x=left, y=top + 15),
        element("svg", panel.drawn, **place, viewBox=f"0 0 {WIDTH} {panel.height}"),
    ]


def _keys(of_panels: Iterable[Sequence[Line]], width: int) -> list[list[Line]]:
    """Return the lines that have names of their own, in rows that fit."""
    lines = named_lines(line for lines in of_panels for line in lines)
    if not lines:
        return []
    lines.sort(key=lambda line: (line.has_rings, line.tone))
    n = max(1, (width - 2 * _GAP) // _key_width(lines))
    return [lines[at : at + n] for at in range(0, len(lines), n)]


def named_lines(lines: Iterable[Line]) -> list[Line]:
    """Return lines, of those that share a name one."""
    return list({line.name: line for line in lines}.values())


def _key_width(lines: Iterable[Line]) -> int:
    letters = max((len(line.name) for line in lines), default=0)
    return _KEY_PIECE + _KEY_LETTER * min(letters, _KEY_CHARS)


def _key(line: Line, x: int, y: int) -> Html:
    """Return a piece of a line with its name."""
    piece = element("line", class_=line_class(line), x1=x, x2=x + 26, y1=y, y2=y)
    ring = element("circle", class_=ring_class(line), cx=x + 13, cy=y, r=3)
    name = element("text", both_ends(line.name, _KEY_CHARS), class_="axis-name", x=x + 32, y=y + 4)
    return element("g", piece, ring if line.has_rings else None, name, class_="key")


def _themed(page_css: str, theme: Theme) -> str:
    """Return the rules for what a picture holds, with the colours of a theme in them."""
    light: dict[str, str] = {}
    dark: dict[str, str] = {}
    rules = []
    for selector, body in _blocks(_COMMENT.sub("", page_css + _CSS)):
        if selector == ":root":
            light.update(_VARIABLE.findall(body))
        elif selector == _DARK:
            dark.update(_VARIABLE.findall(body))
        elif not selector.startswith("@") and ":" not in selector:
            rules.append((selector, body))
    of_light, of_dark = (list(_resolved(rules, found)) for found in (light, light | dark))
    if theme != "auto":
        return "\n".join(of_light if theme == "light" else of_dark)
    changed = [rule for rule, other in zip(of_dark, of_light, strict=True) if rule != other]
    return "\n".join([*of_light, f"{_DARK} {{", *changed, "}"])


def _blocks(css: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before and within the outer braces of a style sheet."""
    at = 0
    while (start := _BLOCK_START.match(css, at)) is not None:
        end, depth = start.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(css[end], 0)
            end += 1
        yield start[0][:-1].strip(), css[start.end() : end - 1]
        at = end


def _resolved(rules: Iterable[tuple[str, str]], values: Mapping[str, str]) -> Iterator[str]:
    for selector, body in rules:
        if not any(selector.startswith(name) for name in _PICTURED):
            continue
        found = _USE.sub(lambda use: values[use[1]].strip(), " ".join(body.split()))
        yield f"{selector} {{ {found} }}"


_PICTURED: Final = (
    ".chart", ".key", ".dash-", ".tone-", ".difference", ".scatter", ".interval-rows", "text",
    ".sheet", ".head", ".axis-name",
)  # fmt: skip
"""How the selectors begin of what is drawn; the rest is of pages."""
