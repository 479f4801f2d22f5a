"""What refreshes did to the queries of a set, and what of that the corpus now undoes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ragforge.config import RefreshSettings
from ragforge.evaluating.same_judge import JudgeKey, canonical_judge_keys, judge_key
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.ground_digests import grades_digest, item_digests
from ragforge.records import Action, Cause, Evidence, ItemChange, Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.items.decisions import DIGESTED, Ledger, is_in_conflict
from ragforge.refresh.items.drafts import VERBATIM
from ragforge.refresh.quotes.locations import ItemSight
from ragforge.refresh.quotes.search import sight_items


def bridge_of(parent: Dataset, staged: Dataset) -> tuple[str, ...]:
    """Return the ids of the queries that ask for the same and have the same grades, sorted.

    They are accepted in both versions, with the same question, answer and quotes, and the same
    chunks have the same grades above 0. A chunk that only has another id now is the same; one that
    is gone, or a new one that is relevant, makes a difference. So a system that finds the same
    texts has the same values on them. No two judges graded them in the one version or the other:
    else a system that finds other texts is held against itself by another judge.
    """
    before, now = item_digests(parent.queries()), item_digests(staged.queries())
    same = {query_id for query_id in before if before[query_id] == now.get(query_id)}
    old = dict(_grades(parent, same, staged.past.moved_chunks()))
    new = dict(_grades(staged, same, {}))
    nothing = _Graded(grades_digest({}), frozenset())
    both = {one: (old.get(one, nothing), new.get(one, nothing)) for one in same}
    judges = canonical_judge_keys(key for pair in both.values() for of in pair for key in of.judges)
    return tuple(
        sorted(
            query_id
            for query_id, (before, after) in both.items()
            if before.digest == after.digest
            and len({judges[key] for key in before.judges | after.judges}) < 2
        )
    )


class _Graded(NamedTuple):
    """The grades of a query, and who gave them."""

    digest: str
    judges: frozenset[JudgeKey]


def _grades(
    dataset: Dataset, query_ids: set[str], moved: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, _Graded]]:
    """Yield what the grades of queries are, and who gave them."""
    for query_id, of_query in groupby(dataset.each_judgment(), lambda judgment: judgment.query_id):
        if query_id in query_ids:
            judged = list(of_query)
            of_now = [
                (i, judgment)
                for judgment in judged
                for i in moved.get(judgment.chunk_id, (judgment.chunk_id,))
            ]
            marks = {chunk_id: judgment.relevant for chunk_id, judgment in of_now}
            listed = [chunk_id for chunk_id, is_relevant in marks.items() if is_relevant]
            has_list = any(mark is not None for mark in marks.values())
            grades = {chunk_id: judgment.grade for chunk_id, judgment in of_now}
            judges = frozenset(
                key for judgment in judged if (key := judge_key(judgment)) is not None
            )
            yield query_id, _Graded(grades_digest(grades, listed if has_list else None), judges)


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
    digests: dict[tuple[str, int], frozenset[str]] = {}
    revisions: dict[str, int] = {}
    for change in events:
        name, revision = change.query_id, revisions.get(change.query_id, 1)
        before = frozenset(one.before for one in change.causes if one.kind in DIGESTED) - {""}
        if change.revision > revision or change.action in _LOST:
            digests.setdefault((name, revision), before)
        else:
            digests.pop((name, revision), None)
        revisions[name] = change.revision
    return digests
