"""Runs of the version before, brought along to the next with the grades of what is gone."""

from collections.abc import Mapping
from functools import partial

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.wholeness import corpus_digest
from ragforge.pipeline.carried_runs import CarriedRun, ChunkChange, carry_runs
from ragforge.pipeline.text_grades import grade_retrieved
from ragforge.records import Judgment
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.grades.moved_chunks import doc_id_now


def carry_runs_along(staged: Dataset, parent: Dataset, diff: CorpusDiff) -> tuple[CarriedRun, ...]:
    """Write the runs of the version before into the next, and return what became of each.

    Runs that were stale stay behind. Grades of chunks that are gone go along with their texts, and
    so do those of texts, whatever their documents are called now.

    Args:
        staged: Has the chunks, queries and judgments of now.
        parent: The version before.
        diff: What changed in the corpus.

    Raises:
        DataError: A file cannot be read or written.
    """
    change = ChunkChange(
        before=diff.removed,
        added=diff.added,
        now=staged.chunks,
        digest=corpus_digest(staged),
        doc_id_now=partial(doc_id_now, diff),
        cutting=diff.cutting,
    )
    carried = carry_runs(staged, parent, change)
    _carry_grades(staged, parent, carried.texts)
    grade_retrieved(staged)
    return carried.runs


def _carry_grades(staged: Dataset, parent: Dataset, gone: Mapping[str, str]) -> None:
    """Give the texts of chunks that are gone the grades that these had."""
    if not gone:
        return
    there = {(item.query_id, item.chunk_id) for item in staged.each_judgment()}
    carried: dict[tuple[str, str], Judgment] = {}
    for item in parent.each_judgment():
        pair = item.query_id, gone.get(item.chunk_id, "")
        is_grade = item.source != "evidence" and not item.is_failed
        if pair[1] and is_grade and pair not in there:
            update = {"chunk_id": pair[1], "copied_from": ""}
            carried[pair] = item.model_copy(update=update)
    if carried:
        staged.add_judgments(iter([carried[pair] for pair in sorted(carried)]))
