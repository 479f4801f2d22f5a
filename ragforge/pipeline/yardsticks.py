"""What earlier rankings are scored on: the grades of today."""

from ragforge.files.dataset import Dataset
from ragforge.files.levels import document_level, ids_of_corpus
from ragforge.pipeline.evaluated import EvaluatedRun
from ragforge.pipeline.ground_digests import corpus_digest, judgments_digest
from ragforge.report.gathered import settle_judgments, task_of
from ragforge.report.history.common_items import Yardstick
from ragforge.report.one_judge import pair_judges


def yardstick_of(dataset: Dataset, run: EvaluatedRun) -> Yardstick:
    """Return what earlier rankings are scored on, to be compared with a run.

    Args:
        dataset: Has the chunks.
        run: Just evaluated.
    """
    evaluation = run.evaluation
    return Yardstick(
        qrels=run.qrels,
        relevant=run.relevant,
        rel_threshold=evaluation.rel_threshold,
        corpus=evaluation.digests.corpus,
        judgments=evaluation.digests.judgments,
        chunk_ids=lambda: ids_of_corpus(dataset),
        moved=dataset.past.moved_chunks,
        pair_judges=run.pair_judges,
    )


def yardstick_now(dataset: Dataset, rel_threshold: int, *, by_lists: bool) -> Yardstick:
    """Return what earlier rankings are scored on today, without a run.

    Args:
        dataset: Has queries and judgments.
        rel_threshold: Lowest grade that counts as relevant.
        by_lists: Whether what people list as relevant goes before that.
    """
    queries = [query for query in dataset.queries() if query.answerable]
    answerable = {query.query_id for query in queries}
    judgments = [item for item in dataset.judgments() if item.query_id in answerable]
    settled = settle_judgments(
        dataset,
        document_level(dataset, judgments),
        judgments,
        "auto" if by_lists else rel_threshold,
    )
    task = task_of(queries, settled, (), rel_threshold, by_lists=by_lists)
    return Yardstick(
        qrels=task.qrels,
        relevant=task.relevant,
        rel_threshold=rel_threshold,
        corpus=corpus_digest(dataset),
        judgments=judgments_digest(settled),
        chunk_ids=lambda: ids_of_corpus(dataset),
        moved=dataset.past.moved_chunks,
        pair_judges=pair_judges(settled),
    )
