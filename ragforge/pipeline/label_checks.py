"""Judging the pairs that people graded, to see how far a judge agrees with them."""

from collections.abc import Iterator, Mapping

from ragforge.errors import DataError
from ragforge.files.set.chunk_lines import ChunkTexts
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.versions.wholeness import require_own_chunks
from ragforge.pipeline.agreement import human_judgments, labels_of
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge_run import JudgeRun, JudgingResult
from ragforge.pipeline.judged_spool import JudgedSpool
from ragforge.pipeline.judges import Judges, open_judges
from ragforge.pipeline.judging import refused_if_all_failed
from ragforge.pipeline.pooling import queries_of, with_texts
from ragforge.records import Judgment, Provenance
from ragforge.stages.judge.examples import refuse_shared_queries
from ragforge.stages.judge.pairs import Pair, PairId


async def judge_labels(dataset: Dataset, job: Job) -> JudgingResult:
    """Judge the pairs that people graded; their grades stay as they are, and no judge sees them.

    What the judge gives goes into the dataset's label checks, beside that of other judges. Pairs
    that it graded there before are not judged again. The offline baseline leaves no record.

    Args:
        dataset: Has chunks, queries and judgments of people.
        job: Split, prompt, models and budget. A dry run writes nothing.

    Raises:
        DataError: People graded no pair of the split's queries.
        EndpointError, BudgetError: The run was stopped, what was judged is written; or every pair
            failed.
    """
    require_own_chunks(dataset)
    queries = queries_of(dataset, job.settings.judge.split)
    asked = _graded_by_people(dataset, queries)
    with ChunkTexts(dataset.chunks_path, {pair.chunk_id for pair in asked}) as texts:
        asked = with_texts(asked, texts, job.observer)
        async with open_judges(job, dataset, "judge") as judges:
            refuse_shared_queries(judges.examples, queries)
            result = JudgingResult(judges.name, len(asked))
            known = _graded_before(dataset, judges)
            is_rule = judges.provenance().kind == "baseline"
            todo = [] if is_rule else [pair for pair in asked if pair not in known]

            def pairs() -> Iterator[Pair]:
                for query_id, chunk_id in todo:
                    yield Pair(query_id, queries[query_id], chunk_id, texts[chunk_id])

            with JudgedSpool(dataset.files) as judged:
                try:
                    if todo:
                        await JudgeRun(judges, judged, result).judge(pairs, len(todo))
                finally:
                    if judged.has_any and not job.mode.dry_run:
                        _write(dataset, judged)
                        judges.note_in(dataset)
                known |= {_pair(check): check for check in judged.judgments()}
            if job.mode.dry_run:
                counts = {"graded_by_people": len(asked), "new": len(todo)}
                result.estimate = {"pairs": counts, **judges.estimate(result.n_texts)}
                return result
    labels = labels_of(dataset)
    result.agreement = labels.beside(result.judge, known.values()) or labels.baseline()
    return refused_if_all_failed(result, len(todo))


def _graded_by_people(dataset: Dataset, queries: Mapping[str, str]) -> list[PairId]:
    pairs = [_pair(one) for one in human_judgments(dataset) if one.query_id in queries]
    if not pairs:
        raise DataError(
            f"{dataset.path}: people graded no chunk for these queries; `ragforge import` brings a "
            "hand-made set in"
        )
    return pairs


def _graded_before(dataset: Dataset, judges: Judges) -> dict[PairId, Judgment]:
    """Return the judge's own checks that have a grade."""
    judge = _judge(judges.provenance())
    return {
        _pair(check): check
        for check in dataset.label_checks()
        if check.grade is not None and check.provenance and _judge(check.provenance) == judge
        if check.provenance.kind != "mock"
    }


def _write(dataset: Dataset, judged: JudgedSpool) -> None:
    """Put new checks in the place of the same judge's old ones of their pairs."""
    checks = {
        (_pair(check), check.provenance and _judge(check.provenance)): check
        for check in (*dataset.label_checks(), *judged.judgments())
    }
    dataset.write_label_checks(checks.values())
    judged.add_failures_to(dataset)


def _pair(one: Judgment) -> PairId:
    return PairId(one.query_id, one.chunk_id)


def _judge(by: Provenance) -> tuple[str, str, str]:
    return by.model, by.prompt_sha256, by.protocol
