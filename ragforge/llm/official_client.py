"""The one module that names `openai`: the official client of an endpoint.

The client's own retries are off: every attempt is counted, limited and paced by the layers above.

Its pool of connections is searched at each request, so that a call costs five times as much with
1,024 connections as with 64. Calls are spread over several clients of 64 connections.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import httpx2
import openai

from ragforge.config import ModelSettings
from ragforge.http_service import ACCEPTED, LARGE_AT_ONCE, Body, BodyError, Reply
from ragforge.llm.transport import (
    CONNECT_TIMEOUT_S,
    KEEP_ALIVE_S,
    RefusedError,
    ReplyBrokenOffError,
    UnreadableReplyError,
    most_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openai.types import Batch as Batch

T = TypeVar("T")
Client: TypeAlias = openai.AsyncOpenAI
"""The official client, for those who may not name it."""
_CONNECTIONS = 64
"""Of one client."""
_HEADERS = {"Content-Type": "application/json"}


class OfficialClients:
    """One or more official clients of one address and key, used in turn.

    Args:
        settings: Address, concurrency, proxy and time limits.
        key: The API key, "" where the endpoint needs none.
    """

    def __init__(self, settings: ModelSettings, key: str) -> None:
        count = -(-settings.concurrency // _CONNECTIONS)
        # What checks certificates takes longer to read than all else.
        tls = httpx2.create_ssl_context()
        room = asyncio.Semaphore(LARGE_AT_ONCE)
        hooks: dict[str, list[Callable[..., Any]]] = {"response": [partial(_bound, room=room)]}
        made = partial(openai.DefaultAsyncHttpxClient, verify=tls, event_hooks=hooks)
        connections = -(-settings.concurrency // count)
        self._clients = [_client(settings, key, made, connections) for _ in range(count)]
        self._turn = 0

    async def post(self, path: str, content: bytes) -> Reply:
        """Send a request; see `Transport`."""
        try:
            return await self._next().post(path, content)
        except RefusedError as error:
            return error.reply

    async def call(self, make: Callable[[openai.AsyncOpenAI], Awaitable[T]]) -> T:
        """Make one call of the official client.

        Raises:
            RefusedError: The endpoint refused it.
            ConnectionError, BodyError, UnreadableReplyError: As for `Transport`.
        """
        with _known_errors():
            return await make(self._next().official)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.official.close()

    def _next(self) -> "_Client":
        self._turn = (self._turn + 1) % len(self._clients)
        return self._clients[self._turn]


class _Client:
    """The official client and the one beneath it.

    The official one takes more of the processor's time for a request than sending it does. So it
    makes the first one to each path, and the others are like that one but for what they say.

    Args:
        official: Sends by means of `http`.
        http: Does not follow redirects.
    """

    def __init__(self, official: openai.AsyncOpenAI, http: httpx2.AsyncClient) -> None:
        self.official = official
        self._http = http
        self._taken: dict[str, httpx2.Request] = {}
        own = official.default_headers.items()
        cookies = [value for name, value in own if name.lower() == "cookie"]
        self._own_cookie = next((value for value in cookies if isinstance(value, str)), "")

    async def post(self, path: str, content: bytes) -> Reply:
        """Send a request; a refusal of the first one is raised."""
        if self._http.cookies:
            _drop_unsendable(self._http.cookies)
        with _known_errors():
            first = self._taken.get(path)
            if first is not None:
                return _reply(await self._http.send(self._like(first, content)))
            response: httpx2.Response = await self.official.post(
                path, cast_to=httpx2.Response, content=content, options={"headers": _HEADERS}
            )
        headers = response.request.headers
        for name in ("Content-Length", "Cookie"):
            headers.pop(name, None)
        if self._own_cookie:
            headers["Cookie"] = self._own_cookie
        self._taken[path] = response.request
        return _reply(response)

    def _like(self, first: httpx2.Request, content: bytes) -> httpx2.Request:
        return httpx2.Request(
            first.method,
            first.url,
            headers=first.headers,
            cookies=self._http.cookies,
            content=content,
            extensions=first.extensions,
        )


def _drop_unsendable(cookies: httpx2.Cookies) -> None:
    """Forget cookies that no header can hold; with one of them, no request would be made."""
    for cookie in list(cookies.jar):
        if not f"{cookie.name}{cookie.value}".isascii():
            cookies.delete(cookie.name, cookie.domain, cookie.path)


@contextmanager
def _known_errors() -> "Iterator[None]":
    """Raise what the module's callers know in place of the clients' own errors."""
    try:
        yield
    except openai.APIStatusError as error:
        raise RefusedError(_reply(error.response)) from error
    except (openai.APIConnectionError, httpx2.RequestError) as error:
        raise ConnectionError(str(error)) from error
    except openai.APIError as error:
        raise UnreadableReplyError(error.message) from error
    except Exception as error:
        # The end of a stream that TLS did not expect is let through.
        if type(error).__module__.partition(".")[0] not in ("ssl", "anyio"):
            raise
        raise ConnectionError(str(error)) from error


def _reply(response: httpx2.Response) -> Reply:
    headers = response.headers
    return Reply(response.status_code, headers.get("location", ""), response.content, headers)


def _client(
    settings: ModelSettings,
    key: str,
    made: Callable[..., httpx2.AsyncClient],
    connections: int,
) -> _Client:
    limits = httpx2.Limits(
        max_connections=connections + 8,
        max_keepalive_connections=connections + 8,
        keepalive_expiry=KEEP_ALIVE_S,
    )
    http = made(
        # Followed, a redirect would take the texts to a server that the user did not name.
        follow_redirects=False,
        limits=limits,
        headers={"Accept-Encoding": ACCEPTED},
        trust_env=settings.proxy == "environment",
        proxy=None if settings.proxy in ("none", "environment") else settings.proxy,
    )
    official = openai.AsyncOpenAI(
        api_key=key or "none",
        base_url=settings.address or None,
        max_retries=0,
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
        http_client=http,
    )
    return _Client(official, http)


async def _bound(response: httpx2.Response, room: asyncio.Semaphore) -> None:
    """Put a counting stream in place of a reply's."""
    body = Body(
        response.headers.get("content-encoding", ""),
        response.headers.get("content-length", ""),
        most_bytes(response.request.url.path),
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
        try:
            async for piece in self._inner:
                for part in self._body.unpacked(piece):
                    yield part
                    if self._body.is_large and not self._inside:
                        await self._room.acquire()
                        self._inside = True
        except BodyError:
            raise
        except Exception as error:
            # Of several packages: TLS that ends unexpectedly is let through as it is.
            raise ReplyBrokenOffError(str(error)) from error

    async def aclose(self) -> None:
        if self._inside:
            self._inside = False
            self._room.release()
        await self._inner.aclose()
