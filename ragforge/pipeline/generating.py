"""Generating a dataset from chunks."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragforge.config import Settings
from ragforge.errors import CallError, UsageError
from ragforge.files.dataset import Dataset
from ragforge.files.manifest import digest_texts
from ragforge.files.opening import create_dataset, refuse_other_files
from ragforge.observe import Observer
from ragforge.pipeline.backend import EARNEST, NO_CALLS, Backend, Mode, open_backend
from ragforge.records import Chunk
from ragforge.stages.answer.facts import keeping_facts
from ragforge.stages.generate.llm import LLMQueryWriter
from ragforge.stages.generate.plan import Seed, plan_round
from ragforge.stages.generate.rules import RuleQueryWriter
from ragforge.stages.generate.stage import (
    Generated,
    Generation,
    evidence_judgments,
    generate,
)

PROMPT = "generate_query"


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """A generated dataset, or what a dry run counted."""

    dataset: Dataset
    generated: Generated
    estimate: dict[str, object] | None


async def generate_dataset(
    out: Path,
    chunks: Sequence[Chunk],
    settings: Settings,
    observer: Observer,
    mode: Mode = EARNEST,
) -> GenerationResult:
    """Generate queries from chunks into a dataset directory.

    The same inputs into the same directory go on where an earlier run stopped.

    Args:
        out: The dataset's directory.
        chunks: The corpus, sorted by id.
        settings: Model, budget, seed, number and language of queries.
        observer: Told of progress.
        mode: A dry run touches nothing but the call store's folder.

    Raises:
        UsageError: The directory holds another dataset, or one edited by hand.
        EndpointError, BudgetError: The run was stopped; what was accepted is written.
    """
    dataset = Dataset(out)
    refuse_other_files(out)
    async with open_backend(
        settings, PROMPT, dataset.store_path, observer, mode=mode, failures=dataset.failures
    ) as backend:
        generation = _generation(backend, settings, observer)
        if mode.dry_run:
            estimate = await _count(chunks, generation, backend)
            return GenerationResult(dataset, Generated(), estimate)
        dataset = create_dataset(out, _made_from(chunks, settings, backend))
        _refuse_edited(dataset)
        dataset.write_chunks(chunks)

        def keep(generated: Generated) -> None:
            _write(dataset, generated)
            backend.note_in(dataset)

        generated = await generate(chunks, generation, keep)
    return GenerationResult(dataset, generated, None)


def shortfall(result: GenerationResult, wanted: int) -> str:
    """Return why fewer queries came out than were wanted, "" where as many did."""
    generated = result.generated
    if len(generated.queries) >= wanted:
        return ""
    reasons = [
        f"rejected as {code.replace('_', ' ')}: {count}"
        for code, count in sorted(generated.rejected.items())
    ]
    if generated.without:
        reasons.append(f"nothing (more) to ask in a chunk: {generated.without}")
    if generated.failures:
        reasons.append(f"failed: {len(generated.failures)} (see failures.jsonl)")
    why = "; ".join(reasons) or "no chunk is long enough to ask about"
    return (
        f"{result.dataset.path}: {len(generated.queries)} of {wanted} queries; every chunk was "
        f"tried, left out: {why}"
    )


def _generation(backend: Backend, settings: Settings, observer: Observer) -> Generation:
    language = settings.generate.language
    return Generation(
        writer=LLMQueryWriter(backend.asker, language) if backend.asker else RuleQueryWriter(),
        n=settings.generate.n,
        seed=settings.model.seed,
        language=language,
        concurrency=backend.workers(settings.model.concurrency),
        observer=observer,
        on_stop=backend.stop,
    )


def _refuse_edited(dataset: Dataset) -> None:
    if dataset.changed_by_hand("queries.jsonl"):
        raise UsageError(
            f"{dataset.path / 'queries.jsonl'}: was changed by hand since it was generated; "
            "name another --out so that no edit is lost"
        )


def _made_from(chunks: Sequence[Chunk], settings: Settings, backend: Backend) -> dict[str, str]:
    corpus = digest_texts({chunk.chunk_id: chunk.text for chunk in chunks})
    return {
        "chunks": corpus,
        "model": backend.name,
        "prompt": backend.prompt_digests.get(PROMPT, ""),
        "seed": str(settings.model.seed),
        "language": settings.generate.language,
    }


async def _count(
    chunks: Sequence[Chunk], generation: Generation, backend: Backend
) -> dict[str, object]:
    """Return the estimate for as many chunks as queries are wanted; rejected ones come on top."""
    if backend.tally is None:
        return NO_CALLS
    for chunk in plan_round(chunks, generation.seed)[: generation.n]:
        with suppress(CallError):
            await generation.writer.write(Seed(chunk, 0), [])
    return backend.tally.estimate()


def _write(dataset: Dataset, generated: Generated) -> None:
    """Write what was generated beside the queries and judgments that others put there."""
    before = dataset.all_queries()
    others = [old for old in before if old.origin != "synthetic"]
    theirs = {query.query_id for query in others}
    mine = [query for query in generated.queries if query.query_id not in theirs]
    mine = keeping_facts(mine, before)
    ids = theirs | {query.query_id for query in mine}
    evidence = {(item.query_id, item.chunk_id): item for item in evidence_judgments(mine)}
    kept = {
        (old.query_id, old.chunk_id): old
        for old in dataset.judgments()
        if old.query_id in ids and old.source != "evidence"
    }
    dataset.write_queries([*others, *mine])
    dataset.write_judgments({**evidence, **kept}.values())
    dataset.replace_failures("generate", generated.failures, lambda key: True)
