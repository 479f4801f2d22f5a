"""The official client, set up so that it never is what limits a run.

Its pool of connections is searched at each request, so that a call costs five times as much with
1,024 connections as with 64. With aiohttp installed (extra `fast`), its transport is used, which
does not do that; without it, calls are spread over several clients of 64 connections.
"""

import asyncio
import base64
import importlib.util
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import httpx2
import openai

from ragforge.config import ModelSettings
from ragforge.http_service import (
    ACCEPTED,
    LARGE_AT_ONCE,
    MAX_REPLY_BYTES,
    MAX_VECTORS_BYTES,
    Body,
)
from ragforge.llm.chat import ChatReply, Numeral

MASK: Final = "[key]"
RAW_SHOWN: Final = 2000
MESSAGE_SHOWN: Final = 500
_SHORTEST: Final = 8
"""Shorter keys are placeholders that local servers want, such as "none" or "EMPTY"."""
_PLACEHOLDERS: Final = frozenset(
    {
        "api-key",
        "dummy-key",
        "lm-studio",
        "no-key-required",
        "not-needed",
        "not-used",
        "placeholder",
        "sk-no-key-required",
        "your-api-key",
    }
)
"""Longer ones, by the manuals of servers that check none; texts may well hold such words."""
_ESCAPES: Final = ("\\", "%", "&#")
_PACKED_LEAST: Final = 12

EMBEDDINGS_PATH = "/embeddings"
CONNECT_TIMEOUT_S = 30.0
"""A busy event loop fails shorter ones although the endpoint is well."""
SHARD = 64
"""Connections of one client."""
_KEEP_ALIVE_S = 75.0
"""By default, a pause of five seconds would open every connection anew."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A key, and how to keep it out of whatever an endpoint echoes.

    It is known as it is, escaped as JSON, addresses and HTML do it, and in base64 at any place of
    a longer text. An endpoint that wants to hide it in its replies has other ways.
    """

    key: str
    _packed: tuple[str, ...] = field(init=False, repr=False)
    _escaped: re.Pattern[str] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = len(self.key) >= _SHORTEST and self.key.lower() not in _PLACEHOLDERS
        escaped = "".join(map(_any_form, self.key))
        object.__setattr__(self, "_escaped", re.compile(escaped) if known else None)
        object.__setattr__(self, "_packed", tuple(_in_base64(self.key)) if known else ())

    def kept_out_of(self, text: str) -> str:
        """Return a text without the key."""
        if self._escaped is None:
            return text
        for form in (self.key, *self._packed):
            text = text.replace(form, MASK)
        # The pattern takes longer than all else, and hardly any text needs it.
        if any(sign in text for sign in _ESCAPES):
            return self._escaped.sub(MASK, text)
        return text

    def taken_out_of(self, reply: ChatReply) -> ChatReply:
        """Return a reply without the key in any of its fields."""
        text = self.kept_out_of(reply.text)
        return replace(
            reply,
            text=text,
            finish_reason=self.kept_out_of(reply.finish_reason),
            refusal=self.kept_out_of(reply.refusal),
            model=self.kept_out_of(reply.model),
            fingerprint=self.kept_out_of(reply.fingerprint),
            reply_id=self.kept_out_of(reply.reply_id),
            # They are found by their offsets in the text.
            numerals=tuple(map(self._of_numeral, reply.numerals)) if text == reply.text else (),
        )

    def start(self, text: str) -> str:
        """Return the start of a body for a failure record."""
        return self.kept_out_of(text)[:RAW_SHOWN]

    def line(self, text: str) -> str:
        """Return a text as one line for a message."""
        return " ".join(self.kept_out_of(text).split())[:MESSAGE_SHOWN]

    def _of_numeral(self, numeral: Numeral) -> Numeral:
        kept = tuple((self.kept_out_of(token), value) for token, value in numeral.logprobs)
        return replace(numeral, logprobs=kept)


def _any_form(character: str) -> str:
    """Return a pattern of what a character may be written as."""
    code = f"{ord(character):02x}"
    return (
        rf"(?:\\{{0,3}}{re.escape(character)}|\\{{1,4}}u00(?i:{code})|%(?i:{code})"
        rf"|&#(?:0{{0,4}}{ord(character)}|[xX]0{{0,4}}(?i:{code}));)"
    )


def _in_base64(key: str) -> Iterator[str]:
    """Yield the forms of the key in base64, wherever in a longer text it begins."""
    for before in range(3):
        whole = (before + len(key)) // 3 * 3 - before
        coded = base64.b64encode(b"\0" * before + key[:whole].encode())
        # The first of them depend on what stands before the key.
        form = coded[(4 if before else 0) :].decode("ascii")
        if len(form) >= _PACKED_LEAST:
            yield form
            yield form.replace("+", "-").replace("/", "_")


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
