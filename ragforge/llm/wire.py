"""What goes over the wire to an OpenAI-compatible endpoint and back.

Bodies of chat requests and replies, in the dialect that the endpoint takes; embeddings, as calls
like others, so that they are stored, paced, limited and counted alike; rate limits and waits in the
headers of replies.
"""

import base64
import json
import math
import re
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from ragforge.deferred import dataclass
from ragforge.llm.chat import ChatReply, ChatRequest, Message, Numeral, Usage, estimate_tokens

Mode = Literal["json_schema", "json_object", "plain"]

_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "json_object", "json_object": "plain"}
_OPTIONAL = ("temperature", "seed", "top_logprobs", "logprobs")
_FORMAT_WORDS = re.compile(r"response_format|json_schema|json_object|schema|grammar", re.IGNORECASE)

_MOST_TOKENS = 10**9
"""No call takes more; who says so has not counted, and what is kept of it would not fit a store."""
_STRICT: dict[int, tuple[Mapping[str, object], dict[str, Any]]] = {}
"""By identity, with the schema itself so that the identity stays taken; there are few."""
EMBEDDINGS = "embeddings"
"""Stands for the schema in requests for vectors; its reply's text is packed vectors."""
_DURATION_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_STATED_WAIT_S = 1e9
"""What any longer wait counts as; no calendar and no clock goes as far as some endpoints ask."""
_DURATION_PART = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)(ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form of requests that an endpoint accepts.

    Args:
        mode: How it is made to reply in JSON.
        tokens_field: The name of its limit on the reply.
        omit: Optional parameters it refuses.
    """

    mode: Mode = "json_schema"
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    omit: tuple[str, ...] = ()


def milder_dialect(dialect: Dialect, message: str, param: str) -> Dialect | None:
    """Return the dialect to try after a refusal, or None where the refusal is about something else.

    Args:
        dialect: What was refused.
        message: The endpoint's explanation.
        param: The parameter it names, "" where none.
    """
    about = f"{param} {message}"
    if dialect.tokens_field == "max_tokens" and "max_completion_tokens" in about:
        return replace(dialect, tokens_field="max_completion_tokens")
    for name in _OPTIONAL:
        if name not in dialect.omit and (param == name or re.search(rf"['\"`]{name}\b", message)):
            return replace(dialect, omit=(*dialect.omit, name))
    if dialect.mode in _NEXT_MODE and _FORMAT_WORDS.search(about):
        return replace(dialect, mode=_NEXT_MODE[dialect.mode])
    return None


def request_body(model: str, request: ChatRequest, dialect: Dialect, *, bounded: bool) -> bytes:
    """Return the body of a chat completion request.

    Args:
        model: Name at the endpoint.
        request: What is asked.
        dialect: How the endpoint wants to be asked.
        bounded: Whether limits on the length of strings stay in the schema.
    """
    return dumps(_fields(model, request, dialect, bounded=bounded))


def dumps(value: object) -> bytes:
    """Return JSON in UTF-8; lone surrogates, which UTF-8 cannot hold, come escaped."""
    from pydantic_core import to_json  # It takes a quarter of the time of `json`.

    try:
        return to_json(value)
    except ValueError:
        return json.dumps(value, separators=(",", ":")).encode()


def read_reply(body: Mapping[str, Any], request: ChatRequest, latency_s: float) -> ChatReply:
    """Return the reply in a chat completion.

    Raises:
        KeyError, IndexError, TypeError, AttributeError: It is none.
    """
    choice = body["choices"][0]
    message = choice["message"]
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError("the content is not text")
    return ChatReply(
        text=text,
        finish_reason=str(choice.get("finish_reason") or "stop"),
        refusal=str(message.get("refusal") or ""),
        usage=read_usage(body) or Usage(estimate_tokens(request), len(text) // 4, estimated=True),
        model=str(body.get("model") or ""),
        fingerprint=str(body.get("system_fingerprint") or ""),
        reply_id=str(body.get("id") or ""),
        numerals=_numerals(choice.get("logprobs"), text) if request.logprobs else (),
        latency_s=latency_s,
    )


def _numerals(logprobs: Any, text: str) -> tuple[Numeral, ...]:  # noqa: ANN401  # as it came
    """Return the digits of a reply; none where tokens are not given, or are not those of the text.

    All alternatives at all tokens would be fifty times as long as the reply itself.
    """
    try:
        tokens = (logprobs or {}).get("content") or ()
        spoken = "".join(token["token"] for token in tokens)
        # Some servers take a fence off the text, and not off its tokens.
        at, numerals = -spoken.find(text), []
        if at > 0:
            return ()
        for token in tokens:
            token_text = token["token"]
            digit = token_text.strip()
            if at >= 0 and digit.isdecimal() and len(digit) == 1:
                numerals.append(Numeral(at + token_text.index(digit), _alternatives(token)))
            at += len(token_text)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()
    return tuple(numerals)


def _alternatives(token: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    given = [(str(item["token"]).strip(), float(item["logprob"])) for item in token["top_logprobs"]]
    return tuple((text, round(value, 4)) for text, value in given if not math.isnan(value))


def read_usage(body: Mapping[str, Any]) -> Usage | None:
    """Return the tokens a reply says it took, None where it does not say."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = map(
        _read_count, (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    )
    return None if prompt is None or completion is None else Usage(prompt, completion)


def _read_count(value: object) -> int | None:
    """Return the tokens that a field of a usage says, None where no call can have taken them."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _fields(model: str, request: ChatRequest, dialect: Dialect, *, bounded: bool) -> dict[str, Any]:
    messages = [{"role": turn.role, "content": turn.content} for turn in request.messages]
    schema = dict(request.schema) if bounded else _strict(request.schema)
    fields: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "temperature": request.temperature,
        "seed": request.seed,
        dialect.tokens_field: request.max_output_tokens,
    }
    if dialect.mode == "json_schema":
        form = {"name": request.schema_name, "strict": True, "schema": schema}
        fields["response_format"] = {"type": "json_schema", "json_schema": form}
    else:
        messages[0]["content"] += (
            "\n\nReply with one JSON object and nothing else. It must hold to this JSON schema:\n"
            + json.dumps(schema, ensure_ascii=False)
        )
        if dialect.mode == "json_object":
            fields["response_format"] = {"type": "json_object"}
    if request.logprobs and not {"logprobs", "top_logprobs"} & set(dialect.omit):
        fields |= {"logprobs": True, "top_logprobs": request.logprobs}
    kept = {name: value for name, value in fields.items() if name not in dialect.omit}
    return {**kept, **request.extra}


def _strict(schema: Mapping[str, object]) -> dict[str, Any]:
    known = _STRICT.get(id(schema))
    if known is not None:
        return known[1]
    if len(_STRICT) > 100:
        _STRICT.clear()
    _STRICT[id(schema)] = (schema, _without_bounds(schema))
    return _STRICT[id(schema)][1]


def _without_bounds(schema: Mapping[str, object]) -> dict[str, Any]:
    """Return the schema without the keywords that strict modes of hosted endpoints refuse."""

    def strip(node: Any) -> Any:  # noqa: ANN401  # JSON is any shape
        if isinstance(node, Mapping):
            return {
                key: strip(value)
                for key, value in node.items()
                if key not in ("maxLength", "minLength")
            }
        return [strip(item) for item in node] if isinstance(node, list) else node

    stripped: dict[str, Any] = strip(schema)
    return stripped


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
        usage=_embedding_usage(body, request),
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


def _embedding_usage(body: Mapping[str, Any], request: ChatRequest) -> Usage:
    usage = body.get("usage")
    count = _read_count(usage.get("prompt_tokens")) if isinstance(usage, Mapping) else None
    return Usage(estimate_tokens(request), estimated=True) if count is None else Usage(count)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit that an endpoint states: so many a minute, so many left."""

    per_minute: float
    remaining: float


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of a reply's headers; None where it tells none."""

    requests: RateLimit | None
    tokens: RateLimit | None


def read_rate_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """Return the limits in `x-ratelimit-limit-…` and `x-ratelimit-remaining-…`, None if none.

    Args:
        headers: Looked up as given: without regard to case where the mapping does so.
    """
    if "x-ratelimit-limit-requests" not in headers and "x-ratelimit-limit-tokens" not in headers:
        return None
    return RateLimits(_rate_limit(headers, "requests"), _rate_limit(headers, "tokens"))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a reply asks to wait, None where it does not say or makes no sense.

    They are 0 to LONGEST_STATED_WAIT_S.

    Args:
        headers: Looked up without regard to case. `retry-after-ms` goes before `retry-after`,
            which holds seconds or an HTTP date. A date is compared with the reply's own, where
            it carries one: the clock here may be wrong.
    """
    low = {name.lower(): value.strip() for name, value in headers.items()}
    if "retry-after-ms" in low:
        milliseconds = _number(low["retry-after-ms"])
        if milliseconds is not None:
            return min(milliseconds / 1000, LONGEST_STATED_WAIT_S)
    value = low.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, low.get("date", ""))
    return None if seconds is None else min(seconds, LONGEST_STATED_WAIT_S)


def _rate_limit(headers: Mapping[str, str], what: str) -> RateLimit | None:
    limit = _number(headers.get(f"x-ratelimit-limit-{what}", ""))
    remaining = _number(headers.get(f"x-ratelimit-remaining-{what}", ""))
    if not limit:
        return None
    return RateLimit(limit, limit if remaining is None else remaining)


def _number(text: str) -> float | None:
    """Return a finite number from 0, None for anything else."""
    try:
        number = float(text)
    except ValueError:
        return _duration(text)
    return number if math.isfinite(number) and number >= 0 else None


def _duration(text: str) -> float | None:
    """Return the seconds of a duration such as 1m30s or 250ms."""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    seconds = sum(float(number) * _DURATION_UNITS_S[unit] for number, unit in parts)
    return seconds if math.isfinite(seconds) else None


def _until(value: str, date: str) -> float | None:
    then = _timestamp(value)
    if then is None:
        return None
    now = _timestamp(date)
    return max(0.0, then - (time.time() if now is None else now))


def _timestamp(date: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
