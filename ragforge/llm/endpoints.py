"""The endpoints that are asked: where a model is, its connections, and what was learnt of it."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragforge.config import ModelSettings
from ragforge.deferred import dataclass
from ragforge.llm.chat import ChatModel
from ragforge.llm.flow.pacer import OPENS_AFTER, Breaker, PacedModel, Pacer
from ragforge.llm.flow.state import Flow
from ragforge.llm.store.calls import CallStore
from ragforge.observe import Event, Observer

if TYPE_CHECKING:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint
    from ragforge.llm.wire import Dialect

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
Innermost = Callable[["OpenAIEndpoint"], ChatModel]
"""Makes the innermost model of an endpoint: its chat, or its embeddings."""


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


@dataclass(frozen=True, slots=True)
class ResolvedModel:
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

    @property
    def who(self) -> EndpointModel:
        """Who is asked."""
        return EndpointModel(self.endpoint, self.name)


async def endpoint_model(settings: ModelSettings) -> EndpointModel:
    """Return who settings name; nothing is asked.

    Raises:
        ConfigError, DataError: As for `connect`.
    """
    return (await resolve_model(settings)).who


async def resolve_model(
    model: ModelSettings, serving: AsyncExitStack | None = None
) -> ResolvedModel:
    """Resolve a model's endpoint; a local one is served until `serving` closes, if it is given.

    Raises:
        ConfigError, DataError, EndpointError: As for `connect`.
    """
    if not model.name.startswith(_LOCAL):
        endpoint = model.address or "openai"
        address = endpoint.rstrip("/")
        return ResolvedModel(model, model.endpoint_id or address, model.name, address)
    from ragforge.llm.local import model_digest, serve

    path = Path(model.name.removeprefix(_LOCAL)).expanduser()
    name = model_digest(path)
    if serving is None:
        return ResolvedModel(model, _SERVED_HERE, name, _SERVED_HERE)
    slots = min(model.concurrency, _LOCAL_SLOTS)
    process = serve(path, parallel=slots, context_tokens=_LOCAL_CONTEXT_TOKENS)
    served = await asyncio.to_thread(serving.enter_context, process)
    changed = {
        "name": served.model,
        "base_url": served.base_url,
        "timeout_s": max(model.timeout_s, _LOCAL_TIMEOUT_S),
    }
    return ResolvedModel(model.model_copy(update=changed), _SERVED_HERE, name, _SERVED_HERE)


@dataclass(slots=True)
class _Endpoint:
    """An endpoint that can be asked.

    Args:
        who: It is.
        store: Told how it wants to be asked.
        dialect: How it wants to be asked; None until it has shown it.
    """

    who: EndpointModel
    store: CallStore
    dialect: "Dialect | None"

    def serve(self, store: CallStore) -> None:
        """Tell another store from now on, and at once what is known."""
        self.store = store
        if self.dialect is not None:
            store.learn(self.who.known_as, self.dialect)

    def learn(self, dialect: "Dialect") -> None:
        """Keep how the endpoint wants to be asked."""
        self.dialect = dialect
        self.store.learn(self.who.known_as, dialect)


class OpenEndpoints(AbstractAsyncContextManager["OpenEndpoints"]):
    """Endpoints that stay open until its end, for one call store after the other.

    Connections stay, and so do the rate that an endpoint was found to take, what its limits left
    of the minute, and a local model that is served.
    """

    def __init__(self) -> None:
        self._closing = AsyncExitStack()
        self._resolved: dict[str, ResolvedModel] = {}
        self._open: dict[tuple[str, Innermost], tuple[_Endpoint, PacedModel]] = {}

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    async def resolve(self, model: ModelSettings) -> ResolvedModel:
        """Resolve a model's endpoint; a local one is served from now on.

        Raises:
            ConfigError, DataError, EndpointError: As for `connect`.
        """
        key = model.model_dump_json()
        if key not in self._resolved:
            self._resolved[key] = await resolve_model(model, self._closing)
        return self._resolved[key]

    async def paced(
        self, resolved: ResolvedModel, innermost: Innermost, store: CallStore, observer: Observer
    ) -> PacedModel:
        """Return what asks an endpoint at the pace that it takes.

        Args:
            resolved: Who is asked, and where.
            innermost: What is asked of it.
            store: Told how it wants to be asked.
            observer: Told of changes of flow; the one that it is opened with is, until the end.

        Raises:
            ConfigError: As for `connect`.
        """
        key = resolved.settings.model_dump_json(), innermost
        if key in self._open:
            endpoint, paced = self._open[key]
            endpoint.serve(store)
        else:
            self._open[key] = _, paced = self._opened(resolved, innermost, store, observer)
        return paced

    def _opened(
        self, resolved: ResolvedModel, innermost: Innermost, store: CallStore, observer: Observer
    ) -> tuple[_Endpoint, PacedModel]:
        from ragforge.llm.openai_endpoint import OpenAIEndpoint

        settings = within_file_limit(resolved.settings, observer)
        pacer = _pacer(settings, observer)
        self._closing.callback(pacer.close)
        endpoint = _Endpoint(resolved.who, store, store.dialect(resolved.who.known_as))
        asked = OpenAIEndpoint(
            settings,
            dialect=endpoint.dialect,
            on_dialect=endpoint.learn,
            on_limits=pacer.apply_limits,
            bounded=resolved.local,
        )
        self._closing.push_async_callback(asked.close)
        return endpoint, PacedModel(innermost(asked), pacer)


def _pacer(settings: ModelSettings, observer: Observer) -> Pacer:
    flow = Flow(
        settings.concurrency,
        asyncio.get_running_loop().time(),
        settings.requests_per_minute,
        settings.tokens_per_minute,
    )
    # With few calls in flight, they would use up their attempts before anybody called it down.
    breaker = Breaker(min(OPENS_AFTER, max(3, settings.concurrency)))
    return Pacer(flow, settings.max_wait_s, event_sender(observer, "flow"), breaker)


def event_sender(observer: Observer, name: Literal["note", "flow"]) -> Callable[[str], None]:
    """Return what sends a message to an observer."""
    return lambda message: observer(Event(name, message=message))


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
