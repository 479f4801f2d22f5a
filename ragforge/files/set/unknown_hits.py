"""Runs of which a set knows no hit, so that their ids are other names: nothing is shown by them."""

from collections.abc import Iterable, Mapping

from ragforge.files.set.dataset import Dataset
from ragforge.files.text import shown, shown_names
from ragforge.records import Chunk


def unknown_run_text(
    dataset: Dataset, ranked: Mapping[str, Iterable[str]], qrels: Mapping[str, Mapping[str, object]]
) -> str:
    """Return why a run can show nothing, as no hit of it is of anything that the set knows.

    Hits that are of the set and not relevant are no such reason, nor is a run that found nothing,
    or one that labels name. In a set without chunks nobody can tell.

    Args:
        dataset: Has chunks, and texts of runs.
        ranked: Ids by query, of chunks or documents.
        qrels: Labels by query and id. Where all of them are of what the set does not have, such
            hits are no fault of the run.

    Returns:
        A part of a sentence with examples; "" where the set knows a hit.

    Raises:
        DataError: The chunks or the texts cannot be read.
    """
    if any(name in qrels.get(query_id, ()) for query_id, ids in ranked.items() for name in ids):
        return ""
    hits = {name: None for ids in ranked.values() for name in ids}
    labels = {name for of in qrels.values() for name in of}
    if not hits or not dataset.chunks_path.exists():
        return ""
    there: Chunk | None = None
    has_labels = False
    for chunk in dataset.chunks():
        there = there or chunk
        if chunk.chunk_id in hits or chunk.doc_id in hits:
            return ""
        has_labels = has_labels or chunk.chunk_id in labels or chunk.doc_id in labels
    if there is None or (labels and not has_labels):
        return ""
    for text in dataset.retrieved_texts():
        if text.chunk_id in hits or not hits.keys().isdisjoint(text.doc_ids):
            return ""
    return none_known_text(dataset, hits, there)


def none_known_text(dataset: Dataset, ids: Iterable[str], there: Chunk) -> str:
    """Return that a set knows none of some ids, with examples of both."""
    return (
        f"no id is of a chunk or document of {dataset.path}: it holds {shown_names([*ids])}; "
        f"the set has {shown(there.chunk_id)} of {shown(there.doc_id)}"
    )
