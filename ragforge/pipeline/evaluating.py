"""Evaluating runs: those of a dataset, or files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import (
    Correction,
    GradedBy,
    count_file_grades,
    grades_of,
    judge_name,
    mark_drift,
)
from ragforge.evaluating.judgments import (
    Judge,
    LabelReading,
    judges,
    judges_differ,
    relevance_words,
)
from ragforge.evaluating.runs import Latency, MeasuredRun, latency_of
from ragforge.files.set.document_level import chunks_for_documents
from ragforge.files.set.stale_runs import (
    refuse_files_of_a_part,
    refuse_files_of_other_chunks,
    usable_runs,
)
from ragforge.measures import DEFAULT_MEASURES, Scores
from ragforge.measures.judged_queries import NOTHING_JUDGED
from ragforge.measures.listed_relevance import LabelsInForce
from ragforge.measures.locating import Judgments
from ragforge.measures.measure_names import by_judgments, canonical, require_judgments_only
from ragforge.measures.run_evaluation import named_measures
from ragforge.records import Calibration, CorrectedFigure

if TYPE_CHECKING:
    from ragforge.files.formats.qrels import JudgedQrels
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.evaluated import EvaluatedRun

OF_OWN_TEXTS: Final = (
    "run {} has texts that are no chunks of the set: it is measured on the grades of its own "
    "texts; nDCG and recall of runs that are cut otherwise are of other texts"
)


@dataclass(frozen=True, slots=True)
class EvaluatedRuns:
    """Runs with their scores.

    Args:
        scores: By run name, in the order given.
        latencies: By run name, where a run has them.
        rel_threshold: In force for binary measures that name none.
        judged_by: Who made the judgments, in words; empty where the file does not tell.
        measures: Canonical names, in the order asked for.
        n_unanswerable: Queries left out because no chunk is to answer them.
        records: Of the runs of a dataset, in the same order; empty for files.
    """

    scores: dict[str, Scores]
    latencies: dict[str, Latency]
    rel_threshold: int
    judged_by: tuple[str, ...]
    measures: tuple[str, ...]
    n_unanswerable: int
    records: tuple[EvaluatedRun, ...] = ()
    warnings: tuple[str, ...] = ()
    """Which runs of the dataset are left out because they are stale or empty, and the like."""
    reading: str = ""
    """How lists of relevant ids and grades are read together; "" where there are not both."""
    labels: LabelReading | None = None
    """What a chunk without a label is; None where nothing says it."""
    graded_by: tuple[GradedBy, ...] = ()
    """Who gave the grades, who gave most first; empty where the file does not tell."""
    n_by_document: int = 0
    """Queries that are measured by documents, as labels of theirs name some."""
    calibration: Calibration | None = None
    """By which levels are corrected; None where none is used."""

    @property
    def levels(self) -> list[CorrectedFigure]:
        """The levels that labels may correct; none where no calibration is used."""
        found = self.calibration
        return [] if found is None else found.levels(self.scores, named_measures(self.measures))

    @property
    def correction(self) -> Correction | None:
        """What labels do to the measures; None where no calibration is used."""
        corrected = (level.measure for level in self.levels if level.corrected is not None)
        return Correction.of(self.calibration, corrected, self.measures)

    @property
    def is_sampled(self) -> bool:
        """Whether some run was measured on a sample of the queries."""
        return any(item.design is not None for item in self.scores.values())


def evaluate_dataset(
    dataset: Dataset,
    run_names: Sequence[str],
    settings: EvaluateSettings,
    *,
    only_retrieved: bool = False,
) -> EvaluatedRuns:
    """Evaluate runs of a dataset on its judgments; unanswerable queries are left out.

    Args:
        dataset: Has queries, judgments and runs.
        run_names: Which runs; all but stale ones where empty.
        settings: Measures and threshold.
        only_retrieved: Leave out queries that a run lacks.

    Raises:
        DataError: There is no (such) run, it was made on other chunks, or nothing is judged.
    """
    from ragforge.evaluating.evaluation_data import reading_in_force
    from ragforge.evaluating.same_judge import several_judges_text
    from ragforge.files.set.canaries import read_canaries
    from ragforge.files.set.decision_samples import sample_note
    from ragforge.pipeline.evaluated import evaluate_usable  # What files do not need.

    usable = usable_runs(dataset, run_names)
    evaluated = evaluate_usable(usable, settings, only_retrieved=only_retrieved)
    latencies = {run.measured.name: run.measured.summary.latency for run in evaluated}
    judged_by = _judges(dataset, evaluated)
    of_several = several_judges_text(
        evaluated[0].qrels,
        evaluated[0].pair_judges,
        [run.measured.ranked for run in evaluated],
        by_judgments(evaluated[0].measured.summary.estimates),
    )
    empty = (name for name in usable.names if name not in latencies)
    return EvaluatedRuns(
        scores={run.measured.name: run.scores for run in evaluated},
        latencies={name: latency for name, latency in latencies.items() if latency is not None},
        rel_threshold=evaluated[0].scores.rel_threshold,
        judged_by=tuple(map(judge_name, judged_by)),
        measures=tuple(evaluated[0].measured.summary.estimates),
        n_unanswerable=evaluated[0].n_unanswerable,
        records=tuple(evaluated),
        warnings=(
            *usable.warnings,
            *filter(None, [sample_note(dataset), of_several]),
            *(f"{name}: the run is empty; nothing of it was measured" for name in empty),
            *_of_texts(run.measured for run in evaluated),
        ),
        graded_by=mark_drift(grades_of(judged_by), read_canaries(dataset)),
        labels=reading_in_force(dataset, dataset.judgment_table()),
        n_by_document=evaluated[0].n_by_document,
        reading=_reading(dataset, evaluated[0], settings),
    )


def _judges(dataset: Dataset, evaluated: Sequence[EvaluatedRun]) -> tuple[Judge, ...]:
    """Return who made the judgments that any of some runs rests on."""
    first = evaluated[0]
    if len({run.task.chunking for run in evaluated}) == 1:
        return first.judges
    from ragforge.evaluating.evaluation_data import measured_gradings

    judgments = dataset.judgment_table().of_queries(first.qrels)
    return judges(measured_gradings(judgments, [run.task for run in evaluated]), {})


def evaluate_files(
    qrels_path: Path,
    run_paths: Sequence[Path],
    settings: EvaluateSettings,
    *,
    only_retrieved: bool = False,
) -> EvaluatedRuns:
    """Evaluate run files on a file of judgments; arguments as for `evaluate_dataset`.

    Raises:
        DataError: A file does not hold to its format, or two runs have one name.
        UsageError: A measure cannot be taken, or not from files.
    """
    from ragforge.evaluation import evaluate_file
    from ragforge.files.formats.qrels import read_judged_qrels

    require_judgments_only(_names(settings))
    refuse_files_of_other_chunks(qrels_path, run_paths)
    if not only_retrieved:
        refuse_files_of_a_part(qrels_path, run_paths)
    judged = read_judged_qrels(qrels_path)
    labels = judged.in_force(settings.rel_threshold)
    scores: dict[str, Scores] = {}
    latencies: dict[str, Latency] = {}
    told: list[str] = []
    of_texts: list[Mapping[str, Judgments]] = []
    for path in run_paths:
        own = _labels_of(path, judged, qrels_path, settings)
        of_run = own or labels
        measured = evaluate_file(
            of_run.grades,
            path,
            settings.measures or DEFAULT_MEASURES,
            rel_threshold=of_run.rel_threshold,
            only_retrieved=only_retrieved,
            relevant=of_run.relevant,
        )
        name = _name_of(path, scores)
        scores[name] = measured.scores
        told += [OF_OWN_TEXTS.format(name)] if own else ()
        of_texts += [own.grades] if own else ()
        told += _of_own_texts(name, path, measured.scores, of_run.grades, qrels_path)
        told += _of_other_forms(name, measured.in_other_forms)
        found = latency_of(measured.latencies_s)
        if found is not None:
            latencies[name] = found
    threshold = next(iter(scores.values())).rel_threshold
    return EvaluatedRuns(
        scores,
        latencies,
        threshold,
        (),
        _names(settings),
        judged.n_unanswerable,
        graded_by=count_file_grades(judged, of_texts),
        warnings=(*told, *_of_documents(judged, run_paths)),
        n_by_document=len(judged.grades.keys() & set(judged.by_document)),
        reading=labels.reading,
        labels=reading_of_file(qrels_path, judged),
    )


def _labels_of(
    path: Path, judged: JudgedQrels, qrels_path: Path, settings: EvaluateSettings
) -> LabelsInForce | None:
    """Return what a run with texts of its own is measured on; None for any other."""
    if not judged.of_runs:
        return None
    from ragforge.files.formats.run_labels import labels_in_force

    return labels_in_force(judged, qrels_path, path, settings.rel_threshold)


def _of_own_texts(
    name: str, path: Path, scores: Scores, grades: Mapping[str, Judgments], qrels_path: Path
) -> Iterator[str]:
    """Yield why values say nothing of a run whose texts are not those of the qrels."""
    if any(warning.startswith(NOTHING_JUDGED) for warning in scores.warnings):
        from ragforge.files.formats.runs import read_run
        from ragforge.pipeline.file_runs import why_unmeasured

        if why := why_unmeasured(qrels_path, name, read_run(path).rankings, grades):
            yield why


def _of_other_forms(name: str, found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield what is to be told of retrieved ids that the qrels write in another way."""
    if found:
        query_id, chunk_id = found[0]
        yield (
            f"{name}: {plural(len(found), 'retrieved id is', 'retrieved ids are')} in the qrels in "
            f"another form of Unicode, such as {chunk_id!r} for query {query_id!r}, and not judged "
            "as they stand: macOS takes letters of file names apart; write both in one form"
        )


def _of_documents(judged: JudgedQrels, run_paths: Iterable[Path]) -> Iterator[str]:
    """Yield which runs seem to be of chunks, though labels name whole documents."""
    from ragforge.files.formats.runs import read_run
    from ragforge.files.source_files import plain_name

    labelled = {key: judged.grades.get(key, {}).keys() for key in judged.by_document}
    for path in run_paths if labelled else ():
        yield from chunks_for_documents(plain_name(path), read_run(path).rankings, labelled)


def _of_texts(runs: Iterable[MeasuredRun]) -> Iterator[str]:
    """Yield what runs with texts that are no chunks of the set are measured on."""
    from ragforge.evaluating.chunkings import differ, differ_in_words

    listed = list(runs)
    cut = {run.name: run.task.chunking for run in listed if run.task and run.task.chunking}
    yield from (chunking.describe(name) for name, chunking in cut.items())
    measures = by_judgments(listed[0].summary.estimates)
    if measures and differ(cut, [run.name for run in listed]):
        tasks = [run.task for run in listed if run.task]
        is_told = any(query.evidence for task in tasks for query in task.queries)
        yield differ_in_words(measures, has_evidence=is_told)


def _reading(dataset: Dataset, run: EvaluatedRun, settings: EvaluateSettings) -> str:
    """Return a sentence on what is relevant where that is not one threshold for all grades."""
    if run.relevant:
        from ragforge.files.formats.row_relevance import lists_in_words

        return lists_in_words(run.relevant, run.scores.per_query, run.scores.rel_threshold)
    threshold = dataset.authors_threshold(settings.rel_threshold)
    if judges_differ(dataset.judgment_table(), threshold):
        return relevance_words(run.scores.rel_threshold, judges_differ=True)
    return ""


def reading_of_file(path: Path, judged: JudgedQrels) -> LabelReading | None:
    """Return a file's reading of chunks without a label; None where it does not say."""
    folder = path if path.is_dir() else path.parent
    if (folder / "manifest.json").is_file() and (folder / "judgments.jsonl").is_file():
        from ragforge.evaluating.evaluation_data import reading_in_force
        from ragforge.files.set.dataset import Dataset

        dataset = Dataset(folder)
        return reading_in_force(dataset, dataset.judgment_table())
    return judged.labels


def _names(settings: EvaluateSettings) -> tuple[str, ...]:
    asked = settings.measures or DEFAULT_MEASURES
    return tuple(canonical(asked))


def _name_of(path: Path, taken: Mapping[str, Scores]) -> str:
    """Return a run's name: the file's, without endings; the whole path where that is taken."""
    from ragforge.files.source_files import plain_name

    name = plain_name(path)
    return str(path) if name in taken else name
