"""Bodies of requests and replies of an OpenAI-compatible endpoint, in its dialect."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ragforge.llm.chat import ChatReply, ChatRequest, Numeral, Usage, estimate_tokens

Mode = Literal["json_schema", "json_object", "plain"]

_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "json_object", "json_object": "plain"}
_OPTIONAL = ("temperature", "seed", "top_logprobs", "logprobs")
_FORMAT_WORDS = re.compile(r"response_format|json_schema|json_object|schema|grammar", re.IGNORECASE)

_MOST_TOKENS = 10**9
"""No call takes more; who says so has not counted, and what is kept of it would not fit a store."""
_STRICT: dict[int, tuple[Mapping[str, object], dict[str, Any]]] = {}
"""By identity, with the schema itself so that the identity stays taken; there are few."""


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
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
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
        read_count, (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    )
    return None if prompt is None or completion is None else Usage(prompt, completion)


def read_count(value: object) -> int | None:
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
