"""The page of the queries of a dataset: two runs side by side, and the answers of two systems."""

from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.evaluating.formatting import MISSING, both_ends, number, one_line, plural
from ragforge.evaluating.query_table import RunCell
from ragforge.pipeline.intake.reviewing import decided
from ragforge.records import Query
from ragforge.report.page.charts import run_column
from ragforge.report.page.markup import Child, Html, element, scrolling, site_link, table_row
from ragforge.report.page.packed_queries import STATES
from ragforge.report.page.queries import difference
from ragforge.viewer.measured import PAGE, SHOWN, MeasuredSet, Pair, View
from ragforge.viewer.pages import notice, page
from ragforge.viewer.served import ServedDataset

_NOTE: Final = (
    "This shows what is where; whether a difference is more than noise, and by whose grades, is in "
    "the full report."
)
_KEYS: Final = (
    "Keys: / searches, j and k go from query to query, Enter opens one. The address keeps "
    "what is shown: send it."
)


def queries_page(served: ServedDataset, measured: MeasuredSet, view: View) -> str:
    """Return the page."""
    title = one_line(served.title)
    up = element(
        "p",
        site_link("../../", "All datasets"),
        " / ",
        site_link(f"../{served.name}", title),
        class_="eyebrow",
    )
    top = [up, element("h1", "Queries of ", element("span", title, dir="auto"))]
    tools = queries_tools(measured, view)
    return page(
        f"Queries of {title}",
        *missing_notice(view),
        *(notice("About these runs", text) for text in measured.data.run_warnings),
        graded_note(measured),
        _sums(view),
        scrolling(_table(measured, view), "Queries") if view.pairs else _none(view),
        _pager(view),
        top=[*top, tools],
        depth=2,
    )


def graded_note(measured: MeasuredSet) -> Html:
    """Return who gave the grades that a page shows."""
    return element("p", f"{measured.graded[0].upper()}{measured.graded[1:]}.", class_="judges")


def missing_notice(view: View) -> list[Html]:
    """Return what the address names and the dataset does not have."""
    if not view.missing:
        return []
    return [notice("Not there any more", f"{', '.join(view.missing)}; others are shown instead")]


def _none(view: View) -> Html:
    text = "No query is like that." if view.every else "There is no query."
    return element("p", text, class_="empty")


def queries_tools(measured: MeasuredSet, view: View) -> Html:
    """Return the controls; each stands for a parameter of the address."""
    asked = view.asked
    search = element(
        "input",
        type="search",
        id="search",
        autocomplete="off",
        dir="auto",
        value=asked.search,
        data_param="search",
    )
    parts: list[Html] = [element("label", "Search ", search)]
    if measured.runs:
        parts.append(_select("Run ", "run", _plain(measured.runs), asked.run_a))
    if len(measured.runs) > 1:
        parts.append(_select("beside ", "with", _plain(measured.runs), asked.run_b))
    if measured.runs:
        parts.append(_select("by ", "measure", _plain(measured.measures), asked.measure))
    if len(measured.systems) > 1:
        systems = _plain(measured.systems)
        parts += [
            _select("Answers of ", "answers", systems, asked.system_a),
            _select("beside ", "beside", systems, asked.system_b),
        ]
    parts.append(_select("Show ", "show", list(SHOWN.items()), asked.show))
    keys = element("p", _KEYS, class_="note")
    return element(
        "div",
        element("div", *parts, class_="tools"),
        keys,
        id="view-tools",
        hidden=True,
    )


def _plain(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, both_ends(name, 60)) for name in names]


def _select(label: str, param: str, options: Sequence[tuple[str, str]], chosen: str) -> Html:
    listed = [
        element("option", text, value=value, selected=value == chosen) for value, text in options
    ]
    return element("label", label, element("select", *listed, data_param=param))


def _sums(view: View) -> Html:
    """Return how many queries there are, and on how many the second run is higher or lower."""
    shown = plural(len(view.pairs), "query", "queries")
    some = f"{shown} of {len(view.every):,}" if len(view.pairs) < len(view.every) else shown
    parts: list[Child] = [some]
    if view.asked.run_b:
        diffs = [diff for pair in view.pairs if (diff := pair.diff) is not None]
        higher, lower = sum(diff > 0 for diff in diffs), sum(diff < 0 for diff in diffs)
        equal = len(diffs) - higher - lower
        parts += [
            f"; {view.asked.measure} of ",
            element("bdi", one_line(view.asked.run_b, 60)),
            f" is higher on {higher:,}, lower on {lower:,}, the same on {equal:,}",
        ]
    return element("p", *parts, ". ", _NOTE if view.asked.run_b else None, class_="note")


def _table(measured: MeasuredSet, view: View) -> Html:
    queries = measured.data.queries
    rows = [_row(view, pair, queries[pair.row.query_id]) for pair in view.on_page]
    body = element("tbody", *rows)
    return element("table", _head(view), body, class_="queries", data_walk=True)


def _head(view: View) -> Html:
    asked = view.asked
    runs = [name for name in (asked.run_a, asked.run_b) if name]
    systems = [name for name in (asked.system_a, asked.system_b) if name]
    top = [element("td")]
    low = [_column(view, "query", "query", class_="t")]
    for name, key, place in zip(runs, "ab", view.places, strict=False):
        top.append(element("th", run_column(name, place), scope="colgroup", colspan=2))
        low += [
            _column(view, key, asked.measure, name),
            _column(view, f"first-{key}", "first relevant rank", name),
        ]
    if len(runs) > 1:
        top.append(element("td"))
        low.append(_column(view, "diff", "difference"))
    for name, key in zip(systems, "ab", strict=False):
        top.append(element("th", "answer of ", element("bdi", both_ends(name, 60)), scope="col"))
        low.append(_column(view, f"verdict-{key}", "verdict", name, class_="t"))
    top.append(element("td"))
    low.append(element("th", "decided", scope="col", class_="t"))
    return element("thead", element("tr", *top, class_="runs"), element("tr", *low))


def _column(view: View, key: str, title: str, of: str = "", *, class_: str | None = None) -> Html:
    """Return the head of a column; it leads to the view sorted by it, then to the other way."""
    down = f"-{key}"
    way = {key: "ascending", down: "descending"}.get(view.asked.sort, "none")
    sort = {key: down, down: ""}.get(view.asked.sort, key)
    query = view.asked.address(sort=sort, page=1)
    # Two runs have columns of one name.
    label = f"{title} of {one_line(of, 60)}" if of else None
    link = site_link("queries", title, query=query, class_="sort", data_view="", aria_label=label)
    return element("th", link, scope="col", aria_sort=way, class_=class_)


def _row(view: View, pair: Pair, query: Query) -> Html:
    address = view.asked.address(query_id=pair.row.query_id)
    ask = site_link("query", pair.row.text or pair.row.query_id, query=address, class_="ask")
    head = element("span", ask, element("code", one_line(pair.row.query_id, 60)), dir="auto")
    cells: list[Html] = []
    for value, first, place in zip(pair.values, pair.firsts, view.places, strict=True):
        cells += [_value(value, pair.row.cells[place]), element("td", first or MISSING)]
    if len(pair.values) > 1:
        diff = pair.diff
        tone = None if not diff else "better" if diff > 0 else "worse"
        cells.append(element("td", difference(*pair.values), class_=tone))
    cells += [element("td", verdict or MISSING, class_="t") for verdict in pair.verdicts]
    cells.append(element("td", decided(query) or MISSING, class_="t", dir="auto"))
    return table_row(head, cells)


def _value(value: float | None, cell: RunCell) -> Html:
    word = STATES[cell.state]
    return element("td", number(value), element("small", word) if word else None)


def _pager(view: View) -> Html | None:
    if view.n_pages == 1:
        return None
    at = view.page
    parts: list[Child] = []
    if at > 1:
        query = view.asked.address(page=at - 1)
        parts.append(site_link("queries", "Previous rows", query=query, data_view=""))
    first = (at - 1) * PAGE + 1
    parts.append(f"rows {first:,} to {first + len(view.on_page) - 1:,}")
    if at < view.n_pages:
        query = view.asked.address(page=at + 1)
        parts.append(site_link("queries", "Next rows", query=query, data_view=""))
    return element("nav", *parts, class_="pager", aria_label="Pages of the table")
