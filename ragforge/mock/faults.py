"""How a good reply is spoilt: what each fault in the content makes of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ragforge.mock.content import Content
from ragforge.mock.draws import Draws

_MEGABYTE = 1_000_000
_BRACKETS = 10_000
_FREE_TEXT = ("reasoning", "explanation", "answer", "text")
"""Fields that no check of a stage compares with anything, so that what they hold gets through."""


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
