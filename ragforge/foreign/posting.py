"""Asking a service behind an HTTP address, carefully."""

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlsplit

from ragforge.errors import CallError, UsageError
from ragforge.foreign.bodies import (
    ACCEPTED,
    LARGE_AT_ONCE,
    MAX_PASSAGES_BYTES,
    Body,
    BodyError,
    read_json,
)
from ragforge.foreign.calling import in_thread

_PIECE = 64 * 1024
_SHOWN = 200
_TOO_MANY = 429
_EXPECTED = "expected http://HOST[:PORT]/PATH or https://…"


@dataclass(frozen=True, slots=True)
class JsonReply:
    """What a service replied."""

    value: object
    start: str
    """Of the text, for failure records."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whatever it means."""

    status: int
    location: str
    """Where a redirect points to."""
    body: bytes


@dataclass(frozen=True, slots=True)
class _Target:
    tls: bool
    host: str
    port: int | None
    path: str
    shown: str
    """The address without its query, which may hold a key."""


class Service:
    """Posts JSON to an address and reads the JSON of the reply.

    Each request goes straight to the address, over a connection of its own. Redirects are refused,
    so that queries reach no other server, and proxies of the environment are not used. There are no
    retries and no credentials: a service that needs them is a function of its user.

    Args:
        url: Address, http or https.
        what: What messages call the service: "retriever".
        function: How a function of a user's own is written that takes its place: "f(query, k)".
        timeout_s: Seconds to connect and for the whole reply.

    Raises:
        UsageError: The address cannot be used.
    """

    def __init__(self, url: str, *, what: str, function: str, timeout_s: float) -> None:
        self._target = _target(url, what, function)
        self._tls = ssl.create_default_context() if self._target.tls else None
        self._timeout_s = timeout_s
        self._room = threading.BoundedSemaphore(LARGE_AT_ONCE)

    @property
    def shown(self) -> str:
        """The address without its query, which may hold a key."""
        return self._target.shown

    async def post(self, body: Mapping[str, object]) -> JsonReply:
        """Return the reply.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it is no JSON; `raw` is the start of its body.
        """
        reply = await in_thread(partial(self.send, body))
        text = reply.body.decode("utf-8", "replace")
        start = text[:_SHOWN]
        if 300 <= reply.status < 400:
            raise CallError(
                "error",
                f"{self.shown}: status {reply.status}, a redirect to {reply.location[:_SHOWN]!r}; "
                "redirects are not followed, name the final address",
                raw=start,
            )
        if not 200 <= reply.status < 300:
            advice = "; ask less at once, with --concurrency" if reply.status == _TOO_MANY else ""
            raise CallError(
                "error", f"{self.shown}: status {reply.status}: {start!r}{advice}", raw=start
            )
        try:
            return JsonReply(read_json(text), start)
        except ValueError as error:
            raise CallError(
                "invalid", f"{self.shown}: the reply is not JSON: {start!r} ({error})", raw=start
            ) from error

    def send(self, body: Mapping[str, object]) -> Reply:
        """Return what comes back, of any status; blocks until then.

        Raises:
            CallError: Nothing came back in time, or more than is taken.
        """
        target = self._target
        connection = (
            http.client.HTTPConnection(target.host, target.port, timeout=self._timeout_s)
            if self._tls is None
            else http.client.HTTPSConnection(
                target.host, target.port, timeout=self._timeout_s, context=self._tls
            )
        )
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": ACCEPTED,
        }
        deadline = time.monotonic() + self._timeout_s
        try:
            connection.request("POST", target.path, json.dumps(body), headers)
            with _cut_at(deadline, connection.sock), connection.getresponse() as response:
                content = self._read(response, deadline)
                return Reply(response.status, response.headers.get("Location", ""), content)
        except BodyError as error:
            raise CallError("invalid", f"{target.shown}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, TimeoutError) or time.monotonic() > deadline:
                raise CallError(
                    "error", f"{target.shown}: no reply in {self._timeout_s} s"
                ) from error
            reason = str(error) or type(error).__name__
            raise CallError("error", f"{target.shown}: no reply: {reason}") from error
        finally:
            connection.close()

    def _read(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        told = response.headers.get("Content-Encoding", "")
        body = Body(told, response.headers.get("Content-Length", ""), MAX_PASSAGES_BYTES)
        content = bytearray()
        inside = False
        try:
            while piece := response.read1(_PIECE):
                for part in body.unpacked(piece):
                    content += part
                    if body.is_large and not inside:
                        inside = self._room.acquire(timeout=max(0.0, deadline - time.monotonic()))
                if time.monotonic() > deadline:
                    raise TimeoutError
        finally:
            if inside:
                self._room.release()
        if time.monotonic() > deadline:
            raise TimeoutError
        return bytes(content)


@contextmanager
def _cut_at(deadline: float, connection: socket.socket) -> Iterator[None]:
    """Cut a connection at a time: its own limit would start anew with each byte of a header."""

    def cut() -> None:
        with suppress(OSError):  # It ended by itself.
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def address_of(spec: str, what: str) -> str:
    """Return the address of a spec that is one, or is one behind `http:`.

    Raises:
        UsageError: It is none.
    """
    url = spec if spec.startswith(("http://", "https://")) else spec.removeprefix("http:")
    if not url.startswith(("http://", "https://")):
        raise UsageError(
            f"{what} {spec!r}: expected an address such as http://127.0.0.1:8000/search"
        )
    return url


def _target(url: str, what: str, function: str) -> _Target:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{what} address: {error}; {_EXPECTED}") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise UsageError(f"{what} address {url!r}; {_EXPECTED}")
    if parts.username is not None:
        raise UsageError(
            f"{what} address of {host}: holds a user name or password; write a "
            f"function {function} that reads them from the environment, and name it as module:attr"
        )
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    address = f"{parts.scheme}://{parts.netloc}{parts.path}"
    return _Target(
        tls=parts.scheme == "https",
        host=host,
        port=port,
        path=f"{path}?{query}" if query else path,
        shown=address,
    )
