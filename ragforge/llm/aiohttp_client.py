"""The one module that names `aiohttp`: requests sent without the official client in between.

Loading the official client takes half the time of a command that starts, and its requests more of
the processor than sending them does.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping

import aiohttp

from ragforge import __version__
from ragforge.config import ModelSettings
from ragforge.http_service import ACCEPTED, LARGE_AT_ONCE, Body, BodyError, Reply
from ragforge.llm.transport import (
    CONNECT_TIMEOUT_S,
    KEEP_ALIVE_S,
    ReplyBrokenOffError,
    UnreadableReplyError,
    endpoint_address,
    most_bytes,
)

_MOST_HEADER_BYTES = 65_536
_MOST_HEADERS = 1000
"""Of a reply: gateways add long ones, and many."""
_FROM_ENVIRONMENT = {"OPENAI_ORG_ID": "openai-organization", "OPENAI_PROJECT_ID": "openai-project"}
_MORE_HEADERS = "OPENAI_CUSTOM_HEADERS"
"""Variable with a header a line. Source: that of the official client."""

# What is odd about a cookie would be said on stderr, once a reply.
logging.getLogger("aiohttp").addHandler(logging.NullHandler())


class AiohttpClient:
    """Sends requests over connections of its own, without a proxy; see `Transport`.

    Args:
        settings: Address and concurrency.
        key: The API key, "" where the endpoint needs none.
    """

    def __init__(self, settings: ModelSettings, key: str) -> None:
        self._settings = settings
        self._address = endpoint_address(settings)
        self._headers = _headers(key)
        self._room = asyncio.Semaphore(LARGE_AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, content: bytes) -> Reply:
        """Send a request; see `Transport`."""
        session = self._session = self._session or self._new_session()
        url = self._address + path.removeprefix("/")
        try:
            async with session.post(url, data=content, allow_redirects=False) as response:
                body = await self._read(response, most_bytes(path))
        except aiohttp.ServerDisconnectedError:
            # The error shows what came of the head, with cookies.
            raise ConnectionError("the server closed the connection") from None
        except (aiohttp.ClientConnectionError, aiohttp.InvalidURL) as error:
            raise ConnectionError(str(error)) from error
        except aiohttp.ClientError as error:
            raise UnreadableReplyError(str(error)) from error
        location = response.headers.get("location", "")
        return Reply(response.status, location, body, response.headers)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._settings.concurrency + 8,
                keepalive_timeout=KEEP_ALIVE_S,
                ssl=_tls() if self._address.startswith("https:") else True,
            ),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            # Gateways keep a conversation with one server by a cookie, by a bare address as well.
            cookie_jar=aiohttp.CookieJar(unsafe=True, quote_cookie=False),
            auto_decompress=False,
            max_line_size=_MOST_HEADER_BYTES,
            max_field_size=_MOST_HEADER_BYTES,
            max_headers=_MOST_HEADERS,
        )

    async def _read(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        encoding = response.headers.get("content-encoding", "")
        body = Body(encoding, response.headers.get("content-length", ""), most)
        content, inside = bytearray(), False
        try:
            async for piece in response.content.iter_any():
                for part in body.unpacked(piece):
                    content += part
                    if body.is_large and not inside:
                        inside = await self._room.acquire()
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            raise ReplyBrokenOffError(str(error)) from error
        except BodyError:
            content.clear()  # The error is kept for longer, and this with it.
            raise
        finally:
            if inside:
                self._room.release()
        return bytes(content)


def _tls() -> ssl.SSLContext:
    """Return what checks certificates, by the authorities that the official client trusts."""
    import httpx2

    return httpx2.create_ssl_context()


def _headers(key: str) -> Mapping[str, str]:
    """Return the headers of a request. Source: API reference of OpenAI, Authentication."""
    headers = {
        "accept": "application/json",
        "accept-encoding": ACCEPTED,
        "authorization": f"Bearer {key or 'none'}",
        "content-type": "application/json",
        "user-agent": f"ragforge/{__version__}",
    }
    for variable, name in _FROM_ENVIRONMENT.items():
        if value := os.environ.get(variable, "").strip():
            headers[name] = value
    for line in os.environ.get(_MORE_HEADERS, "").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return headers
