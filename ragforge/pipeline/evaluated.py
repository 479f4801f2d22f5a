"""Evaluations of a dataset's runs as records: what the history keeps and a gate is held against.

Digests of queries, grades and chunks tell whether what an evaluation rests on changed.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final

from ragforge import __version__
from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.chunkings import Chunking, chunkings
from ragforge.evaluating.evaluation_data import (
    EvaluationData,
    beside_evidence,
    is_complete,
    measure_runs,
    measured_gradings,
    settle_judgments,
    task_of,
)
from ragforge.evaluating.history.common_items import RescoringBasis
from ragforge.evaluating.judgments import (
    ByQuery,
    Judge,
    Settled,
    judges,
    of_chunks,
    of_queries,
)
from ragforge.evaluating.runs import MeasuredRun, Qrels, Task
from ragforge.evaluating.same_judge import PairJudges, pair_judges
from ragforge.files.git import commit_and_branch
from ragforge.files.manifest import Manifest
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import document_level, ids_of_corpus
from ragforge.files.set.history import content_id
from ragforge.files.set.integrity import corpus_digest
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.files.set.query_selection import ChosenQueries
from ragforge.files.set.stale_runs import UsableRuns, made_on, usable_runs
from ragforge.measures import Scores, parse_measure
from ragforge.measures.listed_relevance import Listed
from ragforge.records import (
    Baseline,
    Digests,
    Evaluation,
    Grader,
    ItemValues,
    MeasuredMean,
    Query,
    Spending,
    Timing,
)
from ragforge.records.evaluations import KEPT_RANKS
from ragforge.records.judgments import JudgmentOrGrading
from ragforge.records.queries import Selection
from ragforge.records.sharing import Sharing

_ITEM_DIGITS: Final = 16
_GRADE_DIGITS: Final = 8


def item_digests(queries: Iterable[Query]) -> dict[str, str]:
    """Return a digest of each item by query id: equal digests, equal items.

    That is what it asks for: its question, answer and evidence. Grades and chunk ids are no part of
    it, so that an item stays the same when more is judged.
    """
    return {query.query_id: _query_digest(query) for query in queries}


def grades_digest(grades: Mapping[str, int | None], listed: Collection[str] | None = None) -> str:
    """Return a digest of an item's grades above 0; the others move no ranking's value.

    Args:
        grades: By chunk.
        listed: The relevant chunks, where lists decide what is relevant; None where grades do.
    """
    relevant = sorted((chunk_id, grade) for chunk_id, grade in grades.items() if grade)
    told = relevant if listed is None else [relevant, sorted(listed)]
    return json_sha256(told)[:_GRADE_DIGITS]


def judgments_digest(settled: Settled) -> str:
    """Return a digest of all grades, failed ones and lists of relevant chunks too."""
    digest = hashlib.sha256(b"{")
    for place, query_id in enumerate(sorted(settled)):
        judged = sorted(settled[query_id].items())
        labels = {chunk_id: _label_of(item) for chunk_id, item in judged}
        # As one mapping of all would be written, which takes as much memory as all else.
        digest.update(b", " * bool(place) + json.dumps({query_id: labels})[1:-1].encode())
    digest.update(b"}")
    return digest.hexdigest()


def _label_of(judgment: JudgmentOrGrading) -> object:
    if judgment.relevant is None:
        return judgment.grade
    return [judgment.grade, judgment.relevant]


def _query_digest(query: Query) -> str:
    quotes = sorted(item.quote for item in query.evidence)
    asked = [query.asked, query.expected_answer, quotes]
    return json_sha256(asked)[:_ITEM_DIGITS]


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """One run, measured, with its record."""

    measured: MeasuredRun
    scores: Scores
    record: Callable[[], Evaluation]
    """Returns the record of it, which takes as long as measuring it and is not always asked for."""
    item_values: "_ItemsOfRun"
    """The values of its items by query, made when they are asked for."""
    task: Task
    """What it was measured on."""
    qrels: Qrels
    """The grades that it was measured on, by query and chunk."""
    pair_judges: PairJudges = field(default_factory=PairJudges)
    """Who gave them, where several judges did."""
    judges: tuple[Judge, ...] = ()
    """Who made the judgments it rests on."""
    n_unanswerable: int = 0
    """Queries left out, as no chunk is to answer them."""
    is_complete: bool = False
    """Whether what has no label is not relevant."""
    n_by_document: int = 0
    """Queries that are measured by documents, as labels of theirs name some."""
    relevant: Listed = field(default_factory=dict)
    """What lists call relevant, by query, where they decide binary measures; see `Task`."""
    chosen: ChosenQueries | None = None
    """The part of the queries that it was measured on; None where that is all."""

    @property
    def evaluation(self) -> Evaluation:
        """The record of it."""
        return self.record()

    def recorded_as(self, evaluation: Evaluation) -> "EvaluatedRun":
        """Return the run with another record."""
        return replace(self, record=lambda: evaluation)

    @property
    def items(self) -> Collection[ItemValues]:
        """Its values per item, sorted by query."""
        return self.item_values.values()

    def by_query(self) -> Mapping[str, ItemValues]:
        """Return its values per item by query."""
        return self.item_values

    @property
    def baseline(self) -> Baseline:
        """The evaluation with its values per item, made anew."""
        items = tuple(map(Sharing().shared, self.items))
        return Baseline(evaluation=self.evaluation, items=items)


def evaluate_runs(
    dataset: Dataset,
    run_names: Sequence[str],
    settings: EvaluateSettings,
    *,
    only_retrieved: bool = False,
) -> list[EvaluatedRun]:
    """Measure runs of a dataset, and make the record of each; nothing is written.

    Args:
        dataset: Has queries, judgments and runs.
        run_names: Which runs; all but stale ones where empty.
        settings: Measures and threshold.
        only_retrieved: Leave out queries that a run lacks.

    Raises:
        DataError: There is no (such) run, it was made on other chunks, or nothing is judged.
        UsageError: A measure or the threshold cannot be taken.
    """
    usable = usable_runs(dataset, run_names)
    return evaluate_usable(usable, settings, only_retrieved=only_retrieved)


def evaluate_usable(
    usable: UsableRuns, settings: EvaluateSettings, *, only_retrieved: bool = False
) -> list[EvaluatedRun]:
    """Measure runs that were found usable; else as `evaluate_runs`."""
    dataset = usable.require_any().dataset
    queries = dataset.require_accepted_queries()
    answerable = {query.query_id for query in queries if query.answerable}
    judgments = dataset.judgment_table().of_queries(answerable)
    level = document_level(dataset, judgments)
    settled = settle_judgments(dataset, level, judgments, settings.rel_threshold)
    threshold = dataset.rel_threshold(settings.rel_threshold)
    by_lists = settings.rel_threshold == "auto"
    task = task_of(queries, settled, settings.measures, threshold, by_lists=by_lists)
    complete = is_complete(dataset, judgments)
    task = replace(task, only_retrieved=only_retrieved, is_complete=complete, level=level)
    cut = chunkings(dataset, level)
    if not settings.measures:
        task = beside_evidence(task, cut, usable.names)
    measured = measure_runs(dataset, dataset.failures(), task, usable, cut)
    if not measured:
        raise DataError(f"{dataset.path}: has no runs; make one with `ragforge retrieve`")
    found = _recorded(dataset, measured, _Labels(queries, task, settled, judgments))
    if not found:
        raise DataError(f"{dataset.path}: nothing to measure: no answerable query is judged")
    return found


def evaluate_data(dataset: Dataset, data: EvaluationData) -> list[EvaluatedRun]:
    """Return the record of each run that was measured already; nothing is written.

    Args:
        dataset: The one that was read.
        data: What was read and measured.
    """
    answerable = data.task.qrels.keys()
    judgments = data.judgments.of_queries(answerable)
    settled = of_queries(data.settled, answerable)
    labels = _Labels([*data.queries.values()], data.task, settled, judgments)
    return _recorded(dataset, data.runs, labels)


def evaluated_on(chosen: ChosenQueries | None) -> Selection | None:
    """Return the selection of queries as a record of an evaluation names it."""
    return chosen.selection.model_copy(update={"query_ids": ()}) if chosen else None


def with_content_id(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation with the id that its contents give it."""
    return evaluation.model_copy(update={"evaluation_id": content_id(evaluation)})


@dataclass(frozen=True, slots=True)
class _Labels:
    """What there is to measure runs on."""

    queries: Sequence[Query]
    task: Task
    settled: Settled
    """Of answerable queries."""
    judgments: JudgmentTable
    """Of these, as they were given."""


@dataclass(frozen=True, slots=True)
class _EvaluationBasis:
    """What runs of a dataset are measured on: all of its queries, or those of one selection."""

    manifest: Manifest
    """Of the dataset, which may be gone when a record is asked for."""
    task: Task
    items: Mapping[str, str]
    """Digests of the queries by id."""
    judges: tuple[Judge, ...]
    graders: tuple[Grader, ...]
    digests: Mapping[str, str]
    git: Callable[[], Mapping[str, str]]
    """Returns the commit and branch that it is measured on."""
    pair_judges: PairJudges
    n_unanswerable: int


def _evaluation_basis(dataset: Dataset, labels: _Labels, part: Task | None) -> _EvaluationBasis:
    task = part or labels.task
    settled = _settled_of(task, labels.settled)
    chosen = task.chosen
    asked_of = [q for q in labels.queries if chosen is None or q.query_id in chosen.query_ids]
    made = judges(measured_gradings(labels.judgments, [task]), {})
    graders = tuple(map(grader_of, made))
    asked = (
        (q.query_id, q.asked, q.expected_answer, sorted(item.quote for item in q.evidence))
        for q in task.queries
    )
    return _EvaluationBasis(
        manifest=dataset.manifest,
        task=task,
        items=item_digests(task.queries),
        judges=made,
        graders=graders,
        digests={
            "corpus": corpus_digest(dataset),
            "queries": list_sha256(asked),
            "judgments": judgments_digest(settled),
            "prompts": json_sha256(sorted((g.prompt, g.prompt_sha256) for g in graders)),
        },
        git=cache(commit_and_branch),
        pair_judges=pair_judges(settled),
        n_unanswerable=len(asked_of) - len(task.queries),
    )


def _settled_of(task: Task, settled: Settled) -> Settled:
    """Return the judgments that a task has the grades of."""
    asked = of_queries(settled, task.qrels)
    if task.chunking is None:
        return of_chunks(asked) if task.text_grades else asked
    folded, chunking = task.level.query_ids, task.chunking

    def of_query(query_id: str) -> Mapping[str, JudgmentOrGrading]:
        of = asked[query_id]
        if query_id in folded:
            return of
        return {name: item for name, item in of.items() if name in chunking}

    return ByQuery(asked, of_query)


def grader_of(judge: Judge) -> Grader:
    """Return a judge as an evaluation names it."""
    return Grader(
        kind=judge.kind or None,
        model=judge.model,
        prompt=judge.prompt,
        prompt_sha256=judge.prompt_sha256,
        count=judge.count,
        n_evidence=judge.n_evidence,
    )


def _recorded(
    dataset: Dataset, measured: Iterable[MeasuredRun], labels: _Labels
) -> list[EvaluatedRun]:
    bases: dict[tuple[Selection | None, Chunking | None], _EvaluationBasis] = {}
    evaluated = []
    for run in measured:
        if run.scores is None:
            continue
        chosen = run.task.chosen if run.task else None
        key = (chosen.selection if chosen else None, run.task.chunking if run.task else None)
        if key not in bases:
            bases[key] = _evaluation_basis(dataset, labels, run.task)
        basis, corpus = bases[key], made_on(dataset, run.name)
        evaluated.append(
            EvaluatedRun(
                measured=run,
                scores=run.scores,
                record=cache(partial(_evaluation, run, run.scores, corpus, basis)),
                item_values=_ItemsOfRun(run, run.scores, basis),
                task=basis.task,
                qrels=basis.task.qrels,
                relevant=basis.task.relevant,
                pair_judges=basis.pair_judges,
                judges=basis.judges,
                n_unanswerable=basis.n_unanswerable,
                is_complete=basis.task.is_complete,
                n_by_document=len(basis.task.level.query_ids & basis.task.qrels.keys()),
                chosen=chosen,
            )
        )
    return evaluated


def _evaluation(
    run: MeasuredRun, scores: Scores, corpus: str, basis: _EvaluationBasis
) -> Evaluation:
    manifest, here = basis.manifest, basis.digests["corpus"]
    holes = run.summary.holes
    measures = {name: mean_of(scores, name) for name in run.summary.estimates}
    evaluation = Evaluation(
        evaluation_id="-",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=manifest.name,
        version=manifest.version,
        run=run.name,
        rel_threshold=scores.rel_threshold,
        by_lists=bool(basis.task.relevant),
        only_retrieved=basis.task.only_retrieved,
        selection=evaluated_on(basis.task.chosen),
        n_queries=len(basis.task.queries),
        n_failed=scores.n_failed,
        n_retrieved=holes.n_retrieved,
        n_holes=holes.n_unjudged + holes.n_failed,
        measures=measures,
        graders=basis.graders,
        digests=Digests(
            **{**basis.digests, "corpus": corpus},
            mapped_to="" if corpus == here else here,
            rankings=list_sha256(sorted(run.ranked.items())),
        ),
        spent=Spending(**manifest.spent.model_dump()),
        timing=_timing(run),
        tool_version=__version__,
        **basis.git(),
    )
    return with_content_id(evaluation)


class _ItemsOfRun(Mapping[str, ItemValues]):
    """The values of a run's items, made when they are asked for: of many queries they are large."""

    def __init__(self, run: MeasuredRun, scores: Scores, basis: _EvaluationBasis) -> None:
        self._run = run
        self._scores = scores
        self._basis = basis
        self._depth = _depth(run.summary.estimates)

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores.measured_ids)

    def __len__(self) -> int:
        return len(self._scores.measured_ids)

    def __getitem__(self, query_id: str) -> ItemValues:
        found, task = self._scores.row(query_id), self._basis.task
        if not found:
            raise KeyError(query_id)
        # Counts are whole, and are written as the numbers that they are read as.
        values = {name: float(found[name]) for name in self._run.summary.estimates if name in found}
        ranked = self._run.ranked.get(query_id, ())
        # Nothing is given that has to be checked, and a check would copy the ranking.
        return ItemValues.model_construct(
            query_id=query_id,
            item=self._basis.items[query_id],
            grades=grades_digest(task.qrels[query_id], task.relevant.get(query_id)),
            values=values,
            ranking=ranked[: self._depth],
            n_retrieved=len(ranked),
            graded=_graded(ranked[: self._depth], query_id, self._basis),
        )


def _graded(ranking: Sequence[str], query_id: str, basis: _EvaluationBasis) -> tuple[int, ...]:
    grades, listed = basis.task.qrels[query_id], basis.task.relevant.get(query_id, ())
    return tuple(
        rank
        for rank, chunk_id in enumerate(ranking, 1)
        if grades.get(chunk_id) is not None or chunk_id in listed
    )


def mean_of(scores: Scores, measure: str) -> MeasuredMean:
    """Return the mean of a measure as a record."""
    summary, interval = scores.summary(measure), scores.interval(measure)
    return MeasuredMean(
        mean=summary.mean,
        low=interval.low,
        high=interval.high,
        n=summary.n,
        n_failed=summary.n_failed,
        least=summary.low,
        most=summary.high,
    )


def _timing(run: MeasuredRun) -> Timing | None:
    found = run.summary.latency
    if found is None:
        return None
    return Timing(n=found.n, median_s=found.median_s, p95_s=found.p95_s, p99_s=found.p99_s)


def _depth(measures: Iterable[str]) -> int:
    """Return the deepest rank that measures look at, as far as rankings are kept."""
    cutoffs = [parse_measure(name).cutoff for name in measures]
    return min(KEPT_RANKS, max((cutoff or KEPT_RANKS for cutoff in cutoffs), default=0))


def json_sha256(value: object) -> str:
    """Return the sha256 of what JSON can say."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def list_sha256(items: Iterable[object]) -> str:
    """Return what `json_sha256` does of a list, of which one item at a time is written."""
    digest = hashlib.sha256(b"[")
    for place, item in enumerate(items):
        digest.update(b", " * bool(place) + json.dumps(item).encode())
    digest.update(b"]")
    return digest.hexdigest()


def rescoring_basis_of(dataset: Dataset, run: EvaluatedRun) -> RescoringBasis:
    """Return the basis on which earlier rankings are scored to be compared with a run.

    Args:
        dataset: Has the chunks.
        run: Just evaluated.
    """
    evaluation = run.evaluation
    return RescoringBasis(
        qrels=run.qrels,
        relevant=run.relevant,
        rel_threshold=evaluation.rel_threshold,
        corpus=evaluation.digests.ranked,
        judgments=evaluation.digests.judgments,
        chunk_ids=cache(lambda: ids_of_corpus(dataset)),
        moved=cache(dataset.past.moved_chunks),
        pair_judges=run.pair_judges,
    )


def rescoring_basis_now(dataset: Dataset, rel_threshold: int, *, by_lists: bool) -> RescoringBasis:
    """Return the basis on which earlier rankings are scored today, without a run.

    Args:
        dataset: Has queries and judgments.
        rel_threshold: Lowest grade that counts as relevant.
        by_lists: Whether what people list as relevant goes before that.
    """
    queries = [query for query in dataset.queries() if query.answerable]
    answerable = {query.query_id for query in queries}
    judgments = dataset.judgment_table().of_queries(answerable)
    settled = settle_judgments(
        dataset,
        document_level(dataset, judgments),
        judgments,
        "auto" if by_lists else rel_threshold,
    )
    task = task_of(queries, settled, (), rel_threshold, by_lists=by_lists)
    return RescoringBasis(
        qrels=task.qrels,
        relevant=task.relevant,
        rel_threshold=rel_threshold,
        corpus=corpus_digest(dataset),
        judgments=judgments_digest(settled),
        chunk_ids=cache(lambda: ids_of_corpus(dataset)),
        moved=cache(dataset.past.moved_chunks),
        pair_judges=pair_judges(settled),
    )
