"""Putting a model together: observer > store > retries > budget > pacer > endpoint."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from ragforge.config import ModelSettings, Settings
from ragforge.errors import CallError, ConfigError, UsageError
from ragforge.llm.attempts import Patience, Pause, RetryingModel, patiently
from ragforge.llm.budget import BudgetedModel, Price, Purse, find_price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, call_key
from ragforge.llm.descriptors import fitting
from ragforge.llm.dry_run import Tally
from ragforge.llm.faults import AttemptError
from ragforge.llm.flow.breaker import OPENS_AFTER, Breaker
from ragforge.llm.flow.pacer import Pacer
from ragforge.llm.flow.state import Flow
from ragforge.llm.paced import PacedModel
from ragforge.llm.store import CallStore, Replay, StoredModel
from ragforge.llm.store.stored import leases_renewed
from ragforge.llm.structured import wrapping
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


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A model ready to be asked.

    Args:
        model: The outermost wrapper.
        name: The model's name for provenance; never a path.
        store: Its replies and what they cost.
        tally: What a dry run counted; None in earnest.
        stop: Makes all further calls fail at once; those in flight go on.
        concurrency: Calls that can be in flight.
    """

    model: ChatModel
    name: str
    store: CallStore
    tally: Tally | None
    stop: Callable[[], None] = _nothing
    concurrency: int = 1


@dataclass(frozen=True, slots=True)
class _ObservedModel:
    inner: ChatModel
    observer: Observer
    place: "_Place"
    price: Price | None
    flow: Flow | None = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def ask(self, request: ChatRequest) -> ChatReply:
        if asyncio.get_running_loop() is not self.loop:
            raise UsageError(
                "this model was opened in another event loop; open one with connect() in each"
            )
        labels = {
            "model": self.place.name,
            "endpoint": self.place.endpoint,
            "schema": request.schema_name,
        }
        numbers = {
            "temperature": request.temperature,
            "max_output_tokens": float(request.max_output_tokens),
            "seed": float(request.seed),
        }
        if self.flow is not None:
            numbers["in_flight"] = float(self.flow.in_flight)
        turns = tuple((turn.role, turn.content) for turn in request.messages)
        try:
            reply = await self.inner.ask(request)
        except CallError as error:
            labels["kind"] = error.kind
            self.observer(Event("call", "", "failed", str(error), numbers, labels, turns))
            raise
        numbers["latency_s"] = reply.latency_s
        if not reply.usage.estimated:
            numbers["prompt_tokens"] = float(reply.usage.prompt_tokens)
            numbers["completion_tokens"] = float(reply.usage.completion_tokens)
        if self.price is not None and not reply.cached:
            numbers["cost_usd"] = self.price.cost_usd(reply.usage)
        labels["reply_model"] = reply.model
        labels["reply_id"] = reply.reply_id
        labels["finish_reason"] = reply.finish_reason
        labels["wrapping"] = wrapping(reply.text)
        turns = (*turns, ("assistant", reply.text))
        outcome: Literal["cached", "done"] = "cached" if reply.cached else "done"
        self.observer(Event("call", "", outcome, "", numbers, labels, turns))
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

        settings = self.settings.model_copy(
            update={"name": self.settings.embedding_model, "concurrency": 1}
        )
        endpoint = OpenAIEndpoint(settings)
        patience = _patience(self.settings)
        vectors: list[list[float]] = []
        try:
            for start in range(0, len(texts), _EMBEDDING_BATCH):
                batch = texts[start : start + _EMBEDDING_BATCH]
                send = partial(endpoint.embed, batch)
                vectors += await patiently(send, patience, self.observer)
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
    settings: Settings,
    store_path: Path,
    observer: Observer,
    purse: Purse | None = None,
    *,
    dry_run: bool = False,
    replay: bool = False,
) -> AsyncIterator[Connection]:
    """Open the model that the settings name, with its call store.

    Args:
        settings: `model` and `budget` are used; the model is not `offline`.
        store_path: The dataset's call store.
        observer: Told of calls, retries and changes of flow.
        purse: What is spent of the budget; one of its own where None.
        dry_run: Count what would be asked instead of asking; no server is started.
        replay: Answer from the store only; no server is started.

    Raises:
        ConfigError: No key, unknown price under a limit in dollars, or a missing extra.
        DataError: The store or the model file cannot be opened.
        EndpointError: A local model does not start.
    """
    with ExitStack() as stack:
        place = await _place(settings.model, stack, start=not (dry_run or replay))
        store = stack.enter_context(closing(CallStore(store_path)))
        _tell_damage(store, observer)
        price = find_price(settings.model.name, settings.model.base_url, settings.budget)
        if dry_run:
            tally = Tally(store, place.endpoint, place.name, price, place.settings)
            yield Connection(tally, place.name, store, tally)
            return
        if replay:
            replaying = Replay(store, place.endpoint, place.name)
            observed = _ObservedModel(replaying, observer, place, None)
            yield Connection(observed, place.name, store, None)
            return
        async with _live(place, store, observer) as live, leases_renewed(store):
            budgeted = _budgeted(live, settings, place, store, price, purse)
            model = _bought_once(budgeted, live, place, store, observer, price)
            observed = _ObservedModel(model, observer, place, price, live.pacer.flow)
            pacer = live.pacer
            most = pacer.flow.most_in_flight
            yield Connection(observed, place.name, store, None, pacer.stop, most)


async def key_of(settings: ModelSettings, request: ChatRequest) -> str:
    """Return the key under which the call store keeps the reply of a model; nothing is asked.

    Raises:
        ConfigError, DataError: As for `connect`.
    """
    with ExitStack() as stack:
        place = await _place(settings, stack, start=False)
    return call_key(place.endpoint, place.name, request)


def _budgeted(
    live: PacedModel,
    settings: Settings,
    place: "_Place",
    store: CallStore,
    price: Price | None,
    purse: Purse | None,
) -> BudgetedModel:
    def unanswered(request: ChatRequest, error: AttemptError) -> None:
        store.note_unanswered(call_key(place.endpoint, place.name, request), str(error))

    return BudgetedModel(live, settings.budget, price, unanswered, purse or Purse())


def _bought_once(
    budgeted: BudgetedModel,
    live: PacedModel,
    place: "_Place",
    store: CallStore,
    observer: Observer,
    price: Price | None,
) -> ChatModel:
    retrying = RetryingModel(budgeted, _patience(place.settings, live.pacer.pause), observer)
    tell = _teller(observer, "note")
    return StoredModel(retrying, store, place.endpoint, place.name, price, tell)


def _teller(observer: Observer, name: Literal["note", "flow"]) -> Callable[[str], None]:
    return lambda message: observer(Event(name, message=message))


def _patience(model: ModelSettings, pause: Pause = asyncio.sleep) -> Patience:
    """Give each attempt its time, and the endpoint the wait that the user finds worth it."""
    most_s = model.max_attempts * model.timeout_s + model.max_wait_s
    return Patience(model.max_attempts, max_s=most_s, pause=pause)


def _tell_damage(store: CallStore, observer: Observer) -> None:
    if store.set_aside is not None:
        saved = store.spent().calls
        told = (
            f"the call store was damaged; it is set aside as {store.set_aside}, and "
            f"{saved} replies were saved from it"
        )
        observer(Event("note", message=told))


async def _place(model: ModelSettings, stack: ExitStack, *, start: bool) -> _Place:
    if not model.name.startswith(LOCAL):
        # Where none is named, the client goes by this variable; the call keys must too.
        endpoint = model.base_url or _from_environment() or "openai"
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


def _from_environment() -> str:
    address = os.environ.get("OPENAI_BASE_URL", "")
    if "@" in address.partition("//")[2].partition("/")[0]:
        raise ConfigError(
            "OPENAI_BASE_URL: no user name or password in the address: it is stored and shown"
        )
    return address


@asynccontextmanager
async def _live(place: _Place, store: CallStore, observer: Observer) -> AsyncIterator[PacedModel]:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint

    known_as = f"{place.endpoint} {place.name}"
    settings = fitting(place.settings, observer)
    flow = Flow(
        settings.concurrency,
        asyncio.get_running_loop().time(),
        settings.requests_per_minute,
        settings.tokens_per_minute,
    )
    # With few calls in flight, they would use up their attempts before anybody called it down.
    breaker = Breaker(min(OPENS_AFTER, max(3, settings.concurrency)))
    pacer = Pacer(flow, settings.max_wait_s, _teller(observer, "flow"), breaker)
    live = OpenAIEndpoint(
        settings,
        dialect=store.dialect(known_as),
        learnt=lambda dialect: store.learn(known_as, dialect),
        heard=pacer.heard,
        bounded=place.local,
    )
    try:
        yield PacedModel(live, pacer)
    finally:
        pacer.close()
        await live.close()
