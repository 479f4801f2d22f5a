"""Requests for work: read, checked, and refused where a script or the shape says so."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ragforge.mock.content import body_sha256, text_of
from ragforge.mock.replies import Problem
from ragforge.mock.script import Script

_MOST_DIMENSIONS = 8192
_CHARS_PER_TOKEN = 4
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Job:
    """A request that the model would work on.

    Args:
        body: As it came; its model is text and its messages are mappings.
        digest: Of the body.
        texts: Of the messages, or the inputs to embed.
        is_chat: Else it asks for embeddings.
    """

    body: dict[str, Any]
    digest: bytes
    texts: list[str]
    is_chat: bool

    @property
    def prompt_tokens(self) -> int:
        """A quarter of the characters."""
        return sum(map(len, self.texts)) // _CHARS_PER_TOKEN


def read_job(content: bytes, *, is_chat: bool) -> Job | Problem:
    """Return the job that a body asks for, or the problem with it."""
    try:
        body = _DECODER.decode(str(content, "utf-8"))
        if not isinstance(body, dict):
            return Problem(400, f"expected a JSON object, got {type(body).__name__}")
        digest = body_sha256(body)
    except (ValueError, RecursionError) as error:
        return Problem(400, f"We could not parse the JSON body of your request: {error}")
    if not isinstance(body.get("model"), str):
        return Problem(400, "you must provide a model parameter", param="model")
    if is_chat:
        return _chat(body, digest)
    return _embeddings(body, digest)


def model_of(content: bytes) -> str:
    """Return the model that a body names, `mock` where it names none."""
    try:
        found = _DECODER.decode(str(content, "utf-8"))["model"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return "mock"
    return found if isinstance(found, str) else "mock"


def refused(script: Script, job: Job) -> Problem | None:
    """Return the error that a script has for a request, None where it is taken."""
    if script.bad_text and any(script.bad_text in text for text in job.texts):
        return Problem(400, "Your request was flagged by our moderation system", code="bad_text")
    if not job.is_chat:
        return None
    return next((_REFUSALS[name] for name in _unwanted(job) if name in script.refuse), None)


def _chat(body: dict[str, Any], digest: bytes) -> Job | Problem:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return Problem(400, "'messages' is a required property", param="messages")
    if not all(isinstance(message, dict) for message in messages):
        return Problem(400, "'messages' holds what is no object", param="messages")
    if body.get("stream"):
        return Problem(400, "This endpoint does not stream; leave out 'stream'.", param="stream")
    return Job(body, digest, [text_of(message) for message in messages], is_chat=True)


def _embeddings(body: dict[str, Any], digest: bytes) -> Job | Problem:
    given = body.get("input")
    if given is None or given in ([], ""):
        return Problem(400, "'input' is a required property", param="input")
    items = given if isinstance(given, list) else [given]
    if all(isinstance(item, int) for item in items):
        items = [items]
    dimensions = body.get("dimensions") or 64
    if type(dimensions) is not int or not 1 <= dimensions <= _MOST_DIMENSIONS:
        return Problem(400, f"'dimensions' must be 1 to {_MOST_DIMENSIONS}", param="dimensions")
    texts = [item if isinstance(item, str) else json.dumps(item) for item in items]
    return Job(body, digest, texts, is_chat=False)


def _unwanted(job: Job) -> Iterator[str]:
    """Yield the parameters of the request that a script may refuse."""
    body = job.body
    form = body.get("response_format")
    if isinstance(form, dict) and form.get("type") in ("json_schema", "json_object"):
        yield form["type"]
    if body.get("temperature", 1) not in (1, None):
        yield "temperature"
    if body.get("seed") is not None:
        yield "seed"
    if body.get("max_tokens") is not None:
        yield "max_tokens"


_REFUSALS = {
    "json_schema": Problem(
        400,
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
        "model.",
        param="response_format",
    ),
    "json_object": Problem(400, "This response_format type is unavailable now"),
    "temperature": Problem(
        400,
        "Unsupported value: 'temperature' does not support 0 with this model. "
        "Only the default (1) value is supported.",
        param="temperature",
        code="unsupported_value",
    ),
    "seed": Problem(
        400,
        "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), "
        "'msg': 'Extra inputs are not permitted'}]",
        type="BadRequestError",
    ),
    "max_tokens": Problem(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        param="max_tokens",
        code="unsupported_parameter",
    ),
}
