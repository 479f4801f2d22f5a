"""The one module that names `openai`: single attempts at an OpenAI-compatible endpoint, classified.

The client's own retries are off: every attempt is counted, limited and paced by the layers above.

The client must never be what limits a run. Its pool of connections is searched at each request, so
that a call costs five times as much with 1,024 connections as with 64. With aiohttp installed
(extra `fast`), that is used, which does not do so; without it, calls are spread over several
clients of 64 connections.
"""

import asyncio
import importlib.util
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import httpx2
import openai

from ragforge.config import ModelSettings
from ragforge.deferred import dataclass
from ragforge.errors import CallError, ConfigError, EndpointError
from ragforge.http_service import (
    ACCEPTED,
    LARGE_AT_ONCE,
    MAX_FILE_BYTES,
    MAX_REPLY_BYTES,
    MAX_VECTORS_BYTES,
    Body,
    BodyError,
    Reply,
    read_json,
)
from ragforge.llm.api_key import Secret
from ragforge.llm.chat import ChatReply, ChatRequest
from ragforge.llm.retries import ENDS_RUN, AttemptError, classify_status
from ragforge.llm.wire import (
    Dialect,
    RateLimits,
    dumps,
    milder_dialect,
    read_embeddings,
    read_rate_limits,
    read_reply,
    read_usage,
    request_body,
    retry_after_s,
)

if TYPE_CHECKING:
    from openai.types import Batch as Batch

    from ragforge.llm.aiohttp_client import AiohttpClient

T = TypeVar("T")
Client: TypeAlias = openai.AsyncOpenAI
"""The official client, for those who may not name it."""
_EMBEDDINGS_PATH = "/embeddings"
_MOST_BYTES = {_EMBEDDINGS_PATH: MAX_VECTORS_BYTES, "/content": MAX_FILE_BYTES}
"""By the end of a path."""
_CONNECT_TIMEOUT_S = 30.0
"""A busy event loop fails shorter ones although the endpoint is well."""
_SHARD = 64
"""Connections of one client."""
_KEEP_ALIVE_S = 75.0
"""By default, a pause of five seconds would open every connection anew."""
_CUT = re.compile("without sending complete message body|incomplete chunked read")
_HEADERS = {"Content-Type": "application/json"}


class _Clients:
    """One or more official clients of one address and key, used in turn.

    Args:
        settings: Address, concurrency, transport, proxy and time limits.
        key: The API key, "" where the endpoint needs none.
    """

    def __init__(self, settings: ModelSettings, key: str) -> None:
        fast = _is_fast(settings)
        shards = 1 if fast else -(-settings.concurrency // _SHARD)
        made = _aiohttp_client if fast else _httpx2_client
        tls = _tls(is_needed=_needs_tls(settings))
        room = asyncio.Semaphore(LARGE_AT_ONCE)
        hooks = {"response": [partial(_bound, room=room)]}
        later = _later(settings, tls, room) if fast and settings.proxy == "none" else None
        self._clients = [
            _client(
                settings,
                key,
                partial(made, verify=tls, event_hooks=hooks),
                -(-settings.concurrency // shards),
                later,
            )
            for _ in range(shards)
        ]
        self._turn = 0
        self.address = str(self._clients[0].official.base_url)
        """The endpoint's address."""

    def next(self) -> "_Client":
        """Return the client whose turn it is."""
        if len(self._clients) == 1:
            return self._clients[0]
        self._turn = (self._turn + 1) % len(self._clients)
        return self._clients[self._turn]

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.close()


class _Client:
    """The official client and the ones beneath it.

    The official one takes more of the processor's time for a request than sending it does, and so
    does httpx2 beside aiohttp. So it makes the first one to each path, and the others are like that
    one but for what they say.

    Args:
        official: Sends by means of `http`.
        http: Does not follow redirects.
        later: Sends what is like an earlier request; None where `http` does.
    """

    def __init__(
        self,
        official: openai.AsyncOpenAI,
        http: httpx2.AsyncClient,
        later: "AiohttpClient | None",
    ) -> None:
        self.official = official
        self._http = http
        self._later = later
        self._taken: dict[str, httpx2.Request] = {}

    async def post(self, path: str, content: bytes) -> Reply:
        """Send JSON, and return a reply that says it went well.

        Raises:
            openai.APIError: It did not, as of the official client.
        """
        first = self._taken.get(path)
        if first is None:
            response: httpx2.Response = await self.official.post(
                path, cast_to=httpx2.Response, content=content, options={"headers": _HEADERS}
            )
            for name in ("Content-Length", "Cookie"):
                response.request.headers.pop(name, None)
            self._taken[path] = response.request
            return _reply(response)
        try:
            reply = await self._send_like(first, content)
        except Exception as error:
            # Both let through the end of a stream which TLS did not expect.
            is_unmapped = type(error).__module__.partition(".")[0] in ("ssl", "anyio")
            if not isinstance(error, httpx2.RequestError | ConnectionError) and not is_unmapped:
                raise
            raise openai.APIConnectionError(request=first) from error
        if not 200 <= reply.status < 300:
            response = _response(reply, first)
            raise openai.APIStatusError(
                f"HTTP {reply.status}", response=response, body=_parsed(response)
            )
        return reply

    async def close(self) -> None:
        """Close the connections."""
        await self.official.close()
        if self._later is not None:
            await self._later.close()

    async def _send_like(self, first: httpx2.Request, content: bytes) -> Reply:
        cookies = self._http.cookies
        request = first
        if cookies or self._later is None:
            request = httpx2.Request(
                first.method,
                first.url,
                headers=first.headers,
                cookies=cookies,
                content=content,
                extensions=first.extensions,
            )
        if self._later is None:
            return _reply(await self._http.send(request))
        most = _most_bytes(first.url.path)
        reply = await self._later.post(str(first.url), request.headers, content, most)
        if "set-cookie" in reply.headers:
            cookies.extract_cookies(_response(reply, first))
        return reply


def _reply(response: httpx2.Response) -> Reply:
    headers = response.headers
    return Reply(response.status_code, headers.get("location", ""), response.content, headers)


def _response(reply: Reply, request: httpx2.Request) -> httpx2.Response:
    headers = httpx2.Headers(reply.headers)
    # The body is unpacked.
    headers.pop("content-encoding", None)
    return httpx2.Response(reply.status, headers=headers, content=reply.body, request=request)


def _parsed(response: httpx2.Response) -> object:
    """Return the JSON of a reply; None where it has none."""
    try:
        return read_json(response.text)
    except ValueError:
        return None


def _client(
    settings: ModelSettings,
    key: str,
    made: Callable[..., httpx2.AsyncClient],
    connections: int,
    later: "AiohttpClient | None",
) -> _Client:
    limits = httpx2.Limits(
        max_connections=connections + 8,
        max_keepalive_connections=connections + 8,
        keepalive_expiry=_KEEP_ALIVE_S,
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
        base_url=settings.base_url or None,
        max_retries=0,
        timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
        http_client=http,
    )
    return _Client(official, http, later)


def _later(
    settings: ModelSettings, tls: ssl.SSLContext, room: asyncio.Semaphore
) -> "AiohttpClient":
    from ragforge.llm.aiohttp_client import AiohttpClient

    return AiohttpClient(
        connections=settings.concurrency + 8,
        connect_s=_CONNECT_TIMEOUT_S,
        keep_alive_s=_KEEP_ALIVE_S,
        tls=tls,
        room=room,
    )


async def _bound(response: httpx2.Response, room: asyncio.Semaphore) -> None:
    """Put a counting stream in place of a reply's; both transports come through here."""
    body = Body(
        response.headers.get("content-encoding", ""),
        response.headers.get("content-length", ""),
        _most_bytes(response.request.url.path),
    )
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Counted(response.stream, body, room)
    # It comes out of the stream unpacked.
    response.headers.pop("content-encoding", None)


def _most_bytes(path: str) -> int:
    return next((most for end, most in _MOST_BYTES.items() if path.endswith(end)), MAX_REPLY_BYTES)


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


@cache
def _tls(*, is_needed: bool) -> ssl.SSLContext:
    """Return what checks certificates: reading those of the system takes longer than all else."""
    return httpx2.create_ssl_context() if is_needed else ssl.create_default_context()


def _needs_tls(settings: ModelSettings) -> bool:
    return not settings.base_url.startswith("http://")


@dataclass(frozen=True, slots=True)
class _Explanation:
    """The endpoint's own words for a refusal; "" where it has none."""

    code: str
    param: str
    message: str


def _explanation(error: openai.APIStatusError) -> _Explanation:
    """Return the endpoint's words in a reply whose status is no success."""
    if error.response.has_redirect_location:
        where = error.response.headers["location"]
        return _Explanation("", "", f"redirects to {where!r}; see --base-url")
    body: Mapping[str, Any] = error.body if isinstance(error.body, Mapping) else {}
    if isinstance(body.get("error"), Mapping):
        body = body["error"]
    message = body.get("message") or error.response.text or error.response.reason_phrase
    code = body.get("code") or body.get("type") or ""
    return _Explanation(str(code), str(body.get("param") or ""), str(message))


def _reply_begun(error: BaseException) -> bool:
    """Return whether a connection broke while a reply was under way, so that it may be billed.

    One that did not come about, or was reset before anything came back, is not.
    """
    return any(
        type(cause).__name__ == "ClientPayloadError" or _CUT.search(str(cause))
        for cause in _causes(error)
    )


def _root_cause(error: BaseException) -> BaseException:
    """Return the root cause of an error."""
    *_, last = _causes(error)
    return last


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        implied = None if cause.__suppress_context__ else cause.__context__
        cause = cause.__cause__ or implied


class OpenAIEndpoint:
    """One endpoint and model.

    Args:
        settings: Name, address and limits; the key is read from the variable they name.
        dialect: What is known of how it wants to be asked.
        on_dialect: Told once, unless what was known before still holds.
        on_limits: Told of the limits that replies carry.
        bounded: Whether limits on the length of strings stay in the schema (local grammars need
            them to stop a rambling model; hosted strict modes refuse them).

    Raises:
        ConfigError: No key is set for an endpoint that needs one.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        dialect: Dialect | None = None,
        on_dialect: Callable[[Dialect], None] | None = None,
        on_limits: Callable[[RateLimits], None] | None = None,
        bounded: bool = False,
    ) -> None:
        key = os.environ.get(settings.api_key_env, "")
        if not key and not settings.base_url:
            raise ConfigError(
                f"model {settings.name!r}: the environment variable {settings.api_key_env} holds "
                "no key; set it, or name another endpoint with --base-url, or use --model offline"
            )
        if not all("!" <= character <= "~" for character in key):
            raise ConfigError(
                f"the environment variable {settings.api_key_env} holds a key with a blank, a line "
                "break or another character that no key has"
            )
        self._settings = settings
        self._secret = Secret(key)
        self._dialect = dialect or Dialect()
        self._remembered = dialect
        self._proven = False
        self._on_dialect = on_dialect
        self._on_limits = on_limits
        self._bounded = bounded
        self._over: EndpointError | None = None
        self._first = asyncio.Lock()
        self._alone = True
        self._clients = _Clients(settings, key)

    @property
    def address(self) -> str:
        """The endpoint's address."""
        return self._clients.address

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Make one attempt; the first one of all goes alone, to learn or confirm the dialect.

        Raises:
            AttemptError: The attempt may be repeated.
            CallError: The request was refused for what it holds.
            EndpointError: Every request would be refused.
        """
        if self._goes_alone():
            async with self._first:
                # Those that waited go on at once when the first one hung.
                if self._goes_alone():
                    return await self._or_end(self._probe(request))
        if not self._proven:
            return await self._or_end(self._probe(request))
        return await self._or_end(self._attempt(request, self._dialect))

    def _goes_alone(self) -> bool:
        return self._alone and not self._proven

    async def _or_end(self, attempt: Coroutine[None, None, ChatReply]) -> ChatReply:
        """Make an attempt, unless one before was told that none can succeed."""
        if self._over is not None:
            attempt.close()
            raise self._over
        try:
            return await attempt
        except EndpointError as error:
            self._over = error
            raise

    async def embed(self, request: ChatRequest) -> ChatReply:
        """Make one attempt to have texts embedded; see `embeddings_request`.

        Raises:
            AttemptError, CallError, EndpointError: As for `ask`.
        """
        return await self._or_end(self._embed(request))

    async def _embed(self, request: ChatRequest) -> ChatReply:
        asked = {
            "model": self._settings.embedding_model,
            "input": [turn.content for turn in request.messages],
            "encoding_format": "float",
        }
        started = time.monotonic()
        raw = await self._send(_EMBEDDINGS_PATH, dumps(asked), None)
        latency_s = time.monotonic() - started
        body = self._json_body(raw)
        try:
            reply = read_embeddings(body, request, latency_s)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            lack = self._secret.line(str(error))
            raise self._useless(f"embeddings reply lacks {lack}", raw, body) from error
        return replace(reply, model=self._secret.mask(reply.model))

    def body(self, request: ChatRequest) -> bytes:
        """Return the body that a request is sent as, in the dialect that is known."""
        return request_body(self._settings.name, request, self._dialect, bounded=self._bounded)

    def read(self, body: dict[str, Any], request: ChatRequest) -> ChatReply | None:
        """Return the reply in a body that came another way; None where it is no chat completion."""
        try:
            return self._secret.mask_reply(read_reply(body, request, 0.0))
        except (KeyError, IndexError, TypeError, AttributeError):
            return None

    async def close(self) -> None:
        """Close the connections."""
        await self._clients.close()

    async def _probe(self, request: ChatRequest) -> ChatReply:
        """Ask in ever milder forms until one is taken."""
        dialect = self._dialect
        while not self._proven:
            try:
                reply = await self._attempt(request, dialect)
            except _FormRefusedError as refusal:
                dialect = refusal.milder_dialect
                continue
            except AttemptError:
                # An endpoint that hangs would else be waited for by one request after the other.
                self._alone = False
                raise
            self._dialect, self._proven = dialect, True
            if self._on_dialect and dialect != self._remembered:
                self._on_dialect(dialect)
            return reply
        return await self._attempt(request, self._dialect)

    async def _attempt(self, request: ChatRequest, dialect: Dialect) -> ChatReply:
        content = request_body(self._settings.name, request, dialect, bounded=self._bounded)
        started = time.monotonic()
        raw = await self._send("/chat/completions", content, dialect)
        latency_s = time.monotonic() - started
        body = self._json_body(raw)
        try:
            return self._secret.mask_reply(read_reply(body, request, latency_s))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            detail = str(body.get("error") or "it holds no choices[0].message")
            message = f"the reply is no chat completion: {self._secret.line(detail)}"
            raise self._useless(message, raw, body) from error

    async def _send(self, path: str, content: bytes, dialect: Dialect | None) -> str:
        posting = self._clients.next().post(path, content)
        reply = await self._answered(posting, self._settings.timeout_s, dialect)
        self._report_limits(reply.headers)
        return reply.text

    async def call(
        self,
        make: Callable[[openai.AsyncOpenAI], Awaitable[T]],
        timeout_s: float,
    ) -> T:
        """Make one call of the official client, and raise what this module's callers know.

        Args:
            make: The call.
            timeout_s: From its beginning to its end.

        Raises:
            AttemptError, CallError, EndpointError: As for `ask`.
        """
        return await self._answered(make(self._clients.next().official), timeout_s, None)

    async def _answered(
        self, calling: Awaitable[T], timeout_s: float, dialect: Dialect | None
    ) -> T:
        """Wait for a call; a refusal of the dialect may ask for a milder one."""
        try:
            # The client's own limits are between bytes: a reply that dribbles would never end.
            async with asyncio.timeout(timeout_s):
                return await calling
        except TimeoutError as error:
            message = f"{self.address}: no reply within {timeout_s:g} s"
            raise AttemptError(message, maybe_billed=True) from error
        except openai.APIStatusError as error:
            self._report_limits(error.response.headers)
            raise self._refusal(error, dialect) from error
        except openai.APIConnectionError as error:
            raise self._broken(error) from error
        except BodyError as error:
            raise self._useless(f"{self.address}: {error}", "") from error
        except openai.APIError as error:
            raise AttemptError(f"{self.address}: {self._secret.line(error.message)}") from error
        except Exception as error:
            # The transport of aiohttp lets some of its own through, as for too many headers.
            if type(error).__module__.partition(".")[0] != "aiohttp":
                raise
            raise self._useless(f"{self.address}: {self._secret.line(str(error))}", "") from error

    def _report_limits(self, headers: Mapping[str, str]) -> None:
        told = read_rate_limits(headers) if self._on_limits else None
        if told is not None and self._on_limits is not None:
            self._on_limits(told)

    def _broken(self, error: openai.APIConnectionError) -> AttemptError:
        begun = _reply_begun(error)
        cause = self._secret.line(str(_root_cause(error)) or type(_root_cause(error)).__name__)
        what = "the reply broke off" if begun else "cannot be reached"
        return AttemptError(
            f"{self.address}: {what}: {cause}", unreachable=not begun, maybe_billed=begun
        )

    def _json_body(self, text: str) -> dict[str, Any]:
        try:
            body = read_json(text)
        except ValueError as error:
            raise self._useless(f"the reply is not JSON: {error}", text) from error
        if not isinstance(body, dict):
            raise self._useless("the reply is not a JSON object", text)
        return body

    def _useless(self, message: str, raw: str, body: dict[str, Any] | None = None) -> AttemptError:
        return AttemptError(
            message,
            fault="invalid_reply",
            maybe_billed=True,
            usage=read_usage(body or {}),
            raw=self._secret.start(raw),
        )

    def _refusal(self, error: openai.APIStatusError, dialect: Dialect | None) -> Exception:
        words = _explanation(error)
        status, raw = error.status_code, self._secret.start(error.response.text)
        message = f"{self.address}: HTTP {status}: {self._secret.line(words.message)}"
        fault = classify_status(status, words.code)
        if fault in ENDS_RUN:
            key = f", key from {self._settings.api_key_env}" if self._secret.key else ", no key set"
            return EndpointError(f"{message} (model {self._settings.name!r}{key})")
        if fault in ("rate", "transient"):
            wait_s = retry_after_s(error.response.headers)
            return AttemptError(message, fault=fault, retry_after_s=wait_s, raw=raw)
        next_dialect = (
            milder_dialect(dialect, words.message, words.param)
            if dialect and not self._proven
            else None
        )
        if next_dialect is not None:
            return _FormRefusedError(next_dialect)
        return CallError("error", message, raw)


class _FormRefusedError(Exception):
    """The endpoint does not take the form of the request; carries the form to try instead."""

    def __init__(self, milder_dialect: Dialect) -> None:
        super().__init__()
        self.milder_dialect = milder_dialect
