"""Quotes that are not in their document any more: in another one, in other words, or gone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ragforge.config import RefreshSettings
from ragforge.corpus.anchors import Page, fold
from ragforge.files.chunk_lines import each_chunk
from ragforge.files.document_lines import DocumentLines
from ragforge.records import Cause, Chunk, Evidence
from ragforge.refresh.corpus_diff import CorpusDiff, DocumentMove
from ragforge.refresh.nearby import Place, Standing, likeliest
from ragforge.refresh.quote_causes import cause_of
from ragforge.refresh.sights import QuoteSight
from ragforge.refresh.similar import Similar, in_percent, most_similar
from ragforge.refresh.traces import candidate_documents

_MOST_READ = 4
"""Documents of each quote in which other words of it are looked for."""


@dataclass(slots=True)
class LostQuote:
    """A quote that does not stand in its document.

    Args:
        evidence: As the set has it.
        move: Its document before and now; None where it is as it was.
        document_now: Id of its document now; "" where that is gone.
        was: How it stood before.
        is_sought_everywhere: Whether documents that did not change are searched too.
        similar: Other words of it, and the document that has them; first its own.
        place: Where it stands verbatim, and the document.
    """

    evidence: Evidence
    move: DocumentMove | None
    document_now: str
    was: Standing
    is_sought_everywhere: bool
    similar: tuple[str, Similar] | None = None
    place: tuple[str, Place] | None = field(default=None, init=False)


def sight_lost(
    lost: Sequence[LostQuote], diff: CorpusDiff, settings: RefreshSettings
) -> list[QuoteSight]:
    """Say of each lost quote where it stands now: elsewhere, in other words, or nowhere.

    New chunks are searched first, then in one stream all chunks for the quotes that are not among
    the new ones. Of several documents with a quote it is the one where the text around it is most
    like it was, then the first by id; 16 are looked at. Other words in its own document go before
    those in others.
    """
    _search(lost, diff.added(), diff, settings, is_last=False)
    rest = [quote for quote in lost if quote.is_sought_everywhere and not quote.place]
    chunks = (chunk for _, chunk in each_chunk(diff.chunks_path))
    _search(rest, chunks, diff, settings, is_last=True)
    return [_sight(quote, diff) for quote in lost]


def _search(
    lost: Sequence[LostQuote],
    chunks: Iterable[Chunk],
    diff: CorpusDiff,
    settings: RefreshSettings,
    *,
    is_last: bool,
) -> None:
    """Look for quotes where the chunks say that they may be; other words only in the last search.

    Changed are the quotes: what was found is noted with them.
    """
    if not lost:
        return
    candidates = _candidates(lost, chunks)
    with DocumentLines(diff.chunks_path, candidates) as lines:
        for doc_id in sorted(candidates):
            page = Page(lines.of(doc_id))
            for quote, is_read in candidates[doc_id]:
                _note_place(quote, doc_id, page, settings.near_chars)
                if is_last and is_read and not quote.place:
                    _note_similar(quote, doc_id, page, settings.similar_least)


def _candidates(
    lost: Sequence[LostQuote], chunks: Iterable[Chunk]
) -> dict[str, list[tuple[LostQuote, bool]]]:
    """Return by document the quotes that may be in it, and whether to look for other words too."""
    texts = list(dict.fromkeys(fold(quote.evidence.quote) for quote in lost))
    likely = dict(zip(texts, candidate_documents(texts, chunks), strict=True))
    found: dict[str, list[tuple[LostQuote, bool]]] = {}
    for quote in lost:
        others = _others(quote, likely[fold(quote.evidence.quote)])
        for rank, doc_id in enumerate(others):
            found.setdefault(doc_id, []).append((quote, rank < _MOST_READ))
    return found


def _others(quote: LostQuote, doc_ids: Iterable[str]) -> Iterator[str]:
    return (doc_id for doc_id in doc_ids if doc_id != quote.document_now)


def _note_place(quote: LostQuote, doc_id: str, page: Page, chars: int) -> None:
    place = likeliest(quote.evidence.quote, quote.was, page, chars)
    if place and (quote.place is None or place.rank > quote.place[1].rank):
        quote.place = (doc_id, place)


def _note_similar(quote: LostQuote, doc_id: str, page: Page, least: float) -> None:
    if quote.similar and quote.similar[0] == quote.document_now:
        return
    similar = most_similar(quote.evidence.quote, page, least)
    if similar and (quote.similar is None or similar.likeness > quote.similar[1].likeness):
        quote.similar = (doc_id, similar)


def _sight(quote: LostQuote, diff: CorpusDiff) -> QuoteSight:
    if quote.place:
        doc_id, place = quote.place
        causes = (_cause(quote, diff, doc_id, f"the quote stands in {doc_id} now"),)
        return QuoteSight(quote.evidence, "elsewhere", doc_id, place.placement, causes=causes)
    if quote.similar:
        doc_id, similar = quote.similar
        share = in_percent(similar.likeness)
        causes = (_cause(quote, diff, doc_id, f"{share} of the quote stands in {doc_id} now"),)
        found = similar.placement
        return QuoteSight(quote.evidence, "similar", doc_id, found, similar.likeness, causes)
    own = quote.evidence.doc_id
    causes = (_cause(quote, diff, own, "the quote stands nowhere now"),)
    return QuoteSight(quote.evidence, "gone", own, None, 0.0, causes)


def _cause(quote: LostQuote, diff: CorpusDiff, doc_id: str, detail: str) -> Cause:
    """Return what happened to the document of a quote; where nothing did, to that which has it."""
    if quote.move is None and doc_id in diff.moves:
        return cause_of(doc_id, diff.moves[doc_id], detail)
    return cause_of(quote.evidence.doc_id, quote.move, detail)
