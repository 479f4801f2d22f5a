"""Splits of the queries that are new; those that were given stay, whatever became of documents."""

from collections.abc import Iterable
from dataclasses import replace

from ragforge.config import Settings
from ragforge.corpus.survey import Survey
from ragforge.files.dataset import Dataset
from ragforge.pipeline.generation.files import documents_of
from ragforge.pipeline.refreshing.settled import SettledItem, SettledSet
from ragforge.records import SourceDocument
from ragforge.stages.generate.splits import assign_splits


def with_splits(
    staged: Dataset, settled: SettledSet, survey: Survey, settings: Settings
) -> list[SettledItem]:
    """Return the items that had no split, each with one; for `SettledSet.replace`.

    A document that was renamed is the one it was: a query on it goes where the earlier ones of
    that document went, retired ones too. No split that was given changes, also where two documents
    are one now; a new query of such a document goes into test if both splits know it.

    Args:
        staged: The version that is made, with its documents.
        settled: Its queries, new ones included; not changed.
        survey: Of its corpus.
        settings: With the share of dev.
    """
    if all(query.split is not None for query in settled.queries):
        return []
    names = _names(staged.documents())
    documents = {
        query_id: {other for name in found for other in names.get(name, (name,))}
        for query_id, found in documents_of(settled.queries, survey).items()
    }
    split = assign_splits(settled.queries, documents, settings.generate.dev_share)
    return [
        replace(item, query=query)
        for item, query in zip(settled.items, split, strict=True)
        if item.query.split is None
    ]


def _names(documents: Iterable[SourceDocument]) -> dict[str, tuple[str, ...]]:
    """Return all ids that a document has and had by each of them; only where there are several."""
    found: dict[str, tuple[str, ...]] = {}
    for document in documents:
        if document.aliases:
            names = (document.doc_id, *document.aliases)
            found |= {name: (*found.get(name, ()), *names) for name in names}
    return found
