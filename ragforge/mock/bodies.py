"""Bodies of requests and replies, in the shapes that OpenAI gives them.

Requests are read, checked, and refused where a script or their shape says so.
"""

import base64
import hashlib
import json
import math
import re
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ragforge.deferred import dataclass
from ragforge.mock.content import Choice, body_sha256, text_of
from ragforge.mock.script import Script
from ragforge.records.record import MOCK_FINGERPRINT

_TOKENS = re.compile(r"\d|[^\d]+")
_OWN = 0.86
_NEXT = 0.06

HTML_502 = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
)
HTML_200 = b"<!doctype html>\n<title>Sign in</title>\n<h1>Sign in to the network</h1>\n"
NO_JSON = b"upstream connect error or disconnect \xff\xfe"
_MOST_DIMENSIONS = 8192
_CHARS_PER_TOKEN = 4
_DECODER = json.JSONDecoder()


def _logprobs_of(text: str, most: int) -> dict[str, Any]:
    """Return the field `logprobs` of a choice.

    Args:
        text: The reply.
        most: Alternatives to give at each token.
    """
    return {"content": [_token(found[0], most) for found in _TOKENS.finditer(text)]}


def _token(text: str, most: int) -> dict[str, Any]:
    likely = {text: 0.99}
    if text.isdecimal() and text.isascii():
        near = {str(int(text) + step): _NEXT for step in (-1, 1) if 0 <= int(text) + step <= 9}
        likely = {text: _OWN, **near, "none": 0.01}
    given = [{"token": token, "logprob": math.log(share)} for token, share in likely.items()]
    return {**given[0], "top_logprobs": given[:most]}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error reply."""

    status: int
    message: str
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None

    def body(self) -> bytes:
        """Return OpenAI's shape of it."""
        error = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return json.dumps({"error": error}).encode()


@dataclass(frozen=True, slots=True)
class Tokens:
    """How many a request and its reply have: a quarter of their characters."""

    prompt: int
    completion: int = 0

    def usage(self) -> dict[str, int]:
        """Return them as replies tell them."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }


def completion(
    asked: Mapping[str, Any], digest: bytes, choice: Choice | None, tokens: Tokens | None
) -> dict[str, Any]:
    """Return a chat completion.

    Args:
        asked: The request; its model and its wish for probabilities are obeyed.
        digest: Of the request; makes the id.
        choice: The one choice; none where None.
        tokens: Left out where None.
    """
    choices = []
    if choice is not None:
        message = {"role": "assistant", "content": choice.content, "refusal": choice.refusal}
        choices = [
            {
                "index": 0,
                "message": message,
                "logprobs": _wished(asked, choice),
                "finish_reason": choice.finish_reason,
            }
        ]
    body: dict[str, Any] = {
        "id": f"chatcmpl-{digest.hex()[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": asked["model"],
        "system_fingerprint": MOCK_FINGERPRINT,
        "choices": choices,
    }
    if tokens is not None:
        body["usage"] = tokens.usage()
    return body


def _wished(asked: Mapping[str, Any], choice: Choice) -> dict[str, Any] | None:
    if asked.get("logprobs") is not True or not choice.content:
        return None
    return _logprobs_of(choice.content, asked.get("top_logprobs") or 0)


Embed: TypeAlias = Callable[[Sequence[str], int], list[list[float]]]
"""Returns a vector a text, of so many dimensions where the vectors can have any."""


def embeddings(
    asked: Mapping[str, Any], texts: Sequence[str], tokens: Tokens | None, embed: Embed
) -> dict[str, Any]:
    """Return embeddings.

    Args:
        asked: The request; its model and encoding_format are obeyed, and its dimensions by vectors
            that can have any.
        texts: What is embedded.
        tokens: Left out where None.
        embed: Makes the vectors.
    """
    packed = asked.get("encoding_format") == "base64"
    rows = []
    for index, vector in enumerate(embed(texts, asked.get("dimensions") or 64)):
        shown: list[float] | str = vector
        if packed:
            shown = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        rows.append({"object": "embedding", "index": index, "embedding": shown})
    body: dict[str, Any] = {"object": "list", "data": rows, "model": asked["model"]}
    if tokens is not None:
        usage = tokens.usage()
        del usage["completion_tokens"]
        body["usage"] = usage
    return body


def random_vectors(texts: Sequence[str], dimensions: int) -> list[list[float]]:
    """Return unit vectors that say nothing about the texts but which are equal."""
    return [_unit_vector(text, dimensions) for text in texts]


def _unit_vector(text: str, dimensions: int) -> list[float]:
    """Return the vector of a text, of length 1."""
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(2 * dimensions)
    raw = [value - 32767.5 for value in array("H", digest)]
    length = math.sqrt(sum(value * value for value in raw))
    return [value / length for value in raw]


def models() -> dict[str, Any]:
    """Return the list of models; any name is taken, this one stands for all."""
    model = {"id": "mock", "object": "model", "created": 0, "owned_by": "ragforge"}
    return {"object": "list", "data": [model]}


def status_problem(status: int, model: str) -> Problem:
    """Return the error that usually comes with a status."""
    known = {
        401: ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
        403: (
            f"Project `proj_mock` does not have access to model `{model}`",
            "invalid_request_error",
            "model_not_allowed",
        ),
        404: (
            f"The model `{model}` does not exist or you do not have access to it.",
            "invalid_request_error",
            "model_not_found",
        ),
        429: ("The engine is currently overloaded, please try again later", "requests", None),
        500: (
            "The server had an error while processing your request. Sorry about that!",
            "server_error",
            None,
        ),
        503: ("The server is overloaded or not ready yet.", "server_error", None),
    }
    usual = ("The request cannot be taken.", "invalid_request_error" if status < 500 else "", None)
    message, kind, code = known.get(status, usual)
    return Problem(status, message, kind or "server_error", code)


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
