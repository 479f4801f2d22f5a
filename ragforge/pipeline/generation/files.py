"""What generation writes: queries with their truth and splits, then the report and the card."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.corpus.survey import Survey
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.generation.inputs import Inputs, is_kept, is_own
from ragforge.records import Judgment, Query
from ragforge.stages.answer.facts import keeping_facts
from ragforge.stages.generate.splits import assign_splits
from ragforge.stages.generate.truth import derive


def keep_generated(
    dataset: Dataset,
    survey: Survey,
    inputs: Inputs,
    queries: Sequence[Query],
    *,
    dev_share: float,
    is_whole: bool,
) -> None:
    """Write what was generated beside the queries and judgments that others put there.

    What a person reviewed, edited or pinned stays as it is, and so do splits once given.

    Args:
        dataset: Gets it.
        survey: Of its corpus.
        inputs: The set as it stood.
        queries: What was generated, accepted and refuted ones.
        dev_share: Share of new groups that goes into the split dev.
        is_whole: Whether generation came to its end; else what was there before stays as well.
    """
    before = dataset.all_queries()
    standing = {query.query_id: query for query in before}
    others = [query for query in before if not is_own(query)]
    taken = {query.query_id for query in others}
    fresh = [query for query in queries if query.query_id not in taken]
    mine = {query.query_id: _settled(query, standing.get(query.query_id)) for query in fresh}
    for query in before:
        if is_own(query) and query.query_id not in mine and (is_kept(query) or not is_whole):
            mine[query.query_id] = query
    index = index_of([*mine.values()], survey)
    derived = [derive(query, index) for query in keeping_facts(mine.values(), before)]
    everything = [*others, *(each.query for each in derived)]
    split = assign_splits(everything, documents_of(everything, survey), dev_share)
    evidence = [judgment for each in derived for judgment in each.judgments]
    dataset.write_queries(split)
    ids = {query.query_id for query in split}
    dataset.write_judgments(_judgments(dataset, ids, mine.keys(), evidence))
    if is_whole:
        pool = dataset.pool()
        left = [entry for entry in pool if entry.query_id in ids]
        if len(left) < len(pool):
            dataset.write_pool(left)


def _settled(query: Query, old: Query | None) -> Query:
    """Return a query as it is to stand: what a person did to the old one, and its split, stays."""
    if old is None:
        return query
    if is_kept(old):
        return old
    return query.model_copy(update={"split": old.split, "split_before": old.split_before})


def index_of(queries: Iterable[Query], survey: Survey) -> ChunkIndex:
    """Return the chunks of all documents that the evidence of queries is of."""
    documents = sorted({item.doc_id for query in queries for item in query.evidence})
    return ChunkIndex(
        survey.chunk(chunk_id) for doc_id in documents for chunk_id in survey.in_document(doc_id)
    )


def documents_of(queries: Iterable[Query], survey: Survey) -> dict[str, set[str]]:
    """Return the documents that each query rests on, and those that hold the same text, by id.

    A source chunk that the corpus does not have any more tells of none.
    """
    by_query: dict[str, set[str]] = {}
    for query in queries:
        documents = {item.doc_id for item in query.evidence}
        for chunk_id in query.source_chunk_ids:
            with suppress(KeyError):
                for twin in (chunk_id, *survey.twins(chunk_id)):
                    documents.add(survey.chunk(twin).doc_id)
        by_query[query.query_id] = documents
    return by_query


def _judgments(
    dataset: Dataset,
    query_ids: Collection[str],
    derived: Collection[str],
    evidence: Iterable[Judgment],
) -> Iterable[Judgment]:
    """Return the judgments of the set: what others gave stands above what the evidence says.

    Args:
        dataset: As it stands.
        query_ids: Of the queries that it holds now.
        derived: Of those whose evidence was looked up again.
        evidence: What that says.
    """
    by_pair = {(item.query_id, item.chunk_id): item for item in evidence}
    for old in dataset.each_judgment():
        pair = (old.query_id, old.chunk_id)
        if old.query_id not in query_ids:
            continue
        if old.source == "evidence" and old.query_id in derived:
            continue
        if old.grade is not None or pair not in by_pair:
            by_pair[pair] = old
    return by_pair.values()
