"""A sweep as a page, and its picture alone: quality against the tokens it takes of a prompt.

A panel a splitter and retriever, a line a size, dotted ones with overlap; all panels have the same
axes, so that lines may be compared across them.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from ragforge.evaluating.formatting import one_line
from ragforge.evaluating.sweep import ConfigurationResult, SweepReport
from ragforge.measures.measure_names import parse_measure
from ragforge.report.document import Listing, Notice
from ragforge.report.page.charts import (
    CHART_HEIGHT,
    TONES,
    WIDTH,
    Chart,
    Line,
    Point,
    legend,
    line_chart,
    round_range,
)
from ragforge.report.page.markup import (
    Html,
    document,
    element,
    join,
    page_file,
    page_head,
    svg_file,
    table_block,
)
from ragforge.report.sweep import sweep_document, tops_tables, verdict

_COLUMNS: Final = 3
_GAP: Final = 24
_HEAD: Final = 62
_CAPTION: Final = 22
_KEY: Final = 150
_SVG_CSS: Final = (
    ".chart { max-width: none; } "
    "text { font: 13px var(--sans); fill: var(--ink); } "
    ".sheet { fill: var(--paper); } .head { font: 600 17px var(--serif); } "
    ".axis-name { font-size: 12px; fill: var(--soft); }"
)


def sweep_page(report: SweepReport) -> str:
    """Return the page. All data in it is text."""
    told = sweep_document(report)
    figures = [
        element("figure", element("figcaption", title), line_chart(chart), legend(chart.lines))
        for title, chart in _panels(report)
    ]
    body = [
        element(
            "header",
            element("p", "ragforge sweep", class_="eyebrow"),
            element("h1", told.title),
            *(element("p", line, class_="lede") for line in told.lead),
        ),
        element(
            "main",
            element(
                "section",
                element("h2", _picture_title(report)),
                element("div", *figures, class_="figures"),
                element("p", _READING, class_="note"),
            ),
            element("section", element("h2", "The table"), *_blocks(report)),
            element(
                "section", element("h2", "All measures"), *map(table_block, tops_tables(report))
            ),
        ),
    ]
    css = page_file("page.css") + page_file("charts.css")
    return document(lang="en", head=page_head(one_line(told.title)), body=body, css=css).code


def sweep_svg(report: SweepReport) -> str:
    """Return the picture as a file of its own."""
    panels = list(_panels(report))
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    row_height = _CAPTION + CHART_HEIGHT + _GAP
    width = columns * WIDTH + (columns + 1) * _GAP
    height = _HEAD + rows * row_height + _GAP
    drawn = [
        element("rect", class_="sheet", width=width, height=height),
        element("text", _picture_title(report), class_="head", x=_GAP, y=30),
        *_keys(panels[0][1].lines, width),
    ]
    for at, (title, chart) in enumerate(panels):
        left = _GAP + (at % columns) * (WIDTH + _GAP)
        top = _HEAD + (at // columns) * row_height
        drawn += [
            element("text", title, x=left, y=top + 15),
            element(
                "svg",
                line_chart(chart),
                x=left,
                y=top + _CAPTION,
                width=WIDTH,
                height=CHART_HEIGHT,
                viewBox=f"0 0 {WIDTH} {CHART_HEIGHT}",
            ),
        ]
    css = page_file("page.css") + page_file("charts.css") + _SVG_CSS
    title = f"{_picture_title(report)}: {verdict(report)}"
    return svg_file(join(drawn), title=title, width=width, height=height, css=css).code


_READING: Final = (
    "Higher is better, further left is cheaper. Points are the budgets and cutoffs that were "
    "asked for, their lines 95 % intervals of the mean; differences are told by the table, as they "
    "are paired. Dotted lines have overlap."
)


def _picture_title(report: SweepReport) -> str:
    return f"{parse_measure(report.decided_by).name} against tokens in the prompt"


def _blocks(report: SweepReport) -> Iterator[Html | None]:
    for block in sweep_document(report).blocks:
        if isinstance(block, Notice):
            strong = element("strong", block.title)
            yield element("div", strong, element("p", block.text), class_="notice")
        elif isinstance(block, Listing):
            title = element("h3", block.title.capitalize()) if block.title else None
            yield join([title, *(element("p", line, class_="note") for line in block.lines)])
        else:
            yield table_block(block)


def _panels(report: SweepReport) -> Iterator[tuple[str, Chart]]:
    """Yield a chart for each splitter and retriever, those of one splitter in a row."""
    name = parse_measure(report.decided_by).name
    points = {id(item): _points(item, name) for item in report.results}
    listed = [point for of in points.values() for point in of]
    highs = [point.high if point.high is not None else point.y for point in listed]
    lows = [point.low if point.low is not None else point.y for point in listed]
    y_ticks = round_range([min(lows), max(highs)])
    most = max(point.x for point in listed)
    x_ticks = [(x, f"{x:,.0f}") for x in round_range([0.0, most])]
    sizes = sorted({item.configuration.size or 0 for item in report.results})
    by_panel = sorted(report.results, key=_panel_key)
    for at, ((splitter, retriever), of_panel) in enumerate(groupby(by_panel, _panel_key)):
        lines = [
            Line(
                _line_name(item),
                sizes.index(item.configuration.size or 0),
                points[id(item)],
                is_dotted=bool(item.configuration.overlap),
            )
            for item in sorted(of_panel, key=lambda item: item.configuration)
        ]
        title = one_line(f"{splitter}, {retriever}", 60)
        yield (
            title,
            Chart(
                key=f"sweep-{at}",
                title=f"{name} against tokens in the prompt: {title}",
                description=_described(lines, name),
                lines=lines,
                x_ticks=x_ticks,
                y_ticks=y_ticks,
                has_dots=True,
            ),
        )


def _panel_key(item: ConfigurationResult) -> tuple[str, str]:
    return item.configuration.splitter, item.configuration.retriever


def _line_name(item: ConfigurationResult) -> str:
    size, overlap = item.configuration.size, item.configuration.overlap
    if size is None:
        return "its own size"
    return f"{size:,} characters" + (f", overlap {overlap}" if overlap else "")


def _points(item: ConfigurationResult, name: str) -> list[Point]:
    points = []
    for top in item.tops:
        value = next(value for key, value in top.values.items() if parse_measure(key).name == name)
        if value.mean is not None:
            points.append(Point(top.prompt_tokens, value.mean, value.low, value.high))
    return sorted(points, key=lambda point: point.x)


def _described(lines: Sequence[Line], name: str) -> str:
    listed = (
        f"{line.name}: "
        + ", ".join(f"{name} {point.y:.3f} at {point.x:,.0f} tokens" for point in line.points)
        for line in lines
    )
    return "; ".join(listed)


def _keys(lines: Sequence[Line], width: int) -> Iterator[Html]:
    """Yield the names of lines, each behind a piece of it, as many as there is room for."""
    for at, line in enumerate(lines[: max(1, (width - 2 * _GAP) // _KEY)]):
        x = _GAP + at * _KEY
        dotted = " dotted" if line.is_dotted else ""
        tone = f"drawn tone-{line.tone % TONES} dash-{line.tone % TONES}{dotted}"
        piece = element("line", class_=tone, x1=x, x2=x + 26, y1=46, y2=46)
        yield element("g", piece, class_="key")
        yield element("text", line.name, class_="axis-name", x=x + 32, y=50)
