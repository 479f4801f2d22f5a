"""The one module that names `openai`: a single attempt at an OpenAI-compatible endpoint.

The client's own retries are off: every attempt is counted, limited and classified here.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import openai

from ragforge.config import ModelSettings
from ragforge.errors import CallError, ConfigError, EndpointError
from ragforge.llm.attempts import TransientError, retry_after_s
from ragforge.llm.chat import ChatReply, ChatRequest, Usage, estimate_tokens
from ragforge.llm.dialect import Dialect, milder

CONNECT_TIMEOUT_S = 30.0
"""A busy event loop fails shorter ones although the endpoint is well."""

_RAW_SHOWN = 2000
_MESSAGE_SHOWN = 500
_SECRET_LENGTH = 8
"""Shorter keys are placeholders that local servers want, such as "none" or "EMPTY"."""
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
_FATAL_STATUS = frozenset({301, 302, 303, 307, 308, 401, 403, 404})


class OpenAIEndpoint:
    """One endpoint and model.

    Args:
        settings: Name, address and limits; the key is read from the variable they name.
        dialect: What is known of how it wants to be asked.
        learnt: Told once, unless what was known before still holds.
        bounded: Whether limits on the length of strings stay in the schema (local grammars need
            them to stop a rambling model; hosted strict modes refuse them).

    Raises:
        ConfigError: No key is set for an endpoint that needs one.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        dialect: Dialect | None = None,
        learnt: Callable[[Dialect], None] | None = None,
        bounded: bool = False,
    ) -> None:
        key = os.environ.get(settings.api_key_env, "")
        if not key and not settings.base_url:
            raise ConfigError(
                f"model {settings.name!r}: the environment variable {settings.api_key_env} holds "
                "no key; set it, or name another endpoint with --base-url, or use --model offline"
            )
        self._settings = settings
        self._key = key
        self._dialect = dialect or Dialect()
        self._remembered = dialect
        self._proven = False
        self._learnt = learnt
        self._bounded = bounded
        self._first = asyncio.Lock()
        self._alone = True
        self._client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=settings.base_url or None,
            max_retries=0,
            timeout=openai.Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S, pool=None),
            # Followed, a redirect would take the texts to a server that the user did not name.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    @property
    def address(self) -> str:
        """The endpoint's address."""
        return str(self._client.base_url)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Make one attempt; the first one of all goes alone, to learn or confirm the dialect.

        Raises:
            TransientError: The attempt may be repeated.
            CallError: The request was refused for what it holds.
            EndpointError: Every request would be refused.
        """
        if self._proven:
            return await self._attempt(request, self._dialect)
        if self._alone:
            async with self._first:
                return await self._probe(request)
        return await self._probe(request)

    async def _probe(self, request: ChatRequest) -> ChatReply:
        """Ask in ever milder forms until one is taken."""
        dialect = self._dialect
        while not self._proven:
            try:
                reply = await self._attempt(request, dialect)
            except _FormRefusedError as refusal:
                dialect = refusal.milder
                continue
            except TransientError:
                # An endpoint that hangs would else be waited for by one request after the other.
                self._alone = False
                raise
            self._dialect, self._proven = dialect, True
            if self._learnt and dialect != self._remembered:
                self._learnt(dialect)
            return reply
        return await self._attempt(request, self._dialect)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order.

        Raises:
            TransientError, CallError, EndpointError: As for `ask`.
        """

        async def send() -> Any:  # noqa: ANN401  # the client's raw response has no public type
            return await self._client.embeddings.with_raw_response.create(
                model=self._settings.embedding_model,
                input=list(texts),
                encoding_format="float",
            )

        raw = await self._send(send, None)
        body = self._json_body(raw)
        try:
            rows = sorted(body["data"], key=lambda row: row["index"])
            vectors = [[float(number) for number in row["embedding"]] for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise TransientError(f"embeddings reply lacks {error}", raw=self._start(raw)) from error
        if len(vectors) != len(texts):
            raise TransientError(f"{len(vectors)} embeddings came back for {len(texts)} texts")
        return vectors

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _attempt(self, request: ChatRequest, dialect: Dialect) -> ChatReply:
        fields = _fields(self._settings.name, request, dialect, bounded=self._bounded)

        async def send() -> Any:  # noqa: ANN401  # as above
            return await self._client.chat.completions.with_raw_response.create(**fields)

        started = time.monotonic()
        raw = await self._send(send, dialect)
        body = self._json_body(raw)
        try:
            return _reply(body, request, time.monotonic() - started)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            detail = self._start(str(body.get("error") or "it holds no choices[0].message"))
            raise TransientError(
                f"the reply is no chat completion: {detail[:_MESSAGE_SHOWN]}", raw=self._start(raw)
            ) from error

    async def _send(self, send: Callable[[], Awaitable[Any]], dialect: Dialect | None) -> str:
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                response = await send()
                return str(response.text)
        except TimeoutError as error:
            raise TransientError(f"no reply within {self._settings.timeout_s:g} s") from error
        except openai.APITimeoutError as error:
            raise TransientError(f"{self.address}: timed out", unreachable=True) from error
        except openai.APIStatusError as error:
            raise self._refusal(error, dialect) from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise TransientError(
                f"{self.address}: cannot be reached: {cause}", unreachable=True
            ) from error
        except openai.APIError as error:
            raise TransientError(f"{self.address}: {error.message}") from error

    def _json_body(self, text: str) -> dict[str, Any]:
        try:
            body = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TransientError("the reply is not JSON", raw=self._start(text)) from error
        if not isinstance(body, dict):
            raise TransientError("the reply is not a JSON object", raw=self._start(text))
        return body

    def _start(self, text: str) -> str:
        """Return the start of a body for a failure record; some gateways echo the key in it."""
        return self._without_key(text)[:_RAW_SHOWN]

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if len(self._key) >= _SECRET_LENGTH else text

    def _refusal(self, error: openai.APIStatusError, dialect: Dialect | None) -> Exception:
        code, param, message = _explanation(error)
        message = " ".join(self._without_key(message).split())[:_MESSAGE_SHOWN]
        said = f"{self.address}: HTTP {error.status_code}: {message}"
        if error.status_code in _FATAL_STATUS or code == "insufficient_quota":
            key = f", key from {self._settings.api_key_env}" if self._key else ", no key set"
            return EndpointError(f"{said} (model {self._settings.name!r}{key})")
        if error.status_code in _TRANSIENT_STATUS or error.status_code >= 500:
            wait_s = retry_after_s(error.response.headers)
            raw = self._start(error.response.text)
            return TransientError(said, retry_after_s=wait_s, raw=raw)
        next_dialect = milder(dialect, message, param) if dialect and not self._proven else None
        if next_dialect is not None:
            return _FormRefusedError(next_dialect)
        return CallError("error", said, self._start(error.response.text))


class _FormRefusedError(Exception):
    """The endpoint does not take the form of the request; carries the form to try instead."""

    def __init__(self, milder_dialect: Dialect) -> None:
        super().__init__()
        self.milder = milder_dialect


def _fields(model: str, request: ChatRequest, dialect: Dialect, *, bounded: bool) -> dict[str, Any]:
    messages = [asdict(message) for message in request.messages]
    schema = dict(request.schema) if bounded else _without_bounds(request.schema)
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
    return {name: value for name, value in fields.items() if name not in dialect.omit}


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


def _reply(body: dict[str, Any], request: ChatRequest, latency_s: float) -> ChatReply:
    choice = body["choices"][0]
    message = choice["message"]
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError("the content is not text")
    return ChatReply(
        text=text,
        finish_reason=str(choice.get("finish_reason") or "stop"),
        refusal=str(message.get("refusal") or ""),
        usage=_usage(body.get("usage"), request, text),
        model=str(body.get("model") or ""),
        fingerprint=str(body.get("system_fingerprint") or ""),
        latency_s=latency_s,
    )


def _usage(usage: object, request: ChatRequest, text: str) -> Usage:
    if isinstance(usage, Mapping):
        counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
        if all(isinstance(count, int) and count >= 0 for count in counts):
            return Usage(prompt_tokens=counts[0], completion_tokens=counts[1])  # type: ignore[arg-type]  # checked in the line above
    return Usage(estimate_tokens(request), len(text) // 4, estimated=True)


def _explanation(error: openai.APIStatusError) -> tuple[str, str, str]:
    if error.response.has_redirect_location:
        return "", "", f"redirects to {error.response.headers['location']!r}; see --base-url"
    body = error.body if isinstance(error.body, Mapping) else {}
    if isinstance(body.get("error"), Mapping):
        body = body["error"]
    message = body.get("message") or error.response.text or error.response.reason_phrase
    code = body.get("code") or body.get("type") or ""
    return str(code), str(body.get("param") or ""), str(message)
