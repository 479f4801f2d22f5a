"""The one module that names `aiohttp`: requests sent without any other client in between."""

import asyncio
import ssl
from collections.abc import Mapping

import aiohttp

from ragforge.http_service import Body, Reply


class AiohttpClient:
    """Sends requests, and follows no redirect.

    Args:
        connections: How many there are at most.
        connect_s: Seconds to make one.
        keep_alive_s: Seconds that an idle one stays open.
        tls: Checks certificates.
        room: For large replies: each that is read takes a place.
    """

    def __init__(
        self,
        *,
        connections: int,
        connect_s: float,
        keep_alive_s: float,
        tls: ssl.SSLContext,
        room: asyncio.Semaphore,
    ) -> None:
        self._connections = connections
        self._connect_s = connect_s
        self._keep_alive_s = keep_alive_s
        self._tls = tls
        self._room = room
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, url: str, headers: Mapping[str, str], content: bytes, most_bytes: int
    ) -> Reply:
        """Send a request, and return the reply, of any status.

        Args:
            url: Where to.
            headers: All but the length, which may be among them.
            content: What it says.
            most_bytes: Of the reply, packed or not.

        Raises:
            ConnectionError: The connection failed; the cause is aiohttp's error.
            BodyError: The reply is too long, or not packed as it says.
            aiohttp.ClientError: What came is no reply.
        """
        session = self._session = self._session or self._new_session()
        try:
            async with session.post(
                url, data=content, headers=headers, allow_redirects=False
            ) as response:
                body = await self._read(response, most_bytes)
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            raise ConnectionError(str(error)) from error
        location = response.headers.get("location", "")
        return Reply(response.status, location, body, response.headers)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections, keepalive_timeout=self._keep_alive_s, ssl=self._tls
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def _read(self, response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
        encoding = response.headers.get("content-encoding", "")
        body = Body(encoding, response.headers.get("content-length", ""), most_bytes)
        content, inside = bytearray(), False
        try:
            async for piece in response.content.iter_any():
                for part in body.unpacked(piece):
                    content += part
                    if body.is_large and not inside:
                        inside = await self._room.acquire()
        finally:
            if inside:
                self._room.release()
        return bytes(content)
