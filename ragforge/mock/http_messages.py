"""HTTP/1.1: parsing requests, as clients of an endpoint send them, and writing responses."""

from collections.abc import Mapping
from http import HTTPStatus

from ragforge.deferred import dataclass

_MAX_HEAD = 1 << 16
_MAX_BODY = 1 << 28
"""A file of a batch may have 200 MB."""
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_CONNECTION = {True: "", False: "connection: close\r\n"}


class BadRequestError(Exception):
    """The bytes are no request; the connection cannot go on."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Args:
        path: Without the query.
        headers: Names in lower case; of several of one name the last.
        keep_alive: Whether the client wants to send more.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool


class Parser:
    """Makes requests of the bytes of one connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: Request | None = None
        self._chunks: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self._buffer += data

    @property
    def awaits_continue(self) -> bool:
        """Whether the client waits to be told that it may send the body."""
        return (
            self._head is not None
            and not self._buffer
            and self._head.headers.get("expect", "").lower() == "100-continue"
        )

    def next_request(self) -> Request | None:
        """Return the next request, None while it is incomplete.

        Raises:
            BadRequestError: There will never be one.
        """
        if self._head is None:
            self._head = self._read_head() if self._buffer else None
        if self._head is None:
            return None
        head = self._head
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            body = self._read_chunked()
        else:
            body = self._read_sized(_length(head.headers))
        if body is None:
            return None
        self._head = None
        if not body:
            return head
        return Request(head.method, head.path, head.query, head.headers, body, head.keep_alive)

    def _read_head(self) -> Request | None:
        while self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 and len(self._buffer) <= _MAX_HEAD:
            return None
        if not 0 <= end <= _MAX_HEAD:
            raise BadRequestError(431, f"the headers are longer than {_MAX_HEAD} bytes")
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise BadRequestError(400, "the first line is no HTTP/1.1 request line")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        path, _, query = words[1].partition("?")
        wish = headers.get("connection", "").lower()
        keep_alive = wish == "keep-alive" if words[2] == "HTTP/1.0" else wish != "close"
        return Request(words[0], path, query, headers, b"", keep_alive)

    def _read_sized(self, length: int) -> bytes | None:
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _read_chunked(self) -> bytes | None:
        while (end := self._buffer.find(b"\r\n")) >= 0:
            try:
                size = int(self._buffer[:end].split(b";")[0], 16)
            except ValueError as error:
                raise BadRequestError(400, "a chunk has no size") from error
            if size < 0:
                raise BadRequestError(400, "a chunk has a size below 0")
            if sum(map(len, self._chunks)) + size > _MAX_BODY:
                raise BadRequestError(413, f"the body is longer than {_MAX_BODY} bytes")
            if size == 0:
                return self._end_chunked(end)
            if len(self._buffer) < end + size + 4:
                return None
            self._chunks.append(bytes(self._buffer[end + 2 : end + 2 + size]))
            del self._buffer[: end + size + 4]
        return None

    def _end_chunked(self, end: int) -> bytes | None:
        """Return the body once the trailers behind the last chunk are there too."""
        behind = self._buffer.find(b"\r\n\r\n", end)
        if behind < 0:
            return None
        del self._buffer[: behind + 4]
        body = b"".join(self._chunks)
        self._chunks = []
        return body


def response(
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    *,
    content_type: str = "application/json",
    keep_alive: bool = True,
) -> bytes:
    """Return the bytes of a reply."""
    more = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    head = (
        f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}\r\n"
        f"content-type: {content_type}\r\ncontent-length: {len(body)}\r\n"
        f"{_CONNECTION[keep_alive]}{more}\r\n"
    )
    return head.encode("latin-1") + body


def _length(headers: Mapping[str, str]) -> int:
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdecimal()):
        raise BadRequestError(400, "content-length is no number")
    if int(text) > _MAX_BODY:
        raise BadRequestError(413, f"the body is longer than {_MAX_BODY} bytes")
    return int(text)
