"""Models that look into a call store first.

`StoredModel` buys what the store lacks, exactly once, and `LeasedModel` lets go of what another
process took over; `Replay` fails instead; `CountingModel` counts instead, for a dry run.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from typing import Protocol

from ragforge.config import ModelSettings
from ragforge.deferred import dataclass
from ragforge.errors import DataError, EndpointError, LeaseLostError
from ragforge.llm.budget import Price
from ragforge.llm.chat import (
    ChatModel,
    ChatReply,
    ChatRequest,
    DryRunError,
    Usage,
    call_key,
    estimate_tokens,
)
from ragforge.llm.store.calls import CallStore, HeldLease, ReplyAverages
from ragforge.llm.store.leases import RENEWED_EVERY_S

_FIRST_LOOK_S = 0.02
_LONGEST_LOOK_S = 1.0
_EXPECTED_REPLY_TOKENS = 150
"""What a structured reply takes on average where nothing is known yet."""
_REPAIR_FACTOR = 2.0
"""Worst case: every reply needs its repair turn."""


@dataclass(slots=True)
class StoredModel:
    """Asks only what the store does not know; equal questions in flight are asked once.

    That holds among all processes that share the store: who asks first holds a lease, the others
    wait for the reply to appear.

    Args:
        inner: Asked on a miss.
        store: Where replies are kept.
        endpoint, model: What the call keys are bound to.
        price: For the ledger; None where unknown.
        notify: Told once, in a sentence, when another process is waited for.
    """

    inner: ChatModel
    store: CallStore
    endpoint: str
    model: str
    price: Price | None
    notify: Callable[[str], None]
    _in_flight: dict[str, asyncio.Future[ChatReply]] = field(default_factory=dict, init=False)
    _notified: bool = field(default=False, init=False)

    def key(self, request: ChatRequest) -> str:
        """Return the key under which the reply is kept."""
        return call_key(self.endpoint, self.model, request)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer from the store, or ask, store, and then answer."""
        key = self.key(request)
        found = self.store.get(key)
        if found is not None:
            return found
        if key in self._in_flight:
            return await self._wait_for(self._in_flight[key], request)
        future: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        try:
            reply = await self._get(key, request)
        except BaseException as error:
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()
            else:
                future.cancel()
            raise
        finally:
            del self._in_flight[key]
        future.set_result(reply)
        return reply

    async def _get(self, key: str, request: ChatRequest) -> ChatReply:
        """Return the reply that is bought here, or by another process that took the call over."""
        while True:
            found = await self._claim(key)
            if found is not None:
                return found
            with suppress(LeaseLostError):
                return await self._buy(key, request)

    async def _claim(self, key: str) -> ChatReply | None:
        """Return once nobody else is at it; with the reply where another process bought it."""
        look_s = _FIRST_LOOK_S
        while isinstance(claimed := self.store.claim(key), HeldLease):
            if not self._notified:
                self._notified = True
                self.notify(
                    f"process {claimed.pid} is asking some of the same; its replies are shared"
                )
            await asyncio.sleep(look_s)
            look_s = min(_LONGEST_LOOK_S, 1.5 * look_s)
        return claimed

    async def _buy(self, key: str, request: ChatRequest) -> ChatReply:
        try:
            reply = replace(await self.inner.ask(request), key=key)
        except BaseException:
            # Why the call failed matters more; and the lease ends by itself.
            with suppress(DataError):
                self.store.release(key)
            raise
        cost_usd = self.price.cost_usd(reply.usage) if self.price else None
        self.store.put(key, self.endpoint, self.model, reply, cost_usd)
        return reply

    async def _wait_for(self, other: asyncio.Future[ChatReply], request: ChatRequest) -> ChatReply:
        # Not awaited itself: its cancellation, or this task's, must not reach across.
        await asyncio.wait([other])
        if other.cancelled():
            return await self.ask(request)
        return replace(other.result(), cached=True)


@dataclass(frozen=True, slots=True)
class LeasedModel:
    """Sends a call unless another process has taken it over, which comes last before it is sent.

    Args:
        inner: Sends it.
        store: Has the leases.
        endpoint, model: What the call keys are bound to.
    """

    inner: ChatModel
    store: CallStore
    endpoint: str
    model: str

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Raises:
            LeaseLostError: This process stood still, and another one asks.
        """
        if self.store.may_be_late and not self.store.renew_one(
            call_key(self.endpoint, self.model, request)
        ):
            raise LeaseLostError("another process asks the same")
        return await self.inner.ask(request)


@dataclass(frozen=True, slots=True)
class Replay:
    """Answers from a store only: no network, no lease, no cost.

    Args:
        store: Where the replies are.
        endpoint, model: What their keys are bound to.
    """

    store: CallStore
    endpoint: str
    model: str

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer from the store.

        Raises:
            EndpointError: It does not hold the reply.
        """
        key = call_key(self.endpoint, self.model, request)
        reply = self.store.get(key)
        if reply is None:
            raise EndpointError(
                f"--offline-replay: {self.store.path} holds no reply of {self.model!r} at "
                f"{self.endpoint!r} to this question (call key {key[:16]}…)"
            )
        return reply


class Renewable(Protocol):
    """What has leases: a store, for the calls it buys; a worker, for its shard."""

    def renew(self) -> None:
        """Hold them for longer.

        Raises:
            DataError: They cannot be written.
        """
        ...


@asynccontextmanager
async def leases_renewed(store: Renewable, every_s: float = RENEWED_EVERY_S) -> AsyncIterator[None]:
    """Keep the leases of a store alive until the context ends."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(every_s)
            # One that fails is made up for by the next, long before the leases end.
            with suppress(DataError):
                store.renew()

    task = asyncio.create_task(renew())
    try:
        yield
    finally:
        task.cancel()


class Collector(Protocol):
    """Takes the requests that a dry run meets, to have them answered another way."""

    def withholds(self, key: str) -> bool:
        """Whether a call counts as one that was never made, though its reply is stored."""
        ...

    async def take(
        self, model: "CountingModel", key: str, request: ChatRequest
    ) -> ChatReply | None:
        """Return the reply where it is there by now, which is stored; else note the request.

        Raises:
            EndpointError, BudgetError: No reply can be had any more.
        """
        ...


@dataclass(slots=True)
class CountingModel:
    """A model that answers only from the store, and counts calls, tokens and cost.

    Args:
        store: Replies found there cost nothing.
        endpoint, model: What the call keys are bound to.
        price: None where unknown.
        settings: Calls in flight and a minute, for the time it will take.
        collector: Takes each request that the store has no reply to, once.
    """

    store: CallStore
    endpoint: str
    model: str
    price: Price | None
    settings: ModelSettings
    collector: Collector | None = None
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    most_completion_tokens: int = 0
    replies: float = 0.0
    """Calls in units of one with the usual limit on its reply."""
    _asked: set[str] = field(default_factory=set)
    _forgotten: set[str] = field(default_factory=set)

    def key(self, request: ChatRequest) -> str:
        """Return the key under which the reply is kept."""
        return call_key(self.endpoint, self.model, request)

    def forget(self, keys: Iterable[str]) -> None:
        """Count replies as if the store did not have them."""
        self._forgotten.update(keys)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Count a request; equal ones are one call.

        Raises:
            DryRunError: The reply is not in the store.
        """
        key = self.key(request)
        is_withheld = self.collector is not None and self.collector.withholds(key)
        is_withheld = is_withheld or key in self._forgotten
        found = None if is_withheld else self.store.get(key)
        if found is not None:
            self.cached += 1
            return found
        if key not in self._asked:
            self._asked.add(key)
            self.calls += 1
            self.prompt_tokens += estimate_tokens(request)
            self.most_completion_tokens += request.max_output_tokens
            self.replies += request.max_output_tokens / self.settings.max_output_tokens
            if self.collector is not None:
                reply = await self.collector.take(self, key, request)
                if reply is not None:
                    return reply
        raise DryRunError

    def estimate(self) -> dict[str, object]:
        """Return calls, tokens and money as low, expected and high; money None where unknown."""
        averages = self.store.recent_averages(self.endpoint, self.model)
        each = averages.completion_tokens if averages else _EXPECTED_REPLY_TOKENS
        expected = min(int(self.replies * each), self.most_completion_tokens)
        usages = {
            "low": Usage(self.prompt_tokens, expected // 3),
            "expected": Usage(self.prompt_tokens, expected),
            "high": Usage(
                int(self.prompt_tokens * _REPAIR_FACTOR),
                int(self.most_completion_tokens * _REPAIR_FACTOR),
            ),
        }
        return {
            "calls": self.calls,
            "calls_high": int(self.calls * _REPAIR_FACTOR),
            "cached": self.cached,
            "tokens": {
                name: usage.prompt_tokens + usage.completion_tokens
                for name, usage in usages.items()
            },
            "seconds": self._seconds(averages, self.prompt_tokens + expected),
            "cost_usd": {
                name: round(self.price.cost_usd(usage), 6) if self.price else None
                for name, usage in usages.items()
            },
        }

    def _seconds(self, averages: ReplyAverages | None, tokens: int) -> float | None:
        """Return how long the calls should take; None where neither replies nor limits tell."""
        settings = self.settings
        bounds = []
        if averages is not None and averages.latency_s is not None:
            bounds.append(self.calls * averages.latency_s / settings.concurrency)
        if settings.requests_per_minute is not None:
            bounds.append(60 * self.calls / settings.requests_per_minute)
        if settings.tokens_per_minute is not None:
            bounds.append(60 * tokens / settings.tokens_per_minute)
        if not self.calls:
            return 0.0
        return round(max(bounds), 1) if bounds else None
