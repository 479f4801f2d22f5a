"""Embeddings for a job: whoever makes them, and what they will take."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress

from ragforge.errors import CallError
from ragforge.llm.embedder import EndpointEmbedder, open_embedder
from ragforge.pipeline.job import CallPlace, Job
from ragforge.records import Chunk
from ragforge.retrieval.dense import BATCH
from ragforge.retrieval.tokens import in_tie_order, searched_text


def embedder_of(job: Job, place: CallPlace) -> AbstractAsyncContextManager[EndpointEmbedder | None]:
    """Open the embedding model of a job; None where its settings name none.

    Args:
        job: It draws on the same budget as the other models of the job.
        place: Has the call store.
    """
    return open_embedder(
        job.settings,
        place.store_path,
        job.observer,
        job.account,
        dry_run=job.mode.dry_run,
        replay=job.mode.offline_replay,
    )


async def count_embeddings(
    embedder: EndpointEmbedder, chunks: Iterable[Chunk], texts: Iterable[str]
) -> dict[str, object]:
    """Return the calls, tokens and money for a corpus and what is looked for in it.

    Args:
        embedder: In a dry run.
        chunks: The corpus.
        texts: Looked for, each in a call of its own.
    """
    indexed = [searched_text(chunk) for chunk in in_tie_order(chunks)]
    calls = [indexed[start : start + BATCH] for start in range(0, len(indexed), BATCH)]
    for call in [*calls, *([text] for text in texts if text.strip())]:
        with suppress(CallError):
            await embedder.embed(call)
    return embedder.estimate()


def with_embeddings(
    estimate: Mapping[str, object], embeddings: Mapping[str, object]
) -> dict[str, object]:
    """Return an estimate with embeddings added to its sums, and told on their own as well."""
    total = {**estimate, "embeddings": dict(embeddings)}
    for name, added in (("calls", "calls"), ("calls_high", "calls"), ("cached", "cached")):
        if name in estimate:
            total[name] = _sum(estimate[name], embeddings[added])
    for name, added in (("tokens", "prompt_tokens"), ("cost_usd", "cost_usd")):
        amounts = estimate.get(name)
        if isinstance(amounts, Mapping):
            total[name] = {key: _sum(value, embeddings[added]) for key, value in amounts.items()}
    return total


def _sum(one: object, other: object) -> float | None:
    """Return a sum, None where either is not known."""
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return None
    return one + other if isinstance(one, int) else round(one + other, 6)
