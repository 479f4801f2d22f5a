"""The part of the page about answers: verdicts, and whether retrieval or the model is to blame."""

from collections.abc import Sequence

from ragforge.report.answer_tables import answers, checked, context_name
from ragforge.report.answers import AnswerSummary, Cell, Diagnosis
from ragforge.report.estimate import counts
from ragforge.report.html_table import estimate_cell, scroll_table, table_row
from ragforge.report.markup import Html, element, join
from ragforge.report.shown import one_line, plural, share
from ragforge.report.summary import Summary
from ragforge.report.words import DIAGNOSIS_NOTE

_WITH_TEXT = 20
"""Queries of a field that are listed with their text; the rest is listed by id."""


def answers_block(summary: Summary) -> Html:
    """Return verdicts by system and a diagnosis grid for each system and context."""
    plain = answers(summary)
    body = [
        table_row(
            element("bdi", item.system),
            [
                estimate_cell(item.score, counts(item.score)),
                *(element("td", f"{count:,}", class_="num") for count in item.verdicts.values()),
                element("td", f"{item.n_failed:,}", class_="num"),
                element("td", f"{item.n_ungraded:,}", class_="num"),
                element("td", f"{item.n_unanswered:,}", class_="num"),
                estimate_cell(item.hallucination, checked(item)),
            ],
        )
        for item in summary.answers
    ]
    numeric = [False, *[True] * (len(plain.headers) - 1)]
    grids = [_grid(summary, item, grid) for item in summary.answers for grid in item.diagnoses]
    return join(
        [
            scroll_table(plain.title, plain.headers, body, numeric),
            element("p", plain.note, class_="note"),
            element("h3", "Retrieval or the model?"),
            element("p", DIAGNOSIS_NOTE, class_="note"),
            element("div", *grids, class_="grids"),
        ]
    )


def _grid(summary: Summary, item: AnswerSummary, grid: Diagnosis) -> Html:
    total = sum(len(cell.query_ids) for cell in grid.cells)
    by_key = {(cell.retrieval_is_good, cell.answer_is_good): cell for cell in grid.cells}
    rows = [
        table_row(name, [_field(by_key[good, True], total), _field(by_key[good, False], total)])
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


def _field(cell: Cell, total: int) -> Html:
    count = len(cell.query_ids)
    good = cell.retrieval_is_good + cell.answer_is_good
    return element(
        "td",
        element("span", f"{count:,}", class_="count"),
        element("span", share(count, total), class_="share"),
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
