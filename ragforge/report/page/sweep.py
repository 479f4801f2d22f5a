"""A sweep as a page, and its picture alone: quality against the tokens it takes of a prompt.

A panel a splitter and retriever, a line a size, those with overlap thinner and with rings; all
panels have the same axes, so that lines may be compared across them.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line
from ragforge.evaluating.sweep import ConfigurationResult, SweepReport
from ragforge.measures.measure_names import parse_measure
from ragforge.report.document import Listing, Notice
from ragforge.report.page.charts import (
    NAMED_HEIGHT,
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
    table_block,
)
from ragforge.report.page.picture import Panel, Picture, named_lines
from ragforge.report.sweep import sweep_document, tops_tables, verdict

_COLUMNS: Final = 3
_PAGE_CSS: Final = (
    "h3.splitter { margin: 1.4rem 0 .6rem; } "
    ".figures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); } "
    ".figures .chart text { font-size: 12px; } "
    "@media (max-width: 40rem) { .figures .chart text { font-size: 13px; } }"
)


def sweep_page(report: SweepReport) -> str:
    """Return the page. All data in it is text."""
    told = sweep_document(report)
    by_splitter = groupby(_panels(report), lambda panel: panel.splitter)
    pictures = [
        join(
            [
                element("h3", splitter, class_="splitter"),
                element("div", *map(_figure, of_splitter), class_="figures"),
            ]
        )
        for splitter, of_splitter in by_splitter
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
                *pictures,
                element("p", _reading(report), class_="note"),
            ),
            element("section", element("h2", "The table"), *_blocks(report)),
            element(
                "section", element("h2", "All measures"), *map(table_block, tops_tables(report))
            ),
        ),
    ]
    css = page_file("page.css") + page_file("charts.css") + _PAGE_CSS
    return document(lang="en", head=page_head(one_line(told.title)), body=body, css=css).code


def _figure(panel: "_Panel") -> Html:
    keys = legend(named_lines(panel.chart.lines))
    return element("figure", element("figcaption", panel.title), line_chart(panel.chart), keys)


def sweep_picture(report: SweepReport) -> Picture:
    """Return the panels as a picture."""
    rows = [
        [
            Panel(
                panel.title,
                line_chart(panel.chart),
                NAMED_HEIGHT,
                panel.chart.lines,
                shows=panel.chart,
            )
            for panel in row
        ]
        for row in _rows(list(_panels(report)))
    ]
    title = _picture_title(report)
    return Picture(title, f"{title}: {verdict(report)}", rows)


def _rows(panels: Sequence["_Panel"]) -> list[list["_Panel"]]:
    """Return panels in rows; those of a splitter begin a row, unless each has but one."""
    groups = [list(of) for _, of in groupby(panels, lambda panel: panel.splitter)]
    if all(len(group) == 1 for group in groups):
        groups = [list(panels)]
    return [group[at : at + _COLUMNS] for group in groups for at in range(0, len(group), _COLUMNS)]


_READING: Final = (
    "Higher is better, further left is cheaper. Points are the budgets and cutoffs that were "
    "asked for, their upright lines 95 % intervals of the mean; differences are told by the table, "
    "as they are paired."
)
_READING_OVERLAP: Final = (
    " Thin lines with rings have overlap; which one, where there are several, and their intervals "
    "are in the table."
)


def _reading(report: SweepReport) -> str:
    with_overlap = any(item.configuration.overlap for item in report.results)
    return _READING + (_READING_OVERLAP if with_overlap else "")


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


@dataclass(frozen=True, slots=True)
class _Panel:
    """A chart of a splitter and a retriever."""

    splitter: str
    title: str
    chart: Chart


def _panels(report: SweepReport) -> Iterator[_Panel]:
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
    overlaps: dict[int | None, set[int]] = {}
    for item in report.results:
        if item.configuration.overlap:
            of_size = overlaps.setdefault(item.configuration.size, set())
            of_size.add(item.configuration.overlap)
    by_panel = sorted(report.results, key=_panel_key)
    for at, ((splitter, retriever), of_panel) in enumerate(groupby(by_panel, _panel_key)):
        lines = [
            Line(
                _line_name(item, len(overlaps.get(item.configuration.size, ()))),
                sizes.index(item.configuration.size or 0),
                points[id(item)],
                has_rings=bool(item.configuration.overlap),
            )
            for item in sorted(of_panel, key=lambda item: item.configuration)
        ]
        title = one_line(f"{splitter}, {retriever}", 60)
        yield _Panel(
            one_line(splitter, 60),
            title,
            Chart(
                key=f"sweep-{at}",
                title=f"{name} against tokens in the prompt: {title}",
                description=_described(lines, name),
                lines=lines,
                x_ticks=x_ticks,
                y_ticks=y_ticks,
                has_dots=True,
                axis_names=("tokens in the prompt, mean", name),
            ),
        )


def _panel_key(item: ConfigurationResult) -> tuple[str, str]:
    return item.configuration.splitter, item.configuration.retriever


def _line_name(item: ConfigurationResult, n_overlaps: int) -> str:
    size, overlap = item.configuration.size, item.configuration.overlap
    if size is None:
        return "its own size"
    told = "with overlap" if n_overlaps > 1 else f"overlap {overlap}"
    return f"{size:,} characters" + (f", {told}" if overlap else "")


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
