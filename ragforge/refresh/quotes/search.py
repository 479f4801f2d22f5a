"""Where each quote of a set stands in the corpus as it is now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragforge.config import RefreshSettings
from ragforge.corpus.quote_locations import Page, Placement, standing_at
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import DocumentLines
from ragforge.records import Evidence, Query
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentMove
from ragforge.refresh.quotes.locations import ItemSight, QuoteSight
from ragforge.refresh.quotes.lost import (
    FormerPlace,
    LostQuote,
    cause_of,
    former_place,
    likeliest,
    sight_lost,
    state_at,
)
from ragforge.refresh.quotes.similar import most_similar


def sight_items(
    queries: Sequence[Query], parent: Dataset, diff: CorpusDiff, settings: RefreshSettings
) -> list[ItemSight]:
    """Say where each quote of a set stands now; no model is asked.

    Read are the documents that changed and hold evidence, and, for quotes that are not in their
    document any more, all chunks once. Of a query that is not accepted, the document is read
    whether it changed or not: its quote may be lost since long. Where such a query is retired,
    lost quotes are looked for in new chunks alone. What a person rejected is not looked at, and is
    as it was.

    Args:
        queries: Of the parent, of any status.
        parent: The version before.
        diff: How the corpus differs from its.
        settings: How near a change must be, and how alike other words, to be checked.

    Returns:
        One for each query, in their order; of one without evidence it has no quotes.
    """
    sights: dict[tuple[int, int], QuoteSight] = {}
    sought: dict[str, list[_Sought]] = {}
    for number, query in enumerate(queries):
        for place, evidence in enumerate(query.evidence):
            move = diff.moves.get(evidence.doc_id)
            if _is_looked_for(query, move):
                one = _Sought((number, place), query, evidence, move)
                sought.setdefault(evidence.doc_id, []).append(one)
            else:
                sights[number, place] = QuoteSight(evidence, "kept", evidence.doc_id)
    sights |= _look(sought, parent, diff, settings)
    return [
        ItemSight(query, tuple(sights[number, place] for place in range(len(query.evidence))))
        for number, query in enumerate(queries)
    ]


@dataclass(frozen=True, slots=True)
class _Sought:
    """A quote to look for.

    Args:
        key: The number of its query, and its place in it.
        query: To which it belongs.
        evidence: As the set has it.
        move: Its document before and now; None where that is as it was.
    """

    key: tuple[int, int]
    query: Query
    evidence: Evidence
    move: DocumentMove | None

    @property
    def document_now(self) -> str:
        if self.move is None:
            return self.evidence.doc_id
        return self.move.now.doc_id if self.move.now else ""

    @property
    def is_same_text(self) -> bool:
        if self.move is None:
            return True
        before, now = self.move.before, self.move.now
        return before is not None and now is not None and before.sha256 == now.sha256


def _is_looked_for(query: Query, move: DocumentMove | None) -> bool:
    if query.reviewed is not None and query.reviewed.decision == "reject":
        return False
    return move is not None or query.status != "accepted"


def _look(
    sought: dict[str, list[_Sought]], parent: Dataset, diff: CorpusDiff, settings: RefreshSettings
) -> dict[tuple[int, int], QuoteSight]:
    sights: dict[tuple[int, int], QuoteSight] = {}
    lost: list[tuple[_Sought, LostQuote]] = []
    now_ids = {one.document_now for quotes in sought.values() for one in quotes}
    with (
        DocumentLines(parent.chunks_path, sought) as before,
        DocumentLines(diff.chunks_path, now_ids) as now,
    ):
        for doc_id in sorted(sought):
            was, now_page = (
                Page(before.chunks_of(doc_id)),
                Page(now.chunks_of(sought[doc_id][0].document_now)),
            )
            for one, found in _on_page(sought[doc_id], was, now_page, settings):
                if isinstance(found, QuoteSight):
                    sights[one.key] = found
                else:
                    lost.append((one, found))
    found_again = sight_lost([quote for _, quote in lost], diff, settings)
    return sights | {one.key: sight for (one, _), sight in zip(lost, found_again, strict=True)}


def _on_page(
    quotes: Sequence[_Sought], was: Page, now: Page, settings: RefreshSettings
) -> Iterator[tuple[_Sought, QuoteSight | LostQuote]]:
    for one in quotes:
        stood = former_place(one.evidence, was, settings.near_chars)
        yield one, _verbatim(one, stood, now, settings) or _lost(one, stood, now, settings)


def _verbatim(
    sought: _Sought, was: FormerPlace, now: Page, settings: RefreshSettings
) -> QuoteSight | None:
    place = likeliest(sought.evidence.quote, was, now, settings.near_chars)
    if place is None:
        return None
    if sought.move is None:
        return _as_it_stands(sought.evidence, place.placement)
    state = state_at(sought.evidence, place, is_same_text=sought.is_same_text)
    doc_id = place.placement.chunks[0].doc_id
    if state == "kept":
        return QuoteSight(sought.evidence, state, doc_id, place.placement)
    near = f"the text within {settings.near_chars} characters of the quote changed"
    if was.placement is None:
        detail = "the quote stands again"
    else:
        detail = near if state == "nearby change" else ""
    causes = (cause_of(sought.evidence.doc_id, sought.move, detail),)
    return QuoteSight(sought.evidence, state, doc_id, place.placement, causes=causes)


def _as_it_stands(evidence: Evidence, now: Placement) -> QuoteSight:
    """Return a quote in a document that did not change; it may have gone elsewhere long since."""
    at = standing_at(evidence, now)
    is_there = (at.chunk_id, at.start, at.end) == (evidence.chunk_id, evidence.start, evidence.end)
    return QuoteSight(evidence, "kept", evidence.doc_id, None if is_there else now)


def _lost(sought: _Sought, was: FormerPlace, now: Page, settings: RefreshSettings) -> LostQuote:
    similar = most_similar(sought.evidence.quote, now, settings.similar_least)
    return LostQuote(
        sought.evidence,
        sought.move,
        sought.document_now,
        was,
        is_sought_everywhere=sought.query.status != "retired",
        similar=(sought.document_now, similar) if similar else None,
    )
