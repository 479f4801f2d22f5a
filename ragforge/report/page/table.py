"""Tables of the page: scrollable where narrow, numbers aligned, means with their bounds."""

from collections.abc import Iterable, Sequence

from ragforge.evaluating.formatting import number
from ragforge.evaluating.runs import Estimate
from ragforge.evaluating.text_table import Table, numeric_column
from ragforge.report.page.charts import meter
from ragforge.report.page.markup import Child, Html, element, join


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


def estimate_cell(estimate: Estimate, note: str = "") -> Html:
    """Return a cell: a mean, its interval as a bar and in brackets, and bounds on failures."""
    ends, bounds = estimate.interval, None
    if estimate.is_bounded:
        bounds = f"[{number(estimate.low)}, {number(estimate.high)}]"
    interval = f"({number(ends.low)}\u2013{number(ends.high)})" if ends else None
    lines = [element("span", text, class_="bounds") for text in (interval, bounds, note) if text]
    mean = element("span", number(estimate.mean), class_="mean")
    return element("td", mean, _meter(estimate), *lines, class_="num estimate")


def _meter(estimate: Estimate) -> Html | None:
    if estimate.mean is None or estimate.mean > 1:
        return None
    low, high = (
        (estimate.interval.low, estimate.interval.high)
        if estimate.interval
        else (estimate.mean,) * 2
    )
    return meter(estimate.mean, low, min(high, 1.0))
