"""Which way a query goes in a refresh, by where its quotes stand and how it stood before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ragforge.files.dataset import Dataset
from ragforge.pipeline.refreshing.drafts import VERBATIM, in_place
from ragforge.records import ItemChange, Query
from ragforge.refresh.sights import ItemSight, QuoteState

Way = Literal["kept", "remapped", "revived", "to_verify", "to_search", "broken_pins"]
_PLAIN: Final[frozenset[QuoteState]] = frozenset({"kept", "moved"})
"""Nothing near the quote changed."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What refreshes did to queries so far.

    Args:
        version: The version that is made now.
        last: The last change of each query before it.
    """

    version: int
    last: Mapping[str, ItemChange] = field(default_factory=dict)


def ledger_of(parent: Dataset, version: int) -> Ledger:
    """Return what refreshes did to the queries of a version, of which another one is made."""
    return Ledger(version, {change.query_id: change for change in parent.past.events()})


def way_of(sight: ItemSight, last: ItemChange | None) -> Way:
    """Return what a query needs.

    A pinned one is never asked about. One that a person rejected stays out, and so does what asks
    for nothing that a quote could prove. What a refresh put out for lack of its quotes comes back
    when they do; what a check put out, only a check brings back: that of another answer once its
    documents change again, one that failed with the next refresh. What anything else put out, such
    as a conflict of its pool, stays out.

    Args:
        sight: Of the query.
        last: What a refresh last did to it; None for nothing.
    """
    query = sight.query
    if not query.answerable or not sight.quotes or _is_rejected(query):
        return _in_place(sight)
    if query.status == "accepted":
        return _of_pinned(sight) if query.pinned else _of_accepted(sight)
    return _in_place(sight) if query.pinned else _of_one_out(sight, last)


def _of_pinned(sight: ItemSight) -> Way:
    return _in_place(sight) if sight.state in VERBATIM else "broken_pins"


def _of_accepted(sight: ItemSight) -> Way:
    if sight.state in _PLAIN:
        return _in_place(sight)
    return "to_search" if sight.state == "gone" else "to_verify"


def _of_one_out(sight: ItemSight, last: ItemChange | None) -> Way:
    query = sight.query
    if last is None or last.action not in ("retired", "quarantined") or _is_in_conflict(last):
        return "kept"
    verdicts = {gate.verdict for gate in query.gates}
    if query.status == "quarantined" and "unknown" in verdicts:
        return "to_search" if sight.state == "gone" else "to_verify"
    if sight.state not in VERBATIM:
        return "kept"
    if verdicts <= {"pass"}:
        return "revived" if sight.state in _PLAIN else "to_verify"
    return "to_verify" if sight.causes else "kept"


def _in_place(sight: ItemSight) -> Way:
    """Return whether a quote stands at another place."""
    moved = any(in_place(quote) != quote.evidence for quote in sight.quotes)
    return "remapped" if moved else "kept"


def _is_rejected(query: Query) -> bool:
    return query.reviewed is not None and query.reviewed.decision == "reject"


def _is_in_conflict(last: ItemChange) -> bool:
    return any(cause.kind == "new chunk" for cause in last.causes)
