"""The data of a whole report; renderers only choose words and layout for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from ragforge.config import ChunkSettings
from ragforge.deferred import dataclass
from ragforge.errors import DataError, did_you_mean
from ragforge.evaluating.answers.diagnosis import context_names
from ragforge.evaluating.answers.rates import AnswerSummary, summarise_answers
from ragforge.evaluating.answers.records import (
    Relevance,
    SystemRecords,
    read_systems,
    source_chunks,
    system_names,
)
from ragforge.evaluating.causes.catalogue import CAUSES, CauseGroup, Causes, grouped
from ragforge.evaluating.causes.finder import CauseFinder
from ragforge.evaluating.evaluation_data import (
    EvaluationData,
    is_complete,
    load_evaluation_data,
    missing_relevant,
    settle_judgments,
    task_of,
)
from ragforge.evaluating.graded_by import Correction, GradedBy, grades_of, mark_drift
from ragforge.evaluating.judgments import (
    ByQuery,
    FailureCount,
    Judge,
    Settled,
    SettledTable,
    SourceGrades,
    count_failures,
    grades_by_source,
    of_queries,
)
from ragforge.evaluating.query_details import ChunkStart, ChunkStarts, stored_replies
from ragforge.evaluating.query_table import MAX_BYTES, QueryTable, QueryTableBuilder
from ragforge.evaluating.runs import NOT_SET, Qrels, RunSummary, Task, rank_order
from ragforge.evaluating.same_judge import pair_judges, several_judges_text
from ragforge.files.manifest import ReviewAudit, Spent
from ragforge.files.set.canaries import Canaries
from ragforge.files.set.dataset import Dataset, text_as_chunk
from ragforge.files.set.document_level import DocumentLevel, document_level
from ragforge.files.set.history import History
from ragforge.files.set.integrity import require_own_chunks
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.files.set.stale_runs import usable_runs
from ragforge.measures.grader_agreement import Agreement
from ragforge.measures.listed_relevance import LEAST_RELEVANT, labels_of
from ragforge.measures.measure_names import by_judgments
from ragforge.measures.run_evaluation import named_measures
from ragforge.records import Calibration, Chunk, CorrectedFigure, JudgeAudit, Query

if TYPE_CHECKING:
    from ragforge.corpus.quality import ChunkQuality, Inspector
    from ragforge.evaluating.comparison import ComparisonReport
    from ragforge.evaluating.history.batches import BatchSeries

MOST_CHUNKS: Final = 10_000
"""With more, looking at them would take longer than the rest of a report."""


class Inspection:
    """Takes the chunks of a dataset; with too many it lets go of them."""

    def __init__(self) -> None:
        from ragforge.corpus.quality import Inspector

        self._inspector: Inspector | None = Inspector(ChunkSettings().max_chars)
        self._n_chunks = 0

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        self._n_chunks += 1
        if self._n_chunks > MOST_CHUNKS:
            self._inspector = None
        if self._inspector is not None:
            self._inspector.add(chunk)

    def quality(self) -> ChunkQuality | None:
        """Return what was found; None where there were no chunks, or too many."""
        return None if self._inspector is None else self._inspector.quality()


@dataclass(frozen=True, slots=True)
class Census:
    """What a pass over the chunks found."""

    n_documents: int
    n_chunks: int
    starts: Mapping[str, ChunkStart]
    """The chunks and documents that are shown."""
    documents: dict[str, str]
    """Chunk id to document, of the queries' sources."""
    whole: frozenset[str] = frozenset()
    """Of the sources, ids that are of documents and not of chunks."""
    unknown: frozenset[str] = frozenset()
    """Of the sources, those that are neither, nor of texts that stand in documents; none where a
    dataset comes without its corpus."""


def take_census(
    dataset: Dataset,
    quotes_of: Mapping[str, Sequence[str]],
    sources: Collection[str],
    others: Collection[Callable[[Chunk], None]] = (),
    of_texts: Collection[Callable[[Chunk], None]] = (),
) -> Census:
    """Count the chunks and keep what is asked for; a dataset may come without its corpus.

    Args:
        dataset: Whose chunks are read, one by one.
        quotes_of: Chunks whose starts are kept, with the quotes to be seen in them.
        sources: Chunks whose documents are kept; documents among them are told apart.
        others: Who else is to see every chunk, such as `Inspection.take`.
        of_texts: Who of them is to see the texts of runs that are no chunks, too.
    """
    n_chunks, seen = 0, set()
    starts = ChunkStarts(quotes_of)
    documents: dict[str, str] = {}
    if (dataset.chunks_path).exists():
        for chunk in dataset.chunks():
            n_chunks += 1
            for take in others:
                take(chunk)
            seen.add(chunk.doc_id)
            starts.take(chunk)
            if chunk.chunk_id in sources:
                documents[chunk.chunk_id] = chunk.doc_id
    placed = set()
    for text in dataset.retrieved_texts():
        chunk = text_as_chunk(text)
        starts.take(chunk)
        for take in of_texts:
            take(chunk)
        if text.places:
            placed.add(text.chunk_id)
    whole = frozenset(seen.intersection(sources) - documents.keys())
    known = documents.keys() | whole | placed
    unknown = frozenset(sources) - known if n_chunks else frozenset()
    return Census(len(seen), n_chunks, starts.starts(), documents, whole, unknown)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of everything there is."""

    n_documents: int
    n_chunks: int
    n_queries: int
    """Accepted ones; all below count these only."""
    n_unanswerable: int
    """Queries that no chunk answers, by intent: they are in no measure of retrieval."""
    n_pairs: int
    """Judged pairs of query and chunk."""
    n_failed_pairs: int
    """Pairs that have no grade because their judgment failed."""
    queries_by: dict[str, dict[str, int]]
    """Number of queries by property (difficulty, type, origin, answerable) and value."""


@dataclass(frozen=True, slots=True)
class Making:
    """What the manifest says about how the dataset came to be."""

    name: str
    version: int
    licence: str
    tool_version: str
    models: tuple[str, ...]
    prompts: dict[str, str]
    """Prompt name to the sha256 of its file."""
    made_from: dict[str, str]
    spent: Spent
    audit: ReviewAudit | None = None
    """What people found of queries drawn at random; None where nobody looked."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a report says about a dataset."""

    making: Making
    counts: Counts
    judges: tuple[Judge, ...]
    measured_judges: tuple[Judge, ...]
    """The same with what measures go by: of chunks, what they gave for answerable queries."""
    grades: tuple[SourceGrades, ...]
    failures: tuple[FailureCount, ...]
    measures: tuple[str, ...]
    rel_threshold: int
    """Lowest relevant grade in force."""
    highest_grade: int | None
    """Of the judgments that runs are measured on; None where there is no grade."""
    runs: tuple[RunSummary, ...]
    table: QueryTable
    answers: tuple[AnswerSummary, ...]
    queries: dict[str, str]
    """Query id to text."""
    is_complete: bool = False
    """Whether what has no label is not relevant."""
    by_lists: bool = False
    """Whether lists say what is relevant in binary measures, rather than the threshold."""
    n_by_document: int = 0
    """Queries that are measured by documents."""
    n_missing: int = 0
    """Relevant chunks of people's that the corpus does not have: no run can find them."""
    agreement: tuple[Agreement, ...] = ()
    """Of judges with people, one after the other, or of the baseline where no judge was asked."""
    audit: JudgeAudit | None = None
    """None where no judge was audited."""
    causes: Mapping[str, Sequence[CauseGroup]] = field(default_factory=dict)
    """Why queries did badly, by run, the commonest cause first."""
    quality: ChunkQuality | None = None
    """None where there is no corpus, or one too large to be looked at in passing."""
    calibration: Calibration | None = None
    """By which levels and differences are corrected; None where none is used."""
    history: History = field(default_factory=History)
    batches: BatchSeries | None = None
    """How the runs do on each batch that was drawn from logs; None where there is none."""
    comparison: ComparisonReport | None = None
    """Of the runs; None where there are fewer than two, or they cannot be compared."""
    answers_comparison: ComparisonReport | None = None
    """Of the answer systems, likewise."""
    not_compared: str = ""
    """Why runs are not compared, in a sentence."""
    base: str = ""
    """The run that others are held against; "" where there is none."""
    canaries: Canaries = field(default_factory=Canaries)
    """Of its judges."""
    run_warnings: tuple[str, ...] = ()
    """Which runs are left out because they are stale, and the like."""
    several_judges: str = ""
    """That means rest on grades of several judges, and whose comparisons count; "" where both are
    the same."""

    @property
    def primary(self) -> str:
        """The measure that decides: what the report shows of single queries and slices is of it."""
        return self.table.measure

    @property
    def graded_by(self) -> tuple[GradedBy, ...]:
        """Who gave the grades that measures go by, of chunks and answers; who gave most first."""
        return mark_drift(grades_of(self.measured_judges), self.canaries)

    def graded_of(self, of: str) -> tuple[GradedBy, ...]:
        """Who gave the grades that measures of "runs", or of "answers", go by."""
        judges = (
            judge for judge in self.measured_judges if (judge.task == "relevance") == (of == "runs")
        )
        return mark_drift(grades_of(judges), self.canaries)

    @property
    def levels(self) -> list[CorrectedFigure]:
        """The levels that labels may correct; none where no calibration is used."""
        if self.calibration is None:
            return []
        return self.calibration.levels(
            [run.name for run in self.runs], named_measures(self.measures)
        )

    @property
    def correction(self) -> Correction | None:
        """What labels do to the measures; None where no calibration is used."""
        corrected = [level.measure for level in self.levels if level.corrected is not None]
        compared = self.comparison.correction if self.comparison else None
        shown = [*self.measures, *(self.comparison.measures if self.comparison else ())]
        corrected += compared.measures if compared else ()
        return Correction.of(self.calibration, corrected, shown)

    @property
    def baseline_judges(self) -> tuple[Judge, ...]:
        """The judges of numbers that are mere rules: they show that things run, and no more.

        Where quotes stand is counted, and where all measures are of evidence nobody has to judge
        chunks.
        """
        is_judged = bool(by_judgments(self.measures))
        return tuple(
            judge
            for judge in self.measured_judges
            if judge.is_baseline
            and judge.count > judge.n_evidence
            and (is_judged or judge.task != "relevance")
        )


def summarise(
    dataset: Dataset,
    *,
    measures: Sequence[str] = (),
    rel_threshold: int | Literal["auto"] = "auto",
    agreement: tuple[Agreement, ...] = (),
    run_names: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
    has_all_texts: bool = False,
) -> Summary:
    """Return the data of a dataset's report, but for comparison and history.

    Args:
        dataset: Chunks are read one by one, and only what is shown of them is kept.
        measures: Names or aliases; the default set where empty.
        rel_threshold: Lowest grade that counts as relevant; "auto" is 2 where grades go beyond 1.
        agreement: Of the dataset's judges with people.
        run_names: Which runs; all but stale ones where empty.
        max_bytes: What the table of queries and its drill-downs may take of a page.
        has_all_texts: Whether drill-downs of all queries are wanted, even so.

    Raises:
        DataError: A file is missing or does not hold to its format.
        UsageError: A measure or the threshold cannot be taken.
    """
    from ragforge.evaluating.slices import summary_with_details

    data = load_evaluation_data(
        dataset, measures=measures, rel_threshold=rel_threshold, run_names=run_names
    )
    task, queries = data.task, data.queries
    finder, inspection = CauseFinder(data.runs, task, task.primary), Inspection()
    draft = QueryTableBuilder(data, finder.bad_queries(), max_bytes, has_all=has_all_texts)
    grades_by_chunk = _grades(dataset, data.judgments, task.level, data.settled, rel_threshold)
    rankings = {run.name: run.ranked for run in data.runs}
    contexts = context_names(data.systems, grades_by_chunk, rankings if task.is_complete else {})
    named = source_chunks(queries.values()) | contexts
    chunks = take_census(
        dataset, draft.chunk_quotes, named, (finder.take, inspection.take), [finder.take]
    )
    replies = partial(stored_replies, dataset.store_path)
    causes = finder.causes()
    relevance = _relevance(grades_by_chunk, task, rankings, chunks)
    return Summary(
        making=_making(dataset),
        counts=_counts(queries.values(), data.settled, chunks),
        judges=data.judges(),
        measured_judges=data.measured_judges(),
        grades=grades_by_source(data.judgments),
        failures=count_failures(data.failures),
        measures=tuple(task.measures),
        rel_threshold=task.rel_threshold,
        highest_grade=_highest_grade(task),
        runs=tuple(summary_with_details(run, task, chunks.documents) for run in data.runs),
        table=draft.fill(chunks.starts, chunks.documents, replies, _in_words(causes)),
        answers=tuple(_of_system(item, relevance, chunks) for item in data.systems),
        queries={query_id: query.query for query_id, query in queries.items()},
        agreement=agreement,
        audit=dataset.audit(),
        causes={run: tuple(grouped(of_run.values())) for run, of_run in causes.items()},
        quality=inspection.quality(),
        run_warnings=data.run_warnings,
        is_complete=task.is_complete,
        by_lists=bool(task.relevant),
        n_by_document=len(task.level.query_ids & task.qrels.keys()),
        n_missing=missing_relevant(dataset, data.judgments),
        several_judges=_several_judges(data),
    )


def summarise_system(
    dataset: Dataset, system: str, *, rel_threshold: int | Literal["auto"] = "auto"
) -> AnswerSummary:
    """Summarise the answers of one system, as `summarise` does, without measuring runs.

    Raises:
        DataError: There is no such system, or a file does not hold to its format.
        UsageError: The threshold cannot be taken.
    """
    require_own_chunks(dataset)
    queries = {query.query_id: query for query in dataset.require_accepted_queries()}
    judgments = dataset.judgment_table().of_queries(queries)
    level = document_level(dataset, judgments)
    settled = settle_judgments(dataset, level, judgments, rel_threshold)
    threshold, by_lists = dataset.rel_threshold(rel_threshold), rel_threshold == "auto"
    task = task_of(queries.values(), settled, (), threshold, by_lists=by_lists)
    task = replace(task, is_complete=is_complete(dataset, judgments), level=level)
    failures = dataset.failures()
    names = system_names(dataset, failures, queries)
    if system not in names:
        raise DataError(
            f"{dataset.path}: no answers of system {system!r}{did_you_mean(system, names)}; "
            f"there are: {', '.join(names) or 'none'}"
        )
    [records] = read_systems(dataset, failures, queries, [system])
    rankings = {} if records.names_contexts else _rankings(dataset, level, task)
    grades = _grades(dataset, judgments, level, settled, rel_threshold)
    contexts = context_names([records], grades, rankings if task.is_complete else {})
    named = source_chunks(queries.values()) | contexts
    chunks = take_census(dataset, {}, named)
    return _of_system(records, _relevance(grades, task, rankings, chunks), chunks)


def _rankings(
    dataset: Dataset, level: DocumentLevel, task: Task
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return what each run retrieved, best first, by query."""
    usable = usable_runs(dataset)
    return {
        name: {
            item.query_id: rank_order(item.ranking)
            for item in level.rankings(usable.rankings(name))
            if item.query_id in task.qrels
        }
        for name in usable.names
    }


def _several_judges(data: EvaluationData) -> str:
    task = data.task
    by = pair_judges(of_queries(data.settled, task.qrels))
    rankings = [run.ranked for run in data.runs]
    return several_judges_text(task.qrels, by, rankings, by_judgments(task.measures))


def _in_words(causes: Mapping[str, Mapping[str, Causes]]) -> dict[str, dict[str, str]]:
    return {
        run: {query_id: CAUSES[item.code].title for query_id, item in of_run.items()}
        for run, of_run in causes.items()
    }


def _highest_grade(task: Task) -> int | None:
    found = (grade for judged in task.qrels.values() for grade in judged.values())
    return max((grade for grade in found if grade is not None), default=None)


def _grades(
    dataset: Dataset,
    judgments: JudgmentTable,
    level: DocumentLevel,
    settled: SettledTable,
    rel_threshold: int | Literal["auto"],
) -> Qrels:
    """Return the grades of what is in contexts: a chunk that repeats another's quotes has its own.

    Args:
        dataset: Has the judgments.
        judgments: All of the queries.
        level: What these are measured on.
        settled: The judgments that count, as runs are measured on them.
        rel_threshold: As for `settle_judgments`.
    """
    if level.repeating:
        own = replace(level, repeating={})
        settled = settle_judgments(dataset, own, judgments, rel_threshold)
    return ByQuery(settled, settled.grades)


def _relevance(
    grades: Qrels,
    task: Task,
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
    chunks: Census,
) -> Relevance:
    threshold = task.rel_threshold
    if task.relevant:
        grades, threshold = labels_of(grades, task.relevant, threshold).binary, LEAST_RELEVANT
    return Relevance(
        grades,
        threshold,
        rankings,
        is_complete=task.is_complete,
        by_document=task.level.query_ids,
        documents=chunks.documents,
        whole=chunks.whole,
        unknown=chunks.unknown,
    )


def _of_system(records: SystemRecords, relevance: Relevance, chunks: Census) -> AnswerSummary:
    return summarise_answers(replace(records, documents=chunks.documents), relevance)


def _counts(queries: Iterable[Query], settled: Settled, chunks: Census) -> Counts:
    listed = list(queries)
    by: dict[str, Counter[str]] = {
        "difficulty": Counter(query.difficulty or NOT_SET for query in listed),
        "type": Counter(query.type or NOT_SET for query in listed),
        "origin": Counter(query.origin for query in listed),
        "answerable": Counter("yes" if query.answerable else "no" for query in listed),
    }
    return Counts(
        n_documents=chunks.n_documents,
        n_chunks=chunks.n_chunks,
        n_queries=len(listed),
        n_unanswerable=sum(not query.answerable for query in listed),
        n_pairs=sum(map(len, settled.values())),
        n_failed_pairs=sum(item.is_failed for of in settled.values() for item in of.values()),
        queries_by={name: dict(sorted(counts.items())) for name, counts in by.items()},
    )


def _making(dataset: Dataset) -> Making:
    manifest = dataset.manifest
    return Making(
        name=manifest.name,
        version=manifest.version,
        licence=manifest.licence,
        tool_version=manifest.tool_version,
        models=manifest.models,
        prompts=dict(sorted(manifest.prompts.items())),
        made_from=dict(sorted(manifest.made_from.items())),
        spent=manifest.spent,
        audit=manifest.audit,
    )
