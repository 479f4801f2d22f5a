"""Judging what runs retrieved, pairs from a file, or the pairs that people graded."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.config import JudgeSettings
from ragforge.errors import DataError
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.judgments import LabelReading, judges_differ, relevance_words
from ragforge.files.atomic import make_folder
from ragforge.files.record_files import ExternalSorter
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import require_own_chunks
from ragforge.files.set.sorted_records import ChunkTexts
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job, OutputFile, all_failed
from ragforge.pipeline.judge.judge_run import (
    JudgeRun,
    JudgingResult,
    judge_into,
    judged_spool,
)
from ragforge.pipeline.judge.judged_pairs import JudgedPairs
from ragforge.pipeline.judge.judges import Judges, open_judges
from ragforge.pipeline.judge.pooling import (
    NO_NEEDS,
    ONE_BACK,
    EarlierNeeds,
    EarlierRankings,
    KeptGrades,
    describe_other_judges,
    earlier_needs,
    note_earlier_needs,
    pairs_before_drift,
    pool_of,
    queries_of,
    refuse_beside_drift,
    refuse_mixed_judges,
    with_texts,
)
from ragforge.records import Judgment
from ragforge.stages.judge.llm import refuse_shared_queries
from ragforge.stages.judge.pairs import Pair, PairId, QuerySummary, open_pairs, summarise

if TYPE_CHECKING:
    from ragforge.files.formats.pairs import PairRow

_BATCHES = re.compile(r"batch (\d+) x (\d+)")


class PairsByQuery(AbstractContextManager["PairsByQuery"]):
    """Reads a file whole, so that what is wrong with it is told before anything is paid.

    Texts are sorted on disk; in memory are the queries, and the grades of people.

    Args:
        path: The file; see `read_pairs`.
        folder: Where the sorted parts are put.

    Raises:
        DataError: The file does not hold to its format, or there is no space.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        from ragforge.files.formats.pairs import read_pairs
        from ragforge.pipeline.judge.agreement import HumanLabels

        self._rows: ExternalSorter[PairRow] = ExternalSorter(
            lambda row: (row.query_id, row.chunk_id), folder
        )
        self.queries: dict[str, str] = {}
        """Text of each query by id."""
        self.labels = HumanLabels()
        """What people gave to the pairs."""
        for row in read_pairs(path):
            self.queries[row.query_id] = row.query
            pair = Pair(row.query_id, row.query, row.chunk_id, row.text)
            self.labels.add(pair, row.human_grade)
            self._rows.add(row)

    def __exit__(self, *_: object) -> None:
        self._rows.__exit__()

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self._rows.count

    def lines(self) -> Iterator[str]:
        """Yield the rows as JSON, sorted by query and chunk; as often as asked."""
        return self._rows.lines()

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs, sorted by query and chunk; as often as asked."""
        from ragforge.files.formats.pairs import PairRow

        for line in self.lines():
            row = PairRow.from_line(line)
            yield Pair(row.query_id, row.query, row.chunk_id, row.text)


def in_batches_of_pools(dataset: Dataset, job: Job) -> Job:
    """Return the job with the batches that the same model judged the pools of the set in.

    Only where nothing is said about how to judge, and grades of another way are neither replaced
    nor to be mixed: half a set graded in another way would look like a difference of systems.
    """
    settings, how = job.settings, job.settings.judge
    said_nothing = how == JudgeSettings(depth=how.depth, split=how.split)
    asked_otherwise = not said_nothing or job.mode.again or job.mode.mix
    if asked_otherwise or not (dataset.files / "pool.jsonl").exists():
        return job
    for judgment in dataset.each_judgment():
        by = judgment.provenance
        batches = _BATCHES.match(by.protocol) if by and by.model == settings.model.name else None
        if batches:
            batch, permutations = map(int, batches.groups())
            job.observer(
                Event(
                    "note",
                    message=f"judged like the pools of this set, {batches[0]}; --again judges all "
                    "of them anew, one by one",
                )
            )
            update = {"batch": batch, "permutations": permutations}
            judge = how.model_copy(update=update)
            return job.with_settings(settings.model_copy(update={"judge": judge}))
    return job


async def judge_dataset(
    dataset: Dataset, run_names: Sequence[str], job: Job, earlier: EarlierRankings | None = None
) -> JudgingResult:
    """Judge the pool of some runs; pairs that have a grade are not judged again.

    With `Mode.again` and no run named, what a judge graded before it drifted is judged as well.

    The grades of the offline baseline count as none where a model is to judge. Where nothing is
    asked for earlier rankings, what they need is told.

    Args:
        dataset: Has chunks, queries and runs.
        run_names: Whose top ranks are pooled; all runs where empty.
        job: Depth, split, prompt, models and budget. A dry run writes nothing.
        earlier: Rankings of earlier evaluations that are judged as well; None for none.

    Raises:
        DataError: There is no such run, or none at all, or no query in the split.
        UsageError: Another model or prompt graded a part of the pool; see `Mode`.
        EndpointError, BudgetError: The run was stopped, what was judged is written; or every pair
            failed.
    """
    from ragforge.evaluating.evaluation_data import reading_in_force
    from ragforge.pipeline.text_grades import add_copies, found_by_text

    job = in_batches_of_pools(dataset, job)
    was = reading_in_force(dataset, dataset.judgment_table())
    depth, observer = job.settings.judge.depth, job.observer
    queries = queries_of(dataset, job.settings.judge.split)
    retrieved = pool_of(dataset, queries, run_names, depth, observer)
    async with open_judges(job, dataset, "judge") as judges:
        refuse_shared_queries(judges.examples, queries)
        kept_grades = KeptGrades(judges.provenances(), again=job.mode.again)
        other_side = pairs_before_drift(dataset.each_judgment(), kept_grades)
        if not run_names:
            retrieved = _with_other_side(retrieved, other_side, queries, kept_grades)
        needs = _needs(dataset, queries, run_names, depth, kept_grades, earlier)
        everything = {pair.chunk_id for pair in (*retrieved, *needs.pairs)}
        with dataset.chunk_texts(everything) as texts:
            pooled = with_texts(retrieved, texts, observer)
            needs = needs.not_in(pooled, texts)
            if earlier is None:
                note_earlier_needs(needs, dataset, kept_grades, observer)
            else:
                pooled = sorted({*pooled, *needs.pairs})
            todo = open_pairs(pooled, dataset.each_judgment(), kept_grades.keeps)
            copies = found_by_text(dataset, todo, kept_grades.is_own) if todo else []
            todo = _without(todo, copies)
            if not job.mode.mix:
                others = describe_other_judges(dataset, set(pooled).difference(todo), kept_grades)
                refuse_mixed_judges(others, len(todo), kept_grades, observer)
                refuse_beside_drift(len(other_side), len(todo), kept_grades)
            result = JudgingResult(judges.name, len(pooled))
            if copies and not job.mode.dry_run:
                add_copies(dataset, copies)
                observer(Event("note", message=_found_again(len(copies))))
            before = _stored_failures(dataset, todo)
            pairs = partial(_pairs, todo, queries, texts)
            await judge_into(dataset, judges, kept_grades, result, pairs, len(todo))
        if job.mode.dry_run:
            counts = _counts(dataset, pooled, todo)
            if earlier is not None:
                counts["new_of_earlier_rankings"] = len(set(needs.pairs).intersection(todo))
            result.estimate = _estimate(judges, result, counts)
            return result
    result.summaries = _summaries(dataset, set(pooled))
    note_label_reading(dataset, was, observer)
    _note_other_judges(dataset, set(pooled), kept_grades, observer)
    if todo and len(before) == len(todo) and _stored_failures(dataset, todo) == before:
        observer(Event("note", message=_failed_before(len(todo))))
        return result
    return refused_if_all_failed(result, len(todo))


def _with_other_side(
    retrieved: Sequence[PairId],
    other_side: Iterable[PairId],
    query_ids: Container[str],
    kept_grades: KeptGrades,
) -> list[PairId]:
    """Return a pool, with what its judge graded on the other side of a drift if that is redone."""
    more = (pair for pair in other_side if pair.query_id in query_ids and kept_grades.again)
    return sorted({*retrieved, *more})


def _without(todo: Sequence[PairId], copies: Iterable[Judgment]) -> list[PairId]:
    found = {_pair_of(one) for one in copies}
    return [pair for pair in todo if pair not in found]


def _found_again(n_pairs: int) -> str:
    return (
        f"{plural(n_pairs, 'pair has the grade', 'pairs have the grades')} that the same words "
        "have under another id; no call was made"
    )


def _failed_before(n_pairs: int) -> str:
    return (
        f"the judgments of {plural(n_pairs, 'pair')} failed before, and no call was made: the "
        "replies are stored; --retry-failed asks again"
    )


def _stored_failures(dataset: Dataset, pairs: Iterable[PairId]) -> dict[str, tuple[str, ...]]:
    """Return the stored replies of those pairs whose judgment failed for what was replied."""
    keys = {f"{query_id}/{chunk_id}" for query_id, chunk_id in pairs}
    if not keys:
        return {}
    return {
        failure.key: failure.call_keys
        for failure in dataset.failures()
        if failure.what == "judge" and failure.key in keys and failure.call_keys
    }


def note_label_reading(dataset: Dataset, was: LabelReading, observer: Observer) -> None:
    """Tell what a judge's grades change about how the labels of a set are read.

    What people alone labelled is complete; with grades of a judge it is a pool, also by the
    manifest.
    """
    from ragforge.evaluating.evaluation_data import reading_in_force

    manifest = dataset.manifest
    now = reading_in_force(dataset, dataset.judgment_table())
    if was == "complete" and now != was:
        if manifest.labels == was:
            dataset.write_manifest(manifest.model_copy(update={"labels": now}))
        message = (
            "labels were complete, and are of a pool now that a judge graded: a chunk without a "
            "label was not looked at"
        )
        observer(Event("note", message=message))
    if judges_differ(dataset.each_judgment(), manifest.rel_threshold):
        words = relevance_words(manifest.rel_threshold or 1, judges_differ=True)
        message = f"{words}: the set's author counts from 1, a judge's 1 has no part of the answer"
        observer(Event("note", message=message))


async def judge_file(
    pairs_path: Path, out: Path, job: Job, store_path: Path | None = None
) -> JudgingResult:
    """Judge the pairs of a file into a file of judgments, however many there are.

    Pairs and judgments are sorted on disk. Failures go to `OUT.failures.jsonl` beside the file,
    replies to `store_path`, or to `.ragforge/` in its folder where None. Where people graded pairs,
    the result says how far the judge agrees with them.

    Raises:
        DataError: The file of pairs does not hold to its format.
        EndpointError, BudgetError: As for `judge_dataset`; a file that has more judgments already
            stays as it is.
    """
    make_folder(out.parent)
    async with open_judges(job, OutputFile.beside(out, store_path), "judge") as judges:
        with PairsByQuery(pairs_path, out.parent) as rows, judged_spool(out.parent) as judged:
            refuse_shared_queries(judges.examples, rows.queries)
            result = JudgingResult(judges.name, len(rows))
            with judged.written_to(out, job):
                await JudgeRun(judges, judged, result).judge(rows.pairs, len(rows))
            if job.mode.dry_run:
                counts = {"in_file": len(rows), "new": len(rows)}
                result.estimate = _estimate(judges, result, counts)
                return result
            result.summaries = summarise(judged.results())
            if judges.provenance().kind == "baseline":
                result.agreement = rows.labels.baseline()
            else:
                result.agreement = rows.labels.agreement_with(judges.name, judged.results())
    return refused_if_all_failed(result, result.n_pairs)


def _needs(
    dataset: Dataset,
    query_ids: Container[str],
    run_names: Sequence[str],
    depth: int,
    kept_grades: KeptGrades,
    earlier: EarlierRankings | None,
) -> EarlierNeeds:
    """Return the pairs of earlier rankings; none where nobody asked and they cannot be read."""
    try:
        return earlier_needs(dataset, query_ids, run_names, depth, kept_grades, earlier or ONE_BACK)
    except DataError:
        if earlier is not None:
            raise
        return NO_NEEDS


def _pairs(todo: Iterable[PairId], queries: Mapping[str, str], texts: ChunkTexts) -> Iterator[Pair]:
    for query_id, chunk_id in todo:
        yield Pair(query_id, queries[query_id], chunk_id, texts[chunk_id])


def _note_other_judges(
    dataset: Dataset,
    pooled: Container[tuple[str, str]],
    kept_grades: KeptGrades,
    observer: Observer,
) -> None:
    """Tell of grades of other judges on pairs that this run did not look at."""
    beside = describe_other_judges(dataset, pooled, kept_grades, outside=True)
    if beside:
        message = f"outside of this pool the set holds grades of another judge: {beside}"
        observer(Event("note", message=message))


def _estimate(judges: Judges, result: JudgingResult, counts: dict[str, int]) -> dict[str, object]:
    pairs = {**counts, "distinct_texts": result.n_texts}
    return {"pairs": pairs, **judges.estimate(result.n_texts)}


def _counts(dataset: Dataset, pooled: Sequence[PairId], todo: Sequence[PairId]) -> dict[str, int]:
    """Return the numbers of pairs in the pool: all, graded, graded by people, and to be judged."""
    kept = set(pooled).difference(todo)
    by_people = sum(
        item.source == "human" and (item.query_id, item.chunk_id) in kept
        for item in dataset.each_judgment()
    )
    return {
        "in_pool": len(pooled),
        "graded": len(kept),
        "graded_by_people": by_people,
        "new": len(todo),
    }


def _summaries(dataset: Dataset, pooled: Container[tuple[str, str]]) -> list[QuerySummary]:
    return summarise(
        item for item in dataset.each_judgment() if (item.query_id, item.chunk_id) in pooled
    )


def refused_if_all_failed(result: JudgingResult, n_asked: int) -> JudgingResult:
    """Return a result in which something was judged, or nothing was tried.

    Raises:
        EndpointError: Every pair that was asked for failed.
    """
    first = result.first_failure
    if first is not None and result.n_failed == n_asked:
        raise all_failed(result.judge, f"judging failed on all {n_asked} pairs", first)
    return result


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
    from ragforge.pipeline.judge.agreement import labels_of

    require_own_chunks(dataset)
    queries = queries_of(dataset, job.settings.judge.split)
    asked = _graded_by_people(dataset, queries)
    with dataset.chunk_texts({pair.chunk_id for pair in asked}) as texts:
        asked = with_texts(asked, texts, job.observer)
        async with open_judges(job, dataset, "judge") as judges:
            refuse_shared_queries(judges.examples, queries)
            result = JudgingResult(judges.name, len(asked))
            kept_grades = KeptGrades(judges.provenances(), again=False)
            todo = _not_checked(dataset, asked, kept_grades)
            if todo:
                pairs = partial(_pairs, todo, queries, texts)
                await _judge_checks(dataset, judges, kept_grades, result, pairs, len(todo))
            if job.mode.dry_run:
                counts = {"graded_by_people": len(asked), "new": len(todo)}
                result.estimate = {"pairs": counts, **judges.estimate(result.n_texts)}
                return result
    labels = labels_of(dataset, dataset.judgment_table())
    own = filter(kept_grades.is_by_judge, dataset.label_checks())
    result.agreement = labels.agreement_with(result.judge, own) or labels.baseline()
    return refused_if_all_failed(result, len(todo))


async def _judge_checks(
    dataset: Dataset,
    judges: Judges,
    kept_grades: KeptGrades,
    result: JudgingResult,
    pairs: Callable[[], Iterable[Pair]],
    total: int,
) -> None:
    """Judge pairs into the label checks, also what was done of a run that is stopped."""
    kept = JudgedPairs(dataset)
    with judged_spool(dataset.files) as judged:
        try:
            before = dataset.label_checks() if judges.batch > 1 else ()
            singly = kept_grades.failed_before(before)
            run = JudgeRun(judges, judged, result)
            await run.judge(lambda: kept.shown(pairs()), total, singly)
        finally:
            if judged.has_any and not judges.job.mode.dry_run:
                kept.write_checks(judged, judges.job.observer, kept_grades.is_by_judge)
                judges.note_in(dataset)


def _graded_by_people(dataset: Dataset, queries: Mapping[str, str]) -> list[PairId]:
    from ragforge.pipeline.judge.agreement import graded_by_people

    pairs = [
        PairId(one.query_id, one.chunk_id)
        for one in graded_by_people(dataset.judgment_table())
        if one.query_id in queries
    ]
    if not pairs:
        raise DataError(
            f"{dataset.path}: people graded no chunk for these queries; `ragforge import` brings a "
            "hand-made set in"
        )
    return pairs


def _not_checked(
    dataset: Dataset, asked: Iterable[PairId], kept_grades: KeptGrades
) -> list[PairId]:
    """Return the pairs of which the judge's own checks have no grade; none for the baseline."""
    if kept_grades.is_baseline:
        return []
    known = {
        _pair_of(check)
        for check in dataset.label_checks()
        if kept_grades.is_by_judge(check) and not check.is_failed
        if check.provenance is not None and check.provenance.kind != "mock"
    }
    return [pair for pair in asked if pair not in known]


def _pair_of(one: Judgment) -> PairId:
    return PairId(one.query_id, one.chunk_id)
