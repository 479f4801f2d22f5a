"""Where the quotes of a set stand in its corpus as it is now."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import Final, Literal

from ragforge.config import RefreshSettings
from ragforge.corpus.quote_locations import (
    FoldedText,
    Location,
    Page,
    Placement,
    Surroundings,
    common_prefix_length,
    evidence_at,
    fold,
)
from ragforge.corpus.rereading import reader_of, seen_digests, seen_now_sha256
from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import DocumentLines, each_chunk
from ragforge.records import Cause, Chunk, Evidence, Query
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentMove
from ragforge.refresh.corpus.document_map import DocumentMap
from ragforge.refresh.quotes.candidates import candidate_documents
from ragforge.refresh.quotes.similar import Similar, in_percent, most_similar
from ragforge.stages.recheck import Context, context_of, telling_words

QuoteState = Literal["kept", "moved", "nearby change", "elsewhere", "similar", "gone"]
"""kept: its chunk is as it was. moved: verbatim in its document, which changed far from it only.
nearby change: verbatim, and the text around it changed. elsewhere: verbatim in another document.
similar: in other words. gone: nowhere. In this order; a query is as its worst quote."""
STATES: tuple[QuoteState, ...] = (
    "kept",
    "moved",
    "nearby change",
    "elsewhere",
    "similar",
    "gone",
)
_MOST_SPOTS: Final = 10_000
_DIGITS = 16
_MOST_READ = 4
"""Documents of each quote in which other words of it are looked for."""
VERBATIM: Final[frozenset[QuoteState]] = frozenset({"kept", "moved", "nearby change", "elsewhere"})


@dataclass(frozen=True, slots=True)
class LocatedQuote:
    """A quote, and where it stands now.

    Args:
        evidence: As the set has it.
        state: What became of it.
        doc_id: The document in which it stands now; its own where it is gone.
        placement: Where it stands there; None where it is gone. For `kept`, None where its
            document did not change at all: then nothing about it needs a second look.
        likeness: 1 where it stands verbatim, else the share of its wording that is there; 0 gone.
        causes: Why it is not as it was; () for `kept`.
        context: What told of what it spoke; empty where that is not known, or needs no look.
    """

    evidence: Evidence
    state: QuoteState
    doc_id: str
    placement: Placement | None = None
    likeness: float = 1.0
    causes: tuple[Cause, ...] = ()
    context: Context = Context()


@dataclass(frozen=True, slots=True)
class LocatedQuery:
    """A query, and where its quotes stand now, in the order of its evidence."""

    query: Query
    quotes: tuple[LocatedQuote, ...]

    @property
    def state(self) -> QuoteState:
        """That of its worst quote; `kept` where it has none."""
        return max((quote.state for quote in self.quotes), key=STATES.index, default="kept")

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Those of its quotes, each once."""
        return tuple(dict.fromkeys(cause for quote in self.quotes for cause in quote.causes))


@dataclass(frozen=True, slots=True)
class FormerPlace:
    """How a quote stood in the version before.

    Args:
        placement: None where it did not stand in its document any more.
        around: The text around it; where it did not stand, what its evidence tells of that.
        context: What told of what it spoke.
        n_alike: Places in its document that had the same text around them.
        asked: Words of the question by which places are told apart that are alike; none where the
            place before tells them apart.
    """

    placement: Placement | None
    around: Surroundings
    context: Context = Context()
    n_alike: int = 1
    asked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QuotePlace:
    """A verbatim place of a quote.

    Args:
        placement: Where it is.
        is_same_chunks: Whether the chunks that held the quote before still hold it there.
        is_same_around: Whether the text around it is as it was, or its chunks read as before.
        n_alike: Characters around it that are as they were, counted from the quote on.
        n_asked: Words of the question that tell of what it speaks there.
    """

    placement: Placement
    is_same_chunks: bool
    is_same_around: bool
    n_alike: int
    n_asked: int = 0

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """What tells the likelier of two places; higher is better."""
        return self.is_same_chunks, self.is_same_around, self.n_alike, self.n_asked


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
    was: FormerPlace
    is_sought_everywhere: bool
    similar: tuple[str, Similar] | None = None
    place: tuple[str, QuotePlace] | None = field(default=None, init=False)


def in_place(located: LocatedQuote) -> Evidence:
    """Return evidence where it stands now, or as it was where nothing moved it."""
    if located.placement is None or located.state not in VERBATIM:
        return located.evidence
    return evidence_at(located.evidence, located.placement)


def locate_queries(
    queries: Sequence[Query],
    parent: Dataset,
    diff: CorpusDiff,
    settings: RefreshSettings,
    document_map: DocumentMap | None = None,
) -> list[LocatedQuery]:
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
        document_map: Where documents are now, also where names changed hands; as far as `diff`
            tells if None.

    Returns:
        One for each query, in their order; of one without evidence it has no quotes.
    """
    document_map = document_map or DocumentMap(diff)
    located_quotes: dict[tuple[int, int], LocatedQuote] = {}
    sought: dict[str, list[_Sought]] = {}
    for number, query in enumerate(queries):
        for place, evidence in enumerate(query.evidence):
            move = document_map.move_of(evidence.doc_id)
            if _is_looked_for(query, move):
                one = _Sought((number, place), query, evidence, move)
                sought.setdefault(evidence.doc_id, []).append(one)
            else:
                located_quotes[number, place] = LocatedQuote(evidence, "kept", evidence.doc_id)
    located_quotes |= _look(sought, parent, diff, settings)
    return [
        LocatedQuery(
            query, tuple(located_quotes[number, place] for place in range(len(query.evidence)))
        )
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
    return not is_rejected(query) and (move is not None or query.status != "accepted")


def is_rejected(query: Query) -> bool:
    """Whether a person rejected a query, so that it stays out."""
    return query.reviewed is not None and query.reviewed.decision == "reject"


def is_unchecked(query: Query) -> bool:
    """Whether a query is out because nobody could check it where its quotes stand."""
    return query.status != "accepted" and any(gate.verdict == "unknown" for gate in query.gates)


def _look(
    sought: dict[str, list[_Sought]], parent: Dataset, diff: CorpusDiff, settings: RefreshSettings
) -> dict[tuple[int, int], LocatedQuote]:
    located_quotes: dict[tuple[int, int], LocatedQuote] = {}
    lost: list[tuple[_Sought, LostQuote]] = []
    now_ids = {one.document_now for quotes in sought.values() for one in quotes}
    read = reader_of(parent.manifest.cutting, diff.chunking)
    with (
        DocumentLines(parent.chunks_path, sought) as before,
        DocumentLines(diff.chunks_path, now_ids) as now,
    ):
        for doc_id in sorted(sought):
            was, now_page = (
                Page([*map(read, before.chunks_of(doc_id))]),
                Page(now.chunks_of(sought[doc_id][0].document_now)),
            )
            for one, found in _on_page(sought[doc_id], was, now_page, settings):
                if isinstance(found, LocatedQuote):
                    located_quotes[one.key] = found
                else:
                    lost.append((one, found))
    found_again = locate_lost([quote for _, quote in lost], diff, settings)
    return located_quotes | {
        one.key: located for (one, _), located in zip(lost, found_again, strict=True)
    }


def _on_page(
    quotes: Sequence[_Sought], was: Page, now: Page, settings: RefreshSettings
) -> Iterator[tuple[_Sought, LocatedQuote | LostQuote]]:
    for one in quotes:
        stood = former_place(one.evidence, was, settings.near_chars)
        if is_unchecked(one.query):
            # Where it stands may be a section of the same words on something else.
            asked = telling_words(one.query.asked) - telling_words(one.evidence.quote)
            stood = replace(_unknown_place(one.evidence), asked=frozenset(asked))
        yield one, _verbatim(one, stood, now, settings) or _lost(one, stood, now, settings)


def _verbatim(
    sought: _Sought, was: FormerPlace, now: Page, settings: RefreshSettings
) -> LocatedQuote | None:
    place = likeliest(sought.evidence.quote, was, now, settings.near_chars)
    if place is None:
        return None
    if sought.move is None:
        return _as_it_stands(sought.evidence, place.placement, was.context)
    state = state_at(sought.evidence, place, is_same_text=sought.is_same_text)
    doc_id = place.placement.chunks[0].doc_id
    if state == "kept":
        return LocatedQuote(sought.evidence, state, doc_id, place.placement, context=was.context)
    near = f"the text within {settings.near_chars} characters of the quote changed"
    if was.placement is None:
        detail = "the quote stands again"
    else:
        detail = near if state == "nearby change" else ""
    causes = (cause_of(sought.evidence.doc_id, sought.move, detail),)
    return LocatedQuote(
        sought.evidence, state, doc_id, place.placement, causes=causes, context=was.context
    )


def _as_it_stands(evidence: Evidence, now: Placement, was: Context) -> LocatedQuote:
    """Return a quote in a document that did not change; it may have gone elsewhere long since."""
    at = evidence_at(evidence, now)
    is_there = (at.chunk_id, at.start, at.end) == (evidence.chunk_id, evidence.start, evidence.end)
    placement = None if is_there else now
    return LocatedQuote(evidence, "kept", evidence.doc_id, placement, context=was)


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


def former_place(evidence: Evidence, page: Page, chars: int) -> FormerPlace:
    """Return how a quote stands in the version before.

    Args:
        evidence: With the quote.
        page: Its document there.
        chars: How much of the text around it counts, to either side.
    """
    spot = page.folded_location(evidence)
    if spot is None:
        return _unknown_place(evidence)
    placement, around = page.placement(spot), page.surroundings(spot, chars)
    is_checked = _agree(evidence.prefix[::-1], placement.before[::-1]) and _agree(
        evidence.suffix, placement.after
    )
    titles = placement.chunks[0].heading_path
    return FormerPlace(
        placement,
        around,
        context_of(page.text, page.original(spot), titles)
        if is_checked
        else _context_known(evidence),
        _n_alike(evidence.quote, around, page, chars),
    )


def _unknown_place(evidence: Evidence) -> FormerPlace:
    """Return how a quote stood when it was checked, as far as its evidence tells."""
    before, after = FoldedText(evidence.prefix).text, FoldedText(evidence.suffix).text
    around = Surroundings(before.lstrip(), after.rstrip())
    return FormerPlace(None, around, _context_known(evidence))


def _context_known(evidence: Evidence) -> Context:
    """Return what a quote that does not stand where it was checked tells of what it spoke of."""
    ahead = evidence.prefix
    place = Location(len(ahead), len(ahead) + len(evidence.quote))
    context = context_of(f"{ahead}{evidence.quote}{evidence.suffix}", place, ())
    return replace(context, is_whole=False)


def _agree(one: str, other: str) -> bool:
    """Whether texts are the same as far as both are known."""
    first, second = fold(one), fold(other)
    return first.startswith(second) or second.startswith(first)


def _n_alike(quote: str, around: Surroundings, page: Page, chars: int) -> int:
    spots = islice(page.whole_spots(quote, around.before, around.after), _MOST_SPOTS)
    return sum(page.surroundings(spot, chars) == around for spot in spots)


def likeliest(quote: str, was: FormerPlace, page: Page, chars: int) -> QuotePlace | None:
    """Return the place of a quote on a page that is most like where it stood; None for no place.

    Of equals it is the first. Of a quote that stands there more than 10,000 times, as only one of
    next to nothing does, those are looked at.
    """
    found = page.whole_spots(quote, was.around.before, was.around.after)
    spots = islice(found, _MOST_SPOTS)
    places = [_place(spot, was, page, chars) for spot in spots]
    likeliest_place = max(places, key=lambda place: place.rank, default=None)
    if likeliest_place and sum(place.is_same_around for place in places) < was.n_alike:
        # Which of those that read alike is gone cannot be told from what stands around them.
        return replace(likeliest_place, is_same_around=False)
    return likeliest_place


def state_at(evidence: Evidence, place: QuotePlace, *, is_same_text: bool) -> QuoteState:
    """Return what became of a quote that stands in its document, or in that under a new id.

    Args:
        evidence: As the set has it.
        place: Where it stands now.
        is_same_text: Whether the document has the same text, so that nothing around it changed.
    """
    if place.is_same_chunks and evidence_at(evidence, place.placement) == evidence:
        return "kept"
    if place.is_same_chunks or place.is_same_around or is_same_text:
        return "moved"
    return "nearby change"


def _place(spot: Location, was: FormerPlace, page: Page, chars: int) -> QuotePlace:
    placement, around = page.placement(spot), page.surroundings(spot, chars)
    return QuotePlace(
        placement,
        is_same_chunks=was.placement is not None and _read(was.placement) == _read(placement),
        is_same_around=was.placement is not None
        and (was.around == around or _is_seen_as_before(was.placement, placement)),
        n_alike=common_prefix_length(was.around.before[::-1], around.before[::-1])
        + common_prefix_length(was.around.after, around.after),
        n_asked=_n_asked(was.asked, spot, placement, page) if was.asked else 0,
    )


def _n_asked(asked: frozenset[str], spot: Location, placement: Placement, page: Page) -> int:
    now = context_of(page.text, page.original(spot), placement.chunks[0].heading_path)
    return len(asked & telling_words(f"{now.own}\n{now.ahead}"))


def _read(placement: Placement) -> list[tuple[str, str]]:
    return [(chunk.chunk_id, chunk.text) for chunk in placement.chunks]


def _is_seen_as_before(was: Placement, now: Placement) -> bool:
    """Whether chunks read as before; how their marks are drawn is not seen."""
    return len(was.chunks) == len(now.chunks) and all(
        one.heading_path == other.heading_path and seen_now_sha256(other) in seen_digests(one)
        for one, other in zip(was.chunks, now.chunks, strict=True)
    )


def cause_of(doc_id: str, move: DocumentMove | None, detail: str = "") -> Cause:
    """Return what happened to the document of a quote.

    Args:
        doc_id: Of the document, as the set has it.
        move: Its document before and now; None where it is as it was, so that the quote was not
            there before either.
        detail: What was seen, in a sentence.
    """
    if move is None:
        return Cause(kind="document changed", doc_id=doc_id, detail=detail)
    before, now = move.before, move.now
    if before is None or now is None:
        return _one_sided(doc_id, move, detail)
    if before.doc_id != now.doc_id:
        return Cause(
            kind="document renamed",
            doc_id=now.doc_id,
            before=before.doc_id,
            after=now.doc_id,
            detail=detail,
        )
    return Cause(
        kind="document cut anew" if before.sha256 == now.sha256 else "document changed",
        doc_id=now.doc_id,
        before=before.sha256[:_DIGITS],
        after=now.sha256[:_DIGITS],
        detail=detail,
    )


def _one_sided(doc_id: str, move: DocumentMove, detail: str) -> Cause:
    if move.before:
        digest = move.before.sha256[:_DIGITS]
        return Cause(kind="document removed", doc_id=doc_id, before=digest, detail=detail)
    digest = move.now.sha256[:_DIGITS] if move.now else ""
    return Cause(kind="document added", doc_id=doc_id, after=digest, detail=detail)


def locate_lost(
    lost: Sequence[LostQuote], diff: CorpusDiff, settings: RefreshSettings
) -> list[LocatedQuote]:
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
    return [_located(quote, diff) for quote in lost]


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
            page = Page(lines.chunks_of(doc_id))
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
    by_document: dict[str, list[tuple[LostQuote, bool]]] = {}
    for quote in lost:
        others = _others(quote, likely[fold(quote.evidence.quote)])
        for rank, doc_id in enumerate(others):
            by_document.setdefault(doc_id, []).append((quote, rank < _MOST_READ))
    return by_document


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


def _located(quote: LostQuote, diff: CorpusDiff) -> LocatedQuote:
    if quote.place:
        doc_id, place = quote.place
        causes = (_cause(quote, diff, doc_id, f"the quote stands in {doc_id} now"),)
        return LocatedQuote(
            quote.evidence,
            "elsewhere",
            doc_id,
            place.placement,
            causes=causes,
            context=quote.was.context,
        )
    if quote.similar:
        doc_id, similar = quote.similar
        share = in_percent(similar.likeness)
        causes = (_cause(quote, diff, doc_id, f"{share} of the quote stands in {doc_id} now"),)
        found = similar.placement
        return LocatedQuote(
            quote.evidence,
            "similar",
            doc_id,
            found,
            similar.likeness,
            causes,
            quote.was.context,
        )
    own = quote.evidence.doc_id
    causes = (_cause(quote, diff, own, "the quote stands nowhere now"),)
    return LocatedQuote(quote.evidence, "gone", own, None, 0.0, causes, quote.was.context)


def _cause(quote: LostQuote, diff: CorpusDiff, doc_id: str, detail: str) -> Cause:
    """Return what happened to the document of a quote; where nothing did, to that which has it."""
    if quote.move is None and doc_id in diff.moves:
        return cause_of(doc_id, diff.moves[doc_id], detail)
    return cause_of(quote.evidence.doc_id, quote.move, detail)
