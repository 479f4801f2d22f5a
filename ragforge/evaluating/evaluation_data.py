"""Loading a dataset for evaluation: its records, read once, and its runs, measured once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from ragforge.deferred import dataclass
from ragforge.evaluating.answers.records import SystemRecords, read_systems
from ragforge.evaluating.chunkings import COMPARED_ON_EVIDENCE, Chunking, chunkings, differ
from ragforge.evaluating.judgments import (
    LABELS_IN_WORDS,
    LEAST_OF_JUDGES,
    ByQuery,
    Judge,
    LabelReading,
    Settled,
    SettledTable,
    failed_by_name,
    grades_in,
    judges,
    judges_differ,
    label_reading,
    marks_in,
    of_chunks,
    of_texts,
    relevance_words,
)
from ragforge.evaluating.query_variants import query_variants, variants_note
from ragforge.evaluating.runs import PRIMARY, MeasuredRun, Qrels, Task, measure_run, primary_of
from ragforge.evaluating.selection import Part
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.decision_samples import sample_note
from ragforge.files.set.document_level import DocumentLevel, document_level
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.files.set.stale_runs import UsableRuns, usable_runs
from ragforge.measures import DEFAULT_MEASURES
from ragforge.measures.listed_relevance import marked_labels
from ragforge.measures.measure_names import canonical, of_evidence
from ragforge.measures.run_evaluation import highest_grade
from ragforge.measures.scores import threshold_of
from ragforge.records import AnswerGrade, Failure, Query, is_text_id
from ragforge.records.judgments import Grading


@dataclass(frozen=True, slots=True)
class EvaluationData:
    """The records of a dataset but for its chunks."""

    queries: dict[str, Query]
    """The accepted ones, by id."""
    judgments: JudgmentTable
    """Of these queries, as they were given."""
    settled: SettledTable
    """As they are measured on: of documents where labels name documents."""
    failures: list[Failure]
    task: Task
    runs: list[MeasuredRun]
    systems: Sequence[SystemRecords]
    run_warnings: tuple[str, ...] = ()
    """Which runs are left out because they were made on other chunks, and the like."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """See `query_variants`."""

    def judges(self) -> tuple[Judge, ...]:
        """Return who judged chunks and answers."""
        return judges(self.judgments, self._answer_grades())

    def measured_judges(self) -> tuple[Judge, ...]:
        """Return the same with what measures go by: of chunks what is of answerable queries."""
        answerable = {key for key, query in self.queries.items() if query.answerable}
        measured = measured_gradings(self.judgments.of_queries(answerable), self.tasks)
        return judges(measured, self._answer_grades())

    @property
    def tasks(self) -> list[Task]:
        """What each run is measured on."""
        return [run.task or self.task for run in self.runs]

    def _answer_grades(self) -> dict[str, Iterable[AnswerGrade]]:
        return {item.system: item.grades.values() for item in self.systems}


def load_evaluation_data(
    dataset: Dataset,
    *,
    measures: Sequence[str] = (),
    rel_threshold: int | Literal["auto"] = "auto",
    run_names: Sequence[str] = (),
) -> EvaluationData:
    """Read all but the chunks, and measure the runs.

    Args:
        dataset: Has queries; all else may be missing.
        measures: Names or aliases; the default set where empty.
        rel_threshold: Lowest grade that counts as relevant; "auto" is 2 where grades go beyond 1.
        run_names: Which runs, in this order; all but stale ones where empty.

    Raises:
        DataError: A run or a file is missing or does not hold to its format, or a run that is named
            was made on other chunks.
        UsageError: A measure or the threshold cannot be taken.
    """
    queries = {query.query_id: query for query in dataset.require_accepted_queries()}
    judgments = dataset.judgment_table().of_queries(queries)
    failures = dataset.failures()
    level = document_level(dataset, judgments)
    settled = settle_judgments(dataset, level, judgments, rel_threshold)
    threshold = dataset.rel_threshold(rel_threshold)
    by_lists = rel_threshold == "auto"
    task = task_of(queries.values(), settled, measures, threshold, by_lists=by_lists)
    task = replace(task, is_complete=is_complete(dataset, judgments), level=level)
    usable = usable_runs(dataset, run_names)
    cut = chunkings(dataset, level)
    if not measures:
        task = beside_evidence(task, cut, usable.names)
    runs = measure_runs(dataset, failures, task, usable, cut)
    if not measures and task.primary != PRIMARY and not any(run.summary.primary.n for run in runs):
        # No evidence has a place: runs of different chunks are compared as others are.
        task = replace(task, primary=PRIMARY)
        runs = measure_runs(dataset, failures, task, usable, cut)
    variants = query_variants(dataset, queries.values())
    return EvaluationData(
        queries=queries,
        judgments=judgments,
        settled=settled,
        failures=failures,
        task=task,
        runs=runs,
        systems=read_systems(dataset, failures, queries),
        variants=variants,
        run_warnings=(
            *usable.warnings,
            *filter(None, [sample_note(dataset), variants_note(variants, len(queries))]),
            *_part_warnings(runs),
        ),
    )


def measured_gradings(
    judgments: JudgmentTable, tasks: Sequence[Task]
) -> JudgmentTable | Counter[Grading]:
    """Return the gradings that runs are measured on: of texts, those of runs that have them alone.

    Grades of texts of another cut wait; where there are no runs, all count.

    Args:
        judgments: Of the queries that are measured.
        tasks: What each run is measured on.
    """
    if not tasks or not judgments.has_texts:
        return judgments
    return judgments.counts_of(lambda *pair: any(task.goes_by(*pair) for task in tasks))


def settle_judgments(
    dataset: Dataset,
    level: DocumentLevel,
    judgments: JudgmentTable,
    rel_threshold: int | Literal["auto"] = "auto",
) -> SettledTable:
    """Return the judgment that counts for each pair of a dataset, by query and chunk.

    Args:
        dataset: Whose manifest may say from which grade on its author calls chunks relevant.
        level: Folds to documents what labels name by them.
        judgments: Of the dataset.
        rel_threshold: As somebody asks for it; the grades of judges are on the scale of the set's
            author where nobody does.
    """
    threshold = dataset.authors_threshold(rel_threshold)
    is_binary = dataset.manifest.is_binary and rel_threshold == "auto"
    return SettledTable(judgments, level, threshold, is_binary=is_binary)


def _part_warnings(runs: Iterable[MeasuredRun]) -> Iterator[str]:
    """Yield what is to be told of runs measured on a part of the queries, or on other texts."""
    for run in runs:
        if run.task is not None and run.task.chosen is not None and run.scores is not None:
            measured = frozenset(run.scores.query_ids)
            head, *rest = Part(run.task.chosen, run.task.design, measured).sentences
            yield f"run {run.name} is measured {head}"
            yield from (f"run {run.name}: {text}" for text in rest)
        if run.task is not None and run.task.chunking is not None:
            yield run.task.chunking.describe(run.name)


def is_complete(dataset: Dataset, judgments: JudgmentTable) -> bool:
    """Whether a chunk of a dataset that has no label is not relevant; see `label_reading`."""
    return reading_in_force(dataset, judgments) == "complete"


def reading_in_force(dataset: Dataset, judgments: JudgmentTable) -> LabelReading:
    """Return what a chunk of a dataset that has no label is; see `label_reading`."""
    has_pool = "pool.jsonl" in dataset.manifest.files
    # Texts that are no chunks are graded by rule where they hold evidence: that says nothing of
    # how the chunks were labelled.
    pairs = judgments.pairs(lambda _: True) if judgments.has_texts else ()
    of_set = (pair.grading for pair in pairs if not is_text_id(pair.chunk_id))
    given = of_set if judgments.has_texts else judgments
    return label_reading(dataset.manifest.labels, given, has_pool=has_pool)


def reading_words(
    dataset: Dataset, judgments: JudgmentTable, task: Task, asked: int | Literal["auto"]
) -> str:
    """Return a sentence on what is relevant, and on what an unlabelled chunk is if not pooled.

    Args:
        dataset: Whose manifest may say both.
        judgments: Of the dataset.
        task: What is in force.
        asked: The threshold that somebody asks for.
    """
    differ = judges_differ(judgments, dataset.authors_threshold(asked))
    words = relevance_words(task.rel_threshold, judges_differ=differ)
    words = "relevant: as listed" if task.relevant else words
    labels = reading_in_force(dataset, judgments)
    is_usual = labels == "pooled" and dataset.manifest.labels is None
    return words if is_usual else f"{words}; {LABELS_IN_WORDS[labels]}"


def missing_relevant(dataset: Dataset, judgments: JudgmentTable) -> int:
    """Return how much of what people call relevant a dataset does not have, each once a query.

    No run can find it: chunks, and documents where labels name them; texts of other cuts are
    neither. Only sets of people have such; the chunks of others are not looked at.
    """

    def is_wanted(grading: Grading) -> bool:
        return grading.source == "human" and bool(grading.grade or grading.relevant)

    path = dataset.chunks_path
    wanted = {name for name in judgments.chunk_ids(is_wanted) if not is_text_id(name)}
    if not wanted or not path.exists() or not path.stat().st_size:
        return 0
    there = set[str]()
    for chunk in dataset.chunks():
        there |= {chunk.chunk_id, chunk.doc_id} & wanted
    lacking = wanted - there
    return sum(pair.chunk_id in lacking for pair in judgments.pairs(is_wanted))


def task_of(
    queries: Iterable[Query],
    settled: Settled,
    measures: Sequence[str] = (),
    rel_threshold: int | Literal["auto"] = "auto",
    *,
    by_lists: bool = True,
) -> Task:
    """Return what runs are measured on: the answerable queries and their grades.

    Args:
        queries: All that count.
        settled: The judgments that count.
        measures: Names or aliases; the default set where empty.
        rel_threshold: Lowest grade that counts as relevant; "auto" is 2 where grades go beyond 1.
        by_lists: Whether what people list as relevant goes before the threshold; see `Task`. A
            threshold that somebody asks for goes before the lists.

    Raises:
        UsageError: A measure or the threshold cannot be taken.
    """
    answerable = [query for query in queries if query.answerable]
    texts = of_texts(settled)
    if texts:
        of_set = of_chunks(settled)
        # Where nothing else is graded, texts tell what the grades mean.
        settled = of_set if any(of_set.values()) else settled
    qrels = _qrels([query.query_id for query in answerable], settled)
    asked = canonical(measures)
    names = tuple(asked or canonical(DEFAULT_MEASURES))
    threshold = threshold_of(highest_grade(qrels), rel_threshold)
    if threshold == 1 and rel_threshold == "auto" and _is_by_judges(settled):
        threshold = LEAST_OF_JUDGES
    marks = marks_in(settled, qrels.keys())
    graded, lists = marked_labels(qrels, marks, threshold)
    return Task(
        answerable,
        ByQuery(graded, lambda key: _without_texts(graded[key])) if texts else graded,
        names,
        threshold,
        primary=primary_of(asked),
        relevant=lists if by_lists else {},
        text_grades={key: grades_in(texts.get(key, {})) for key in qrels} if texts else {},
    )


def _qrels(query_ids: Iterable[str], settled: Settled) -> Qrels:
    """Return the grades of queries, by chunk."""
    if isinstance(settled, SettledTable):
        return ByQuery(query_ids, settled.grades)
    return ByQuery(query_ids, lambda query_id: grades_in(settled.get(query_id, {})))


def _without_texts(grades: Mapping[str, int | None]) -> dict[str, int | None]:
    return {name: grade for name, grade in grades.items() if not is_text_id(name)}


def _is_by_judges(settled: Settled) -> bool:
    """Whether a judge graded, whose 1 is not relevant, so that no grade above it says: none is."""
    return any(
        item.source != "human" and item.grade is not None
        for judged in settled.values()
        for item in judged.values()
    )


def beside_evidence(task: Task, cut: Mapping[str, Chunking], names: Sequence[str]) -> Task:
    """Return a task with measures of evidence beside its own where runs have different texts.

    One of them decides, as such runs are compared by these.

    Args:
        task: On all queries.
        cut: What runs are measured on; see `chunkings`.
        names: Of the runs that are measured.
    """
    is_told = any(query.evidence for query in task.queries)
    if not is_told or task.is_by_document or not differ(cut, names):
        return task
    measures = tuple(dict.fromkeys((*task.measures, *COMPARED_ON_EVIDENCE)))
    return replace(task, measures=measures, primary=COMPARED_ON_EVIDENCE[0])


def measure_runs(
    dataset: Dataset,
    failures: Iterable[Failure],
    task: Task,
    usable: UsableRuns,
    cut: Mapping[str, Chunking],
) -> list[MeasuredRun]:
    """Measure runs; where none was named, also those without a file, as every query of them failed.

    A run that was made for a part of the queries is measured on that part.

    Args:
        dataset: Has the runs; may have a part of its queries chosen.
        failures: Those of the dataset.
        task: On all of its queries.
        usable: Which runs.
        cut: What those with texts that are no chunks are measured on; see `chunkings`.

    Raises:
        DataError: A run is missing or does not hold to its format, or was not made for the queries
            that were chosen.
    """
    failed = failed_by_name(failures, "retrieve")
    lost = {name for name, query_ids in failed.items() if query_ids & task.qrels.keys()}
    there = set(dataset.run_names())
    wanted = usable.names if usable.were_named else sorted({*usable.names, *(lost - there)})
    runs = [
        measure_run(
            name,
            () if name in lost - there else task.level.rankings(usable.rankings(name)),
            failed.get(name, set()) | usable.unasked.get(name, set()),
            task.of_part(dataset.chosen_of_run(name)).of_chunking(cut.get(name)),
            usable.usd_per_query.get(name),
        )
        for name in wanted
    ]
    if task.level.repeating:
        runs = [
            replace(run, as_retrieved=task.level.as_retrieved(usable.rankings(run.name)))
            if run.ranked
            else run
            for run in runs
        ]
    if not of_evidence(task.measures):
        return runs
    # It imports numpy.
    from ragforge.evaluating.evidence import with_evidence_measures

    return with_evidence_measures(dataset, runs, task)
