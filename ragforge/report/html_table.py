"""Tables of the page: scrollable where narrow, numbers aligned, means with their bounds."""

from collections.abc import Iterable, Sequence

from ragforge.report.charts import meter
from ragforge.report.estimate import Estimate
from ragforge.report.markup import Child, Html, element, join
from ragforge.report.shown import number
from ragforge.report.table import Table, numeric_column


def table_block(table: Table, *, titled: bool = True) -> Html | None:
    """Return a table with its title and note; None where it has no rows."""
    if not table.rows:
        return None
    columns = list(zip(*table.rows, strict=True))
    numeric = [index > 0 and numeric_column(column) for index, column in enumerate(columns)]
    rows = [
        [
            element("td", cell, class_="num" if right else None)
            for cell, right in zip(row[1:], numeric[1:], strict=True)
        ]
        for row in table.rows
    ]
    heads = [row[0] for row in table.rows]
    body = [table_row(head, row) for head, row in zip(heads, rows, strict=True)]
    return element(
        "div",
        element("h3", table.title) if titled else None,
        scroll_table(table.title, table.headers, body, numeric),
        element("p", table.note, class_="note") if table.note else None,
        class_="block",
    )


def scroll_table(
    title: str, headers: Sequence[Child], body: Iterable[Html], numeric: Sequence[bool]
) -> Html:
    """Return a table in a region that scrolls sideways, by keyboard too."""
    heads = [
        element("th", text, scope="col", class_="num" if right else None)
        for text, right in zip(headers, numeric, strict=True)
    ]
    table = element("table", element("thead", element("tr", *heads)), element("tbody", join(body)))
    return element("div", table, class_="scroll", role="region", tabindex=0, aria_label=title)


def table_row(head: Child, cells: Iterable[Html]) -> Html:
    """Return a row that its first cell names."""
    return element("tr", element("th", head, scope="row"), *cells)


def estimate_cell(found: Estimate, note: str = "") -> Html:
    """Return a cell with a mean, its bounds where failures could change it, and a thin bar."""
    bounds = None
    if found.is_bounded:
        bounds = element("span", f"{number(found.low)}\u2013{number(found.high)}", class_="bounds")
    return element(
        "td",
        element("span", number(found.mean), class_="mean"),
        _meter(found),
        bounds,
        element("span", note, class_="bounds") if note else None,
        class_="num estimate",
    )


def _meter(found: Estimate) -> Html | None:
    if found.mean is None or found.low is None or found.high is None or found.high > 1:
        return None
    return meter(found.mean, found.low, found.high)
