"""Generating a dataset from a corpus: planned, written, checked, and its pools judged."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import refuse_other_files, refuse_refreshed
from ragforge.pipeline.generation.estimate import estimate_generation
from ragforge.pipeline.generation.inputs import is_own, is_settled, made_from, open_inputs, settle
from ragforge.pipeline.generation.report import write_findings
from ragforge.pipeline.generation.rounds import Rounds
from ragforge.pipeline.generation.source import ChunkSource, real_queries
from ragforge.pipeline.generation.team import assemble
from ragforge.pipeline.job import Job
from ragforge.pipeline.surveying import open_survey
from ragforge.records import GenerationReport
from ragforge.stages.generate.quotas import targets
from ragforge.stages.generate.stage import Generated

if TYPE_CHECKING:
    from ragforge.pipeline.complete.completing import Completion


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """A generated dataset, or what a dry run counted.

    Args:
        dataset: The directory.
        n_wanted: Queries that were wanted.
        generated: What generation left.
        report: What it came to; None in a dry run.
        completion: Of the pools; None where none was judged.
        estimate: What a dry run counted; None in earnest.
    """

    dataset: Dataset
    n_wanted: int = 0
    generated: Generated = field(default_factory=Generated)
    report: GenerationReport | None = None
    completion: "Completion | None" = None
    estimate: dict[str, object] | None = None


async def generate_dataset(out: Path, source: ChunkSource, job: Job) -> GenerationResult:
    """Generate queries from a corpus into a dataset directory.

    The same inputs into the same directory go on where an earlier run stopped; a larger number of
    queries adds to those that are there.

    Args:
        out: The dataset's directory.
        source: The corpus.
        job: Models, budget, seed, and what is wanted. A dry run touches nothing but the folder of
            the call store.

    Raises:
        ConfigError: The settings name what does not exist.
        UsageError: The directory holds another dataset, or one edited by hand.
        DataError: The corpus cannot be read, or has no text.
        EndpointError, BudgetError: The run was stopped; what was accepted is written.
    """
    settings, seed = job.settings, job.settings.model.seed
    targets(settings.generate)
    dataset = Dataset(out)
    refuse_other_files(out)
    refuse_refreshed(out)
    folder = dataset.store_path.parent
    real = real_queries(dataset, settings.generate.like)
    async with AsyncExitStack() as stack:
        team = await assemble(stack, job, dataset)
        if job.mode.dry_run:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="ragforge-")))
            chunks = stack.enter_context(source.prepared(place))
            survey = stack.enter_context(open_survey(chunks.path, place, job.observer, seed=seed))
            there = dataset.queries() if (out / "manifest.json").exists() else []
            n_there = sum(is_own(query) or is_settled(query) for query in there)
            estimate = await estimate_generation(team, survey, settings, real, n_there)
            return GenerationResult(dataset, estimate=estimate)
        chunks = stack.enter_context(source.prepared(folder))
        if job.mode.retry_failed and (out / "manifest.json").exists():
            settle(dataset)
        inputs = open_inputs(
            out, chunks, made_from(chunks.digest, settings, team, real), settings, real
        )
        survey = stack.enter_context(
            open_survey(out / "chunks.jsonl", folder, job.observer, seed=seed)
        )
        rounds = Rounds(dataset, survey, team, inputs, job)
        try:
            await rounds.run()
        finally:
            # Also of a run that was stopped: what it turned away tells whether to go on.
            report = write_findings(dataset, rounds, survey, settings)
    return GenerationResult(dataset, inputs.n_wanted, rounds.generated, report, rounds.completion)
