"""Connecting a model: observer > store > retries > budget > pacer > endpoint."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragforge.config import BudgetSettings, ModelSettings, Settings
from ragforge.deferred import dataclass
from ragforge.errors import CallError, ConfigError, UsageError
from ragforge.llm.budget import BudgetAccount, BudgetedModel, Price, find_price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, call_key
from ragforge.llm.flow.pacer import OPENS_AFTER, Breaker, PacedModel, Pacer
from ragforge.llm.flow.state import Flow
from ragforge.llm.retries import AttemptError, Pause, RetryingModel, RetryPolicy
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.models import Collector, CountingModel, Replay, StoredModel, leases_renewed
from ragforge.llm.structured import reply_wrapping
from ragforge.llm.wire import EMBEDDINGS
from ragforge.observe import Event, Observer

if TYPE_CHECKING:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint

_LOCAL = "local:"
_LOCAL_CONTEXT_TOKENS = 8192
"""Context of one slot of a model served from a file; its own limit where that is lower."""
_LOCAL_SLOTS = 4
"""Requests such a model works on at once, at most; memory grows with them, speed hardly."""
_LOCAL_TIMEOUT_S = 1800.0
"""Least time limit for one attempt: a slow machine is no reason to ask the same again."""
_SERVED_HERE = "local"
"""The endpoint of models that ragforge itself serves."""
_KEPT_FREE = 48
"""For files, the store, the terminal and whatever else a run opens."""
_Innermost = Callable[["OpenAIEndpoint"], ChatModel]
"""Makes the innermost model of an endpoint: its chat, or its embeddings."""


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


@dataclass(frozen=True, slots=True)
class _ResolvedModel:
    """A model's settings, with its endpoint and name in keys and provenance.

    Args:
        settings: For its client.
        endpoint: Who answers: the user's name for the endpoint, else its address.
        name: The model.
        address: Where it is asked.
    """

    settings: ModelSettings
    endpoint: str
    name: str
    address: str

    @property
    def local(self) -> bool:
        """Whether it is a file that ragforge itself serves."""
        return self.address == _SERVED_HERE


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

    Raises:
        ConfigError: No key, unknown price under a limit in dollars, or a missing extra.
        DataError: The store or the model file cannot be opened.
        EndpointError: A local model does not start.
    """
    price = find_price(settings.model.name, settings.model.address, settings.budget)
    opening = _Opening(settings, store_path, observer, account, price, _chat_endpoint, collector)
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
    with ExitStack() as stack:
        resolved = await _resolve_model(settings, stack, start=False)
    return call_key(resolved.endpoint, resolved.name, request)


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """Who is asked, as call keys and the store name it.

    Args:
        endpoint: The user's name for the endpoint, else its address.
        name: The model.
    """

    endpoint: str
    name: str

    @property
    def known_as(self) -> str:
        """What its dialect is kept under."""
        return f"{self.endpoint} {self.name}"


async def endpoint_model(settings: ModelSettings) -> EndpointModel:
    """Return who settings name; nothing is asked.

    Raises:
        ConfigError, DataError: As for `connect`.
    """
    with ExitStack() as stack:
        resolved = await _resolve_model(settings, stack, start=False)
    return EndpointModel(resolved.endpoint, resolved.name)


async def _resolve_model(model: ModelSettings, stack: ExitStack, *, start: bool) -> _ResolvedModel:
    """Resolve a model's endpoint; a local one is served until the stack closes, if `start`.

    Raises:
        ConfigError, DataError, EndpointError: As for `connect`.
    """
    if not model.name.startswith(_LOCAL):
        endpoint = model.address or "openai"
        address = endpoint.rstrip("/")
        return _ResolvedModel(model, model.endpoint_id or address, model.name, address)
    from ragforge.llm.local import model_digest, serve

    path = Path(model.name.removeprefix(_LOCAL)).expanduser()
    name = model_digest(path)
    if not start:
        return _ResolvedModel(model, _SERVED_HERE, name, _SERVED_HERE)
    slots = min(model.concurrency, _LOCAL_SLOTS)
    serving = serve(path, parallel=slots, context_tokens=_LOCAL_CONTEXT_TOKENS)
    served = await asyncio.to_thread(stack.enter_context, serving)
    changed = {
        "name": served.model,
        "base_url": served.base_url,
        "timeout_s": max(model.timeout_s, _LOCAL_TIMEOUT_S),
    }
    return _ResolvedModel(model.model_copy(update=changed), _SERVED_HERE, name, _SERVED_HERE)


def within_file_limit(model: ModelSettings, observer: Observer) -> ModelSettings:
    """Return settings whose calls in flight the process has descriptors for.

    The process's own limit is raised where it may be.

    Args:
        model: As the user wants it.
        observer: Told where fewer calls than wanted can be in flight.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return model
    wanted = model.concurrency + _KEPT_FREE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return model
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed >= wanted:
        return model
    fits = max(1, allowed - _KEPT_FREE)
    observer(
        Event(
            "note",
            message=f"--concurrency {model.concurrency} needs more open files than this process "
            f"may have ({allowed}); {fits} calls at once instead",
        )
    )
    return model.model_copy(update={"concurrency": fits})


@dataclass(frozen=True, slots=True)
class _Opening:
    """The arguments that chat and embedding models are opened with."""

    settings: Settings
    store_path: Path
    observer: Observer
    account: BudgetAccount | None
    price: Price | None
    innermost: _Innermost
    collector: Collector | None = None


@asynccontextmanager
async def _opened(opening: _Opening, *, dry_run: bool, replay: bool) -> AsyncIterator[Connection]:
    settings, observer, price = opening.settings, opening.observer, opening.price
    with ExitStack() as stack:
        resolved = await _resolve_model(settings.model, stack, start=not (dry_run or replay))
        store = stack.enter_context(closing(CallStore(opening.store_path)))
        _note_damage(store, observer)
        if dry_run:
            counted = (store, resolved.endpoint, resolved.name, price, resolved.settings)
            tally = CountingModel(*counted, opening.collector)
            yield Connection(tally, resolved.name, store, tally, price=price)
            return
        if replay:
            replaying = Replay(store, resolved.endpoint, resolved.name)
            observed = _ObservedModel(replaying, observer, resolved.name, resolved.address, None)
            yield Connection(observed, resolved.name, store, None, price=price)
            return
        async with (
            _paced_endpoint(resolved, store, observer, opening.innermost) as paced,
            leases_renewed(store),
        ):
            budgeted = _budgeted(paced, settings, resolved, store, price, opening.account)
            model = _stored_model(budgeted, paced, resolved, store, observer, price)
            flow = paced.pacer.flow
            observed = _ObservedModel(model, observer, resolved.name, resolved.address, price, flow)
            pacer = paced.pacer
            most = pacer.flow.most_in_flight
            yield Connection(observed, resolved.name, store, None, pacer.stop, most, price)


def _chat_endpoint(endpoint: "OpenAIEndpoint") -> ChatModel:
    return endpoint


@dataclass(frozen=True, slots=True)
class _EmbeddingEndpoint:
    """Asks an endpoint for vectors."""

    endpoint: "OpenAIEndpoint"

    async def ask(self, request: ChatRequest) -> ChatReply:
        return await self.endpoint.embed(request)


@asynccontextmanager
async def _paced_endpoint(
    resolved: _ResolvedModel, store: CallStore, observer: Observer, innermost: _Innermost
) -> AsyncIterator[PacedModel]:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint

    known_as = EndpointModel(resolved.endpoint, resolved.name).known_as
    settings = within_file_limit(resolved.settings, observer)
    flow = Flow(
        settings.concurrency,
        asyncio.get_running_loop().time(),
        settings.requests_per_minute,
        settings.tokens_per_minute,
    )
    # With few calls in flight, they would use up their attempts before anybody called it down.
    breaker = Breaker(min(OPENS_AFTER, max(3, settings.concurrency)))
    pacer = Pacer(flow, settings.max_wait_s, _event_sender(observer, "flow"), breaker)
    paced = OpenAIEndpoint(
        settings,
        dialect=store.dialect(known_as),
        on_dialect=lambda dialect: store.learn(known_as, dialect),
        on_limits=pacer.apply_limits,
        bounded=resolved.local,
    )
    try:
        yield PacedModel(innermost(paced), pacer)
    finally:
        pacer.close()
        await paced.close()


def _budgeted(
    paced: PacedModel,
    settings: Settings,
    resolved: _ResolvedModel,
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
    resolved: _ResolvedModel,
    store: CallStore,
    observer: Observer,
    price: Price | None,
) -> ChatModel:
    retrying = RetryingModel(
        budgeted, _retry_policy(resolved.settings, paced.pacer.pause), observer
    )
    notify = _event_sender(observer, "note")
    return StoredModel(retrying, store, resolved.endpoint, resolved.name, price, notify)


def _retry_policy(model: ModelSettings, pause: Pause = asyncio.sleep) -> RetryPolicy:
    """Return a policy with time for each attempt, and for the wait that the user finds worth it."""
    most_s = model.max_attempts * model.timeout_s + model.max_wait_s
    return RetryPolicy(model.max_attempts, max_s=most_s, pause=pause)


def _event_sender(observer: Observer, name: Literal["note", "flow"]) -> Callable[[str], None]:
    return lambda message: observer(Event(name, message=message))


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
