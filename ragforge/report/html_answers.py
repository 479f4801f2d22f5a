"""The part of the page about answers: rates, slices, and whether retrieval or the model failed."""

from collections.abc import Iterable, Sequence

from ragforge.measures.rates import Rate
from ragforge.report.answer_diagnosis import Cell, Diagnosis
from ragforge.report.answer_tables import (
    answers,
    bounds,
    context_name,
    contexts,
    count_of,
    ends,
    lengths,
    share_of,
    slices,
)
from ragforge.report.answer_words import DIAGNOSIS_NOTE, RATE_LABELS, RATES_NOTE
from ragforge.report.answers import AnswerSummary
from ragforge.report.charts import meter
from ragforge.report.html_table import scroll_table, table_block, table_row
from ragforge.report.markup import Child, Html, element, join
from ragforge.report.shown import number, one_line, plural
from ragforge.report.summary import Summary

_WITH_TEXT = 20
"""Queries of a field that are listed with their text; the rest is listed by id."""


def answers_block(summary: Summary) -> Html:
    """Return rates by system, slices, and a diagnosis grid for each system and context."""
    systems = summary.answers
    grids = [_grid(summary, item, grid) for item in systems for grid in item.diagnoses]
    return join(
        [
            _rates(systems),
            element("p", RATES_NOTE, class_="note"),
            table_block(answers(systems)),
            *map(table_block, slices(systems)),
            table_block(lengths(systems)),
            element("h3", "Retrieval or the model?"),
            element("p", DIAGNOSIS_NOTE, class_="note"),
            element("div", *grids, class_="grids"),
            table_block(contexts(systems)),
        ]
    )


def _rates(systems: Sequence[AnswerSummary]) -> Html:
    body = [
        table_row(label, [_rate_cell(item.rates[name]) for item in systems])
        for name, label in RATE_LABELS.items()
    ]
    heads: list[Child] = ["rate", *(element("bdi", item.system) for item in systems)]
    table = scroll_table("Answer rates", heads, body, [False, *[True] * len(systems)])
    return element("div", table, class_="block rates")


def _rate_cell(rate: Rate) -> Html:
    """Return a cell with a rate, its interval as a bar and in words, and what it rests on."""
    bar = None
    if rate.mean is not None and rate.interval is not None:
        bar = meter(rate.mean, rate.interval.low, rate.interval.high)
    return element(
        "td",
        element("span", number(rate.mean), class_="mean"),
        bar,
        *(element("span", line, class_="bounds") for line in _rate_lines(rate)),
        class_="num estimate",
    )


def _rate_lines(rate: Rate) -> Iterable[str]:
    interval = f"95 %: {ends(rate.interval)}, " if rate.interval else ""
    yield f"{interval}n {count_of(rate)}"
    failed = f", {rate.n_failed:,} failed" if rate.n_failed else ""
    if bounds(rate) or failed:
        yield f"bounds: {bounds(rate)}{failed}"


def _grid(summary: Summary, item: AnswerSummary, grid: Diagnosis) -> Html:
    by_key = {(cell.retrieval_is_good, cell.answer_is_good): cell for cell in grid.cells}
    rows = [
        table_row(name, [_field(by_key[good, True]), _field(by_key[good, False])])
        for name, good in (("retrieval good", True), ("retrieval bad", False))
    ]
    head = element(
        "tr",
        element("td"),
        element("th", "answer good", scope="col"),
        element("th", "answer bad", scope="col"),
    )
    title = element("h4", element("bdi", item.system), ", ", element("bdi", context_name(grid)))
    return element(
        "div",
        title,
        element("table", element("thead", head), element("tbody", *rows), class_="quadrant"),
        *(_members(summary, cell) for cell in grid.cells if cell.query_ids),
        *(_undecided(summary, found.reason, found.query_ids) for found in grid.undecided),
        class_="grid",
    )


def _field(cell: Cell) -> Html:
    count = len(cell.query_ids)
    good = cell.retrieval_is_good + cell.answer_is_good
    return element(
        "td",
        element("span", f"{count:,}", class_="count"),
        element("span", share_of(cell), class_="share"),
        element("span", cell.reading, class_="reading"),
        class_=f"field f{good}",
    )


def _members(summary: Summary, cell: Cell) -> Html:
    text = f"{cell.reading}: {plural(len(cell.query_ids), 'query', 'queries')}"
    return _listed(summary, text, cell.query_ids)


def _undecided(summary: Summary, reason: str, query_ids: Sequence[str]) -> Html:
    text = f"undecided: {plural(len(query_ids), 'query', 'queries')}, {reason}"
    return _listed(summary, text, query_ids)


def _listed(summary: Summary, title: str, query_ids: Sequence[str]) -> Html:
    items = [
        element(
            "li",
            element("code", one_line(query_id, 60)),
            " ",
            element("bdi", one_line(summary.queries.get(query_id, ""), 110)),
        )
        for query_id in query_ids[:_WITH_TEXT]
    ]
    rest = ", ".join(one_line(query_id, 60) for query_id in query_ids[_WITH_TEXT:])
    return element(
        "details",
        element("summary", title),
        element("ul", *items),
        element("p", "also: ", element("code", rest), class_="rest") if rest else None,
        class_="ids",
    )
