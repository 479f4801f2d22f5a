"""Asking a retriever behind an HTTP address."""

import asyncio
import http.client
import json
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ragforge.errors import CallError, DataError, UsageError
from ragforge.records import Chunk, Hit
from ragforge.retrieval.results import Note, ResultReader, keep_quiet

_MAX_BYTES = 16 * 1024 * 1024
_PIECE = 64 * 1024
_SHOWN = 200
_EXPECTED = "expected http://HOST[:PORT]/PATH or https://…"


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    location: str
    body: bytes


class HttpRetriever:
    """Posts `{"query": ..., "k": ...}` as JSON and reads the hits of the JSON reply.

    The reply is a list of hits, best first, or an object that holds one under "hits", "results",
    "documents" or "matches"; a hit is an id or an object with `chunk_id` or `id` and perhaps a
    `score`, and whatever else `ResultReader` reads.

    Each query goes straight to the address, over a connection of its own. Redirects are refused, so
    that queries reach no other server, and proxies of the environment are not used. There are no
    retries and no credentials: a service that needs them is a function `f(query, k)` of its user.

    Args:
        url: Address, http or https.
        chunks: The corpus, to know ids and texts; without it ids are taken as they come.
        timeout_s: Seconds to connect and for the whole reply.
        note: Told once of each oddity of the results, see `ResultReader`.

    Raises:
        UsageError: The address cannot be used.
    """

    def __init__(
        self,
        url: str,
        chunks: Iterable[Chunk] = (),
        *,
        timeout_s: float = 30.0,
        note: Note = keep_quiet,
    ) -> None:
        self._target = _target(url)
        self._tls = ssl.create_default_context() if self._target.tls else None
        self._timeout_s = timeout_s
        self._reader = ResultReader(self._target.shown, chunks, note)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return what the service found.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it cannot be read; `raw` is the start of its body.
        """
        reply = await asyncio.to_thread(self._post, json.dumps({"query": query, "k": k}))
        text = reply.body.decode("utf-8", "replace")
        where = self._target.shown
        start = text[:_SHOWN]
        if 300 <= reply.status < 400:
            raise CallError(
                "error",
                f"{where}: status {reply.status}, a redirect to {reply.location[:_SHOWN]!r}; "
                "redirects are not followed, name the final address",
                raw=start,
            )
        if not 200 <= reply.status < 300:
            raise CallError("error", f"{where}: status {reply.status}: {start!r}", raw=start)
        try:
            result = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CallError(
                "invalid", f"{where}: the reply is not JSON: {start!r}", raw=start
            ) from error
        try:
            return self._reader.read(result, query, k)
        except DataError as error:
            raise CallError("invalid", str(error), raw=start) from error

    def _post(self, body: str) -> _Reply:
        target = self._target
        connection = (
            http.client.HTTPConnection(target.host, target.port, timeout=self._timeout_s)
            if self._tls is None
            else http.client.HTTPSConnection(
                target.host, target.port, timeout=self._timeout_s, context=self._tls
            )
        )
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        deadline = time.monotonic() + self._timeout_s
        try:
            connection.request("POST", target.path, body, headers)
            with connection.getresponse() as response:
                content = self._read(response, deadline)
                return _Reply(response.status, response.headers.get("Location", ""), content)
        except TimeoutError as error:
            raise CallError("error", f"{target.shown}: no reply in {self._timeout_s} s") from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise CallError("error", f"{target.shown}: no reply: {reason}") from error
        finally:
            connection.close()

    def _read(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        """Read the body; the socket's own timeout would start anew with each byte."""
        content = bytearray()
        while piece := response.read1(_PIECE):
            content += piece
            if len(content) > _MAX_BYTES:
                raise CallError(
                    "invalid", f"{self._target.shown}: the reply is longer than {_MAX_BYTES} bytes"
                )
            if time.monotonic() > deadline:
                raise TimeoutError
        return bytes(content)


@dataclass(frozen=True, slots=True)
class _Target:
    tls: bool
    host: str
    port: int | None
    path: str
    shown: str
    """The address without its query, which may hold a key."""


def _target(url: str) -> _Target:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port
    except ValueError as error:
        raise UsageError(f"retriever address: {error}; {_EXPECTED}") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise UsageError(f"retriever address {url!r}; {_EXPECTED}")
    if parts.username is not None:
        raise UsageError(
            f"retriever address of {host}: holds a user name or password; write a "
            "function f(query, k) that reads them from the environment, and name it as module:attr"
        )
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
    return _Target(
        tls=parts.scheme == "https",
        host=host,
        port=port,
        path=f"{path}?{query}" if query else path,
        shown=shown,
    )
