"""The official client, set up so that it never is what limits a run.

Its pool of connections is searched at each request, so that a call costs five times as much with
1,024 connections as with 64. With aiohttp installed (extra `fast`), its transport is used, which
does not do that; without it, calls are spread over several clients of 64 connections.
"""

import asyncio
import importlib.util
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial

import httpx2
import openai

from ragforge.config import ModelSettings
from ragforge.foreign.bodies import (
    ACCEPTED,
    LARGE_AT_ONCE,
    MAX_REPLY_BYTES,
    MAX_VECTORS_BYTES,
    Body,
)

EMBEDDINGS_PATH = "/embeddings"

CONNECT_TIMEOUT_S = 30.0
"""A busy event loop fails shorter ones although the endpoint is well."""

SHARD = 64
"""Connections of one client."""

_KEEP_ALIVE_S = 75.0
"""By default, a pause of five seconds would open every connection anew."""


class Clients:
    """One or more official clients of one address and key, used in turn.

    Args:
        settings: Address, concurrency, transport, proxy and time limits.
        key: The API key, "" where the endpoint needs none.
    """

    def __init__(self, settings: ModelSettings, key: str) -> None:
        fast = _is_fast(settings)
        shards = 1 if fast else -(-settings.concurrency // SHARD)
        made = _aiohttp_client if fast else _httpx2_client
        # Reading the certificates of the system takes longer than all else.
        tls = httpx2.create_ssl_context() if _needs_tls(settings) else ssl.create_default_context()
        bound = partial(_bound, room=asyncio.Semaphore(LARGE_AT_ONCE))
        self._clients = [
            _client(
                settings,
                key,
                partial(made, verify=tls, event_hooks={"response": [bound]}),
                -(-settings.concurrency // shards),
            )
            for _ in range(shards)
        ]
        self._turn = 0

    @property
    def address(self) -> str:
        """The endpoint's address."""
        return str(self._clients[0].base_url)

    def next(self) -> openai.AsyncOpenAI:
        """Return the client whose turn it is."""
        if len(self._clients) == 1:
            return self._clients[0]
        self._turn = (self._turn + 1) % len(self._clients)
        return self._clients[self._turn]

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.close()


def _client(
    settings: ModelSettings,
    key: str,
    made: Callable[..., httpx2.AsyncClient],
    connections: int,
) -> openai.AsyncOpenAI:
    limits = httpx2.Limits(
        max_connections=connections + 8,
        max_keepalive_connections=connections + 8,
        keepalive_expiry=_KEEP_ALIVE_S,
    )
    return openai.AsyncOpenAI(
        api_key=key or "none",
        base_url=settings.base_url or None,
        max_retries=0,
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
        # Followed, a redirect would take the texts to a server that the user did not name.
        http_client=made(
            follow_redirects=False,
            limits=limits,
            headers={"Accept-Encoding": ACCEPTED},
            trust_env=settings.proxy == "environment",
            proxy=None if settings.proxy in ("none", "environment") else settings.proxy,
        ),
    )


async def _bound(response: httpx2.Response, room: asyncio.Semaphore) -> None:
    """Put a counting stream in place of a reply's; both transports come through here."""
    vectors = response.request.url.path.endswith(EMBEDDINGS_PATH)
    body = Body(
        response.headers.get("content-encoding", ""),
        response.headers.get("content-length", ""),
        MAX_VECTORS_BYTES if vectors else MAX_REPLY_BYTES,
    )
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Counted(response.stream, body, room)
    # It comes out of the stream unpacked.
    response.headers.pop("content-encoding", None)


class _Counted(httpx2.AsyncByteStream):
    """A body unpacked and counted while it comes in; a large one waits for room."""

    def __init__(self, inner: httpx2.AsyncByteStream, body: Body, room: asyncio.Semaphore) -> None:
        self._inner = inner
        self._body = body
        self._room = room
        self._inside = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            for part in self._body.unpacked(piece):
                yield part
                if self._body.is_large and not self._inside:
                    await self._room.acquire()
                    self._inside = True

    async def aclose(self) -> None:
        if self._inside:
            self._inside = False
            self._room.release()
        await self._inner.aclose()


def _httpx2_client(**fields: object) -> httpx2.AsyncClient:
    return openai.DefaultAsyncHttpxClient(**fields)  # type: ignore[arg-type]  # passed on as given


def _aiohttp_client(**fields: object) -> httpx2.AsyncClient:
    return openai.DefaultAioHttpClient(**fields)  # type: ignore[arg-type]  # passed on as given


def _is_fast(settings: ModelSettings) -> bool:
    if settings.transport != "auto":
        return settings.transport == "aiohttp"
    # Its way of passing proxies on is its own; the plain one is the client's.
    return settings.proxy == "none" and importlib.util.find_spec("aiohttp") is not None


def _needs_tls(settings: ModelSettings) -> bool:
    return not settings.base_url.startswith("http://")
