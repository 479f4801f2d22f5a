"""The bodies of replies, in the shapes that OpenAI gives them."""

import base64
import hashlib
import json
import math
import re
import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragforge.mock.faults import Choice
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


def logprobs_of(text: str, most: int) -> dict[str, Any]:
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
    return logprobs_of(choice.content, asked.get("top_logprobs") or 0)


def embeddings(
    asked: Mapping[str, Any], texts: Sequence[str], tokens: Tokens | None
) -> dict[str, Any]:
    """Return embeddings: unit vectors that say nothing about the texts but which are equal.

    Args:
        asked: The request; its model, dimensions and encoding_format are obeyed.
        texts: What is embedded.
        tokens: Left out where None.
    """
    dimensions = asked.get("dimensions") or 64
    packed = asked.get("encoding_format") == "base64"
    rows = []
    for index, text in enumerate(texts):
        vector = unit_vector(text, dimensions)
        shown: list[float] | str = vector
        if packed:
            shown = base64.b64encode(struct.pack(f"<{dimensions}f", *vector)).decode()
        rows.append({"object": "embedding", "index": index, "embedding": shown})
    body: dict[str, Any] = {"object": "list", "data": rows, "model": asked["model"]}
    if tokens is not None:
        usage = tokens.usage()
        del usage["completion_tokens"]
        body["usage"] = usage
    return body


def unit_vector(text: str, dimensions: int) -> list[float]:
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
