"""Connecting a model: observer > store > retries > budget > pacer > endpoint."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragforge.config import BudgetSettings, ModelSettings, Settings
from ragforge.deferred import dataclass
from ragforge.errors import CallError, ConfigError, UsageError
from ragforge.llm.budget import BudgetAccount, BudgetedModel, Price, find_price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, call_key
from ragforge.llm.endpoints import (
    Innermost,
    OpenEndpoints,
    ResolvedModel,
    event_sender,
    resolve_model,
)
from ragforge.llm.flow.pacer import PacedModel
from ragforge.llm.flow.state import Flow
from ragforge.llm.retries import AttemptError, Pause, RetryingModel, RetryPolicy
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.models import (
    Collector,
    CountingModel,
    LeasedModel,
    Replay,
    StoredModel,
    leases_renewed,
)
from ragforge.llm.structured import reply_wrapping
from ragforge.llm.wire import EMBEDDINGS
from ragforge.observe import Event, Observer

if TYPE_CHECKING:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint


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
        price: What its tokens cost now; None where unknown.
    """

    model: ChatModel
    name: str
    store: CallStore
    tally: CountingModel | None
    stop: Callable[[], None] = _nothing
    concurrency: int = 1
    price: Price | None = None

    def cost_usd(self, reply: ChatReply) -> float | None:
        """Return what a reply cost when it was bought; at the price of now where none was known.

        None where none is known now either.
        """
        cost_usd = self.store.cost_usd(reply.key)
        if cost_usd is None and self.price is not None:
            return self.price.cost_usd(reply.usage)
        return cost_usd


@asynccontextmanager
async def connect(
    settings: Settings,
    store_path: Path,
    observer: Observer,
    account: BudgetAccount | None = None,
    *,
    dry_run: bool = False,
    replay: bool = False,
    collector: Collector | None = None,
    endpoints: OpenEndpoints | None = None,
) -> AsyncIterator[Connection]:
    """Open the model that the settings name, with its call store.

    Args:
        settings: `model` and `budget` are used; the model is not `offline`.
        store_path: The dataset's call store.
        observer: Told of calls, retries and changes of flow.
        account: What is spent of the budget; one of its own where None.
        dry_run: Count what would be asked instead of asking; no server is started.
        replay: Answer from the store only; no server is started.
        collector: Takes what a dry run would ask.
        endpoints: Keep what is asked open when this connection ends; None to close it.

    Raises:
        ConfigError: No key, unknown price under a limit in dollars, or a missing extra.
        DataError: The store or the model file cannot be opened.
        EndpointError: A local model does not start.
    """
    price = find_price(settings.model.name, settings.model.address, settings.budget)
    opening = _Opening(
        *(settings, store_path, observer, account, price, _chat_endpoint, collector, endpoints)
    )
    async with _opened(opening, dry_run=dry_run, replay=replay) as connection:
        yield connection


@asynccontextmanager
async def connect_embeddings(
    settings: Settings,
    store_path: Path,
    observer: Observer,
    account: BudgetAccount | None = None,
    *,
    dry_run: bool = False,
    replay: bool = False,
) -> AsyncIterator[Connection]:
    """Open the embedding model that the settings name, with its call store.

    It takes what `embeddings_request` makes. Args and errors are those of `connect`.
    """
    name, budget = settings.model.embedding_model, settings.budget
    changed = settings.model_copy(
        update={"model": settings.model.model_copy(update={"name": name})}
    )
    # What the user says is the price of the other model; it serves where no other is known.
    price = find_price(name, settings.model.address, BudgetSettings())
    price = price or find_price(name, settings.model.address, budget)
    if budget.max_cost_usd is not None and price is None:
        raise ConfigError(
            f"--max-cost-usd: the price of the embedding model {name!r} is not known; give the "
            "most it can be with --input-usd-per-mtok and --output-usd-per-mtok"
        )
    opening = _Opening(changed, store_path, observer, account, price, _EmbeddingEndpoint)
    async with _opened(opening, dry_run=dry_run, replay=replay) as connection:
        yield connection


async def call_key_for(settings: ModelSettings, request: ChatRequest) -> str:
    """Return the key under which the call store keeps the reply of a model; nothing is asked.

    Raises:
        ConfigError, DataError: As for `connect`.
    """
    resolved = await resolve_model(settings)
    return call_key(resolved.endpoint, resolved.name, request)


@dataclass(frozen=True, slots=True)
class _Opening:
    """The arguments that chat and embedding models are opened with."""

    settings: Settings
    store_path: Path
    observer: Observer
    account: BudgetAccount | None
    price: Price | None
    innermost: Innermost
    collector: Collector | None = None
    endpoints: OpenEndpoints | None = None


@asynccontextmanager
async def _opened(opening: _Opening, *, dry_run: bool, replay: bool) -> AsyncIterator[Connection]:
    settings, observer, price = opening.settings, opening.observer, opening.price
    async with AsyncExitStack() as stack:
        if dry_run or replay:
            resolved = await resolve_model(settings.model)
            store = stack.enter_context(_store(opening))
            if dry_run:
                yield _counting(resolved, store, opening)
            else:
                replaying = Replay(store, resolved.endpoint, resolved.name)
                named = (resolved.name, resolved.address)
                observed = _ObservedModel(replaying, observer, *named, None)
                yield Connection(observed, resolved.name, store, None, price=price)
            return
        endpoints = opening.endpoints
        if endpoints is None:
            endpoints = await stack.enter_async_context(OpenEndpoints())
        resolved = await endpoints.resolve(settings.model)
        store = stack.enter_context(_store(opening))
        paced = await endpoints.paced(resolved, opening.innermost, store, observer)
        leased = LeasedModel(paced.inner, store, resolved.endpoint, resolved.name)
        paced = replace(paced, inner=leased)
        async with leases_renewed(store):
            budgeted = _budgeted(paced, settings, resolved, store, price, opening.account)
            model = _stored_model(budgeted, paced, resolved, store, observer, price)
            flow = paced.pacer.flow
            observed = _ObservedModel(model, observer, resolved.name, resolved.address, price, flow)
            stop, most = paced.pacer.stop, flow.most_in_flight
            yield Connection(observed, resolved.name, store, None, stop, most, price)


@contextmanager
def _store(opening: _Opening) -> Iterator[CallStore]:
    with closing(CallStore(opening.store_path)) as store:
        _note_damage(store, opening.observer)
        yield store


def _counting(resolved: ResolvedModel, store: CallStore, opening: _Opening) -> Connection:
    counted = (store, resolved.endpoint, resolved.name, opening.price, resolved.settings)
    tally = CountingModel(*counted, opening.collector)
    return Connection(tally, resolved.name, store, tally, price=opening.price)


def _chat_endpoint(endpoint: "OpenAIEndpoint") -> ChatModel:
    return endpoint


@dataclass(frozen=True, slots=True)
class _EmbeddingEndpoint:
    """Asks an endpoint for vectors."""

    endpoint: "OpenAIEndpoint"

    async def ask(self, request: ChatRequest) -> ChatReply:
        return await self.endpoint.embed(request)


def _budgeted(
    paced: PacedModel,
    settings: Settings,
    resolved: ResolvedModel,
    store: CallStore,
    price: Price | None,
    account: BudgetAccount | None,
) -> BudgetedModel:
    def unanswered(request: ChatRequest, error: AttemptError) -> None:
        store.note_unanswered(call_key(resolved.endpoint, resolved.name, request), str(error))

    return BudgetedModel(paced, settings.budget, price, unanswered, account or BudgetAccount())


def _stored_model(
    budgeted: BudgetedModel,
    paced: PacedModel,
    resolved: ResolvedModel,
    store: CallStore,
    observer: Observer,
    price: Price | None,
) -> ChatModel:
    retrying = RetryingModel(
        budgeted, _retry_policy(resolved.settings, paced.pacer.pause), observer
    )
    notify = event_sender(observer, "note")
    return StoredModel(retrying, store, resolved.endpoint, resolved.name, price, notify)


def _retry_policy(model: ModelSettings, pause: Pause = asyncio.sleep) -> RetryPolicy:
    """Return a policy with time for each attempt, and for the wait that the user finds worth it."""
    most_s = model.max_attempts * model.timeout_s + model.max_wait_s
    return RetryPolicy(model.max_attempts, max_s=most_s, pause=pause)


def _note_damage(store: CallStore, observer: Observer) -> None:
    if store.set_aside is not None:
        saved = store.spent().calls
        message = (
            f"the call store was damaged; it is set aside as {store.set_aside}, and "
            f"{saved} replies were saved from it"
        )
        observer(Event("note", message=message))


@dataclass(frozen=True, slots=True)
class _ObservedModel:
    """Sends an event of each call; of embeddings without the texts, which are the corpus.

    Args:
        inner: Asked.
        observer: Told.
        name, endpoint: What the model and its place are called.
        price: For what a call cost; None where unknown.
        flow: For how many calls are in flight; None where none is made.
    """

    inner: ChatModel
    observer: Observer
    name: str
    endpoint: str
    price: Price | None
    flow: Flow | None = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Ask in the event loop that the model was opened in.

        Raises:
            UsageError: This is another one.
        """
        if asyncio.get_running_loop() is not self.loop:
            raise UsageError(
                "this model was opened in another event loop; open one with connect() in each"
            )
        is_chat = request.schema_name != EMBEDDINGS
        labels = {"model": self.name, "endpoint": self.endpoint, "schema": request.schema_name}
        numbers = {
            "temperature": request.temperature,
            "max_output_tokens": float(request.max_output_tokens),
            "seed": float(request.seed),
        }
        if self.flow is not None:
            numbers["in_flight"] = float(self.flow.in_flight)
        turns = tuple((turn.role, turn.content) for turn in request.messages if is_chat)
        try:
            reply = await self.inner.ask(request)
        except CallError as error:
            labels["kind"] = error.kind
            self.observer(Event("call", "", "failed", str(error), numbers, labels, turns))
            raise
        numbers |= self._reply_numbers(reply)
        labels["reply_model"] = reply.model
        labels["reply_id"] = reply.reply_id
        labels["finish_reason"] = reply.finish_reason
        labels["wrapping"] = reply_wrapping(reply.text) if is_chat else ""
        turns = (*turns, ("assistant", reply.text)) if is_chat else ()
        outcome: Literal["cached", "done"] = "cached" if reply.cached else "done"
        self.observer(Event("call", "", outcome, "", numbers, labels, turns))
        return reply

    def _reply_numbers(self, reply: ChatReply) -> dict[str, float]:
        numbers = {"latency_s": reply.latency_s}
        if not reply.usage.estimated:
            numbers["prompt_tokens"] = float(reply.usage.prompt_tokens)
            numbers["completion_tokens"] = float(reply.usage.completion_tokens)
        if self.price is not None and not reply.cached:
            numbers["cost_usd"] = self.price.cost_usd(reply.usage)
        return numbers
