"""What pages have in common on which a person labels items one at a time; they load nothing."""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural
from ragforge.report.page.markup import (
    Html,
    data_block,
    document,
    element,
    page_file,
    page_head,
)


@dataclass(frozen=True, slots=True)
class LabelPage:
    """What a page shows to one person.

    Args:
        dataset: Its name.
        labeller: Who labels.
        noun: What an item is called: `pair`, `answer`.
        items: What is labelled, in order, with all that the page knows of it: what the judge said
            is not in it.
        n_done: Items that have a label of this person from before.
        kept_as: By what the browser tells the labels of this page from those of others.
        command: That takes the saved file in.
        without_script: What to do instead where no script runs.
        post: Path that labels are sent to at once; "" where they are saved to a file.
        ways: To other pages, where a site serves this one.
    """

    dataset: str
    labeller: str
    noun: str
    items: Sequence[Mapping[str, object]]
    n_done: int
    kept_as: object
    command: str
    without_script: str
    post: str = ""
    ways: Html | None = None


def label_document(
    page: LabelPage, *work: Html, bar: Html, name: str, data: Mapping[str, str] | None = None
) -> str:
    """Return the page, as text.

    Args:
        page: What it shows.
        work: What is between the place and the end: the item.
        bar: The buttons, below all that scrolls: no text is ever under them.
        name: Of its own script, and of its style sheet where it has one.
        data: What else the script is told.
    """
    sheets = ["page.css", "labelling.css"]
    if name != "labelling":
        sheets.append(f"{name}.css")
    title = "label" if page.noun == "pair" else f"label {page.noun}s"
    return document(
        lang="en",
        head=page_head(f"{one_line(page.dataset)}: {title}"),
        body=[
            element(
                "div",
                _header(page),
                _work(page, work, data or {}),
                _end(page),
                id="desk",
                # Where it scrolls and holds no button, keys scroll it.
                tabindex=0,
            ),
            bar,
            _items(page),
        ],
        css="".join(map(page_file, sheets)),
        script=page_file("label_session.js") + page_file(f"{name}.js"),
        connects=bool(page.post),
    ).code


def question_part(*more: Html) -> Html:
    """Return the place of the question, with what was said before it."""
    return element(
        "section",
        element("h2", "Question", class_="small"),
        element("p", id="before", dir="auto", hidden=True),
        element("p", id="query", dir="auto"),
        *more,
        class_="question",
        aria_label="Question",
    )


def text_part(title: str) -> Html:
    """Return the place of the text that is labelled."""
    return element(
        "section",
        element("h2", title, class_="small"),
        element("div", id="text", dir="auto"),
        class_="passage",
        aria_label=title,
    )


def bar_part(*rows: Html | None, first: Html | None = None) -> Html:
    """Return the bar of buttons: rows of its own, then those that all pages have.

    Args:
        rows: Above the usual buttons.
        first: The first of the usual row.
    """
    return element(
        "section",
        *rows,
        element(
            "div",
            first,
            element("button", element("kbd", "s"), " Skip", type="button", id="skip"),
            element("button", element("kbd", "u"), " Undo", type="button", id="undo"),
            element("button", "Save labels", type="button", id="save", class_="save"),
            class_="row",
        ),
        element("p", role="alert", id="fault"),
        id="bar",
        class_="bar",
        aria_label="Decide",
        hidden=True,
    )


def _header(page: LabelPage) -> Html:
    notice = f"This page needs its script. {page.without_script}"
    return element(
        "header",
        page.ways,
        element("p", f"Labels by {page.labeller}", class_="eyebrow", dir="auto"),
        element("h1", one_line(page.dataset), dir="auto"),
        element("noscript", element("p", notice, class_="notice")),
        element("p", "This browser is too old for this page.", id="old", hidden=True),
    )


def _work(page: LabelPage, parts: Sequence[Html], data: Mapping[str, str]) -> Html:
    told = json.dumps([page.kept_as, page.labeller])
    kept = f"ragforge-{page.noun}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    return element(
        "main",
        element(
            "div",
            element("p", id="place", role="status"),
            element("progress", id="progress", max=len(page.items), aria_label="labelled"),
            class_="place",
        ),
        *parts,
        id="work",
        hidden=True,
        data_labeller=page.labeller,
        data_noun=page.noun.capitalize(),
        data_done=page.n_done,
        data_post=page.post or None,
        data_sheet=kept,
        **{f"data_{name}": value for name, value in data.items()},
    )


def _items(page: LabelPage) -> Html:
    text = json.dumps(page.items, ensure_ascii=False, separators=(",", ":"))
    return data_block("items", zlib.compress(text.encode(), 9))


def _end(page: LabelPage) -> Html:
    count = plural(len(page.items), page.noun)
    if page.post:
        text = f"All {count} are labelled, and kept."
    else:
        text = (
            f"All {count} are labelled. Save the labels, and bring the file to the dataset: "
            f"`{page.command}`."
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
