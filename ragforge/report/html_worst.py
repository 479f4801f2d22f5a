"""The part of the page that opens up the queries a run did worst on."""

from collections.abc import Iterable
from typing import Final

from ragforge.report.html_runs import run_name
from ragforge.report.markup import Html, element, join
from ragforge.report.runs import DEPTH, PRIMARY
from ragforge.report.shown import Excerpt, number, one_line
from ragforge.report.summary import Summary
from ragforge.report.words import GRADE_MEANINGS
from ragforge.report.worst import ShownChunk, WorstQuery

_NONE: Final = (
    "Of the queries that were measured and have a known relevant chunk, "
    f"none is below 1 in {PRIMARY}."
)

_SOURCES: Final = {
    "human": "graded by a person",
    "evidence": "graded by the evidence",
    "judge": "graded by the judge",
    "carried": "grade carried over",
}


def worst_block(summary: Summary) -> Html:
    """Return the worst queries of each run, folded up."""
    groups = []
    for name, found in summary.worst.items():
        heading = element("h3", run_name(summary, name))
        none = None if found else element("p", _NONE, class_="empty")
        groups.append(element("div", heading, *map(_query, found), none, class_="block"))
    return join([_legend(), *groups])


def quoted(text: Excerpt, class_: str = "quote") -> Html:
    """Return a text of the data: its direction and its lines kept, a note where it is cut."""
    note = element("span", f"… {text.cut_note}", class_="cut") if text.cut_note else None
    return element("p", text.text, note, class_=class_, dir="auto")


def _query(item: WorstQuery) -> Html:
    summary = element(
        "summary",
        element("span", number(item.value), class_="value"),
        element("span", _ask(item), class_="ask", dir="auto"),
        element("span", _facts(item), class_="facts"),
    )
    return element(
        "details", summary, element("div", *_body(item), class_="inside"), class_="query"
    )


def _ask(item: WorstQuery) -> str:
    return one_line(item.text.text, 160)


def _facts(item: WorstQuery) -> str:
    rank = item.first_relevant_rank
    first = "no relevant chunk found" if rank is None else f"first relevant at rank {rank}"
    tags = (item.query.difficulty, item.query.type, first)
    return " · ".join(tag for tag in tags if tag)


def _body(item: WorstQuery) -> Iterable[Html | None]:
    yield element("p", element("code", one_line(item.query.query_id)), class_="id")
    if item.text.text != _ask(item):
        yield quoted(item.text)
    yield element("h4", "Expected answer")
    if item.expected_answer is None:
        yield element("p", "None is recorded.", class_="empty")
    else:
        yield quoted(item.expected_answer)
    if item.evidence:
        yield element("h4", "Evidence")
        yield join(element("blockquote", quoted(text)) for text in item.evidence)
    yield element("h4", f"Retrieved: top {min(DEPTH, item.n_retrieved)} of {item.n_retrieved}")
    if item.retrieved:
        yield element("ol", *map(_chunk, item.retrieved), class_="hits")
    else:
        yield element("p", "Nothing was retrieved.", class_="empty")
    if item.missed:
        shown = len(item.missed)
        some = f", {shown} shown" if shown < item.n_missed else ""
        yield element("h4", f"Relevant, but not in the top {DEPTH}: {item.n_missed}{some}")
        yield element("ol", *map(_chunk, item.missed), class_="hits missed")


def _chunk(chunk: ShownChunk) -> Html:
    where = (
        None
        if chunk.start is None
        else " / ".join(filter(None, (chunk.start.doc_id, chunk.start.heading)))
    )
    place = f"rank {chunk.rank}" if chunk.rank else "not retrieved"
    head = element(
        "div",
        _badge(chunk),
        element("span", place, class_="rank"),
        element("code", one_line(chunk.chunk_id, 80)),
        element("span", one_line(where, 160), class_="where", dir="auto") if where else None,
        element("span", _SOURCES.get(chunk.source), class_="where"),
        class_="hit",
    )
    text = (
        element("p", "The text of this chunk is not in the dataset.", class_="empty")
        if chunk.start is None
        else quoted(chunk.start.text)
    )
    reason = quoted(chunk.reasoning, "reason") if chunk.reasoning.text else None
    return element("li", head, text, reason)


def _badge(chunk: ShownChunk) -> Html:
    if chunk.grade is not None:
        meaning = GRADE_MEANINGS[chunk.grade]
        label = f"grade {chunk.grade}: {meaning}"
        return element("span", chunk.grade, class_=f"grade g{chunk.grade}", title=label)
    sign, label = ("!", "judging failed") if chunk.state == "failed" else ("?", "not judged")
    return element("span", sign, class_="grade none", title=label)


def _legend() -> Html:
    items = [
        element("li", element("span", grade, class_=f"grade g{grade}"), meaning)
        for grade, meaning in enumerate(GRADE_MEANINGS)
    ]
    items.append(element("li", element("span", "?", class_="grade none"), "not judged"))
    items.append(element("li", element("span", "!", class_="grade none"), "judging failed"))
    text = f"The lowest {PRIMARY} of each run; open a query to see what came back."
    return join([element("p", text, class_="note"), element("ul", *items, class_="legend")])
