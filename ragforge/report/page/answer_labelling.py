"""The page on which a person labels answers: which facts each one states; it loads nothing.

Which system answered and what the judge said are not shown.
"""

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ragforge.evaluating.formatting import one_line, visible
from ragforge.records import Query
from ragforge.report.page.markup import Html, data_block, document, element, page_file, page_head

STATUSES = (
    ("supported", "Said"),
    ("partial", "In part"),
    ("missing", "Missing"),
    ("contradicted", "Contradicted"),
)
VERDICTS = (
    ("correct", "Correct"),
    ("partial", "Partly correct"),
    ("incorrect", "Incorrect"),
    ("not_attempted", "No attempt"),
)


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as a labeller sees it, with what is not shown of it."""

    query: Query
    system: str
    before: tuple[str, ...]
    """What was said before a follow-up question, a line each."""
    answer: str
    answer_sha256: str

    @property
    def query_id(self) -> str:
        """Of the query."""
        return self.query.query_id


@dataclass(frozen=True, slots=True)
class AnswerSheet:
    """What one person is to label on a page."""

    dataset: str
    labeller: str
    answers: Sequence[ShownAnswer]
    n_done: int


def render_answer_labelling(sheet: AnswerSheet) -> str:
    """Return the page. All data in it is text: no markup, no links, no hidden characters."""
    css = page_file("page.css") + page_file("labelling.css") + page_file("answer_labelling.css")
    rows = [_row(item) for item in sheet.answers]
    packed = zlib.compress(json.dumps(rows, ensure_ascii=False).encode(), 9)
    told = json.dumps([sheet.labeller, [[row["query_id"], row["answer_sha256"]] for row in rows]])
    name = f"ragforge-answers-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    body = [
        element(
            "header",
            element("p", f"Labels by {sheet.labeller}", class_="eyebrow", dir="auto"),
            element("h1", one_line(sheet.dataset), dir="auto"),
            element("noscript", element("p", "This page needs its script.", class_="notice")),
            element("p", "This browser is too old for this page.", id="old", hidden=True),
        ),
        _work(sheet, name),
        element(
            "section",
            element("h2", "Done", tabindex=-1, id="done"),
            element(
                "p",
                "Save the labels, and bring the file to the dataset: "
                "`ragforge calibrate label-answers --dataset DIR --from FILE`.",
            ),
            element("button", "Save labels", type="button", id="save-all"),
            " ",
            element("button", "Undo the last", type="button", id="undo-last"),
            id="end",
            hidden=True,
        ),
        data_block("answers", packed),
    ]
    head = page_head(f"{one_line(sheet.dataset)}: label answers")
    script = page_file("answer_labelling.js")
    return document(lang="en", head=head, body=body, css=css, script=script).code


def _row(item: ShownAnswer) -> dict[str, object]:
    query = item.query
    expected = query.expected_answer or ("" if query.answerable else "(the corpus does not tell)")
    return {
        "query_id": query.query_id,
        "system": item.system,
        "answer_sha256": item.answer_sha256,
        "query": visible(query.asked),
        "before": visible("\n".join(item.before)),
        "expected": visible(expected),
        "answer": visible(item.answer) or "(empty)",
        "facts": [{"fact_id": fact.fact_id, "text": visible(fact.text)} for fact in query.facts],
    }


def _work(sheet: AnswerSheet, name: str) -> Html:
    return element(
        "main",
        element(
            "div",
            element("p", id="place", role="status"),
            element("progress", id="progress", max=len(sheet.answers), aria_label="labelled"),
            class_="place",
        ),
        element(
            "section",
            element("h2", "Question", class_="small"),
            element("p", id="before", dir="auto", hidden=True),
            element("p", id="query", dir="auto"),
            element("p", "Expected: ", element("span", id="expected", dir="auto")),
            class_="question",
            aria_label="Question",
        ),
        element(
            "section",
            element("h2", "Answer to label", class_="small"),
            element("div", id="text", dir="auto"),
            class_="passage",
            aria_label="Answer to label",
        ),
        element("div", id="ticks"),
        element(
            "label",
            element("input", type="checkbox", id="more"),
            " It also states something else ",
            element("kbd", "m"),
            id="more-label",
        ),
        element(
            "div",
            element(
                "div",
                element("button", element("kbd", "Enter"), " Next", type="button", id="next"),
                element("button", element("kbd", "s"), " Skip", type="button", id="skip"),
                element("button", element("kbd", "u"), " Undo", type="button", id="undo"),
                element("button", "Save labels", type="button", id="save"),
                class_="row",
            ),
            element("p", role="alert", id="fault"),
            class_="bar",
        ),
        id="work",
        hidden=True,
        data_labeller=sheet.labeller,
        data_done=sheet.n_done,
        data_sheet=name,
        data_statuses=json.dumps(STATUSES),
        data_verdicts=json.dumps(VERDICTS),
    )
