"""A sheet for reviewers as one HTML page: it loads nothing, and saves the decisions to a file.

Without script it is still to be read; decisions then go into the table that export writes.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural
from ragforge.evaluating.query_details import ChunkStart
from ragforge.files.formats.review_sheet import SheetRow
from ragforge.report.page.markup import (
    Html,
    document,
    element,
    join,
    page_file,
    page_head,
    site_link,
)
from ragforge.report.page.queries import marked_text

_CHOICES: Final = (
    ("approve", "Approve", "a"),
    ("edit", "Edit", "e"),
    ("reject", "Reject", "r"),
    ("pin", "Pin", "p"),
    ("undecided", "Undecided", "u"),
)
_EDITED: Final = (
    ("new_query", "Question", "query"),
    ("new_standalone", "What it asks alone", "standalone"),
    ("new_answer", "Answer", "expected_answer"),
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of the corpus beside a query."""

    start: ChunkStart
    quotes: tuple[str, ...] = ()
    """The evidence in it; none where it is merely near a query without an answer."""


@dataclass(frozen=True, slots=True)
class ServedReview:
    """What a page has beside the queries that a site serves: each decision is sent at once.

    Args:
        post: Path that decisions are sent to.
        states: Of the queries as they are shown, by id.
        dataset: Last part of the path of the dataset's page.
        is_batch: Whether there may be more than is on the page.
        order: In which they are.
        parts: How many people may decide.
        part: Which of them this one is, from 1.
    """

    post: str
    states: Mapping[str, str]
    dataset: str
    is_batch: bool
    order: str = ""
    parts: int = 1
    part: int = 1


def render_review(
    name: str,
    rows: Sequence[SheetRow],
    passages: Mapping[str, Sequence[Passage]] | None = None,
    site: ServedReview | None = None,
) -> str:
    """Return the page. All data in it is text: no markup, no links, no hidden characters.

    Args:
        name: Of the dataset.
        rows: What is to be decided about, in this order.
        passages: What is shown of the corpus, by query.
        site: Where a site serves the page; None for a file.
    """
    shown = passages or {}
    items = [
        _item(number, row, shown.get(row.query_id, ()), site)
        for number, row in enumerate(rows, start=1)
    ]
    css = page_file("page.css") + page_file("review.css")
    head = page_head(f"{one_line(name)}: review")
    body = [
        element("a", "Skip to the queries", href="#items", class_="skip"),
        _header(name, rows, site),
        element(
            "main",
            *items,
            id="items",
            data_post=site.post if site else None,
            **_known(name, rows, site),
        ),
        _bar(len(rows), site),
    ]
    return document(
        lang="en",
        head=head,
        body=body,
        css=css,
        script=page_file("review.js"),
        connects=site is not None,
    ).code


def _known(name: str, rows: Sequence[SheetRow], site: ServedReview | None) -> dict[str, str]:
    """Return under what name the browser keeps what was done: another sheet has another.

    On a site it is what one person types about a dataset, also where a query changed meanwhile.
    """
    revisions = "\n".join("\t".join(_identity(row)) for row in rows)
    if site is not None:
        revisions = f"{site.dataset}\n{name}\n{rows[0].reviewer if rows else ''}"
    return {"data_sheet": f"ragforge-review-{hashlib.sha256(revisions.encode()).hexdigest()[:16]}"}


def _identity(row: SheetRow) -> tuple[str, ...]:
    """Return what tells a query as it is shown from any other."""
    return row.query_id, row.revision, row.reviewer, row.state


def _header(name: str, rows: Sequence[SheetRow], site: ServedReview | None) -> Html:
    reviewer = rows[0].reviewer if rows else ""
    drawn = sum(bool(row.random) for row in rows)
    keys = (
        "Keys: j and k go to the next and previous query; a, r, p decide and go on, e edits, u "
        "takes a decision back, Esc leaves a field. "
    )
    if site is None:
        keys += "What you decided and where you were is kept by this browser."
    else:
        keys += "Each decision is kept at once in your name; what you type stays in this browser."
    return element(
        "header",
        _ways(name, site) if site else None,
        element("p", f"Review for {reviewer}" if reviewer else "Review", class_="eyebrow"),
        element("h1", one_line(name), dir="auto"),
        element("p", f"{plural(len(rows), 'query', 'queries')}, {drawn} drawn at random. {keys}"),
        element(
            "noscript",
            element(
                "p",
                "This page needs its script to save decisions. Without, it is for reading; "
                "`ragforge review export --out review.csv` gives a table to fill in.",
                class_="notice",
            ),
        ),
    )


def _ways(name: str, site: ServedReview) -> Html:
    """Return the ways to the dataset, and to other batches of its queries."""
    links: list[Html | str] = [site_link(f"../{site.dataset}", one_line(name)), " / Review "]
    for order, text in (("", "by doubt"), ("document", "by document"), ("random", "at random")):
        links += [site_link("review", text, query={"order": order}), ", "]
    if site.parts > 1:
        part = f"{site.part}/{site.parts}"
        query = {"order": site.order, "part": part}
        links += [site_link("review", f"your part of them ({part})", query=query), ", "]
    return element("nav", *links[:-1], class_="ways", aria_label="Other queries")


def _item(
    number: int, row: SheetRow, passages: Sequence[Passage], site: ServedReview | None
) -> Html:
    title = f"item-{number}"
    return element(
        "article",
        element("h2", f"{number}. ", element("span", row.query, dir="auto"), id=title),
        element("p", row.flags or "drawn at random", class_="why"),
        element("dl", *_facts(row, is_shown=any(passage.quotes for passage in passages))),
        *map(passage_block, passages),
        _controls(number, row, site),
        aria_labelledby=title,
        class_="item",
        tabindex=-1,
        data_query_id=row.query_id,
        data_revision=row.revision,
        data_reviewer=row.reviewer,
        data_random=row.random,
        data_decision=row.decision,
        data_state=site.states.get(row.query_id) if site else row.state or None,
    )


def passage_block(passage: Passage) -> Html:
    """Return a piece of the corpus with its place, and the evidence in it marked."""
    start = passage.start
    where = one_line(" / ".join(filter(None, (start.doc_id, start.heading))), 160)
    about = "Evidence in its text" if passage.quotes else "Near, and should not answer it"
    head = element("p", f"{about}: ", element("bdi", where), class_="where")
    return element("div", head, marked_text(start, passage.quotes), class_="passage")


def _facts(row: SheetRow, *, is_shown: bool) -> list[Html]:
    kind = ", ".join(filter(None, (row.type.replace("_", " "), row.difficulty)))
    facts = (
        ("Said before", row.history),
        ("Asks alone", row.standalone),
        ("Answer", row.expected_answer or "(none)"),
        ("Evidence", "" if is_shown else row.evidence or "(none)"),
        ("Found in", "" if is_shown else row.place),
        ("Kind", kind),
        ("Id", f"{row.query_id}, revision {row.revision}"),
    )
    return [
        join([element("dt", term), element("dd", text, dir="auto")]) for term, text in facts if text
    ]


def _controls(number: int, row: SheetRow, site: ServedReview | None) -> Html:
    choices = [
        element(
            "label",
            element("input", type="radio", name=f"decision-{number}", value=value),
            f" {label} ",
            element("kbd", key),
        )
        for value, label, key in _CHOICES
    ]
    edited = [
        element(
            "label",
            label,
            element("textarea", f"\n{text}", name=field, rows=2, dir="auto", autocomplete="off"),
        )
        for field, label, column in _EDITED
        if (text := getattr(row, column)) or column != "standalone"
    ]
    keep = element(
        "button", "Keep the edit ", element("kbd", "Ctrl Enter"), type="button", class_="keep"
    )
    note = element("label", "Note", element("input", type="text", name="note", autocomplete="off"))
    return element(
        "fieldset",
        element("legend", f"Decision on query {number}"),
        element("div", *choices, class_="choices"),
        element("div", *edited, keep if site else None, class_="edits", hidden=True),
        note,
        element("p", role="status", class_="fault"),
        element("p", *_on_conflict(), class_="conflict", hidden=True) if site else None,
        hidden=True,
    )


def _on_conflict() -> list[Html | str]:
    """Return what can be done where somebody else was first."""
    return [
        element("button", "Show it as it is now", type="button", class_="reload", hidden=True),
        " ",
        element("button", "Decide so all the same", type="button", class_="overrule", hidden=True),
    ]


def _bar(count: int, site: ServedReview | None) -> Html:
    save = element("button", "Save decisions (JSON)", type="button", id="save")
    if site is not None:
        order = {"order": site.order}
        save = (
            site_link("review", "Next queries", query=order)
            if site.is_batch
            else site_link("query", "Back to it", query=_only(site))
        )
    return element(
        "div",
        element("p", f"0 of {count} decided", role="status", id="done"),
        save,
        class_="bar",
        role="region",
        aria_label="Progress",
        hidden=True,
    )


def _only(site: ServedReview) -> dict[str, str]:
    return {"q": next(iter(site.states), "")}
