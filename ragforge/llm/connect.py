"""Putting a model together: observer > store > retries > budget > endpoint."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ragforge.config import ModelSettings, Settings
from ragforge.llm.attempts import RetryingModel, patiently
from ragforge.llm.budget import BudgetedModel, find_price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest
from ragforge.llm.dry_run import Tally, Unasked
from ragforge.llm.store import CallStore, StoredModel
from ragforge.observe import Event, Observer

LOCAL = "local:"
OFFLINE = "offline"
LOCAL_CONTEXT_TOKENS = 8192
"""Context of one slot of a model served from a file; its own limit where that is lower."""
LOCAL_SLOTS = 4
"""Requests such a model works on at once, at most; memory grows with them, speed hardly."""
LOCAL_TIMEOUT_S = 1800.0
"""Least time limit for one attempt: a slow machine is no reason to ask the same again."""

_EMBEDDING_BATCH = 64


@dataclass(frozen=True, slots=True)
class Connection:
    """A model ready to be asked.

    Args:
        model: The outermost wrapper.
        name: The model's name for provenance; never a path.
        store: Its replies and what they cost.
        tally: What a dry run counted; None in earnest.
    """

    model: ChatModel
    name: str
    store: CallStore
    tally: Tally | None


@dataclass(frozen=True, slots=True)
class _ObservedModel:
    inner: ChatModel
    observer: Observer

    async def ask(self, request: ChatRequest) -> ChatReply:
        reply = await self.inner.ask(request)
        numbers = {
            "prompt_tokens": float(reply.usage.prompt_tokens),
            "completion_tokens": float(reply.usage.completion_tokens),
            "latency_s": reply.latency_s,
        }
        self.observer(Event("call", outcome="cached" if reply.cached else "done", numbers=numbers))
        return reply


@dataclass(frozen=True, slots=True)
class EndpointEmbedder:
    """Embeds texts through the endpoint's /embeddings, in batches."""

    settings: ModelSettings
    observer: Observer

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order.

        Raises:
            EndpointError, CallError: The endpoint cannot be used, or refused the texts.
        """
        from ragforge.llm.openai_endpoint import OpenAIEndpoint

        settings = self.settings.model_copy(update={"name": self.settings.embedding_model})
        endpoint = OpenAIEndpoint(settings)
        vectors: list[list[float]] = []
        try:
            for start in range(0, len(texts), _EMBEDDING_BATCH):
                batch = texts[start : start + _EMBEDDING_BATCH]
                send = partial(endpoint.embed, batch)
                vectors += await patiently(send, self.settings.max_attempts, self.observer)
        finally:
            await endpoint.close()
        return vectors


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a model is and what it is called in keys and provenance."""

    settings: ModelSettings
    endpoint: str
    name: str

    @property
    def local(self) -> bool:
        return self.endpoint == "local"


@asynccontextmanager
async def connect(
    settings: Settings, store_path: Path, observer: Observer, *, dry_run: bool = False
) -> AsyncIterator[Connection]:
    """Open the model that the settings name, with its call store.

    Args:
        settings: `model` and `budget` are used; the model is not `offline`.
        store_path: The dataset's call store.
        observer: Told of calls and retries.
        dry_run: Count what would be asked instead of asking; no server is started.

    Raises:
        ConfigError: No key, unknown price under a limit in dollars, or a missing extra.
        DataError: The store or the model file cannot be opened.
        EndpointError: A local model does not start.
    """
    with ExitStack() as stack:
        place = await _place(settings.model, stack, start=not dry_run)
        store = stack.enter_context(closing(CallStore(store_path)))
        if store.set_aside is not None:
            told = f"the call store was damaged; it is set aside as {store.set_aside}"
            observer(Event("note", message=told))
        price = find_price(settings.model.name, settings.model.base_url, settings.budget)
        if dry_run:
            unasked = StoredModel(Unasked(), store, place.endpoint, place.name, price)
            tally = Tally(unasked, price)
            yield Connection(tally, place.name, store, tally)
            return
        async with _live(place, store) as live:
            budgeted = BudgetedModel(live, settings.budget, price)
            retrying = RetryingModel(budgeted, settings.model.max_attempts, observer)
            stored = StoredModel(retrying, store, place.endpoint, place.name, price)
            yield Connection(_ObservedModel(stored, observer), place.name, store, None)


async def _place(model: ModelSettings, stack: ExitStack, *, start: bool) -> _Place:
    if not model.name.startswith(LOCAL):
        # Where none is named, the client goes by this variable; the call keys must too.
        endpoint = model.base_url or os.environ.get("OPENAI_BASE_URL", "") or "openai"
        return _Place(model, endpoint.rstrip("/"), model.name)
    from ragforge.llm.local import model_digest, serve

    path = Path(model.name.removeprefix(LOCAL)).expanduser()
    name = model_digest(path)
    if not start:
        return _Place(model, "local", name)
    slots = min(model.concurrency, LOCAL_SLOTS)
    serving = serve(path, parallel=slots, context_tokens=LOCAL_CONTEXT_TOKENS)
    served = await asyncio.to_thread(stack.enter_context, serving)
    changed = {
        "name": served.model,
        "base_url": served.base_url,
        "timeout_s": max(model.timeout_s, LOCAL_TIMEOUT_S),
    }
    return _Place(model.model_copy(update=changed), "local", name)


@asynccontextmanager
async def _live(place: _Place, store: CallStore) -> AsyncIterator[ChatModel]:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint

    known_as = f"{place.endpoint} {place.name}"
    live = OpenAIEndpoint(
        place.settings,
        dialect=store.dialect(known_as),
        learnt=lambda dialect: store.learn(known_as, dialect),
        bounded=place.local,
    )
    try:
        yield live
    finally:
        await live.close()
