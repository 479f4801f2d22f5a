"""Which way a query goes in a refresh, by where its quotes stand and how it stood before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ragforge.records import Action, Cause, ItemChange, Query
from ragforge.refresh.items.drafts import VERBATIM, in_place
from ragforge.refresh.quotes.locations import ItemSight, QuoteSight, QuoteState

Way = Literal["kept", "remapped", "revived", "to_verify", "to_search", "broken_pins"]
_PLAIN: Final[frozenset[QuoteState]] = frozenset({"kept", "moved"})
"""Nothing near the quote changed."""
_OUT: Final[frozenset[Action]] = frozenset({"retired", "quarantined"})
DIGESTED: Final = frozenset({"document added", "document changed", "document removed"})
"""Causes that name the digests of a document, and not its ids."""


@dataclass(frozen=True, slots=True)
class Ledger:
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
    earlier: Mapping[str, ItemSight] = field(default_factory=dict)
    texts: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)

    def is_as_before(self, sight: ItemSight) -> bool:
        """Whether documents that lost the quotes of a query read again as they did before."""
        before = self.texts.get((sight.query.query_id, sight.query.revision), frozenset())
        back = [one for one in sight.quotes if one.state not in _PLAIN]
        return sight.state in VERBATIM and bool(back) and all(_reads(one, before) for one in back)


def decide_return(sight: ItemSight, ledger: Ledger) -> Literal["revived", "to_verify"] | None:
    """Return how an earlier revision of a query comes back; None where it does not.

    Where the documents are as they were, no call is needed. One that a person decided on stays as
    it is.

    Args:
        sight: Of the query as it is.
        ledger: Says which revision stands again.
    """
    query, last = sight.query, ledger.last.get(sight.query.query_id)
    earlier = ledger.earlier.get(query.query_id)
    if earlier is None or query.pinned or query.reviewed:
        return None
    if query.status != "accepted" and (last is None or last.action not in _OUT):
        return None
    if ledger.is_as_before(earlier) and all(gate.verdict == "pass" for gate in earlier.query.gates):
        return "revived"
    is_open = any(gate.verdict == "unknown" for gate in query.gates)
    is_lost_now = query.status == "accepted" and bool(sight.causes)
    return "to_verify" if earlier.causes or is_open or is_lost_now else None


def decide_item(sight: ItemSight, ledger: Ledger) -> Way:
    """Return what a query needs.

    A pinned one is never asked about. One that a person rejected stays out, and so does what asks
    for nothing that a quote could prove. What a refresh put out for lack of its quotes comes back
    when they do; what a check put out, only a check brings back: that of another answer once its
    documents change again, one that failed with the next refresh. What anything else put out, such
    as a conflict of its pool, stays out.

    Args:
        sight: Of the query.
        ledger: What refreshes did to it.
    """
    query = sight.query
    if _is_rejected(query):
        return _in_place(sight)
    if not query.answerable or not sight.quotes:
        is_back = query.pinned is None and query.query_id in ledger.cleared
        return "revived" if is_back else _in_place(sight)
    if query.status == "accepted":
        return _of_pinned(sight) if query.pinned else _of_accepted(sight)
    return _in_place(sight) if query.pinned else _of_one_out(sight, ledger)


def _of_pinned(sight: ItemSight) -> Way:
    return _in_place(sight) if sight.state in VERBATIM else "broken_pins"


def _of_accepted(sight: ItemSight) -> Way:
    if sight.state in _PLAIN:
        return _in_place(sight)
    return "to_search" if sight.state == "gone" else "to_verify"


def _of_one_out(sight: ItemSight, ledger: Ledger) -> Way:
    query, last = sight.query, ledger.last.get(sight.query.query_id)
    if last is None or last.action not in _OUT:
        return "kept"
    if is_in_conflict(last) and query.query_id not in ledger.cleared:
        return "kept"
    verdicts = {gate.verdict for gate in query.gates}
    if query.status == "quarantined" and "unknown" in verdicts:
        return "to_search" if sight.state == "gone" else "to_verify"
    if sight.state not in VERBATIM:
        return "kept"
    if verdicts <= {"pass"}:
        is_plain = sight.state in _PLAIN or ledger.is_as_before(sight)
        return "revived" if is_plain else "to_verify"
    return "to_verify" if sight.causes else "kept"


def _in_place(sight: ItemSight) -> Way:
    """Return whether a quote stands at another place."""
    moved = any(in_place(quote) != quote.evidence for quote in sight.quotes)
    return "remapped" if moved else "kept"


def _reads(quote: QuoteSight, before: frozenset[str]) -> bool:
    return any(cause.kind in DIGESTED and cause.after in before for cause in quote.causes)


def _is_rejected(query: Query) -> bool:
    return query.reviewed is not None and query.reviewed.decision == "reject"


def is_from_person(query: Query) -> bool:
    """Whether a person wrote, edited or approved a query, so that no model writes over it."""
    is_approved = query.reviewed is not None and query.reviewed.decision in ("approve", "edit")
    return query.origin != "synthetic" or is_approved


def is_in_conflict(last: ItemChange) -> bool:
    """Whether a new chunk put a query out."""
    return any(cause.kind == "new chunk" for cause in last.causes)
