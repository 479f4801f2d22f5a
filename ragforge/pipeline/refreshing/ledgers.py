"""What refreshes did to the queries of a set, and what of that the corpus now undoes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ragforge.config import RefreshSettings
from ragforge.files.dataset import Dataset
from ragforge.pipeline.refreshing.drafts import VERBATIM
from ragforge.pipeline.refreshing.ways import DIGESTED, Ledger, is_in_conflict
from ragforge.records import Action, Cause, Evidence, ItemChange, Query
from ragforge.refresh.corpus_diff import CorpusDiff
from ragforge.refresh.quotes import sight_items
from ragforge.refresh.sights import ItemSight

_LOST: Final[frozenset[Action]] = frozenset({"retired", "quarantined"})
_OF_SPLITS: Final[frozenset[Action]] = frozenset({"out_of_split", "back_in_split"})
"""Say nothing of the query itself."""


def ledger_of(
    parent: Dataset,
    version: int,
    sights: Sequence[ItemSight],
    diff: CorpusDiff,
    settings: RefreshSettings,
) -> Ledger:
    """Return what refreshes did to the queries of a version, of which another one is made.

    Args:
        parent: The version before.
        version: The number of the new one.
        sights: Where the quotes of its queries stand now.
        diff: How the corpus differs.
        settings: As for `sight_items`.

    Raises:
        DataError: A file cannot be read.
    """
    events = parent.past.events()
    last = {change.query_id: change for change in events if change.action not in _OF_SPLITS}
    contradicted = {
        sight.query.query_id: _contradicting(sight.query, last)
        for sight in sights
        if sight.query.status == "quarantined"
    }
    doubts = [query for query in contradicted.values() if query is not None]
    earlier = _earlier(parent, sights)
    back = _sighted(earlier, "retired", parent, diff, settings)
    return Ledger(
        version,
        last,
        cleared={
            sight.query.query_id: _cleared(sight)
            for sight in _sighted(doubts, "quarantined", parent, diff, settings)
            if all(one.state not in VERBATIM for one in sight.quotes)
        },
        # Oldest first, so that the latest is left.
        earlier={one.query.query_id: one for one in back if one.state in VERBATIM},
        texts=_texts_before(events),
    )


def _sighted(
    queries: Sequence[Query],
    status: str,
    parent: Dataset,
    diff: CorpusDiff,
    settings: RefreshSettings,
) -> list[ItemSight]:
    """Return where quotes stand; those of a retired query are looked for in new chunks alone."""
    if not queries:
        return []
    update = {"status": status, "reviewed": None}
    looked_for = [query.model_copy(update=update) for query in queries]
    found = sight_items(looked_for, parent, diff, settings)
    return [ItemSight(query, one.quotes) for query, one in zip(queries, found, strict=True)]


def _contradicting(query: Query, last: Mapping[str, ItemChange]) -> Query | None:
    """Return a query with the words that speak against it as its quotes; None without any."""
    change = last.get(query.query_id)
    if change is None or change.action != "quarantined" or not is_in_conflict(change):
        return None
    causes = [cause for cause in change.causes if cause.kind == "new chunk"]
    if not all(cause.quote.strip() and cause.doc_id for cause in causes):
        return None
    words = (Evidence(doc_id=one.doc_id, chunk_id=one.doc_id, quote=one.quote) for one in causes)
    return query.model_copy(update={"evidence": tuple(words)})


def _cleared(sight: ItemSight) -> tuple[Cause, ...]:
    told = {"detail": "what contradicted it stands there no longer"}
    return tuple(cause.model_copy(update=told) for cause in sight.causes)


def _earlier(parent: Dataset, sights: Iterable[ItemSight]) -> list[Query]:
    """Return the earlier revisions of queries that lost their answer, oldest first."""
    lost = {sight.query.query_id: sight.query for sight in sights if _is_lost(sight)}
    return [
        query
        for query in parent.past.revisions()
        if query.query_id in lost
        and query.revision < lost[query.query_id].revision
        and query.answerable
        and query.evidence
    ]


def _is_lost(sight: ItemSight) -> bool:
    query = sight.query
    if query.revision == 1:
        return False
    return sight.state not in VERBATIM if query.answerable else query.type == "unanswerable"


def _texts_before(events: Iterable[ItemChange]) -> dict[tuple[str, int], frozenset[str]]:
    """Return the digests that documents had before a revision was lost, by id and revision."""
    found: dict[tuple[str, int], frozenset[str]] = {}
    revisions: dict[str, int] = {}
    for change in events:
        name, revision = change.query_id, revisions.get(change.query_id, 1)
        before = frozenset(one.before for one in change.causes if one.kind in DIGESTED) - {""}
        if change.revision > revision or change.action in _LOST:
            found.setdefault((name, revision), before)
        else:
            found.pop((name, revision), None)
        revisions[name] = change.revision
    return found
