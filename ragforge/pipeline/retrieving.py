"""Making a run: a retriever over the queries of a dataset."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragforge.config import Settings
from ragforge.errors import CallError, EndpointError
from ragforge.files.dataset import Dataset, checked_name
from ragforge.llm.embedder import EndpointEmbedder, open_embedder
from ragforge.observe import Event, Observer
from ragforge.pipeline.backend import EARNEST, Mode
from ragforge.plugins import find
from ragforge.records import Chunk, Failure, Ranking
from ragforge.retrieval import Buildable
from ragforge.retrieval.resolve import make_retriever
from ragforge.stages.pouring import Collected
from ragforge.stages.retrieve import retrieve


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as it was written."""

    name: str
    rankings: list[Ranking]
    failures: list[Failure]


async def make_run(
    dataset: Dataset,
    spec: str,
    name: str,
    settings: Settings,
    observer: Observer,
    mode: Mode = EARNEST,
) -> RunResult:
    """Retrieve for every query of a dataset and write the run.

    Args:
        dataset: Has chunks and queries.
        spec: What to retrieve with; see `make_retriever`.
        name: The run's name.
        settings: k, concurrency, and the endpoint for embeddings.
        observer: Told of progress.
        mode: Whether embeddings come from the call store alone.

    Raises:
        UsageError, ConfigError: The retriever cannot be made.
        EndpointError: It failed on every query.
        BudgetError: Embeddings would take more than the budget.
    """
    checked_name(name)
    async with open_embedder(
        settings, dataset.store_path, observer, replay=mode.offline_replay
    ) as embedder:
        made = await _made_run(dataset, spec, name, settings, observer, embedder)
        spent = embedder.spent() if embedder else None
        if spent is not None:
            dataset.note(spent=spent)
    return made


async def _made_run(
    dataset: Dataset,
    spec: str,
    name: str,
    settings: Settings,
    observer: Observer,
    embedder: EndpointEmbedder | None,
) -> RunResult:
    model = settings.model
    queries = dataset.require_queries()

    def note(message: str) -> None:
        observer(Event("note", message=message))

    chunks = list(dataset.chunks())
    retriever = make_retriever(
        spec, chunks, embedder, find=find, note=note, timeout_s=model.timeout_s
    )
    if isinstance(retriever, Buildable):
        await _build(retriever, spec)
    tried = {f"{name}/{query.query_id}" for query in queries}

    def keep(collected: Collected[Ranking]) -> None:
        dataset.write_run(name, collected.results)
        dataset.replace_failures("retrieve", collected.failures, tried.__contains__)

    collected = await retrieve(
        queries,
        retriever,
        name=name,
        k=settings.retrieve.k,
        concurrency=model.concurrency,
        observer=observer,
        keep=keep,
    )
    _tell_unknown(chunks, collected.results, note)
    if collected.failures and not collected.results:
        raise EndpointError(
            f"retriever {spec!r} failed on all {len(queries)} queries; "
            f"the first: {collected.failures[0].message}"
        )
    return RunResult(name, collected.results, collected.failures)


async def _build(retriever: Buildable, spec: str) -> None:
    """Build what a retriever needs first, so that no query's latency has it in it."""
    try:
        await retriever.build()
    except CallError as error:
        raise EndpointError(f"retriever {spec!r} cannot be built: {error}") from error


def _tell_unknown(
    chunks: Sequence[Chunk], rankings: list[Ranking], note: Callable[[str], None]
) -> None:
    known = {chunk.chunk_id for chunk in chunks}
    unknown = {hit.chunk_id for item in rankings for hit in item.ranking} - known
    if unknown:
        shown = ", ".join(sorted(unknown)[:3])
        note(
            f"warning: {len(unknown)} retrieved chunk ids are not in chunks.jsonl, such as "
            f"{shown}; they can be neither judged nor relevant"
        )
