"""What earlier rankings are scored on: the grades of today."""

from ragforge.files.dataset import Dataset
from ragforge.files.levels import document_level, ids_of_corpus
from ragforge.pipeline.ground_digests import corpus_digest, grades_of, judgments_digest
from ragforge.records import Evaluation
from ragforge.report.history.common_items import Yardstick
from ragforge.report.judging import settle
from ragforge.report.one_judge import PairJudges, pair_judges
from ragforge.report.runs import Qrels


def yardstick_of(
    dataset: Dataset, evaluation: Evaluation, qrels: Qrels, by: PairJudges
) -> Yardstick:
    """Return what earlier rankings are scored on, to be compared with an evaluation.

    Args:
        dataset: Has the chunks.
        evaluation: Just made on these grades.
        qrels: The grades.
        by: Who gave them.
    """
    return Yardstick(
        qrels=qrels,
        rel_threshold=evaluation.rel_threshold,
        corpus=evaluation.digests.corpus,
        judgments=evaluation.digests.judgments,
        chunk_ids=lambda: ids_of_corpus(dataset),
        moved=dataset.past.moved_chunks,
        pair_judges=by,
    )


def yardstick_now(dataset: Dataset, rel_threshold: int) -> Yardstick:
    """Return what earlier rankings are scored on today, without a run.

    Args:
        dataset: Has queries and judgments.
        rel_threshold: Lowest grade that counts as relevant.
    """
    answerable = {query.query_id for query in dataset.queries() if query.answerable}
    judgments = [item for item in dataset.judgments() if item.query_id in answerable]
    settled = settle(document_level(dataset, judgments).judgments(judgments))
    return Yardstick(
        qrels={query_id: grades_of(settled.get(query_id, {})) for query_id in answerable},
        rel_threshold=rel_threshold,
        corpus=corpus_digest(dataset),
        judgments=judgments_digest(settled),
        chunk_ids=lambda: ids_of_corpus(dataset),
        moved=dataset.past.moved_chunks,
        pair_judges=pair_judges(settled),
    )
