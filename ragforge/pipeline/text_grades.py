"""Grades of texts that runs retrieved and that are no chunks: by the evidence that they hold."""

from ragforge.files.set.dataset import Dataset
from ragforge.records import Judgment, is_text_id
from ragforge.stages.judge.evidence import TextsInPlace


def grade_by_evidence(dataset: Dataset) -> int:
    """Grade the retrieved texts that hold evidence, of any query, and return how many were.

    What has a grade keeps it. A set without such texts, or without evidence, stays as it is.

    Raises:
        DataError: A file of the set cannot be read.
    """
    texts = TextsInPlace(dataset.retrieved_texts())
    if not texts:
        return 0
    queries = [query for query in dataset.accepted_queries() if query.evidence]
    graded = {(old.query_id, old.chunk_id) for old in dataset.each_judgment() if not old.is_failed}
    retrieved = _retrieved(dataset) if texts.has_unplaced else {}
    new: list[Judgment] = [
        judgment
        for query in sorted(queries, key=lambda query: query.query_id)
        for judgment in texts.judgments(query, retrieved.get(query.query_id, frozenset()))
        if (judgment.query_id, judgment.chunk_id) not in graded
    ]
    if new:
        dataset.add_judgments(iter(new))
    return len(new)


def _retrieved(dataset: Dataset) -> dict[str, set[str]]:
    """Return by query the texts that any run holds for it."""
    found: dict[str, set[str]] = {}
    for name in dataset.run_names():
        for item in dataset.each_ranking(name):
            ids = (hit.chunk_id for hit in item.ranking if is_text_id(hit.chunk_id))
            found.setdefault(item.query_id, set()).update(ids)
    return found
