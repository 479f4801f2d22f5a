"""Which queries get their pools completed, and what the probes start from."""

from collections.abc import Collection, Sequence

from ragforge.corpus.survey import Survey
from ragforge.errors import DataError
from ragforge.files.dataset import Dataset
from ragforge.observe import Event, Observer
from ragforge.records import Query
from ragforge.report.completion import RELEVANT
from ragforge.stages.complete.probes import Item

MOST_SOURCES = 3
"""Chunks that people found relevant which stand for the source of a query that has none."""


def queries_to_complete(
    dataset: Dataset, split: str, query_ids: Collection[str] | None
) -> list[Query]:
    """Return the named queries, of any status; the accepted ones of a split where None are named.

    Raises:
        DataError: No query is in the split.
    """
    if query_ids is not None:
        return [query for query in dataset.all_queries() if query.query_id in query_ids]
    found = [query for query in dataset.require_queries() if split in ("all", query.split)]
    if not found:
        raise DataError(f"{dataset.path}: no query belongs to the split {split!r}")
    return found


def items_of(
    dataset: Dataset, queries: Sequence[Query], survey: Survey, observer: Observer
) -> list[Item]:
    """Return what probes start from; sources that the corpus does not have are told of.

    A query without evidence or source has for sources what people found most relevant.
    """
    by_people = _found_by_people(dataset, {query.query_id for query in queries})
    items, unknown = [], set[str]()
    for query in queries:
        named = dict.fromkeys((*(one.chunk_id for one in query.evidence), *query.source_chunk_ids))
        sources = []
        for chunk_id in [*named] or by_people.get(query.query_id, []):
            try:
                sources.append(survey.chunk(chunk_id))
            except KeyError:
                unknown.add(chunk_id)
        answer = (query.expected_answer or "") if query.answerable else ""
        items.append(Item(query.query_id, query.asked, answer, tuple(sources)))
    if unknown:
        shown = ", ".join(sorted(unknown)[:3])
        message = f"{len(unknown)} source chunks are not in the corpus, such as {shown}"
        observer(Event("note", message=message))
    return items


def _found_by_people(dataset: Dataset, query_ids: Collection[str]) -> dict[str, list[str]]:
    graded: dict[str, list[tuple[int, str]]] = {}
    for one in dataset.each_judgment():
        grade = one.listed_grade or 0
        is_source = one.source == "human" and one.level == "chunk"
        if is_source and one.query_id in query_ids and grade >= RELEVANT:
            graded.setdefault(one.query_id, []).append((-grade, one.chunk_id))
    return {
        query_id: [chunk_id for _, chunk_id in sorted(found)[:MOST_SOURCES]]
        for query_id, found in graded.items()
    }
