"""Embeddings as calls like others, so that they are stored, paced, limited and counted alike."""

import base64
import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from ragforge.llm.chat import ChatReply, ChatRequest, Message, Usage, estimate_tokens
from ragforge.llm.wire import read_count

EMBEDDINGS = "embeddings"
"""Stands for the schema in requests for vectors; its reply's text is packed vectors."""


def embeddings_request(texts: Sequence[str]) -> ChatRequest:
    """Return the request for one vector a text; the order of the texts counts."""
    turns = tuple(Message("user", text) for text in texts)
    return ChatRequest(turns, EMBEDDINGS, {}, max_output_tokens=0)


def read_embeddings(body: Mapping[str, Any], request: ChatRequest, latency_s: float) -> ChatReply:
    """Return the reply in a list of embeddings, its vectors in the order of the texts.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: It is none, or a vector is of no use.
    """
    rows = sorted(body["data"], key=lambda row: row["index"])
    vectors = [array("f", map(float, row["embedding"])) for row in rows]
    if len(vectors) != len(request.messages):
        raise ValueError(f"one vector a text: {len(vectors)} for {len(request.messages)} texts")
    widths = {len(vector) for vector in vectors}
    if len(widths) != 1 or 0 in widths:
        raise ValueError("one number of dimensions for all vectors, 1 or more")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise ValueError("finite numbers")
    return ChatReply(
        pack(vectors),
        usage=_usage(body, request),
        model=str(body.get("model") or ""),
        latency_s=latency_s,
    )


def pack(vectors: Sequence["array[float]"]) -> str:
    """Return vectors of one length as text: their number, and base64 of little-endian float32."""
    whole = array("f")
    for vector in vectors:
        whole.extend(vector)
    return f"{len(vectors)} {base64.b64encode(_little_endian(whole).tobytes()).decode('ascii')}"


def unpack(text: str) -> list[list[float]]:
    """Return the vectors that a text holds.

    Raises:
        ValueError: It holds none.
    """
    count, _, packed = text.partition(" ")
    whole = array("f")
    whole.frombytes(base64.b64decode(packed, validate=True))
    numbers = _little_endian(whole).tolist()
    width, rest = divmod(len(numbers), int(count)) if int(count) else (0, 0)
    if not width or rest:
        raise ValueError(f"{len(numbers)} numbers are not {count} vectors")
    return [numbers[start : start + width] for start in range(0, len(numbers), width)]


def _little_endian(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _usage(body: Mapping[str, Any], request: ChatRequest) -> Usage:
    usage = body.get("usage")
    count = read_count(usage.get("prompt_tokens")) if isinstance(usage, Mapping) else None
    return Usage(estimate_tokens(request), estimated=True) if count is None else Usage(count)
