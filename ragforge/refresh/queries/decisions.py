"""What a refresh has to do about a query, by where its quotes stand and what earlier ones did."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal

from ragforge.config import RefreshSettings
from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.records import Action, Cause, Evidence, ItemChange, Query
from ragforge.refresh.corpus.document_map import DocumentMap
from ragforge.refresh.quotes.locations import (
    VERBATIM,
    LocatedQuery,
    LocatedQuote,
    QuoteState,
    in_place,
    is_rejected,
    is_unchecked,
    locate_queries,
)

Decision = Literal["kept", "remapped", "revived", "to_verify", "to_search", "broken_pins"]
_PLAIN: Final[frozenset[QuoteState]] = frozenset({"kept", "moved"})
"""Nothing near the quote changed."""
_OUT: Final[frozenset[Action]] = frozenset({"retired", "quarantined"})
DIGESTED: Final = frozenset({"document added", "document changed", "document removed"})
"""Causes that name the digests of a document, and not its ids."""
_OF_SPLITS: Final[frozenset[Action]] = frozenset({"out_of_split", "back_in_split"})
"""Say nothing of the query itself."""


@dataclass(frozen=True, slots=True)
class QueryHistory:
    """What refreshes did to queries so far.

    Args:
        version: The version that is made now.
        last: The last change of each query before it.
        cleared: Of queries that a new chunk put out, and whose contradiction stands nowhere any
            more: what became of that, by id.
        earlier: The latest revision before the present one whose quotes all stand verbatim, of
            queries whose answer is lost, by id.
        texts: Digests of the documents as they were before a revision was lost, by id and revision.
    """

    version: int
    last: Mapping[str, ItemChange] = field(default_factory=dict)
    cleared: Mapping[str, tuple[Cause, ...]] = field(default_factory=dict)
    earlier: Mapping[str, LocatedQuery] = field(default_factory=dict)
    texts: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)

    def is_as_before(self, located: LocatedQuery) -> bool:
        """Whether documents that lost the quotes of a query read again as they did before."""
        before = self.texts.get((located.query.query_id, located.query.revision), frozenset())
        back = [one for one in located.quotes if one.state not in _PLAIN]
        return (
            located.state in VERBATIM
            and bool(back)
            and all(_reads_as_before(one, before) for one in back)
        )


def decide_return(
    located: LocatedQuery, history: QueryHistory
) -> Literal["revived", "to_verify"] | None:
    """Return how an earlier revision of a query comes back; None where it does not.

    Where the documents are as they were, no call is needed. One that a person decided on stays as
    it is.

    Args:
        located: Of the query as it is.
        history: Says which revision stands again.
    """
    query, last = located.query, history.last.get(located.query.query_id)
    earlier = history.earlier.get(query.query_id)
    if earlier is None or query.pinned or query.reviewed:
        return None
    if query.status != "accepted" and (last is None or last.action not in _OUT):
        return None
    if history.is_as_before(earlier) and all(
        gate.verdict == "pass" for gate in earlier.query.gates
    ):
        return "revived"
    is_open = any(gate.verdict == "unknown" for gate in query.gates)
    is_lost_now = query.status == "accepted" and bool(located.causes)
    return "to_verify" if earlier.causes or is_open or is_lost_now else None


def decide_query(located: LocatedQuery, history: QueryHistory) -> Decision:
    """Return what a query needs.

    A pinned one is never asked about. One that a person rejected stays out, and so does what asks
    for nothing that a quote could prove. What a refresh put out for lack of its quotes comes back
    when they do; what a check put out, only a check brings back: that of another answer once its
    documents change again, one that failed with the next refresh, unless the documents read again
    as they did. What anything else put out, such as a conflict of its pool, stays out.

    Args:
        located: Of the query.
        history: What refreshes did to it.
    """
    query = located.query
    if is_rejected(query):
        return _kept_or_remapped(located)
    if not query.answerable or not located.quotes:
        is_back = query.pinned is None and query.query_id in history.cleared
        return "revived" if is_back else _kept_or_remapped(located)
    if query.status == "accepted":
        return _decide_pinned(located) if query.pinned else _decide_accepted(located)
    return _kept_or_remapped(located) if query.pinned else _decide_put_out(located, history)


def _decide_pinned(located: LocatedQuery) -> Decision:
    return _kept_or_remapped(located) if located.state in VERBATIM else "broken_pins"


def _decide_accepted(located: LocatedQuery) -> Decision:
    if located.state in _PLAIN:
        return _kept_or_remapped(located)
    return "to_search" if located.state == "gone" else "to_verify"


def _decide_put_out(located: LocatedQuery, history: QueryHistory) -> Decision:
    query, last = located.query, history.last.get(located.query.query_id)
    if last is None or last.action not in _OUT:
        return "kept"
    if is_in_conflict(last) and query.query_id not in history.cleared:
        return "kept"
    if query.status == "retired" and located.state not in VERBATIM:
        return "kept"
    if is_unchecked(query):
        if history.is_as_before(located):
            return "revived"
        return "to_search" if located.state == "gone" else "to_verify"
    verdicts = {gate.verdict for gate in query.gates}
    if located.state not in VERBATIM:
        return "kept"
    if verdicts <= {"pass"}:
        is_plain = located.state in _PLAIN or history.is_as_before(located)
        return "revived" if is_plain else "to_verify"
    return "to_verify" if located.causes else "kept"


def _kept_or_remapped(located: LocatedQuery) -> Decision:
    """Return whether a quote stands at another place."""
    moved = any(in_place(quote) != quote.evidence for quote in located.quotes)
    return "remapped" if moved else "kept"


def _reads_as_before(quote: LocatedQuote, before: frozenset[str]) -> bool:
    return any(cause.kind in DIGESTED and cause.after in before for cause in quote.causes)


def is_from_person(query: Query) -> bool:
    """Whether a person wrote, edited or approved a query, so that no model writes over it."""
    is_approved = query.reviewed is not None and query.reviewed.decision in ("approve", "edit")
    return query.origin != "synthetic" or is_approved


def is_in_conflict(last: ItemChange) -> bool:
    """Whether a chunk that speaks against it put a query out."""
    return any(cause.is_conflict for cause in last.causes)


def query_history(
    parent: Dataset,
    version: int,
    located_queries: Sequence[LocatedQuery],
    document_map: DocumentMap,
    settings: RefreshSettings,
) -> QueryHistory:
    """Return what refreshes did to the queries of a version, of which another one is made.

    Args:
        parent: The version before.
        version: The number of the new one.
        located_queries: Where the quotes of its queries stand now.
        document_map: Where documents are now, in the corpus that changed.
        settings: As for `locate_queries`.

    Raises:
        DataError: A file cannot be read.
    """
    events = parent.past.events()
    last = {change.query_id: change for change in events if change.action not in _OF_SPLITS}
    contradicted = {
        located.query.query_id: _contradicting(located.query, last)
        for located in located_queries
        if located.query.status == "quarantined"
    }
    contradicted_queries = [query for query in contradicted.values() if query is not None]
    earlier = _earlier(parent, located_queries)
    back = _locate(earlier, "retired", parent, document_map, settings)
    return QueryHistory(
        version,
        last,
        cleared={
            located.query.query_id: _cleared(located)
            for located in _locate(
                contradicted_queries, "quarantined", parent, document_map, settings
            )
            if all(one.state not in VERBATIM for one in located.quotes)
        },
        # Oldest first, so that the latest is left.
        earlier={one.query.query_id: one for one in back if one.state in VERBATIM},
        texts=_texts_before(events),
    )


def _locate(
    queries: Sequence[Query],
    status: str,
    parent: Dataset,
    document_map: DocumentMap,
    settings: RefreshSettings,
) -> list[LocatedQuery]:
    """Return where quotes stand; those of a retired query are looked for in new chunks alone."""
    if not queries:
        return []
    update = {"status": status, "reviewed": None}
    looked_for = [query.model_copy(update=update) for query in queries]
    found = locate_queries(looked_for, parent, document_map.diff, settings, document_map)
    return [LocatedQuery(query, one.quotes) for query, one in zip(queries, found, strict=True)]


def _contradicting(query: Query, last: Mapping[str, ItemChange]) -> Query | None:
    """Return a query with the words that speak against it as its quotes; None without any."""
    change = last.get(query.query_id)
    if change is None or change.action != "quarantined" or not is_in_conflict(change):
        return None
    causes = [cause for cause in change.causes if cause.is_conflict]
    if not all(cause.quote.strip() and cause.doc_id for cause in causes):
        return None
    words = (Evidence(doc_id=one.doc_id, chunk_id=one.doc_id, quote=one.quote) for one in causes)
    return query.model_copy(update={"evidence": tuple(words)})


def _cleared(located: LocatedQuery) -> tuple[Cause, ...]:
    told = {"detail": "what contradicted it stands there no longer"}
    return tuple(cause.model_copy(update=told) for cause in located.causes)


def _earlier(parent: Dataset, located_queries: Iterable[LocatedQuery]) -> list[Query]:
    """Return the earlier revisions of queries that lost their answer, oldest first."""
    lost = {
        located.query.query_id: located.query for located in located_queries if _is_lost(located)
    }
    return [
        query
        for query in parent.past.revisions()
        if query.query_id in lost
        and query.revision < lost[query.query_id].revision
        and query.answerable
        and query.evidence
    ]


def _is_lost(located: LocatedQuery) -> bool:
    query = located.query
    if query.revision == 1:
        return False
    return located.state not in VERBATIM if query.answerable else query.type == "unanswerable"


def _texts_before(events: Iterable[ItemChange]) -> dict[tuple[str, int], frozenset[str]]:
    """Return the digests that documents had before a revision was lost, by id and revision."""
    digests: dict[tuple[str, int], frozenset[str]] = {}
    revisions: dict[str, int] = {}
    for change in events:
        name, revision = change.query_id, revisions.get(change.query_id, 1)
        before = frozenset(one.before for one in change.causes if one.kind in DIGESTED) - {""}
        if change.revision > revision or change.action in _OUT:
            digests.setdefault((name, revision), before)
        else:
            digests.pop((name, revision), None)
        revisions[name] = change.revision
    return digests
