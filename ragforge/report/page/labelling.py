"""The page on which a person labels pairs, one at a time; it loads nothing.

What the judge said, the stratum, the probability and the runs are not in it.
"""

from collections.abc import Sequence
from typing import Final

from ragforge.calibration.label_tasks import ShownPair
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, visible
from ragforge.report.page.label_page import (
    LabelPage,
    bar_part,
    label_document,
    question_part,
    text_part,
)
from ragforge.report.page.markup import Html, element, site_link

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
    name: str = ""
    """Last part of the path of the set's page, where a site serves this one."""
    named_sample: str = ""
    """The calibration, where its name has to be said."""


def render_labelling(sheet: LabelSheet) -> str:
    """Return the page. All data in it is text: no markup, no links, no hidden characters."""
    tasks = [
        [*task.pair, task.look, task.text_sha256, task.wording_sha256]
        for task in (pair.task for pair in sheet.pairs)
    ]
    page = LabelPage(
        dataset=sheet.dataset,
        labeller=sheet.labeller,
        noun="pair",
        items=[_item(pair) for pair in sheet.pairs],
        n_done=sheet.n_done,
        kept_as=[sheet.sample, tasks],
        command="ragforge calibrate label --dataset DIR --from FILE",
        without_script="Without, `ragforge calibrate label --terminal` asks for the same labels, "
        "and --export csv gives a table to fill in.",
        post=sheet.post,
        ways=_ways(sheet) if sheet.name else None,
    )
    expected = element(
        "details",
        element("summary", "Expected answer ", element("kbd", "a")),
        element("p", id="answer", dir="auto"),
        id="expected",
        hidden=True,
    )
    parts = element(
        "div", question_part(expected), text_part("Text"), _guidelines(), class_="sheet"
    )
    return label_document(page, parts, bar=_buttons(), name="labelling")


def _ways(sheet: LabelSheet) -> Html:
    """Return the ways to the dataset, and to the pairs in another order."""
    links: list[Html | str] = [site_link(f"../{sheet.name}", one_line(sheet.dataset)), " / Label "]
    for order, text in (("", "as drawn"), ("document", "in batches by document")):
        query = {"order": order, "sample": sheet.named_sample}
        links += [site_link("label", text, query=query), ", "]
    return element("nav", *links[:-1], class_="ways", aria_label="Other orders")


def _item(pair: ShownPair) -> dict[str, object]:
    return {
        "batch": pair.task.batch,
        "query_id": pair.task.query_id,
        "chunk_id": pair.task.chunk_id,
        "look": pair.task.look,
        "text_sha256": pair.task.text_sha256,
        "wording_sha256": pair.task.wording_sha256,
        "decides": pair.task.decides,
        "given": list(pair.task.given),
        "query": visible(pair.question),
        "before": visible("\n".join(pair.before)),
        "text": visible(pair.text),
        "answer": visible(pair.answer),
    }


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
    return bar_part(
        element("p", id="settle", hidden=True),
        element("div", *grades, class_="row", role="group", aria_label="Grade"),
    )
