"""The part of the page that opens up the queries a run did worst on, without the script too."""

from collections.abc import Iterable
from typing import Final

from ragforge.evaluating.formatting import Excerpt, number, one_line
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
from ragforge.evaluating.query_table import QueryTable, RunCell, WorstCell
from ragforge.evaluating.runs import DEPTH, PRIMARY
from ragforge.report.page.markup import Html, element, join
from ragforge.report.page.query_blocks import SOURCES

NONE_BAD: Final = (
    "Of the queries that were measured and have a known relevant chunk, "
    f"none is below 1 in {PRIMARY}."
)
NO_TEXT: Final = "The text of this chunk is not in the dataset."
_TOP: Final = 5
"""Ranks shown without the script, by which a page stays half the size."""
_TONES: Final = 6


def worst_block(table: QueryTable) -> Html:
    """Return the worst queries of each run, folded up."""
    groups = []
    cells = list(table.worst_cells())
    for place, name in enumerate(table.runs):
        queries = [_query(table, item) for item in cells if item.run == name]
        dot = element("span", class_=f"dot tone-{place % _TONES}")
        heading = element("h3", dot, element("bdi", name))
        none = None if queries else element("p", NONE_BAD, class_="empty")
        groups.append(element("div", heading, *queries, none, class_="block"))
    text = f"The lowest {PRIMARY} of each run; open a query to see what came back."
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
    note = element("span", f"… {text.cut_note}", class_="cut") if text.cut_note else None
    return element("p", text.text, note, class_=class_, dir="auto")


def _query(table: QueryTable, item: WorstCell) -> Html:
    detail = table.detail(item.query_id)
    query = table.records.queries[item.query_id]
    summary = element(
        "summary",
        element("span", number(item.cell.value), class_="value"),
        element("span", one_line(detail.text.text, 160), class_="ask", dir="auto"),
        element("span", _facts((query.difficulty, query.type), item.cell), class_="facts"),
    )
    run = next(detail_of_run for detail_of_run in detail.runs if detail_of_run.name == item.run)
    body = element("div", *_body(detail, run, table.texts), class_="inside")
    return element("details", summary, body, class_="query")


def _facts(tags: Iterable[str | None], cell: RunCell) -> str:
    first = f"first relevant at rank {cell.first}" if cell.first else "no relevant chunk found"
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
        hits = [_chunk(detail.chunks[item], f"rank {rank}", texts) for rank, item in ranked]
        yield element("ol", *hits, class_="hits")
    else:
        yield element("p", "Nothing was retrieved.", class_="empty")
    if run.missed:
        shown = len(run.missed)
        some = f", {shown} shown" if shown < run.n_missed else ""
        yield element("h4", f"Relevant, but not in the top {DEPTH}: {run.n_missed}{some}")
        hits = [_chunk(detail.chunks[item], _place(run, item), texts) for item in run.missed]
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


def _chunk(chunk: ChunkDetail, place: str, texts: Texts) -> Html:
    start = texts.starts.get(chunk.chunk_id)
    where = "" if start is None else " / ".join(filter(None, (start.doc_id, start.heading)))
    head = element(
        "div",
        _badge(chunk),
        element("span", place, class_="rank"),
        element("code", one_line(chunk.chunk_id, 80)),
        element("span", one_line(where, 160), class_="where", dir="auto") if where else None,
        element("span", SOURCES.get(chunk.source), class_="where"),
        class_="hit",
    )
    text = element("p", NO_TEXT, class_="empty") if start is None else _marked(start, chunk.quotes)
    reason = quoted(chunk.reasoning, "reason") if chunk.reasoning.text else None
    reply = texts.replies.get(chunk.call_key)
    return element("li", head, text, reason, _reply(reply) if reply else None)


def _marked(start: ChunkStart, quotes: tuple[str, ...]) -> Html:
    """Return the text of a chunk with the evidence in it marked."""
    text = start.text.text
    pieces = [
        element("mark", piece) if place % 2 else piece
        for place, piece in enumerate(visible_pieces(text, spans(text, quotes)))
    ]
    before = element("span", "… ", class_="cut") if start.offset else None
    note = element("span", f"… {start.cut_note}", class_="cut") if start.cut_note else None
    return element("p", before, *pieces, note, class_="quote", dir="auto")


def _reply(reply: Excerpt) -> Html:
    note = element("span", f"… {reply.cut_note}", class_="cut") if reply.cut_note else None
    text = element("pre", reply.text, note, dir="auto")
    return element("details", element("summary", "Raw reply of the judge"), text, class_="raw")


def _badge(chunk: ChunkDetail) -> Html:
    if chunk.grade is not None:
        meaning = GRADE_MEANINGS[chunk.grade]
        label = f"grade {chunk.grade}: {meaning}"
        return element("span", chunk.grade, class_=f"grade g{chunk.grade}", title=label)
    sign, label = NO_GRADE_SIGNS[chunk.state], NO_GRADE_MEANINGS[chunk.state]
    return element("span", sign, class_="grade none", title=label)
