"""The table of all queries: static rows to read, and packed data by which the script does more."""

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from ragforge.evaluating.formatting import MISSING, number, one_line, plural
from ragforge.evaluating.query_table import FACETS, QueryRow, QueryTable, RunCell
from ragforge.evaluating.runs import DEPTH, PRIMARY
from ragforge.report.page.markup import Child, Html, data_block, element, join
from ragforge.report.page.query_blocks import (
    STATES,
    detail_block,
    index_of,
    rows_block,
    texts_block,
)
from ragforge.report.page.worst import grade_legend

ROWS_A_BLOCK: Final = 10_000
DETAILS_A_BLOCK: Final = 25
LEAST_FOR_DETAILS: Final = 300_000
"""Bytes that drill-downs may take, however much the rows take."""
_SHARE_OF_RANKINGS: Final = 0.6
"""What rankings and grades may take of the room for drill-downs; texts get the rest."""

STATIC_ROWS: Final = 500
"""Rows that are there without the script; all of them are for the script."""
_FILTERS: Final = (
    ("", "all queries"),
    ("failed", "failed"),
    ("low", f"{PRIMARY} below 0.5"),
    ("nohit", "nothing relevant found"),
    ("holes", "has ungraded chunks"),
    ("changed", "changed between the runs"),
    ("worse", "worse in the second run"),
    ("better", "better in the second run"),
)
_NEEDS_TWO: Final = {"changed", "worse", "better"}
_NO_SCRIPT: Final = (
    "Sorting, filters, search and opening any query need the page's script, which is off. The "
    "worst queries of each run are further down and open without it."
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of blocks."""

    key: str
    content: Callable[[QueryTable, int, int], object]
    """Of a number of rows from some row on."""
    size: int
    """Rows in a block."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A table of queries as blocks of a page."""

    blocks: tuple[Html, ...]
    n_details: int
    """Queries, from the worst on, whose rankings are in it."""
    n_texts: int
    """Those whose chunks have their texts too."""


def pack_table(table: QueryTable, room: int) -> Packed:
    """Pack the rows of all queries, and the drill-downs of as many of the worst as there is room.

    Args:
        table: What is to be packed.
        room: Bytes for all blocks; rows come in any case.
    """
    n = len(table.rows)
    rows = _packed(_Kind("queries-rows", rows_block, ROWS_A_BLOCK), table, n, None)
    room = max(room - _size(rows), LEAST_FOR_DETAILS)
    kind = _Kind("queries-detail", detail_block, DETAILS_A_BLOCK)
    details = _packed(kind, table, n, int(room * _SHARE_OF_RANKINGS))
    kind = _Kind("queries-texts", texts_block, DETAILS_A_BLOCK)
    texts = _packed(kind, table, table.reach, room - _size(details))
    n_details = min(len(details) * DETAILS_A_BLOCK, n)
    n_texts = min(len(texts) * DETAILS_A_BLOCK, table.reach, n_details)
    index = index_of(table) | {
        "rowBlocks": len(rows),
        "aBlock": DETAILS_A_BLOCK,
        "details": n_details,
        "texts": n_texts,
    }
    first = data_block("queries-index", packed(index))
    return Packed((first, *rows, *details, *texts), n_details, n_texts)


def packed(value: object) -> bytes:
    """Return JSON, deflated: the same bytes for the same value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), 9)


def _packed(kind: _Kind, table: QueryTable, n: int, room: int | None) -> list[Html]:
    """Pack the first rows block by block, as long as there is room."""
    blocks: list[Html] = []
    for place, first in enumerate(range(0, n, kind.size)):
        content = kind.content(table, first, min(kind.size, n - first))
        block = data_block(f"{kind.key}-{place}", packed(content))
        if room is not None:
            room -= len(block.code)
            if room < 0:
                break
        blocks.append(block)
    return blocks


def _size(blocks: list[Html]) -> int:
    return sum(len(block.code) for block in blocks)


def queries_section(table: QueryTable) -> Html:
    """Return the table of queries with its controls, its dialog and its packed data."""
    if not table.runs and not table.systems:
        return element("p", "Nothing is measured yet: there is no run.", class_="empty")
    static_rows = table.rows[:STATIC_ROWS]
    columns = _columns(table)
    static = _table(table, static_rows, columns)
    blocks = pack_table(table, table.max_bytes - len(static.code))
    return join(
        [
            element("noscript", element("p", _NO_SCRIPT, class_="notice")),
            element("p", _contents_note(table, blocks), class_="note"),
            _tools(table),
            static,
            element("p", _more(table, len(static_rows)), class_="note", id="queries-more"),
            _pager(),
            _dialog(),
            *blocks.blocks,
        ]
    )


def queries_css() -> str:
    """Return the style sheet of the table and its dialog."""
    return files("ragforge.report.page").joinpath("queries.css").read_text(encoding="utf-8")


def queries_script() -> str:
    """Return the script; without data in the page it does nothing."""
    own = files("ragforge.report.page")
    return "".join(own.joinpath(part).read_text("utf-8") for part in ("drilldown.js", "page.js"))


def _contents_note(table: QueryTable, blocks: Packed) -> str:
    """Say what is in the page, and what was left out to keep it small."""
    n = len(table.rows)
    sentences = [f"{plural(n, 'query', 'queries')}, the worst of any run first."]
    if blocks.n_details < n:
        sentences.append(f"Rankings and grades are kept of the worst {blocks.n_details:,}.")
    if blocks.n_texts < blocks.n_details:
        sentences.append(f"Texts of chunks are kept of the worst {blocks.n_texts:,}.")
    if blocks.n_texts < n:
        sentences.append("The rest was left out to keep the page small.")
    return " ".join(sentences)


def _more(table: QueryTable, n_static: int) -> str | None:
    left = len(table.rows) - n_static
    return f"{plural(left, 'further query', 'further queries')} need the script." if left else None


def _columns(table: QueryTable) -> list[int]:
    """Return the facets that tell queries apart."""
    every = range(len(FACETS))
    return [place for place in every if len({row.facets[place] for row in table.rows}) > 1]


def _table(table: QueryTable, rows: Sequence[QueryRow], facets: Sequence[int]) -> Html:
    body = element("tbody", *(_row(table, row, facets) for row in rows))
    inner = element("table", _head(table, facets), body, id="queries-table", class_="queries")
    return element("div", inner, class_="scroll", role="region", tabindex=0, aria_label="Queries")


def _head(table: QueryTable, facets: Sequence[int]) -> Html:
    top = [element("td")]
    low = [_column("query", "query", "t")]
    for place, name in enumerate(table.runs):
        dot = element("span", class_=f"dot tone-{place % 6}")
        top.append(element("th", dot, element("bdi", name), scope="colgroup", colspan=3))
        low += [
            _column(f"value.{place}", PRIMARY),
            _column(f"first.{place}", "first relevant rank"),
            _column(f"holes.{place}", f"ungraded in top {DEPTH}"),
        ]
    if len(table.runs) > 1:
        top.append(element("td"))
        low.append(_column("diff", "difference"))
    for place, system in enumerate(table.systems):
        top.append(element("th", element("bdi", system), scope="col"))
        low.append(_column(f"verdict.{place}", "answer", "t"))
    for place in facets:
        top.append(element("td", class_="f"))
        low.append(_column(FACETS[place], FACETS[place], "t f"))
    return element("thead", element("tr", *top, class_="runs"), element("tr", *low))


def _column(key: str, title: str, class_: str | None = None) -> Html:
    return element("th", title, scope="col", data_sort=key, class_=class_)


def _row(table: QueryTable, row: QueryRow, facets: Sequence[int]) -> Html:
    ask = element("span", row.text, class_="ask", dir="auto")
    head = element("th", ask, element("code", one_line(row.query_id, 60)), scope="row")
    cells: list[Html] = []
    for cell in row.cells:
        cells += _cells(cell)
    if len(row.cells) > 1:
        cells.append(element("td", difference(row.cells[0].value, row.cells[1].value)))
    cells += [element("td", text or MISSING, class_="t") for text in row.verdicts]
    texts = (row.facets[place] or MISSING for place in facets)
    cells += [element("td", text, class_="t f", dir="auto") for text in texts]
    return element("tr", head, *cells)


def _cells(cell: RunCell) -> Iterable[Html]:
    words = filter(None, (STATES[cell.state], cell.cause))
    yield element("td", number(cell.value), *(element("small", word) for word in words))
    for count in (cell.first or MISSING, cell.holes if cell.value is not None else MISSING):
        yield element("td", count)


def difference(before: float | None, now: float | None) -> str:
    """Return how much higher the second value is, with its sign."""
    if before is None or now is None:
        return MISSING
    shown = f"{now - before:+.3f}"
    return shown[1:] if float(shown) == 0 else shown.replace("-", "\u2212")


def _tools(table: QueryTable) -> Html:
    two = len(table.runs) > 1
    filters = [(key, text) for key, text in _FILTERS if two or key not in _NEEDS_TWO]
    search = element("input", type="search", id="queries-search", autocomplete="off", dir="auto")
    parts: list[Child] = [
        element("label", "Search ", search),
        _select("Show ", "filter", filters),
    ]
    if len(table.runs) > 2:
        runs = [(str(place), name) for place, name in enumerate(table.runs)]
        parts += [_select("Difference from ", "from", runs), _select("to ", "to", runs)]
    for place in _columns(table):
        values = sorted({row.facets[place] for row in table.rows})
        if len(values) <= 50:
            options = [("", "any"), *((value or "-", value or "not set") for value in values)]
            parts.append(_select(f"{FACETS[place].capitalize()} ", FACETS[place], options))
    causes = sorted({cell.cause for row in table.rows for cell in row.cells} - {""})
    if causes:
        parts.append(
            _select("Likely cause ", "cause", [("", "any"), *((cause, cause) for cause in causes)])
        )
    parts.append(element("button", "Reset", type="button", id="queries-reset"))
    status = element("p", role="status", id="queries-count")
    return element(
        "div", element("div", *parts, class_="tools"), status, id="queries-tools", hidden=True
    )


def _select(label: str, name: str, options: Iterable[tuple[str, str]]) -> Html:
    listed = [element("option", text, value=value) for value, text in options]
    return element("label", label, element("select", *listed, id=f"queries-{name}", name=name))


def _pager() -> Html:
    return element(
        "nav",
        element("button", "Previous rows", type="button", id="queries-back"),
        element("button", "Next rows", type="button", id="queries-forth"),
        id="queries-pager",
        class_="pager",
        aria_label="Pages of the table",
        hidden=True,
    )


def _dialog() -> Html:
    bar = element(
        "div",
        element("button", "Previous", type="button", id="query-back"),
        element("button", "Next", type="button", id="query-forth"),
        element("button", "Close", type="button", id="query-close"),
        class_="bar",
    )
    body = element("div", id="query-body", tabindex=-1)
    return element(
        "dialog", bar, body, grade_legend(), id="query-dialog", aria_label="One query, opened"
    )
