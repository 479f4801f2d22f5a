"""Splits of the queries that are new, and queries that came to stand between the splits.

A query that has a split never changes over to the other one. Where its documents connect it now
with queries of the other split, it is in none, and in no figure of either.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ragforge.config import Settings
from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.generation.generated_queries import documents_of
from ragforge.records import Action, Cause, ItemChange, Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.stages.generate.splits import Connections, assign_splits, names_of, with_names

_OUT: Final[Action] = "out_of_split"
_BACK: Final[Action] = "back_in_split"


@dataclass(frozen=True, slots=True)
class SplitChanges:
    """What keeps the splits apart.

    Args:
        items: Queries that left their split, or are back in it; for `UpdatedQueries.replace`.
        changes: What to tell of them.
    """

    items: list[UpdatedQuery]
    changes: list[ItemChange]


def with_splits(
    staged: Dataset, updated: UpdatedQueries, survey: Survey, settings: Settings
) -> list[UpdatedQuery]:
    """Return the items that had no split, each with one; for `UpdatedQueries.replace`.

    A document that was renamed is the one it was: a query on it goes where the earlier ones of
    that document went, retired ones too. No split that was given changes here, also where two
    documents are one now (see `split_changes`); a new query of such a document goes into test if
    both splits know it. Where no query had a split, as in most sets made by hand, none gets one.

    Args:
        staged: The version that is made, with its documents.
        updated: Its queries, new ones included; not changed.
        survey: Of its corpus.
        settings: With the share of dev.
    """
    before = [item.before for item in updated.items if item.before is not None]
    is_parted = any(query.split or query.split_before for query in before) or not before
    if not is_parted or all(query.split or query.split_before for query in updated.queries):
        return []
    documents = with_names(documents_of(updated.queries, survey), names_of(staged.documents()))
    split = assign_splits(updated.queries, documents, settings.generate.dev_share)
    return [
        replace(item, query=query)
        for item, query in zip(updated.items, split, strict=True)
        if item.query.split is None and item.query.split_before is None
    ]


def connections(
    staged: Dataset, updated: UpdatedQueries, survey: Survey, diff: CorpusDiff
) -> Connections:
    """Return what the queries of a version rest on, and of which that is news.

    Args:
        staged: The version that is made, with its documents.
        updated: Its queries, with their splits.
        survey: Of its corpus.
        diff: What changed in it.
    """
    names = names_of(staged.documents())
    documents = with_names(documents_of(updated.queries, survey), names)
    before = with_names(_documents_before(updated, survey, diff), names)
    changed = {
        item.query.query_id
        for item in updated.items
        if item.before is not None and _is_news(item, documents, before)
    }
    added = {item.query.query_id for item in updated.items if item.before is None}
    return Connections(documents, changed, added)


def split_changes(updated: UpdatedQueries, connected: Connections, version: int) -> SplitChanges:
    """Return the queries that are in no split from now on, and those that are back in theirs.

    Args:
        updated: The queries of the version; not changed.
        connected: What they rest on.
        version: Its number.
    """
    clashes = connected.clashes(updated.queries)
    found = SplitChanges([], [])
    for item in updated.items:
        query = item.query
        other = clashes.get(query.query_id, "")
        if query.pinned is not None or query.status != "accepted":
            continue
        if other and query.split:
            update = {"split": None, "split_before": query.split}
            why = f"its documents connect it with {other} of the other split"
            cause = Cause(kind="splits connected", detail=why)
            action = _OUT
        elif query.split_before and not query.split and not other:
            update = {"split": query.split_before, "split_before": None}
            why = "its documents connect it with no query of the other split"
            cause = Cause(kind="splits apart", detail=why)
            action = _BACK
        else:
            continue
        found.items.append(replace(item, query=query.model_copy(update=update)))
        found.changes.append(
            ItemChange(
                version=version,
                query_id=query.query_id,
                action=action,
                revision=query.revision,
                causes=(cause,),
            )
        )
    return found


def _is_news(
    item: UpdatedQuery, documents: Mapping[str, set[str]], before: Mapping[str, set[str]]
) -> bool:
    name = item.query.query_id
    was_in_use = item.before is not None and item.before.status == "accepted"
    left = item.query.split_before is not None
    return left or not was_in_use or not documents[name] <= before[name]


def _documents_before(
    updated: UpdatedQueries, survey: Survey, diff: CorpusDiff
) -> dict[str, set[str]]:
    """Return what queries rested on before; near-duplicates in documents that did not change."""
    earlier = [item.before for item in updated.items if item.before is not None]
    gone = {chunk_id for query in earlier for chunk_id in query.source_chunk_ids}
    doc_id_of = {chunk.chunk_id: chunk.doc_id for chunk in diff.removed() if chunk.chunk_id in gone}
    by_query = {}
    for query_id, documents in documents_of(earlier, survey).items():
        by_query[query_id] = {name for name in documents if name not in diff.moves}
    for query in earlier:
        by_query[query.query_id] |= _own_documents(query, survey, doc_id_of)
    return by_query


def _own_documents(query: Query, survey: Survey, doc_id_of: Mapping[str, str]) -> set[str]:
    own = {item.doc_id for item in query.evidence}
    for chunk_id in query.source_chunk_ids:
        if chunk_id in doc_id_of:
            own.add(doc_id_of[chunk_id])
        else:
            with suppress(KeyError):
                own.add(survey.chunk(chunk_id).doc_id)
    return own
