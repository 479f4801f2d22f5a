"""One OpenAI-compatible endpoint: single attempts, in a dialect that it takes, classified.

With aiohttp installed (extra `fast`), requests are sent by it, else by the official client, which
takes more of the processor's time. Batch APIs go by the official client.
"""

import asyncio
import importlib.util
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from ragforge.config import ModelSettings
from ragforge.deferred import dataclass
from ragforge.errors import CallError, ConfigError, EndpointError
from ragforge.http_service import BodyError, Reply, read_json
from ragforge.llm.api_key import Secret
from ragforge.llm.chat import ChatReply, ChatRequest
from ragforge.llm.retries import ENDS_RUN, AttemptError, classify_status
from ragforge.llm.transport import (
    CHAT_PATH,
    EMBEDDINGS_PATH,
    RefusedError,
    ReplyBrokenOffError,
    Transport,
    UnreadableReplyError,
    endpoint_address,
)
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
    from ragforge.llm.official_client import Client, OfficialClients

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Explanation:
    """The endpoint's own words for a refusal; "" where it has none."""

    code: str
    param: str
    message: str


def _explanation(reply: Reply) -> _Explanation:
    """Return the endpoint's words in a reply whose status is no success."""
    if classify_status(reply.status, "") == "redirect" and reply.location:
        return _Explanation("", "", f"redirects to {reply.location!r}; see --base-url")
    body = _json_object(reply.text)
    if isinstance(body.get("error"), Mapping):
        body = body["error"]
    message = body.get("message") or reply.text or _phrase(reply.status)
    code = body.get("code") or body.get("type") or ""
    return _Explanation(str(code), str(body.get("param") or ""), str(message))


def _json_object(text: str) -> Mapping[str, Any]:
    """Return the JSON object of a reply; an empty one where it has none."""
    try:
        body = read_json(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _is_fast(settings: ModelSettings) -> bool:
    """Whether aiohttp sends the requests.

    Raises:
        ConfigError: It is to, and is not installed.
    """
    is_there = importlib.util.find_spec("aiohttp") is not None
    if settings.transport == "aiohttp" and not is_there:
        raise ConfigError("--transport aiohttp: needs aiohttp; pip install 'ragforge[fast]'")
    # Its way of passing proxies on is its own; the usual one is the client's.
    return is_there and settings.transport != "httpx2" and settings.proxy == "none"


def load_transport(settings: ModelSettings) -> None:
    """Import what requests are sent by, ahead of the first: processes that are forked share it.

    Raises:
        ConfigError: It is not installed.
    """
    if _is_fast(settings):
        import ragforge.llm.aiohttp_client
    else:
        import ragforge.llm.official_client  # noqa: F401


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
        ConfigError: No key is set for an endpoint that needs one, or the transport is not there.
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
        if not key and not settings.address:
            raise ConfigError(
                f"model {settings.name!r}: the environment variable {settings.api_key_env} holds "
                "no key; set it, or name another endpoint with --base-url, or use --model offline"
            )
        if not all("!" <= character <= "~" for character in key):
            raise ConfigError(
                f"the environment variable {settings.api_key_env} holds a key with a blank, a line "
                "break or another character that no key has"
            )
        self._is_fast = _is_fast(settings)
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
        self.address = endpoint_address(settings)
        """Where it is, with a slash at the end."""

    @cached_property
    def _official(self) -> "OfficialClients":
        from ragforge.llm.official_client import OfficialClients

        return OfficialClients(self._settings, self._secret.key)

    @cached_property
    def _transport(self) -> Transport:
        if not self._is_fast:
            return self._official
        from ragforge.llm.aiohttp_client import AiohttpClient

        return AiohttpClient(self._settings, self._secret.key)

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
        raw = await self._send(EMBEDDINGS_PATH, dumps(asked), None)
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
        for name in ("_official", "_transport"):
            if name in vars(self):
                await getattr(self, name).close()

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
        raw = await self._send(CHAT_PATH, content, dialect)
        latency_s = time.monotonic() - started
        body = self._json_body(raw)
        try:
            return self._secret.mask_reply(read_reply(body, request, latency_s))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            detail = str(body.get("error") or "it holds no choices[0].message")
            message = f"the reply is no chat completion: {self._secret.line(detail)}"
            raise self._useless(message, raw, body) from error

    async def _send(self, path: str, content: bytes, dialect: Dialect | None) -> str:
        reply = await self._answered(self._transport.post(path, content), self._settings.timeout_s)
        self._report_limits(reply.headers)
        if not 200 <= reply.status < 300:
            raise self._refusal(reply, dialect)
        return reply.text

    async def call(self, make: "Callable[[Client], Awaitable[T]]", timeout_s: float) -> T:
        """Make one call of the official client, and raise what this module's callers know.

        Args:
            make: The call.
            timeout_s: From its beginning to its end.

        Raises:
            AttemptError, CallError, EndpointError: As for `ask`.
        """
        try:
            return await self._answered(self._official.call(make), timeout_s)
        except RefusedError as error:
            self._report_limits(error.reply.headers)
            raise self._refusal(error.reply, None) from error

    async def _answered(self, calling: Awaitable[T], timeout_s: float) -> T:
        try:
            # The client's own limits are between bytes: a reply that dribbles would never end.
            async with asyncio.timeout(timeout_s):
                return await calling
        except TimeoutError as error:
            message = f"{self.address}: no reply within {timeout_s:g} s"
            raise AttemptError(message, maybe_billed=True) from error
        except ConnectionError as error:
            raise self._broken(error) from error
        except (BodyError, UnreadableReplyError) as error:
            raise self._useless(f"{self.address}: {self._secret.line(str(error))}", "") from error

    def _report_limits(self, headers: Mapping[str, str]) -> None:
        told = read_rate_limits(headers) if self._on_limits else None
        if told is not None and self._on_limits is not None:
            self._on_limits(told)

    def _broken(self, error: ConnectionError) -> AttemptError:
        begun = any(isinstance(cause, ReplyBrokenOffError) for cause in _causes(error))
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

    def _refusal(self, reply: Reply, dialect: Dialect | None) -> Exception:
        """Return what a reply that is no success means; it may ask for a milder dialect."""
        words = _explanation(reply)
        status, raw = reply.status, self._secret.start(reply.text)
        message = f"{self.address}: HTTP {status}: {self._secret.line(words.message)}"
        fault = classify_status(status, words.code)
        if fault in ENDS_RUN:
            key = f", key from {self._settings.api_key_env}" if self._secret.key else ", no key set"
            return EndpointError(f"{message} (model {self._settings.name!r}{key})")
        if fault in ("rate", "transient"):
            wait_s = retry_after_s(reply.headers)
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
