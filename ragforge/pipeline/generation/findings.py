"""What generation came to, written beside the set: `generation.json` and the card."""

from ragforge.config import Settings
from ragforge.corpus.survey import Survey
from ragforge.files.dataset import Dataset
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.generation.report import Completeness, Making, build_report
from ragforge.pipeline.generation.rounds import Rounds
from ragforge.records import Coverage, GenerationReport
from ragforge.stages.generate.coverage import Covered, coverage
from ragforge.stages.generate.quotas import targets


def write_findings(
    dataset: Dataset, rounds: Rounds, survey: Survey, settings: Settings
) -> GenerationReport:
    """Write the report of a finished generation and the card of the set, and return the report."""
    ids = {query.query_id for query in rounds.generated.queries}
    ids |= {query.query_id for query in rounds.inputs.settled}
    queries = [query for query in dataset.queries() if query.query_id in ids]
    tried = {chunk_id for slot in rounds.generated.slots for chunk_id in slot.chunk_ids}
    covered = {chunk_id for query in queries for chunk_id in query.source_chunk_ids}
    found = coverage(survey.cards(), tried, covered)
    making = Making(
        n_wanted=rounds.inputs.n_wanted,
        generated=rounds.generated,
        queries=queries,
        n_refuted=len(rounds.refuted),
        judgments=[item for item in dataset.each_judgment() if item.query_id in ids],
        documents=_record(found.documents),
        chunks=_record(found.chunks),
        targets=targets(settings.generate),
        real_queries=rounds.inputs.real,
        completeness=_completeness(rounds),
    )
    report = build_report(making, survey)
    dataset.write_generation(report)
    licence = settings.generate.licence
    if licence and dataset.manifest.licence != licence:
        dataset.write_manifest(dataset.manifest.model_copy(update={"licence": licence}))
    renew_card(dataset)
    return report


def _record(covered: Covered) -> Coverage:
    return Coverage(
        total=covered.n,
        covered=covered.n_covered,
        uncovered={reason: missed.n for reason, missed in covered.missed.items()},
        examples={reason: tuple(missed.examples) for reason, missed in covered.missed.items()},
    )


def _completeness(rounds: Rounds) -> Completeness | None:
    if rounds.completion is None or rounds.completion.summary is None:
        return None
    summary = rounds.completion.summary
    return Completeness(summary.completeness, summary.low, summary.high)
