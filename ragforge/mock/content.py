"""What a good reply says: decided by the request and the seed alone."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragforge.mock.draws import Draws
from ragforge.mock.schema_examples import SchemaError, example
from ragforge.mock.stage_replies import stage_reply

_BEHIND = "It must hold to this JSON schema:\n"
"""What stands in front of the schema where the endpoint is not asked to enforce it."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_PLAIN = json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder()

Body = Mapping[str, Any]
"""A request as it came: JSON is any shape."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a good reply.

    Args:
        text: As it is sent.
        value: What the text is the JSON of, None where it is prose.
        schema: What the value holds to, empty where nothing was asked for.
    """

    text: str
    value: Any = None
    schema: Mapping[str, Any] | None = None


def body_sha256(body: Body) -> bytes:
    """Return the digest of a request: sorted keys, no blanks, ASCII."""
    return hashlib.sha256(_CANONICAL.encode(body).encode()).digest()


def good_content(body: Body, digest: bytes, seed: int) -> Content:
    """Return what a good reply to a chat request says.

    Args:
        body: The request.
        digest: Its `body_sha256`.
        seed: Of the script.

    Raises:
        SchemaError: The schema asked for holds no value.
    """
    draws = Draws("content", seed, digest.hex())
    schema = _schema(body)
    if schema is None:
        if _form(body).get("type") == "json_object":
            prose = {"text": _prose(draws)}
            return Content(json.dumps(prose), prose)
        return Content(_prose(draws))
    texts = [text_of(item) for item in body["messages"] if item.get("role") == "user"]
    for name in ("properties", "$defs"):
        if not isinstance(schema.get(name, {}), Mapping):
            raise SchemaError(f"{name}: expected an object")
    properties = schema.get("properties", {})
    value: Any = stage_reply(properties, texts, draws)
    if value is None:
        value = example(schema, draws)
    elif len(value) != len(properties):
        value = {**example(schema, draws), **value}
    return Content(_PLAIN.encode(value), value, schema)


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message, its parts joined."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def _prose(draws: Draws) -> str:
    return f"This is reply {draws.below(1 << 32):08x} of a mock endpoint; it means nothing."


def _form(body: Body) -> Mapping[str, Any]:
    form = body.get("response_format")
    return form if isinstance(form, Mapping) else {}


def _schema(body: Body) -> Mapping[str, Any] | None:
    asked = _form(body).get("json_schema")
    schema = asked.get("schema") if isinstance(asked, Mapping) else None
    if schema is None:
        schema = _schema_in_prompt(body)
    return schema if isinstance(schema, Mapping) else None


def _schema_in_prompt(body: Body) -> object:
    for message in body["messages"]:
        if message.get("role") in ("system", "developer"):
            _, found, behind = text_of(message).partition(_BEHIND)
            if found:
                try:
                    return _DECODER.raw_decode(behind.lstrip())[0]
                except (ValueError, RecursionError):
                    return None
    return None
