"""Values of events as OpenTelemetry takes them."""

import json
import math
from collections.abc import Iterable
from typing import TypeAlias

from ragforge.observe import Event
from ragforge.observe import genai_names as names

Value: TypeAlias = str | bool | int | float | list[str]


def number(event: Event, key: str) -> float | None:
    """Return a number of an event; None where it has none, or none that is finite."""
    value = event.numbers.get(key)
    return value if value is not None and math.isfinite(value) else None


def clean(text: str) -> str:
    """Return the text without lone surrogates, at which exporters fail with the whole batch."""
    return text.encode(errors="replace").decode()


def messages(event: Event) -> dict[str, Value]:
    """Return the turns and the reply as JSON, in the form of the convention."""
    turns, reply = list(event.content), None
    if turns and turns[-1][0] == "assistant":
        reply = _message(*turns.pop())
        reply["finish_reason"] = event.labels.get("finish_reason", "unknown")
    told: dict[str, Value] = {}
    if turns:
        told[names.INPUT_MESSAGES] = _dumped(_message(role, text) for role, text in turns)
    if reply:
        told[names.OUTPUT_MESSAGES] = _dumped([reply])
    return told


def _message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _dumped(messages: Iterable[dict[str, object]]) -> str:
    return clean(json.dumps(list(messages), ensure_ascii=False))
