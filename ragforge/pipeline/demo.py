"""The demo: the whole pipeline on the shipped sample, without a key and without network."""

from collections.abc import Sequence
from pathlib import Path

from ragforge.config import Settings
from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.files.shipped_folders import shipped
from ragforge.observe import Observer
from ragforge.pipeline.answer.answering import AnsweringResult, grade_system
from ragforge.pipeline.backend import offline_model
from ragforge.pipeline.evaluating import EvaluatedRuns, evaluate_dataset
from ragforge.pipeline.generation.generating import generate_dataset
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.intake.importing import ImportResult, import_queries
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judge_run import JudgingResult
from ragforge.pipeline.judge.judging import judge_dataset
from ragforge.pipeline.reporting import write_report
from ragforge.pipeline.retrieving import make_runs

RETRIEVERS = ("bm25", "chargram")
"""Those of everybody; the local model of the offline baseline comes beside them."""
LICENCE = "Apache-2.0"


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo made."""

    dataset: Dataset
    n_documents: int
    n_chunks: int
    n_generated: int
    imported: ImportResult
    judging: JudgingResult
    answering: Sequence[AnsweringResult]
    evaluation: EvaluatedRuns
    report: Path
    local_model: str
    """What judged, and retrieved beside the others; "" where words alone did."""


async def run_demo(out: Path, settings: Settings, observer: Observer) -> Demo:
    """Make a dataset of the shipped help centre, judge, measure and report on it.

    Args:
        out: Directory of the dataset.
        settings: As for the single steps; no model is asked, whatever they name.
        observer: Told of progress.

    Raises:
        UsageError: The directory holds something else.
    """
    model = settings.model
    unasked = type(model)(seed=model.seed, offline_model=model.offline_model)
    settings = settings.model_copy(update={"model": unasked})
    local = offline_model(unasked)
    retrievers = (*RETRIEVERS, local) if local else RETRIEVERS
    sample = shipped("datasets") / "helpcentre"
    documents = sample / "documents"
    source = ChunkSource([documents], None, settings.chunk, observer)
    made = await generate_dataset(out, source, Job(settings, observer))
    assert made.report is not None
    dataset = made.dataset
    imported = import_queries(
        sample / "golden.jsonl", dataset, observer, made_by="makers of the sample"
    )
    dataset.write_manifest(dataset.manifest.model_copy(update={"licence": LICENCE}))
    specs = dict(zip(retrievers, retrievers, strict=True))
    await make_runs(dataset, specs, Job(settings, observer))
    judging = await judge_dataset(dataset, retrievers, Job(settings, observer))
    answering = [
        await grade_system(dataset, path, path.stem, Job(settings, observer))
        for path in sorted((sample / "answers").glob("*.jsonl"))
    ]
    evaluation = evaluate_dataset(dataset, retrievers, settings.evaluate)
    report = out / "report.html"
    write_report(dataset, report, "html", settings.evaluate)
    return Demo(
        dataset=dataset,
        n_documents=made.report.documents.total,
        n_chunks=made.report.chunks.total,
        n_generated=len(made.generated.queries),
        imported=imported,
        judging=judging,
        answering=answering,
        evaluation=evaluation,
        report=report,
        local_model=local,
    )
