"""The page on which a person labels pairs, one at a time; it loads nothing.

What the judge said, the stratum, the probability and the runs are not in it.
"""

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.calibration.label_tasks import ShownPair
from ragforge.evaluating.formatting import one_line, plural, visible
from ragforge.report.page.markup import (
    Html,
    data_block,
    document,
    element,
    page_file,
    page_head,
)

GUIDELINES: Final = (
    ("0", "Off topic", "The text is about something else."),
    ("1", "On topic", "The text is on the topic of the question but holds no part of the answer."),
    (
        "2",
        "Part of the answer",
        "The text holds a part of the answer, or all of it only by inference or buried in other "
        "matter.",
    ),
    ("3", "The answer", "The text answers the question on its own, plainly and in full."),
)
"""Grade, name and meaning, in the order in which they are tested: as the judge is told."""
RULES: Final = (
    "Judge by what the text says, not by what you know, nor by how well it is written.",
    "The first grade that fits counts. If you cannot tell, skip.",
)


@dataclass(frozen=True, slots=True)
class LabelSheet:
    """What one person is to label on a page."""

    dataset: str
    labeller: str
    sample: str
    """What tells the sample from others."""
    pairs: Sequence[ShownPair]
    n_done: int
    """Labels that were taken in before."""
    post: str = ""
    """Path that labels are sent to at once; "" where they are saved to a file."""


def render_labelling(sheet: LabelSheet) -> str:
    """Return the page. All data in it is text: no markup, no links, no hidden characters."""
    css = page_file("page.css") + page_file("labelling.css")
    head = page_head(f"{one_line(sheet.dataset)}: label")
    body = [
        _header(sheet),
        _work(sheet),
        _end(sheet),
        data_block("pairs", _packed(sheet.pairs)),
    ]
    return document(
        lang="en",
        head=head,
        body=body,
        css=css,
        script=page_file("labelling.js"),
        connects=bool(sheet.post),
    ).code


def _packed(pairs: Sequence[ShownPair]) -> bytes:
    rows = [
        {
            "query_id": pair.task.query_id,
            "chunk_id": pair.task.chunk_id,
            "look": pair.task.look,
            "text_sha256": pair.task.text_sha256,
            "decides": pair.task.decides,
            "given": list(pair.task.given),
            "query": visible(pair.question),
            "before": visible("\n".join(pair.before)),
            "text": visible(pair.text),
            "answer": visible(pair.answer),
        }
        for pair in pairs
    ]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 9)


def _header(sheet: LabelSheet) -> Html:
    return element(
        "header",
        element("p", f"Labels by {sheet.labeller}", class_="eyebrow", dir="auto"),
        element("h1", one_line(sheet.dataset), dir="auto"),
        element(
            "noscript",
            element(
                "p",
                "This page needs its script. Without, `ragforge calibrate label --terminal` asks "
                "for the same labels, and --export csv gives a table to fill in.",
                class_="notice",
            ),
        ),
        element("p", "This browser is too old for this page.", id="old", hidden=True),
    )


def _work(sheet: LabelSheet) -> Html:
    return element(
        "main",
        element(
            "div",
            element("p", id="place", role="status"),
            element("progress", id="progress", max=len(sheet.pairs), aria_label="labelled"),
            class_="place",
        ),
        element(
            "div",
            element(
                "section",
                element("h2", "Question", class_="small"),
                element("p", id="before", dir="auto", hidden=True),
                element("p", id="query", dir="auto"),
                element(
                    "details",
                    element("summary", "Expected answer ", element("kbd", "a")),
                    element("p", id="answer", dir="auto"),
                    id="expected",
                    hidden=True,
                ),
                class_="question",
                aria_label="Question",
            ),
            element(
                "section",
                element("h2", "Text", class_="small"),
                element("div", id="text", dir="auto"),
                class_="passage",
                aria_label="Text",
            ),
            _guidelines(),
            class_="sheet",
        ),
        _buttons(),
        id="work",
        hidden=True,
        data_labeller=sheet.labeller,
        data_done=sheet.n_done,
        data_post=sheet.post or None,
        data_sheet=_sheet_name(sheet),
    )


def _guidelines() -> Html:
    meanings = [
        part
        for grade, name, meaning in GUIDELINES
        for part in (
            element("dt", element("span", grade, class_=f"grade g{grade}"), name),
            element("dd", meaning),
        )
    ]
    return element(
        "section",
        element("h2", "Grades", class_="small"),
        element("dl", *meanings),
        *(element("p", rule, class_="note") for rule in RULES),
        class_="guidelines",
        aria_label="Grades",
    )


def _buttons() -> Html:
    grades = [
        element(
            "button",
            element("kbd", grade),
            " ",
            element("span", name, class_="name"),
            type="button",
            class_=f"grades g{grade}",
            data_grade=grade,
            title=meaning,
        )
        for grade, name, meaning in GUIDELINES
    ]
    return element(
        "div",
        element("p", id="settle", hidden=True),
        element("div", *grades, class_="row", role="group", aria_label="Grade"),
        element(
            "div",
            element("button", element("kbd", "s"), " Skip", type="button", id="skip"),
            element("button", element("kbd", "u"), " Undo", type="button", id="undo"),
            element("button", "Save labels", type="button", id="save", class_="save"),
            class_="row",
        ),
        element("p", role="alert", id="fault"),
        class_="bar",
    )


def _end(sheet: LabelSheet) -> Html:
    count = plural(len(sheet.pairs), "pair")
    if sheet.post:
        text = f"All {count} are labelled, and kept."
    else:
        text = (
            f"All {count} are labelled. Save the labels, and bring the file to the dataset: "
            "`ragforge calibrate label --dataset DIR --from FILE`."
        )
    return element(
        "section",
        element("h2", "Done", tabindex=-1, id="done"),
        element("p", text),
        element(
            "p",
            element("button", "Save labels", type="button", id="save-all"),
            " ",
            element("button", "Undo the last", type="button", id="undo-last"),
        ),
        id="end",
        hidden=True,
    )


def _sheet_name(sheet: LabelSheet) -> str:
    """Return under what name the browser keeps the labels: another sheet has another."""
    tasks = [[*pair.task.pair, pair.task.look, pair.task.text_sha256] for pair in sheet.pairs]
    told = json.dumps([sheet.sample, sheet.labeller, tasks])
    return f"ragforge-label-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
