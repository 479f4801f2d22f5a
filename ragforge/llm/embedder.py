"""Embedding texts through an endpoint: every reply is kept before it is used."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import field
from functools import partial
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.config import Settings
from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.files.manifest import Spent
from ragforge.llm.budget import BudgetAccount
from ragforge.llm.chat import DryRunError, Usage
from ragforge.llm.wire import embeddings_request, unpack
from ragforge.observe import Observer

if TYPE_CHECKING:
    from ragforge.llm.connect import Connection

BATCH = 64
"""Texts in one call."""


def _uncounted(cost_usd: float | None) -> None:
    """Do nothing."""


@dataclass(slots=True)
class EndpointEmbedder:
    """Embeds texts through the endpoint's /embeddings, in batches; made by `open_embedder`.

    Nothing is opened before the first texts come.

    Args:
        opening: Opens the model.
        stack: Closes it.
    """

    opening: Callable[[], AbstractAsyncContextManager["Connection"]]
    stack: AsyncExitStack
    _connection: "Connection | None" = field(default=None, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def embed(
        self, texts: Sequence[str], paid: Callable[[float | None], None] = _uncounted
    ) -> list[list[float]]:
        """Return one vector a text, in order.

        Args:
            texts: What to embed.
            paid: Told of each call what it costs, bought now or before; None where unknown.

        Raises:
            ConfigError, DataError: The model or the call store cannot be opened.
            EndpointError: The endpoint cannot be used, or the replies are to come from the store
                and it lacks one.
            CallError: The endpoint refused the texts; or this is a dry run, and they are counted.
            BudgetError: The limit on calls, tokens or money is reached.
        """
        connection = await self._connected()
        vectors: list[list[float]] = []
        not_asked: DryRunError | None = None
        for start in range(0, len(texts), BATCH):
            request = embeddings_request(texts[start : start + BATCH])
            try:
                reply = await connection.model.ask(request)
            except DryRunError as error:
                not_asked = error
                continue
            paid(connection.cost_usd(reply))
            try:
                vectors += unpack(reply.text)
            except ValueError as error:
                raise CallError(
                    "invalid", f"embeddings: the reply holds no vectors: {error}"
                ) from error
        if not_asked is not None:
            raise not_asked
        return vectors

    def for_queries(self) -> "QueryEmbedder":
        """Return what embeds for one retriever and knows the cost of its queries."""
        return QueryEmbedder(self)

    def estimate(self) -> dict[str, object]:
        """Return the calls, tokens and money that a dry run counted; money None where unknown."""
        tally = self._connection.tally if self._connection else None
        if tally is None:
            return {"calls": 0, "cached": 0, "prompt_tokens": 0, "cost_usd": 0.0}
        cost_usd = tally.price.cost_usd(Usage(tally.prompt_tokens)) if tally.price else None
        return {
            "calls": tally.calls,
            "cached": tally.cached,
            "prompt_tokens": tally.prompt_tokens,
            "cost_usd": None if cost_usd is None and tally.calls else cost_usd or 0.0,
        }

    def spent(self) -> Spent | None:
        """Return the tokens and cost of all calls of the store; None where nothing was embedded."""
        return self._connection.store.spent() if self._connection else None

    async def _connected(self) -> "Connection":
        async with self._lock:
            if self._connection is None:
                self._connection = await self.stack.enter_async_context(self.opening())
        return self._connection


@dataclass(slots=True)
class QueryEmbedder:
    """Embeds for one retriever, and knows what that costs for each of its queries.

    Args:
        inner: Embeds, for other retrievers too.
        costs_usd: By query; None where the price is unknown.
    """

    inner: EndpointEmbedder
    costs_usd: dict[str, float | None] = field(default_factory=dict)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order; errors are those of `EndpointEmbedder.embed`."""
        if len(texts) != 1:  # Queries are asked one by one; these are chunks.
            return await self.inner.embed(texts)
        return await self.inner.embed(texts, partial(self.costs_usd.__setitem__, texts[0]))

    def mean_usd(self, queries: Sequence[str]) -> float | None:
        """Return what some queries cost in the mean, in US dollars; None where one is not known."""
        costs = [self.costs_usd.get(query, 0.0) for query in queries]
        known = [cost for cost in costs if cost is not None]
        return fsum(known) / len(costs) if costs and len(known) == len(costs) else None


@asynccontextmanager
async def open_embedder(
    settings: Settings,
    store_path: Path,
    observer: Observer,
    account: BudgetAccount | None = None,
    *,
    dry_run: bool = False,
    replay: bool = False,
) -> AsyncIterator[EndpointEmbedder | None]:
    """Make an embedder; None where the settings name no model for it.

    Args:
        settings: `model` and `budget` are used.
        store_path: The dataset's call store.
        observer: Told of calls, retries and changes of flow.
        account: What is spent of the budget by the command as a whole; one of its own where None.
        dry_run: Count what would be asked instead of asking.
        replay: Answer from the store only.
    """
    if not settings.model.embedding_model:
        yield None
        return
    from ragforge.llm.connect import connect_embeddings

    opening = partial(
        connect_embeddings, settings, store_path, observer, account, dry_run=dry_run, replay=replay
    )
    async with AsyncExitStack() as stack:
        yield EndpointEmbedder(opening, stack)
