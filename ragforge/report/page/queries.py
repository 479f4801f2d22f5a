"""The parts of the page about single queries: the table of all, and the worst of each run.

The table has static rows to read, and packed data by which the script does more. The worst queries
open without the script too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

from ragforge.evaluating.formatting import (
    MISSING,
    Excerpt,
    number,
    one_line,
    plural,
    signed,
    visible,
)
from ragforge.evaluating.judgments import GRADE_MEANINGS
from ragforge.evaluating.query_details import (
    NO_GRADE_MEANINGS,
    NO_GRADE_SIGNS,
    AnswerDetail,
    ChunkDetail,
    ChunkStart,
    QueryDetail,
    RunDetail,
    Texts,
    spans,
    visible_pieces,
)
from ragforge.evaluating.query_table import FACETS, QueryRow, QueryTable, RunCell, WorstCell
from ragforge.evaluating.runs import DEPTH
from ragforge.report.page.charts import run_column, run_label
from ragforge.report.page.markup import (
    Child,
    Html,
    element,
    join,
    page_file,
    scrolling,
    with_code,
)
from ragforge.report.page.packed_queries import (
    SOURCE_MEANINGS,
    STATES,
    FilesBeside,
    Packed,
    pack_table,
)

STATIC_ROWS: Final = 500
"""Rows that are there without the script; all of them are for the script."""
_OF_LOWER_GRADES: Final = "by lower grades alone"
"""Said of a value without a relevant chunk; the script says the same."""
_KEYS: Final = "Arrow keys, Home and End go from row to row, Enter opens one; j and k go on in it."
_FILTERS: Final = (
    ("", "all queries"),
    ("failed", "failed"),
    ("low", "{} below 0.5"),
    ("nohit", "nothing relevant found"),
    ("holes", "has ungraded chunks"),
    ("changed", "changed between the runs"),
    ("worse", "worse in the second run"),
    ("better", "better in the second run"),
)
_NO_EVIDENCE: Final = "no evidence found"
"""Said of a value of 0 of a measure of evidence; the script says the same."""
_NEEDS_TWO: Final = {"changed", "worse", "better"}
_NO_SCRIPT: Final = (
    "Sorting, filters, search and opening any query need the page's script, which is off. The "
    "worst queries of each run are further down and open without it."
)
_NONE_BAD: Final = (
    "Of the queries that were measured and have a known relevant chunk, none is below the best "
    "that its judgments allow in {}."
)
_NONE_BAD_OF_EVIDENCE: Final = "Of the queries that were measured, none is below 1 in {}."
_NO_TEXT: Final = "The text of this chunk is not in the dataset."
_TOP: Final = 5
"""Ranks shown without the script, by which a page stays half the size."""
_LISTED: Final = 40
"""Queries of a list that are named with their text; the others are counted."""


def queries_section(table: QueryTable, beside: FilesBeside | None) -> Html:
    """Return the table of queries with its controls, its dialog and its packed data."""
    if not table.runs and not table.systems:
        return element("p", "Nothing is measured yet: there is no run.", class_="empty")
    static_rows = table.rows[:STATIC_ROWS]
    static = _table(table, static_rows)
    blocks = pack_table(table, table.max_bytes - len(static.code), beside)
    return join(
        [
            element("noscript", element("p", _NO_SCRIPT, class_="notice")),
            element("p", *with_code(_contents_note(table, blocks)), class_="note"),
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
    return page_file("queries.css")


def queries_script() -> str:
    """Return the script; without data in the page it does nothing."""
    return page_file("drilldown.js") + page_file("page.js")


def _contents_note(table: QueryTable, blocks: Packed) -> str:
    """Return in words what is in the page, and where the rest is."""
    n = len(table.rows)
    sentences = [f"{plural(n, 'query', 'queries')}, the worst of any run first."]
    if blocks.address:
        folder = unquote(blocks.address).split("/")[1]
        sentences.append(
            f"What was retrieved is in this page for the worst {blocks.n_inside:,}, and in the "
            f"folder {folder} beside it for all others: keep the two together. "
            "`ragforge report --single` writes all of it into one file."
        )
    elif blocks.n_inside < n:
        sentences.append(
            f"What was retrieved is kept of the worst {blocks.n_inside:,}. The rest was left out "
            "to keep the page small; a page that `ragforge report` writes has all of it."
        )
    if table.runs:
        sentences.append(
            f"Under each run stand {table.measure}, the rank of the first relevant chunk, and how "
            f"many of the top {DEPTH} have no grade."
        )
    return " ".join(sentences)


def _more(table: QueryTable, n_static: int) -> str | None:
    left = len(table.rows) - n_static
    return f"{plural(left, 'further query', 'further queries')} need the script." if left else None


def _facets(table: QueryTable) -> list[int]:
    """Return the places of those that tell queries apart."""
    every = range(len(FACETS))
    return [place for place in every if len({row.facets[place] for row in table.rows}) > 1]


def _table(table: QueryTable, rows: Sequence[QueryRow]) -> Html:
    facets = _facets(table)
    by_evidence = table.is_of_evidence
    body = element("tbody", *(_row(row, facets, is_of_evidence=by_evidence) for row in rows))
    inner = element("table", _head(table), body, id="queries-table", class_="queries")
    return scrolling(inner, "Table of queries")


def _head(table: QueryTable) -> Html:
    cells = [_column("query", "query", "t")]
    for place, name in enumerate(table.runs):
        cells.append(_column(f"value.{place}", run_column(name, place)))
    if len(table.runs) > 1:
        cells.append(_column("diff", "difference"))
    for place, system in enumerate(table.systems):
        cells.append(_column(f"verdict.{place}", element("bdi", system), "t"))
    return element("thead", element("tr", *cells))


def _column(key: str, title: Child, class_: str | None = None) -> Html:
    return element("th", title, scope="col", data_sort=key, class_=class_)


def _row(row: QueryRow, facets: Sequence[int], *, is_of_evidence: bool) -> Html:
    ask = element("span", row.text, class_="ask", dir="auto")
    code = element("code", one_line(row.query_id, 60))
    measured = (_cell(cell, is_of_evidence=is_of_evidence) for cell in row.cells)
    cells = [element("th", ask, _tags(row, facets), code, scope="row"), *measured]
    if len(row.cells) > 1:
        cells.append(element("td", difference(row.cells[0].value, row.cells[1].value)))
    cells += [element("td", text or MISSING, class_="t") for text in row.verdicts]
    return element("tr", *cells)


def _tags(row: QueryRow, facets: Sequence[int]) -> Html | None:
    known = [element("bdi", row.facets[place]) for place in facets if row.facets[place]]
    parted = [part for tag in known for part in (" · ", tag)]
    return element("small", *parted[1:]) if known else None


def _cell(cell: RunCell, *, is_of_evidence: bool) -> Html:
    notes = [
        STATES[cell.state],
        f"rank {cell.first}" if cell.first else "",
        _OF_LOWER_GRADES if cell.is_of_lower_grades and not is_of_evidence else "",
        f"{cell.holes} ungraded" if cell.holes and cell.value is not None else "",
        cell.cause,
    ]
    return element("td", number(cell.value), *(element("small", text) for text in notes if text))


def difference(before: float | None, now: float | None) -> str:
    """Return how much higher the second value is, with its sign."""
    if before is None or now is None:
        return MISSING
    return signed(now - before)


def _tools(table: QueryTable) -> Html:
    two = len(table.runs) > 1
    filters = [(key, text) for key, text in _filters(table) if two or key not in _NEEDS_TWO]
    search = element("input", type="search", id="queries-search", autocomplete="off", dir="auto")
    parts: list[Child] = [
        element("label", "Search ", search),
        _select("Show ", "filter", filters),
    ]
    if len(table.runs) > 2:
        runs = [(str(place), name) for place, name in enumerate(table.runs)]
        parts += [_select("Difference from ", "from", runs), _select("to ", "to", runs)]
    parts += [
        _select("Sort by ", "sort", _sort_keys(table)),
        element("button", "Reverse", type="button", id="queries-reverse"),
    ]
    for place in _facets(table):
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
    keys = element("p", _KEYS, class_="note")
    return element(
        "div", element("div", *parts, class_="tools"), status, keys, id="queries-tools", hidden=True
    )


def _filters(table: QueryTable) -> Iterable[tuple[str, str]]:
    """Yield what rows can be filtered by, as far as it says something of the measure."""
    for key, text in _FILTERS:
        if key == "nohit" and table.is_of_evidence:
            yield key, _NO_EVIDENCE
        elif key != "low" or table.is_bounded:
            yield key, text.format(table.measure)


def _sort_keys(table: QueryTable) -> Iterable[tuple[str, str]]:
    """Yield what rows can be sorted by: more than the table has columns for."""
    yield "", "the worst of any run first"
    yield "query", "query"
    if len(table.runs) > 1:
        yield "diff", "difference"
    for place, name in enumerate(table.runs):
        yield f"value.{place}", f"{table.measure}: {name}"
        yield f"first.{place}", f"first relevant rank: {name}"
        yield f"holes.{place}", f"ungraded in top {DEPTH}: {name}"
    yield from ((f"verdict.{place}", f"answer: {name}") for place, name in enumerate(table.systems))
    yield from ((FACETS[place], FACETS[place]) for place in _facets(table))


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


def worst_block(table: QueryTable) -> Html:
    """Return the worst queries of each run, folded up."""
    groups = []
    cells = list(table.worst_cells())
    for place, name in enumerate(table.runs):
        queries = [_query(table, item) for item in cells if item.run == name]
        heading = element("h3", run_label(name, place))
        said = _NONE_BAD_OF_EVIDENCE if table.is_of_evidence else _NONE_BAD
        none = None if queries else element("p", said.format(table.measure), class_="empty")
        groups.append(element("div", heading, *queries, none, class_="block"))
    text = f"The lowest {table.measure} of each run; open a query to see what came back."
    return join([element("p", text, class_="note"), grade_legend(), *groups])


def grade_legend() -> Html:
    """Return what the badges of grades mean."""
    items = [
        element("li", element("span", grade, class_=f"grade g{grade}"), meaning)
        for grade, meaning in enumerate(GRADE_MEANINGS)
    ]
    items.append(element("li", element("span", "?", class_="grade none"), "not judged"))
    items.append(element("li", element("span", "!", class_="grade none"), "judging failed"))
    return element("ul", *items, class_="legend")


def quoted(text: Excerpt, class_: str = "quote") -> Html:
    """Return a text of the data: its direction and its lines kept, a note where it is cut."""
    return element("p", text.text, _cut_note(text.cut_note), class_=class_, dir="auto")


def _cut_note(text: str) -> Html | None:
    return element("span", f"… {text}", class_="cut") if text else None


def _query(table: QueryTable, item: WorstCell) -> Html:
    detail = table.detail(item.query_id)
    query = table.records.queries[item.query_id]
    summary = element(
        "summary",
        element("span", number(item.cell.value), class_="value"),
        element("span", one_line(detail.text.text, 160), class_="ask", dir="auto"),
        element("span", _facts(table, (query.difficulty, query.type), item.cell), class_="facts"),
    )
    run = next(run for run in detail.runs if run.name == item.run)
    body = element("div", *_body(detail, run, table.texts([detail])), class_="inside")
    return element("details", summary, body, class_="query")


def _facts(table: QueryTable, tags: Iterable[str | None], cell: RunCell) -> str:
    first = f"first relevant at rank {cell.first}" if cell.first else "no relevant chunk found"
    if table.is_of_evidence and not cell.first:
        first = "" if cell.value else _NO_EVIDENCE
    elif cell.is_of_lower_grades:
        first += f", {_OF_LOWER_GRADES}"
    return " · ".join(filter(None, (*tags, first, cell.cause)))


def _body(detail: QueryDetail, run: RunDetail, texts: Texts) -> Iterable[Html | None]:
    yield element("p", element("code", one_line(detail.query_id)), class_="id")
    if detail.text.text != one_line(detail.text.text, 160):
        yield quoted(detail.text)
    yield element("h4", "Expected answer")
    if detail.expected_answer is None:
        yield element("p", "None is recorded.", class_="empty")
    else:
        yield quoted(detail.expected_answer)
    if detail.evidence:
        yield element("h4", "Evidence")
        yield join(element("blockquote", quoted(text)) for text in detail.evidence)
    yield from map(_answer, detail.answers)
    top = run.top[:_TOP]
    yield element("h4", f"Retrieved: top {len(top)} of {run.n_retrieved}")
    if top:
        ranked = enumerate(top, start=1)
        hits = [chunk_item(detail.chunks[item], f"rank {rank}", texts) for rank, item in ranked]
        yield element("ol", *hits, class_="hits")
    else:
        yield element("p", "Nothing was retrieved.", class_="empty")
    if run.missed:
        shown = len(run.missed)
        some = f", {shown} shown" if shown < run.n_missed else ""
        yield element("h4", f"Relevant, but not in the top {DEPTH}: {run.n_missed}{some}")
        hits = [chunk_item(detail.chunks[item], _place(run, item), texts) for item in run.missed]
        yield element("ol", *hits, class_="hits missed")


def _place(run: RunDetail, chunk_id: str) -> str:
    return f"rank {run.ranks[chunk_id]}" if chunk_id in run.ranks else "not retrieved"


def _answer(answer: AnswerDetail) -> Html:
    return join(
        [
            element(
                "h4",
                "Answer of ",
                element("bdi", answer.system),
                f": {answer.verdict or 'no grade'}",
            ),
            quoted(answer.answer) if answer.answer else element("p", "None.", class_="empty"),
            quoted(answer.explanation, "reason") if answer.explanation.text else None,
        ]
    )


def chunk_item(chunk: ChunkDetail, place: str, texts: Texts) -> Html:
    """Return a retrieved chunk: its grade, its place in the ranking, its text, the evidence marked.

    Args:
        chunk: The chunk.
        place: Where it came, in words.
        texts: Has its text and its judge's reply, as far as they are known.
    """
    start = texts.starts.get(chunk.chunk_id)
    where = "" if start is None else " / ".join(filter(None, (start.doc_id, start.heading)))
    head = element(
        "div",
        _badge(chunk),
        element("span", place, class_="rank"),
        element("code", one_line(chunk.chunk_id, 80)),
        element("span", one_line(where, 160), class_="where", dir="auto") if where else None,
        element("span", SOURCE_MEANINGS.get(chunk.source), class_="where"),
        class_="hit",
    )
    text = (
        element("p", _NO_TEXT, class_="empty")
        if start is None
        else marked_text(start, chunk.quotes)
    )
    reason = quoted(chunk.reasoning, "reason") if chunk.reasoning.text else None
    reply = texts.replies.get(chunk.call_key)
    return element("li", head, text, reason, _reply(reply) if reply else None)


def marked_text(start: ChunkStart, quotes: tuple[str, ...]) -> Html:
    """Return the text of a chunk with the evidence in it marked."""
    text = start.text.text
    pieces = [
        element("mark", piece) if place % 2 else piece
        for place, piece in enumerate(visible_pieces(text, spans(text, quotes)))
    ]
    before = element("span", "… ", class_="cut") if start.offset else None
    note = _cut_note(start.cut_note)
    return element("p", before, *pieces, note, class_="quote", dir="auto")


def _reply(reply: Excerpt) -> Html:
    text = element("pre", reply.text, _cut_note(reply.cut_note), dir="auto")
    return element("details", element("summary", "Raw reply of the judge"), text, class_="raw")


def _badge(chunk: ChunkDetail) -> Html:
    if chunk.grade is not None:
        meaning = GRADE_MEANINGS[chunk.grade]
        label = f"grade {chunk.grade}: {meaning}"
        return element("span", chunk.grade, class_=f"grade g{chunk.grade}", title=label)
    sign, label = NO_GRADE_SIGNS[chunk.state], NO_GRADE_MEANINGS[chunk.state]
    return element("span", sign, class_="grade none", title=label)


def query_link(query_id: str, text: str, *, limit: int = 110) -> Html:
    """Return a link that opens a query in the table of queries.

    Args:
        query_id: Its id.
        text: Its text; "" where only the id is known.
        limit: Characters of the text that are shown.
    """
    shown = element("bdi", one_line(text or query_id, limit))
    return element("a", shown, href=query_hash(query_id), class_="to-query")


def query_hash(query_id: str) -> str:
    """Return the fragment that opens a query."""
    return f"#q={quote(visible(query_id), safe='')}"


def query_list(title: str, query_ids: Sequence[str], texts: Mapping[str, str], key: str) -> Html:
    """Return queries folded up under a title.

    Args:
        title: With their number in it.
        query_ids: Which.
        texts: By query id.
        key: Id of the list, to be linked to; "" for none.
    """
    items = [
        element("li", query_link(query_id, texts.get(query_id, "")))
        for query_id in query_ids[:_LISTED]
    ]
    n_more = len(query_ids) - len(items)
    more = element("p", f"and {n_more:,} more, in the table of queries", class_="rest")
    return element(
        "details",
        element("summary", title),
        # Within, so that a link to it opens the list.
        element("ul", *items, id=key or None),
        more if n_more else None,
        class_="ids",
    )
