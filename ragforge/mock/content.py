"""The content of replies: JSON that holds to the schema asked for, and what each fault makes of it.

A good reply depends on the request and the seed alone.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ragforge.deferred import dataclass
from ragforge.mock.script import Draws
from ragforge.mock.stage_replies import stage_reply
from ragforge.mock.weaknesses import Weakness

_Json = Any
"""JSON is any shape."""
Body = Mapping[str, Any]
"""A request as it came: JSON is any shape."""
_WORDS = "amber basin cedar delta ember fjord grove harbor island juniper kelp lagoon".split()
_FORMATS = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T09:30:00Z",
    "time": "09:30:00Z",
    "duration": "P1D",
    "uuid": "3f2b8c1e-5d4a-4b6f-9c7d-0a1b2c3d4e5f",
    "email": "ann@example.org",
    "uri": "https://example.org/",
}
_DEEPEST = 4
"""From this depth on, what can be left out or be null is."""
_DEEPEST_OF_ALL = 50
_LARGEST = 100_000
"""Items or characters that are made because the schema wants at least so many."""
_BEHIND = "It must hold to this JSON schema:\n"
"""What stands in front of the schema where the endpoint is not asked to enforce it."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_PLAIN = json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder()
_MEGABYTE = 1_000_000
_BRACKETS = 10_000
_FREE_TEXT = ("reasoning", "explanation", "answer", "text")
"""Fields that no check of a stage compares with anything, so that what they hold gets through."""


class SchemaError(ValueError):
    """A schema that no value can be made for; the message says where."""


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


def good_content(
    body: Body, digest: bytes, seed: int, weaknesses: Collection[Weakness] = ()
) -> Content:
    """Return the content of a good reply to a chat request.

    Args:
        body: The request.
        digest: Its `body_sha256`.
        seed: Of the script.
        weaknesses: What it falls for as a judge.

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
    value: Any = stage_reply(properties, texts, draws, weaknesses)
    if value is None:
        value = example(schema, draws)
    elif len(value) != len(properties):
        value = {**example(schema, draws), **value}
    return Content(_PLAIN.encode(value), value, schema)


def body_sha256(body: Body) -> bytes:
    """Return the digest of a request: sorted keys, no blanks, ASCII."""
    return hashlib.sha256(_CANONICAL.encode(body).encode()).digest()


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


def example(schema: _Json, draws: Draws) -> _Json:
    """Return a value that holds to a schema.

    Args:
        schema: Type, enum, const, bounds on lengths and numbers, properties, items, anyOf, oneOf,
            allOf with one entry, $ref into $defs; other keywords are passed over.
        draws: Decides which value; advanced.

    Raises:
        SchemaError: It refers to what is not there, or holds itself without an end.
    """
    definitions = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}
    return _Maker(definitions, draws).make(schema, 0)


class _Maker:
    def __init__(self, definitions: Mapping[str, _Json], draws: Draws) -> None:
        self._definitions = definitions
        self._draws = draws
        self._makers: dict[str, Callable[[_Json, int], _Json]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda node, depth: bool(self._draws.below(2)),
            "null": lambda node, depth: None,
        }

    def make(self, node: _Json, depth: int) -> _Json:
        """Return a value for a part of the schema."""
        if depth > _DEEPEST_OF_ALL:
            raise SchemaError("the schema holds itself without an end")
        if not isinstance(node, Mapping):
            return None
        if "$ref" in node:
            return self.make(self._definition(node["$ref"]), depth + 1)
        for word in ("anyOf", "oneOf", "allOf"):
            if node.get(word):
                return self.make(self._branch(node[word], depth), depth + 1)
        return self._plain(node, depth)

    def _plain(self, node: _Json, depth: int) -> _Json:
        if "const" in node:
            return node["const"]
        if node.get("enum"):
            return node["enum"][self._draws.below(len(node["enum"]))]
        kind = node.get("type", "object" if "properties" in node else "null")
        if isinstance(kind, list):
            kind = kind[0]
        if kind not in self._makers:
            raise SchemaError(f"no type {kind!r}")
        return self._makers[kind](node, depth)

    def _definition(self, reference: str) -> _Json:
        name = str(reference).rsplit("/", 1)[-1]
        if name not in self._definitions:
            raise SchemaError(f"no definition {reference!r}")
        return self._definitions[name]

    def _branch(self, branches: list[_Json], depth: int) -> _Json:
        if depth >= _DEEPEST:
            plain = [node for node in branches if "$ref" not in node]
            ends = [node for node in plain if node.get("type") not in ("array", "object")]
            branches = ends or plain or branches
        return branches[self._draws.below(len(branches))]

    def _object(self, node: _Json, depth: int) -> _Json:
        required = node.get("required", [])
        return {
            name: self.make(part, depth + 1)
            for name, part in node.get("properties", {}).items()
            if name in required or (depth < _DEEPEST and self._draws.below(2))
        }

    def _array(self, node: _Json, depth: int) -> _Json:
        if "prefixItems" in node:
            return [self.make(part, depth + 1) for part in node["prefixItems"]]
        least = _size(node, "minItems")
        if depth >= _DEEPEST or "items" not in node:
            most = least
        else:
            most = min(node.get("maxItems", least + 2), least + 2)
        size = least + self._draws.below(most - least + 1)
        return [self.make(node.get("items"), depth + 1) for _ in range(size)]

    def _string(self, node: _Json, depth: int) -> str:
        if node.get("format") in _FORMATS:
            return _FORMATS[node["format"]]
        least = _size(node, "minLength")
        text = " ".join(_WORDS[self._draws.below(len(_WORDS))] for _ in range(3))
        while len(text) < least:
            text += " " + _WORDS[self._draws.below(len(_WORDS))]
        return text[: node["maxLength"]] if "maxLength" in node else text

    def _integer(self, node: _Json, depth: int) -> int:
        low, high = _bounds(node, 1)
        step = node.get("multipleOf", 1)
        first, last = math.ceil(low / step), math.floor(high / step)
        if first > last:
            raise SchemaError("no integer is inside its bounds")
        return int(step * (first + self._draws.below(min(last - first + 1, 1 << 31))))

    def _number(self, node: _Json, depth: int) -> float:
        low, high = _bounds(node, 0)
        inside = 0.001 + 0.998 * self._draws.fraction()
        return low + (high - low) * inside


def _size(node: _Json, name: str) -> int:
    least: int = node.get(name, 0)
    if least > _LARGEST:
        raise SchemaError(f"{name}: expected {_LARGEST} or less, got {least}")
    return least


def _bounds(node: _Json, step: int) -> tuple[float, float]:
    """Return the least and the greatest value; exclusive bounds are drawn in by the step."""
    low = node.get("minimum")
    high = node.get("maximum")
    if "exclusiveMinimum" in node:
        low = node["exclusiveMinimum"] + step
    if "exclusiveMaximum" in node:
        high = node["exclusiveMaximum"] - step
    if low is None:
        low = 0 if high is None else high - 100
    return low, low + 100 if high is None else high


@dataclass(frozen=True, slots=True)
class Choice:
    """The message of a choice.

    Args:
        content: None where there is none.
        finish_reason: Why it ends.
        refusal: None where there is none.
    """

    content: str | None
    finish_reason: str = "stop"
    refusal: str | None = None


def spoil(fault: str, good: Content, draws: Draws) -> Choice:
    """Return the choice under a fault; a fault that is none of the content changes nothing.

    Args:
        fault: Its name, as of `script.fault_of`; "" for none.
        good: What would be said.
        draws: Decides the variant; advanced.
    """
    if fault in _ENDINGS:
        return _ENDINGS[fault](good)
    if fault in _SPOILERS:
        return Choice(_SPOILERS[fault](good, draws))
    return Choice(good.text)


def _broken_json(good: Content, draws: Draws) -> str:
    value = good.value if good.value and isinstance(good.value, dict) else {"text": good.text}
    variants: tuple[Callable[[dict[str, Any]], str], ...] = (
        lambda value: json.dumps(value)[:-1] + ",}",
        lambda value: json.dumps(value).replace('"', "'"),
        lambda value: f"Here is the result:\n\n{json.dumps(value)}\n\nLet me know if this helps!",
        lambda value: json.dumps(value)[: max(1, len(json.dumps(value)) // 2)],
        _python_literals,
        lambda value: json.dumps(value) + "\n" + json.dumps(value),
        lambda value: "3",
        lambda value: "",
    )
    return variants[draws.below(len(variants))](value)


def _python_literals(value: dict[str, Any]) -> str:
    """Return JSON but for True, False and None; one None is added to be sure there is one."""
    parts = [
        f"{json.dumps(name)}: {item if item is None or item is True or item is False else text}"
        for name, item in {**value, "note": None}.items()
        for text in [json.dumps(item)]
    ]
    return f"{{{', '.join(parts)}}}"


def _fenced(good: Content, draws: Draws) -> str:
    return f"```json\n{good.text}\n```"


def _thinking(good: Content, draws: Draws) -> str:
    return f'<think>\nThe object could be {{"grade": 0}}. Let me see.\n</think>\n\n{good.text}'


def _against_schema(good: Content, draws: Draws) -> str:
    if not isinstance(good.value, dict) or not good.value:
        return json.dumps({"unexpected": True})
    value = dict(good.value)
    last = list(value)[-1]
    variant = draws.below(4)
    if variant == 0:
        value = _out_of_range(value, good.schema or {})
    elif variant == 1:
        del value[last]
    elif variant == 2:
        value["unexpected"] = True
    else:
        value[last] = [[value[last]]]
    return json.dumps(value)


def _out_of_range(value: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value with one entry that its enum or maximum forbids, such as grade 7."""
    definitions = schema.get("$defs", {})
    for name, node in schema.get("properties", {}).items():
        reference = node.get("$ref", "") if isinstance(node, Mapping) else ""
        rule = definitions.get(str(reference).rsplit("/", 1)[-1], node)
        if not isinstance(rule, Mapping):
            continue
        allowed = rule.get("enum") or ([rule["maximum"]] if "maximum" in rule else [])
        if allowed and all(isinstance(item, str) for item in allowed):
            return {**value, name: "none of these"}
        if allowed and all(isinstance(item, int | float) for item in allowed):
            return {**value, name: max(allowed) + 4}
    return {**value, list(value)[-1]: {"unexpected": True}}


def _hostile(good: Content, draws: Draws) -> str:
    """Return content that a terminal, a file or a parser may stumble over.

    The text stands in a field of an else good reply, so that it gets as far as it can.
    """
    variant = draws.below(5)
    if variant == 4:
        return "[" * _BRACKETS + "]" * _BRACKETS
    text = (
        "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m \x9b5m",
        "before\x00behind",
        "lone \ud800 surrogate",
        "A" * _MEGABYTE,
    )[variant]
    if not isinstance(good.value, dict):
        return text
    free = [name for name in _FREE_TEXT if isinstance(good.value.get(name), str)]
    texts = [name for name, item in good.value.items() if isinstance(item, str)]
    name = (free or texts or ["text"])[0]
    return json.dumps({**good.value, name: text})


_SPOILERS: dict[str, Callable[[Content, Draws], str]] = {
    "badjson": _broken_json,
    "fence": _fenced,
    "think": _thinking,
    "schema": _against_schema,
    "hostile": _hostile,
}
_ENDINGS: dict[str, Callable[[Content], Choice]] = {
    "length": lambda good: Choice(good.text[: len(good.text) // 2], "length"),
    "filter": lambda good: Choice("", "content_filter"),
    "refusal": lambda good: Choice(None, "stop", "I'm sorry, but I can't help with that."),
}

CONTENT_FAULTS = frozenset({*_SPOILERS, *_ENDINGS})
"""Faults of what is said, not of how it is sent."""
