"""The page of one query: what was expected, what two systems answered, what two runs retrieved."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ragforge.corpus.text_locations import documents_of
from ragforge.deferred import dataclass
from ragforge.evaluating.answers.records import SystemRecords
from ragforge.evaluating.formatting import Excerpt, both_ends, excerpt, number, one_line
from ragforge.evaluating.query_details import (
    ChunkStart,
    ChunkStarts,
    QueryDetail,
    Texts,
    query_detail,
    spans,
    stored_replies,
    visible_pieces,
)
from ragforge.evaluating.runs import DEPTH
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.intake.review_passages import passages
from ragforge.pipeline.intake.reviewing import decided
from ragforge.records import AnswerGrade, Chunk, Query
from ragforge.report.page.charts import run_label
from ragforge.report.page.markup import Child, Html, element, join, site_link
from ragforge.report.page.packed_queries import STATES
from ragforge.report.page.queries import chunk_item, grade_legend, marked_text, quoted
from ragforge.report.page.review import passage_block
from ragforge.viewer.measured import MeasuredSet, Pair, View
from ragforge.viewer.pages import notice, page
from ragforge.viewer.queries_page import graded_note, missing_notice, queries_tools
from ragforge.viewer.served import ServedDataset

_ANSWER_CHARS: Final = 6000
_DOCUMENT_CHARS: Final = 200_000
"""Of a document that are shown; the evidence is always among them."""
_AROUND: Final = 20_000
_STATUS: Final[Mapping[str, str]] = {
    "supported": "said",
    "partial": "said in part",
    "missing": "missing",
    "contradicted": "contradicted",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a query is looked at."""

    served: ServedDataset
    dataset: Dataset
    measured: MeasuredSet
    view: View
    decides: bool = False
    """Whether who looks may decide about it."""


def query_page(place: Place) -> str:
    """Return the page of the query that the address names."""
    view, measured = place.view, place.measured
    query_id = view.asked.query_id
    query = measured.data.queries.get(query_id)
    if query is None:
        return _other_page(place, query_id)
    detail = query_detail(measured.data, query_id)
    texts = _texts(place.dataset, detail)
    pair = next((pair for pair in view.every if pair.row.query_id == query_id), None)
    return page(
        f"{one_line(query.query, 60)}: {one_line(place.served.title)}",
        *missing_notice(view),
        _steps(view, query_id),
        element("h1", query.query, dir="auto", class_="question"),
        _about(query),
        graded_note(measured),
        _decision(place, query),
        _answers(measured, view, query),
        _evidence(place, query),
        _rankings(place, detail, texts, pair),
        top=[_way_up(place), _hidden_tools(measured, view)],
        depth=2,
    )


def _other_page(place: Place, query_id: str) -> str:
    """Return the page of a query that is not measured, or that is not there."""
    found = next((q for q in place.dataset.all_queries() if q.query_id == query_id), None)
    if found is None:
        parts: list[Html | None] = [notice("There is no such query", query_id or "none is named")]
    else:
        parts = [
            element("h1", found.query, dir="auto", class_="question"),
            _about(found),
            notice(f"It is {found.status}", "it is in no figure, and no run is measured on it"),
            _decision(place, found),
            _answers(place.measured, place.view, found),
            _evidence(place, found),
        ]
    title = f"Query of {one_line(place.served.title)}"
    return page(title, *parts, top=[_way_up(place)], depth=2)


def _hidden_tools(measured: MeasuredSet, view: View) -> Html:
    return element(
        "details",
        element("summary", "Choose runs and systems"),
        queries_tools(measured, view),
        class_="choose",
    )


def _way_up(place: Place) -> Html:
    name = place.served.name
    return element(
        "p",
        site_link("../../", "All datasets"),
        " / ",
        site_link(f"../{name}", one_line(place.served.title)),
        " / ",
        site_link("queries", "Queries", query=place.view.asked.address(query_id=""), data_key="u"),
        class_="eyebrow",
    )


def _steps(view: View, query_id: str) -> Html:
    """Return the ways to the queries before and behind, in the order of the table."""
    before, behind = view.beside(query_id)
    parts: list[Child] = []
    for to, text, key in ((before, "Previous", "k"), (behind, "Next", "j")):
        if to:
            query = view.asked.address(query_id=to)
            link = site_link("query", text, " ", query=query, data_key=key, data_view="")
            parts += [link, element("kbd", key), " "]
    parts += ["Queries ", element("kbd", "u")]
    return element("nav", *parts, class_="steps", aria_label="Queries in their order")


def _about(query: Query) -> Html:
    kind = (query.type or "").replace("_", " ")
    behaviour = "" if query.expected_behaviour == "answer" else query.expected_behaviour
    facts = [
        query.difficulty,
        kind,
        query.category,
        query.language,
        query.split and f"split {query.split}",
        behaviour and f"to be met by: {behaviour.replace('_', ' ')}",
        f"revision {query.revision}",
    ]
    said = [
        element("p", element("strong", f"{turn.role}: "), turn.text, dir="auto")
        for turn in query.history
    ]
    alone = [element("p", "Asks alone: ", element("bdi", query.standalone))]
    return element(
        "div",
        element(
            "p",
            element("code", one_line(query.query_id, 80)),
            f" {' · '.join(filter(None, facts))}",
            class_="id",
        ),
        element("div", *said, class_="before") if said else None,
        *(alone if query.standalone else []),
    )


def _decision(place: Place, query: Query) -> Html | None:
    words = decided(query)
    parts: list[Child] = [f"{words[0].upper()}{words[1:]}. "] if words else []
    note = (query.pinned and query.pinned.note) or (query.reviewed and query.reviewed.note)
    if note:
        parts += ["Note: ", element("bdi", note), " "]
    if place.decides:
        to = site_link("review", "Decide about it", query={"q": query.query_id}, data_key="d")
        parts += [to, " ", element("kbd", "d")]
    return element("p", *parts, class_="note") if parts else None


def _answers(measured: MeasuredSet, view: View, query: Query) -> Html:
    systems = {system.system: system for system in measured.data.systems}
    chosen = [systems[n] for n in (view.asked.system_a, view.asked.system_b) if n in systems]
    columns = [_expected(query), *(_answer(system, query) for system in chosen)]
    return element(
        "section", element("h2", "Answers"), element("div", *columns, class_="rankings answers")
    )


def _expected(query: Query) -> Html:
    facts = [element("li", fact.text, _okay(fact.importance), dir="auto") for fact in query.facts]
    none = "None: the documents do not tell, by intent." if not query.answerable else "None."
    return element(
        "section",
        element("h3", "Expected"),
        _long(query.expected_answer)
        if query.expected_answer
        else element("p", none, class_="empty"),
        element("ul", *facts, class_="facts-list") if facts else None,
        class_="ranking",
    )


def _okay(importance: str) -> Html | None:
    return element("span", " (may be said)", class_="cut") if importance == "okay" else None


def _long(text: str) -> Html:
    return quoted(excerpt(text, _ANSWER_CHARS))


def _answer(system: SystemRecords, query: Query) -> Html:
    answer, grade = system.answers.get(query.query_id), system.grades.get(query.query_id)
    quotes = [fact.quote for fact in grade.facts if fact.quote] if grade else []
    return element(
        "section",
        element("h3", element("bdi", one_line(system.system, 60))),
        _verdict(grade),
        _marked(answer.answer, quotes)
        if answer is not None and answer.answer
        else element("p", "No answer.", class_="empty"),
        _facts(query, grade) if grade is not None else None,
        _claims(grade) if grade is not None else None,
        class_="ranking",
    )


def _verdict(grade: AnswerGrade | None) -> Html:
    if grade is None:
        return element("p", "Not graded.", class_="note")
    verdict = grade.verdict
    if verdict is None:
        return element("p", f"Grading failed: {grade.failure or 'no verdict'}.", class_="note")
    by = grade.rule or (grade.provenance.model if grade.provenance else "")
    score = "" if grade.score is None else f", score {number(grade.score)}"
    head = element("strong", verdict.replace("_", " "), class_=f"verdict {verdict}")
    why = quoted(excerpt(grade.explanation, 600), "reason") if grade.explanation else None
    return join([
        element("p", head, f"{score}{f', by {one_line(by, 60)}' if by else ''}", class_="note"), why
    ])  # fmt: skip


def _marked(text: str, quotes: Sequence[str]) -> Html:
    """Return an answer with the words marked that say a fact."""
    shown = excerpt(text, _ANSWER_CHARS)
    return marked_text(ChunkStart("", "", shown), tuple(quotes))


def _facts(query: Query, grade: AnswerGrade) -> Html | None:
    texts = {fact.fact_id: fact for fact in query.facts}
    items = []
    for verdict in grade.facts:
        fact = texts.get(verdict.fact_id)
        status = element("span", _STATUS[verdict.status], class_=f"status {verdict.status}")
        text = fact.text if fact else f"fact {verdict.fact_id}, not in the set any more"
        okay = _okay(fact.importance) if fact else None
        items.append(element("li", status, " ", element("bdi", text), okay))
    return element("ul", *items, class_="facts-list") if items else None


def _claims(grade: AnswerGrade) -> Html | None:
    claims = [claim for claim in grade.claims if not claim.is_supported]
    if not claims:
        return None
    items = [element("li", element("bdi", claim.text)) for claim in claims]
    return join([
        element("p", "Says what none of its chunks says:", class_="note"),
        element("ul", *items, class_="facts-list"),
    ])  # fmt: skip


def _evidence(place: Place, query: Query) -> Html:
    shown = passages(place.dataset, [query]).get(query.query_id, [])
    blocks = [passage_block(passage) for passage in shown]
    docs = dict.fromkeys(passage.start.doc_id for passage in shown)
    links = [
        element("li", site_link("document", one_line(doc, 120), query=_in_document(query, doc)))
        for doc in docs
    ]
    return element(
        "section",
        element("h2", "Evidence" if query.answerable else "Nearest chunks"),
        *blocks,
        element("p", "There is none.", class_="empty") if not blocks else None,
        element("p", "In its document:", class_="note") if links else None,
        element("ul", *links, class_="facts-list") if links else None,
    )


def _in_document(query: Query, doc_id: str) -> dict[str, str]:
    return {"doc": doc_id, "q": query.query_id}


def _rankings(place: Place, detail: QueryDetail, texts: Texts, pair: Pair | None) -> Html | None:
    columns = []
    for number_, at in enumerate(place.view.places):
        run = detail.runs[at]
        hits = [
            chunk_item(detail.chunks[chunk_id], f"rank {rank}", texts)
            for rank, chunk_id in enumerate(run.top, start=1)
        ]
        missed = [
            chunk_item(
                detail.chunks[chunk_id],
                f"rank {run.ranks[chunk_id]}" if chunk_id in run.ranks else "not retrieved",
                texts,
            )
            for chunk_id in run.missed
        ]
        columns.append(
            element(
                "section",
                element("h3", run_label(both_ends(run.name, 60), at)),
                _measured(place, pair, number_),
                element("ol", *hits, class_="hits")
                if hits
                else element("p", "Nothing was retrieved.", class_="empty"),
                element("h4", f"Relevant, but not in the top {DEPTH}: {run.n_missed}")
                if missed
                else None,
                element("ol", *missed, class_="hits missed") if missed else None,
                class_="ranking",
            )
        )
    if not columns:
        return None
    return element(
        "section",
        element("h2", "Retrieved"),
        grade_legend(),
        element("div", *columns, class_="rankings"),
    )


def _measured(place: Place, pair: Pair | None, at: int) -> Html | None:
    if pair is None:
        return None
    cell = pair.row.cells[place.view.places[at]]
    first = f"first relevant at rank {pair.firsts[at]}" if pair.firsts[at] else ""
    facts = [f"{place.view.asked.measure} {number(pair.values[at])}", STATES[cell.state], first]
    return element("p", " · ".join(filter(None, facts)), class_="note")


def _texts(dataset: Dataset, detail: QueryDetail) -> Texts:
    """Return the texts of what the runs retrieved, and what the judges said of it."""
    starts = ChunkStarts({key: chunk.quotes for key, chunk in detail.chunks.items()})
    if dataset.chunks_path.exists():
        for chunk in dataset.chunks():
            starts.take(chunk)
            if starts.has_all:
                break
    for text in dataset.texts_as_chunks():
        starts.take(text)
    keys = {chunk.call_key for chunk in detail.chunks.values() if chunk.call_key}
    return Texts(starts.starts(), stored_replies(dataset.store_path, keys))


def document_page(served: ServedDataset, dataset: Dataset, doc_id: str, query_id: str) -> str:
    """Return the page of a document as its chunks have it, the evidence of a query marked."""
    query = next((q for q in dataset.all_queries() if q.query_id == query_id), None)
    quotes = [item.quote for item in query.evidence if item.doc_id == doc_id] if query else []
    chunks = [chunk for chunk in _chunks(dataset) if chunk.doc_id == doc_id]
    title = one_line(doc_id, 160)
    name = one_line(served.title)
    up: list[Child] = [
        site_link("../../", "All datasets"),
        " / ",
        site_link(f"../{served.name}", name),
    ]
    if query is not None:
        asked = {"q": query_id}
        up += [" / ", site_link("query", one_line(query.query, 60), query=asked, data_key="u")]
    if not chunks:
        shown: list[Html | None] = [notice("There is no such document", doc_id or "none is named")]
    else:
        shown = [_document(documents_of(chunks)[doc_id], quotes)]
    top = [element("p", *up, class_="eyebrow"), element("h1", title, dir="auto")]
    return page(f"{title}: {name}", *shown, top=top, depth=2)


def _chunks(dataset: Dataset) -> Iterable[Chunk]:
    return dataset.chunks() if dataset.chunks_path.exists() else ()


def _document(text: str, quotes: Sequence[str]) -> Html:
    marked = spans(text, quotes)
    first = marked[0].start if marked else 0
    start = 0 if first < _DOCUMENT_CHARS - _AROUND else first - _AROUND
    part = text[start : start + _DOCUMENT_CHARS]
    pieces = list(_pieces(part, quotes))
    cut = Excerpt(part, len(text)).cut_note if not start else f"from character {start + 1:,} on"
    note = element("p", f"Of {len(text):,} characters: {cut}.", class_="note") if cut else None
    none = element("p", "The evidence does not stand in it word for word.", class_="note")
    return join(
        [
            note,
            none if quotes and not marked else None,
            element("div", *pieces, class_="document quote", dir="auto"),
        ]
    )


def _pieces(text: str, quotes: Collection[str]) -> Iterator[Child]:
    """Yield the text, its evidence marked; the first mark is what a link leads to."""
    for place, piece in enumerate(visible_pieces(text, spans(text, list(quotes)))):
        if place % 2:
            yield element("mark", piece, id="evidence" if place == 1 else None)
        else:
            yield piece
