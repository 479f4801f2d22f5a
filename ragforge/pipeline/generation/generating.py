"""Generating a dataset from a corpus: planned, written, checked, its pools judged, and reported."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragforge.config import Settings
from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass, tempfile
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import refuse_other_files, refuse_refreshed
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.generation.generated_queries import (
    is_own,
    is_settled,
    made_from,
    open_inputs,
    settle,
)
from ragforge.pipeline.generation.models import estimate_generation, open_models
from ragforge.pipeline.generation.rounds import Rounds
from ragforge.pipeline.generation.source import ChunkSource, real_queries
from ragforge.pipeline.job import Job
from ragforge.pipeline.surveying import open_survey
from ragforge.records import Coverage, FunnelStep, GenerationReport, Judgment, Query, ShareRow
from ragforge.stages.generate.quotas import Targets, targets
from ragforge.stages.generate.stage import Generated
from ragforge.stages.generate.statistics import (
    REAL_OVERLAP,
    Covered,
    coverage,
    funnel_step,
    overlaps,
    query_lengths,
    rank_counts,
    share_rows,
    spread,
    total_variation,
)

if TYPE_CHECKING:
    from ragforge.evaluating.completion import CompletionSummary
    from ragforge.pipeline.complete.completing import Completion


Name = TypeVar("Name", bound=str)

_DUPLICATES = ("duplicate", "near_duplicate")
POOL_CONFLICT = "pool_conflict"
_RELEVANT = 2


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
        models = await open_models(stack, job, dataset)
        if job.mode.dry_run:
            from ragforge.pipeline.planning import typical_plan
            from ragforge.report.plan import plan_json

            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ragforge-")))
            chunks = stack.enter_context(source.prepared(place))
            survey = stack.enter_context(open_survey(chunks.path, place, job.observer, seed=seed))
            there = dataset.queries() if (out / "manifest.json").exists() else []
            n_there = sum(is_own(query) or is_settled(query) for query in there)
            estimate = await estimate_generation(models, survey, settings, real, n_there)
            plan = plan_json(typical_plan(max(settings.generate.n, n_there)))
            return GenerationResult(dataset, estimate={**estimate, "plan": plan})
        chunks = stack.enter_context(source.prepared(folder))
        if job.mode.retry_failed and (out / "manifest.json").exists():
            settle(dataset)
        inputs = open_inputs(
            out, chunks, made_from(chunks.digest, settings, models, real), settings, real
        )
        survey = stack.enter_context(
            open_survey(out / "chunks.jsonl", folder, job.observer, seed=seed)
        )
        rounds = Rounds(dataset, survey, models, inputs, job)
        try:
            await rounds.run()
        finally:
            # Also of a run that was stopped: what it turned away tells whether to go on.
            report = _write_report(dataset, rounds, survey, settings)
    return GenerationResult(dataset, inputs.n_wanted, rounds.generated, report, rounds.completion)


@dataclass(frozen=True, slots=True)
class _Findings:
    """What a report is made of.

    Args:
        n_wanted: Queries that were wanted.
        generated: What generation left.
        queries: The accepted ones, as they stand in the set.
        n_refuted: How many were taken out because of what their pool holds.
        judgments: Those of the pools; empty where none was judged.
        documents, chunks: What of the corpus they touch.
        targets: The shares that were wanted.
        real_queries: Of users, that were to be followed.
        completeness: Of the pools; None where none was judged.
    """

    n_wanted: int
    generated: Generated
    queries: Sequence[Query]
    n_refuted: int
    judgments: Sequence[Judgment]
    documents: Coverage
    chunks: Coverage
    targets: Targets
    real_queries: Sequence[str] = ()
    completeness: "CompletionSummary | None" = None


def _report(findings: _Findings, survey: Survey) -> GenerationReport:
    """Return the report; the same findings give the same one."""
    queries = findings.queries
    shares = _shares(queries, findings.targets)
    margins: dict[str, list[ShareRow]] = {}
    for row in shares:
        margins.setdefault(row.margin, []).append(row)
    measured = [q.measured for q in queries if q.measured is not None and q.answerable]
    complete = findings.completeness
    return GenerationReport(
        n_wanted=findings.n_wanted,
        n_accepted=len(queries),
        funnel=tuple(_funnel(findings)),
        documents=findings.documents,
        chunks=findings.chunks,
        shares=tuple(shares),
        variation={name: total_variation(rows) for name, rows in margins.items() if queries},
        n_duplicates=sum(item.code in _DUPLICATES for item in findings.generated.rejected),
        overlap=spread(overlaps(queries, survey.chunk)),
        query_words=spread(query_lengths(query.query for query in queries)),
        real_overlap=REAL_OVERLAP,
        real_words=spread(query_lengths(findings.real_queries)),
        closed_book=_counts(item.closed_book for item in measured),
        agreement=_counts(item.agreement for item in measured),
        evidence_rank=rank_counts(queries),
        difficulty=_declared_and_measured(queries),
        grades=_counts("failed" if j.grade is None else str(j.grade) for j in findings.judgments),
        splits=_counts(query.split for query in queries if query.split),
        relevant_per_query=_relevant_per_query(findings) if complete else None,
        completeness=complete.completeness if complete else None,
        completeness_low=complete.low if complete else None,
        completeness_high=complete.high if complete else None,
    )


def _funnel(findings: _Findings) -> Iterable[FunnelStep]:
    generated = findings.generated
    by_check = Counter(item.code for item in generated.rejected if _is_of_check(item.code))
    by_rule = Counter(item.code for item in generated.rejected if not _is_of_check(item.code))
    yield funnel_step("source and writer", "slots", len(generated.slots), generated.lost)
    yield funnel_step("rules", "candidates", generated.n_candidates, by_rule)
    if any(query.gates for query in generated.queries) or by_check:
        yield funnel_step("checks by a model", "candidates", generated.n_checked, by_check)
    if findings.completeness is not None or findings.n_refuted:
        stopped = {POOL_CONFLICT: findings.n_refuted} if findings.n_refuted else {}
        yield funnel_step("pool", "queries", len(generated.queries) + findings.n_refuted, stopped)


def _is_of_check(code: str) -> bool:
    return code.endswith(("_fail", "_unknown"))


def _shares(queries: Sequence[Query], targets: Targets) -> list[ShareRow]:
    rows = share_rows("type", (q.type or "" for q in queries), _floats(targets.types))
    rows += share_rows(
        "difficulty", (q.difficulty or "" for q in queries), _floats(targets.difficulties)
    )
    rows += share_rows("persona", (q.persona or "" for q in queries), _floats(targets.personas))
    return rows + share_rows("language", (q.language for q in queries), _floats(targets.languages))


def _floats(shares: Mapping[Name, Fraction]) -> dict[str, float]:
    return {str(name): float(share) for name, share in shares.items()}


def _declared_and_measured(queries: Iterable[Query]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for query in queries:
        if query.measured is not None and query.measured.difficulty and query.difficulty:
            counts.setdefault(query.difficulty, Counter())[query.measured.difficulty] += 1
    order = ("easy", "medium", "hard")
    return {
        declared: {name: counts[declared][name] for name in order if counts[declared][name]}
        for declared in order
        if declared in counts
    }


def _relevant_per_query(findings: _Findings) -> float | None:
    answerable = {query.query_id for query in findings.queries if query.answerable}
    relevant = sum(
        (j.grade or 0) >= _RELEVANT and j.query_id in answerable for j in findings.judgments
    )
    return relevant / len(answerable) if answerable else None


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _write_report(
    dataset: Dataset, rounds: Rounds, survey: Survey, settings: Settings
) -> GenerationReport:
    """Write the report of a finished generation and the card of the set, and return the report."""
    ids = {query.query_id for query in rounds.generated.queries}
    ids |= {query.query_id for query in rounds.inputs.settled}
    queries = [query for query in dataset.queries() if query.query_id in ids]
    tried = {chunk_id for slot in rounds.generated.slots for chunk_id in slot.chunk_ids}
    covered = {chunk_id for query in queries for chunk_id in query.source_chunk_ids}
    covering = coverage(survey.cards(), tried, covered)
    findings = _Findings(
        n_wanted=rounds.inputs.n_wanted,
        generated=rounds.generated,
        queries=queries,
        n_refuted=len(rounds.refuted),
        judgments=[item for item in dataset.each_judgment() if item.query_id in ids],
        documents=_record(covering.documents),
        chunks=_record(covering.chunks),
        targets=targets(settings.generate),
        real_queries=rounds.inputs.real,
        completeness=rounds.completion.summary if rounds.completion else None,
    )
    report = _report(findings, survey)
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
