"""Bodies of replies, bounded while they come in: how long unpacked, and how many values as JSON.

Whoever is asked may reply without end, or with little that unpacks to much. All that comes in over
HTTP is counted here, before it is held.
"""

import json
import zlib
from collections.abc import Iterator
from typing import Final

MAX_REPLY_BYTES: Final = 8_000_000
"""Of a model's reply: it writes 100 kB at most, and 20 alternatives to each of 4,000 tokens with
their probabilities fit as well."""

MAX_PASSAGES_BYTES: Final = 16_000_000
"""Of a retriever's or a system's reply: a thousand passages of 16 kB."""

MAX_VECTORS_BYTES: Final = 32_000_000
"""Of a reply with embeddings: 64 texts in 16,384 dimensions, each number written out, have 23 MB.
"""

MAX_VALUES: Final = 2_000_000
"""Of one reply as JSON. `[],` has three bytes and becomes an object of 64; the vectors above have
1,050,000 numbers."""

LARGE_BYTES: Final = 256_000
"""Replies above it are read a few at a time; hardly any reply to a chat reaches it."""

LARGE_AT_ONCE: Final = 2
"""Calls in flight are many, and the memory must not grow with them."""

ACCEPTED: Final = "gzip, deflate"
"""The encodings that are read, as a header of the request says it."""

_PIECE: Final = 65_536
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER_HEADER: Final = zlib.MAX_WBITS | 32


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
        """Yield what a piece of the body holds; no more is unpacked than the limit allows.

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
                yield self._unpack.decompress(piece, _PIECE)
                piece = self._unpack.unconsumed_tail
        except zlib.error as error:
            raise BodyError(f"the reply is not packed as it says: {error}") from error


def read_json(text: str) -> object:
    """Return the value that a text is.

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


def _too_long(limit: int) -> BodyError:
    return BodyError(f"the reply is longer than {limit:,} bytes, which is all that is read")
