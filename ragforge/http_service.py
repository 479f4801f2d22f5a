"""Asking services over HTTP, with bounds on what their replies may hold.

Whoever is asked may reply without end, or with little that unpacks to much. All that comes in over
HTTP is counted here before it is held: bytes while they are unpacked, and values of JSON.
"""

import json
import re
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import cached_property, partial
from typing import Final
from urllib.parse import quote, urlsplit

from ragforge.deferred import dataclass, http_client, socket, ssl
from ragforge.errors import CallError, UsageError
from ragforge.plugins import in_thread

MAX_REPLY_BYTES: Final = 8_000_000
"""Of a model's reply: it writes 100 kB at most, and 20 alternatives to each of 4,000 tokens with
their probabilities fit as well."""
_MAX_PASSAGES_BYTES: Final = 16_000_000
"""Of a retriever's or a system's reply: a thousand passages of 16 kB."""
MAX_FILE_BYTES: Final = 1_000_000_000
"""A file of replies: 50,000 of them, at most."""
MAX_VECTORS_BYTES: Final = 32_000_000
"""Of a reply with embeddings: 64 texts in 16,384 dimensions, each number written out, have 23 MB.
"""
MAX_VALUES: Final = 2_000_000
"""Of one reply as JSON. `[],` has three bytes and becomes an object of 64; the vectors above have
1,050,000 numbers."""
_CHARSET: Final = re.compile(r"charset=\"?([\w.:-]+)", re.IGNORECASE)
_ENCODINGS: Final = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "ascii", "iso8859-1", "iso8859-15"),
        *("cp1251", "cp1252", "koi8-r", "gb2312", "gbk", "gb18030", "big5", "shift_jis", "euc_jp"),
        "euc_kr",
    }
)
"""Encodings that replies are read in: some others of Python take the square of the length."""
LARGE_BYTES: Final = 256_000
"""Replies above it are read a few at a time; hardly any reply to a chat reaches it."""
LARGE_AT_ONCE: Final = 2
"""Calls in flight are many, and the memory must not grow with them."""
ACCEPTED: Final = "gzip, deflate"
"""The encodings that are read, as a header of the request says it."""
_UNPACKED_BYTES: Final = 65_536
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER_HEADER: Final = zlib.MAX_WBITS | 32
_READ_BYTES: Final = 65_536
_SHOWN: Final = 200
_TOO_MANY: Final = 429
_EXPECTED: Final = "expected http://HOST[:PORT]/PATH or https://…"


@dataclass(frozen=True, slots=True)
class _JsonReply:
    """A good reply of a service."""

    value: object
    start: str
    """Of the text, for failure records."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of any status."""

    status: int
    location: str
    """Where a redirect points to."""
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By name in lower case."""

    @property
    def text(self) -> str:
        """The body in the encoding that the reply names, else in UTF-8; faults are replaced."""
        import codecs

        named = _CHARSET.search(self.headers.get("content-type", ""))
        encoding = "utf-8"
        with suppress(LookupError):
            encoding = codecs.lookup(named[1]).name if named else encoding
        text = self.body.decode(encoding if encoding in _ENCODINGS else "utf-8", "replace")
        return text.removeprefix("\ufeff")


class NoReplyError(CallError):
    """A service could not be reached, or closed the connection without a reply."""


class NoReplyInTimeError(CallError):
    """A service took longer than it was given."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address, in the parts that a request needs; see `parse_target`."""

    tls: bool
    host: str
    port: int | None
    path: str = field(repr=False)
    shown: str
    """The address without its query, which may hold a key."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent to a service."""

    target: Target
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


class HttpClient:
    """Sends requests to services, each over a connection of its own.

    Each request goes straight to its address. Redirects are not followed, and proxies of the
    environment are not used. Replies are bounded in time and size.

    Args:
        timeout_s: Seconds to connect and for the whole reply.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._room = threading.BoundedSemaphore(LARGE_AT_ONCE)

    @cached_property
    def _tls(self) -> "ssl.SSLContext":
        return ssl.create_default_context()

    def send(self, request: Request) -> Reply:
        """Return the reply, of any status; blocks until it is there.

        Raises:
            NoReplyError: The service could not be reached, or sent no reply.
            NoReplyInTimeError: It took too long.
            CallError: It sent more than is taken, or less than it announced.
        """
        target = request.target
        connection = (
            http_client.HTTPSConnection(
                target.host, target.port, timeout=self._timeout_s, context=self._tls
            )
            if target.tls
            else http_client.HTTPConnection(target.host, target.port, timeout=self._timeout_s)
        )
        headers = {"Accept-Encoding": ACCEPTED, **request.headers}
        deadline = time.monotonic() + self._timeout_s
        try:
            connection.request(request.method, target.path, request.body, headers)
            with _cut_at(deadline, connection.sock), connection.getresponse() as response:
                content = self._read(response, deadline)
                found = {name.lower(): value for name, value in response.headers.items()}
                return Reply(response.status, found.get("location", ""), content, found)
        except BodyError as error:
            raise CallError("invalid", f"{target.shown}: {error}") from error
        except (OSError, http_client.HTTPException) as error:
            if isinstance(error, TimeoutError) or time.monotonic() > deadline:
                raise NoReplyInTimeError(
                    "error", f"{target.shown}: no reply in {self._timeout_s} s"
                ) from error
            if isinstance(error, http_client.IncompleteRead):
                raise CallError("invalid", f"{target.shown}: the reply broke off") from error
            reason = str(error) or type(error).__name__
            raise NoReplyError("error", f"{target.shown}: no reply: {reason}") from error
        finally:
            connection.close()

    def _read(self, response: "http_client.HTTPResponse", deadline: float) -> bytes:
        encoding = response.headers.get("Content-Encoding", "")
        body = Body(encoding, response.headers.get("Content-Length", ""), _MAX_PASSAGES_BYTES)
        content = bytearray()
        inside = False
        try:
            while piece := response.read1(_READ_BYTES):
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
        if response.length:
            raise BodyError(f"the reply ended {response.length:,} bytes before its end")
        return bytes(content)


class Service:
    """Posts JSON to an address and reads the JSON of the reply.

    Redirects are refused, so that queries reach no other server. There are no retries and no
    credentials: a service that needs them is described in the settings, or is a function of its
    user.

    Args:
        url: Address, http or https.
        what: What messages call the service: "retriever".
        function: How a function of a user's own is written that takes its place: "f(query, k)".
        timeout_s: Seconds to connect and for the whole reply.

    Raises:
        UsageError: The address cannot be used.
    """

    def __init__(self, url: str, *, what: str, function: str, timeout_s: float) -> None:
        self._target = parse_target(url, what, function)
        self._client = HttpClient(timeout_s)

    @property
    def shown(self) -> str:
        """The address without its query, which may hold a key."""
        return self._target.shown

    async def post(self, body: Mapping[str, object]) -> _JsonReply:
        """Post a body and return the reply.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it is no JSON; `raw` is the start of its body.
        """
        reply = await in_thread(partial(self.send, body))
        text = reply.text
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
            return _JsonReply(read_json(text), start)
        except ValueError as error:
            raise CallError(
                "invalid", f"{self.shown}: the reply is not JSON: {start!r} ({error})", raw=start
            ) from error

    def send(self, body: Mapping[str, object]) -> Reply:
        """Post a body and return the reply, of any status; blocks until it is there.

        Raises:
            CallError: Nothing came back in time, or more than is taken.
        """
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        content = json.dumps(body).encode("ascii")
        return self._client.send(Request(self._target, "POST", headers, content))


@contextmanager
def _cut_at(deadline: float, connection: "socket.socket") -> Iterator[None]:
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


def parse_address(spec: str, what: str) -> str:
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


def parse_target(url: str, what: str, function: str = "") -> Target:
    """Return the parts of an address.

    Args:
        url: Address, http or https.
        what: What messages call the service.
        function: How a function is written that may take its place; "" for none.

    Raises:
        UsageError: The address cannot be used.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{what} address: {error}; {_EXPECTED}") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise UsageError(f"{what} address {url!r}; {_EXPECTED}")
    if parts.username is not None:
        advice = (
            f"; write a function {function} that reads them from the environment, and name it as "
            "module:attr, or describe the service in a settings file (docs/services.md)"
            if function
            else "; put them into a header, as ${VARIABLE}"
        )
        raise UsageError(f"{what} address of {host}: holds a user name or password{advice}")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    address = f"{parts.scheme}://{parts.netloc}{parts.path}"
    return Target(
        tls=parts.scheme == "https",
        host=host,
        port=port,
        path=f"{path}?{query}" if query else path,
        shown=address,
    )


class BodyError(Exception):
    """A body is longer than memory should be spent on, or packed in a way that is not read."""


class Body:
    """Unpacks and counts one body, piece by piece.

    Args:
        encoding: The header Content-Encoding of the reply, "" where it has none.
        announced: The header Content-Length, "" where it has none.
        limit: Bytes that are taken, packed or not.

    Raises:
        BodyError: It cannot be read, or says itself that it is longer.
    """

    def __init__(self, encoding: str, announced: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in _PACKED | {"", "identity"}:
            raise BodyError(f"the reply is packed as {name[:50]!r}; expected {ACCEPTED} or nothing")
        if announced.isdecimal() and len(announced) < 20 and int(announced) > limit:
            raise _too_long(limit)
        self._unpack = zlib.decompressobj(_EITHER_HEADER) if name in _PACKED else None
        self._limit = limit
        self._arrived = 0
        self._length = 0

    @property
    def is_large(self) -> bool:
        """Whether so much came that no further such body should be held beside it."""
        return self._length > LARGE_BYTES

    def unpacked(self, piece: bytes) -> Iterator[bytes]:
        """Yield a piece of the body, unpacked no further than the limit allows.

        Raises:
            BodyError: It is too long, or not packed as it says.
        """
        # What is packed may come without end and hold nothing.
        self._arrived += len(piece)
        if self._arrived > self._limit:
            raise _too_long(self._limit)
        for part in self._parts(piece):
            self._length += len(part)
            if self._length > self._limit:
                raise _too_long(self._limit)
            yield part

    def _parts(self, piece: bytes) -> Iterator[bytes]:
        if self._unpack is None:
            yield piece
            return
        try:
            while piece and not self._unpack.eof:
                yield self._unpack.decompress(piece, _UNPACKED_BYTES)
                piece = self._unpack.unconsumed_tail
        except zlib.error as error:
            raise BodyError(f"the reply is not packed as it says: {error}") from error


def _too_long(limit: int) -> BodyError:
    return BodyError(f"the reply is longer than {limit:,} bytes, which is all that is read")


def read_json(text: str) -> object:
    """Parse JSON text.

    Raises:
        ValueError: It is no JSON, nested too deep, or holds more values than memory is spent on.
    """
    # Each value but the first follows one of them; in strings, they count too much.
    if sum(map(text.count, ",[{")) > MAX_VALUES:
        raise ValueError(f"it holds more than {MAX_VALUES:,} values")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
