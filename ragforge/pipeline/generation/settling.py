"""Settling a set: what was generated stands from then on, whatever is generated after.

A rerun makes a set again from the call store. Where that would give another set, under other
chunks or after failed replies are forgotten, the queries are settled first.
"""

from ragforge.files.dataset import Dataset
from ragforge.records import Query

SETTLED = "settled"
"""In the place of the slot of a query that is not made again."""


def is_own(query: Query) -> bool:
    """Whether generation made a query, and makes it again."""
    return _is_made(query) and not is_settled(query)


def is_settled(query: Query) -> bool:
    """Whether generation made a query that now stands by itself."""
    return query.lineage is not None and query.lineage.slot == SETTLED


def is_kept(query: Query) -> bool:
    """Whether a person had a hand in a query, so that it is never written over."""
    is_decided = query.pinned is not None or query.reviewed is not None
    return is_decided or query.revision > 1 or query.status == "retired"


def settle(dataset: Dataset) -> None:
    """Settle the queries of a dataset; what was asked for so far is forgotten."""
    dataset.write_queries([settled(query) for query in dataset.all_queries()])
    manifest = dataset.manifest
    if manifest.steps:
        dataset.write_manifest(manifest.model_copy(update={"steps": ()}))


def settled(query: Query) -> Query:
    """Return a query that is not made again, where it was generated."""
    if query.lineage is None or not is_own(query):
        return query
    lineage = query.lineage.model_copy(update={"slot": SETTLED})
    return query.model_copy(update={"lineage": lineage})


def _is_made(query: Query) -> bool:
    return query.origin == "synthetic" and query.lineage is not None and query.lineage.slot != ""
