"""The page on which a person labels answers: which facts each one states; it loads nothing.

Which system answered and what the judge said are not shown.
"""

import json
from collections.abc import Sequence

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import visible
from ragforge.records import Query
from ragforge.report.page.label_page import (
    LabelPage,
    bar_part,
    label_document,
    question_part,
    text_part,
)
from ragforge.report.page.markup import element

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
    expected_sha256: str
    facts_sha256: str
    """As of an `AnswerLabel` that is given now."""

    @property
    def query_id(self) -> str:
        """Of the query."""
        return self.query.query_id

    @property
    def expected(self) -> str:
        """What a right answer says, as it is shown."""
        query = self.query
        return query.expected_answer or ("" if query.answerable else "(the corpus does not tell)")


@dataclass(frozen=True, slots=True)
class AnswerSheet:
    """What one person is to label on a page."""

    dataset: str
    labeller: str
    answers: Sequence[ShownAnswer]
    n_done: int
    post: str = ""
    """Path that labels are sent to at once; "" where they are saved to a file."""


def render_answer_labelling(sheet: AnswerSheet) -> str:
    """Return the page. All data in it is text: no markup, no links, no hidden characters."""
    page = LabelPage(
        dataset=sheet.dataset,
        labeller=sheet.labeller,
        noun="answer",
        items=[_item(answer) for answer in sheet.answers],
        n_done=sheet.n_done,
        kept_as=[
            [answer.query_id, answer.answer_sha256, answer.expected_sha256, answer.facts_sha256]
            for answer in sheet.answers
        ],
        command="ragforge calibrate label-answers --dataset DIR --from FILE",
        without_script="Without, `ragforge calibrate label-answers --terminal` asks for the same "
        "labels.",
        post=sheet.post,
    )
    return label_document(
        page,
        question_part(element("p", "Expected: ", element("span", id="expected", dir="auto"))),
        text_part("Answer to label"),
        element("div", id="ticks"),
        element(
            "label",
            element("input", type="checkbox", id="more"),
            " It also states something else ",
            element("kbd", "m"),
            id="more-label",
        ),
        bar=bar_part(
            first=element("button", element("kbd", "Enter"), " Next", type="button", id="next")
        ),
        name="answer_labelling",
        data={"statuses": json.dumps(STATUSES), "verdicts": json.dumps(VERDICTS)},
    )


def _item(shown: ShownAnswer) -> dict[str, object]:
    query = shown.query
    return {
        "query_id": query.query_id,
        "system": shown.system,
        "answer_sha256": shown.answer_sha256,
        "expected_sha256": shown.expected_sha256,
        "facts_sha256": shown.facts_sha256,
        "query": visible(query.asked),
        "before": visible("\n".join(shown.before)),
        "expected": visible(shown.expected),
        "text": visible(shown.answer) or "(empty)",
        "facts": [{"fact_id": fact.fact_id, "text": visible(fact.text)} for fact in query.facts],
    }
