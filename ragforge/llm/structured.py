"""From a reply to a checked object, or to a named failure: nothing in between.

A reply must be exactly one JSON object that holds to its schema. Nothing is searched for in prose:
a model may repeat what it was shown, and a verdict quoted from a chunk is not the model's verdict.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ragforge.errors import CallError
from ragforge.files.record_files import explain
from ragforge.files.row import RoundedNumber, read_float
from ragforge.files.text import shown
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Message

T = TypeVar("T", bound=BaseModel)

MAX_REPLY_CHARS = 1_000_000
"""A longer reply is not parsed."""

_SENT_BACK_CHARS = 8000
"""How much of a reply that broke a rule is shown to the model again; each character is paid."""

_ROOMIER = 2
"""How much more a reply may have when it was cut off."""

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n?```\Z", re.DOTALL)
_REFUSAL = re.compile(
    r"\A\W*(I(?:['\u2019]m| am) (?:sorry|unable)|I (?:can(?:no|['\u2019])t|won['\u2019]t))",
    re.IGNORECASE,
)


class InvalidReplyError(Exception):
    """A reply broke a rule; the message names the rule."""


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A checked reply.

    Args:
        value: What the model said.
        reply: The last reply it came in.
        repaired: Whether a second turn was needed.
    """

    value: T
    reply: ChatReply
    repaired: bool


async def ask_structured(
    model: ChatModel,
    request: ChatRequest,
    reply_type: type[T],
    check: Callable[[T], str | None],
) -> Structured[T]:
    """Ask, check, and ask once more where the reply breaks a rule or is cut off.

    Args:
        model: Whom to ask.
        request: What to ask.
        reply_type: What the reply must be; validated strictly.
        check: Returns the rule a well-formed reply breaks, None where it breaks none.

    Raises:
        CallError: Kind `refused`, `truncated`, `filtered`, or `invalid` after the second turn.
    """
    keys: list[str] = []
    try:
        request, reply = await _ask_whole(model, request, keys)
        try:
            return Structured(_parse(reply, reply_type, check), reply, repaired=False)
        except InvalidReplyError as broken:
            again = _repair(request, reply, str(broken))
        reply = await _ask(model, again, keys)
        try:
            return Structured(_parse(reply, reply_type, check), reply, repaired=True)
        except InvalidReplyError as broken:
            kind = "refused" if _REFUSAL.match(reply.text) else "invalid"
            raise CallError(kind, f"{broken} (after one repair turn)", reply.text) from broken
    except CallError as error:
        error.call_keys = tuple(keys)
        raise


async def _ask_whole(
    model: ChatModel, request: ChatRequest, keys: list[str]
) -> tuple[ChatRequest, ChatReply]:
    """Ask; a reply that was cut off is asked for once more with room for twice as much."""
    try:
        return request, await _ask(model, request, keys)
    except CallError as error:
        if error.kind != "truncated":
            raise
    roomier = replace(request, max_output_tokens=_ROOMIER * request.max_output_tokens)
    return roomier, await _ask(model, roomier, keys)


async def _ask(model: ChatModel, request: ChatRequest, keys: list[str]) -> ChatReply:
    reply = await model.ask(request)
    if reply.key:
        keys.append(reply.key)
    _check_end(reply)
    return reply


@functools.cache
def reply_schema(reply_type: type[BaseModel]) -> Mapping[str, object]:
    """Return the JSON schema of a reply without titles and docstrings, definitions in place.

    One object for each type: making it takes longer than all else that a call costs.
    """
    schema = reply_type.model_json_schema()
    definitions = schema.pop("$defs", {})

    def tidy(node: Any, *, names: bool = False) -> Any:  # noqa: ANN401  # JSON is any shape
        if isinstance(node, list):
            return [tidy(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return tidy(definitions[node["$ref"].rsplit("/", 1)[-1]])
        dropped = () if names else ("title", "description")
        return {
            key: tidy(value, names=key == "properties")
            for key, value in node.items()
            if key not in dropped
        }

    tidied: dict[str, object] = tidy(schema)
    return tidied


def reply_wrapping(text: str) -> str:
    """Return the wrapping of a reply's object: "fence", "thinking", both, or ""."""
    bare = _THINKING.sub("", text, count=1).strip() if "<think>" in text[:40] else text.strip()
    found = ["thinking"] if len(bare) < len(text.strip()) else []
    found += ["fence"] if bare.startswith("```") and _FENCE.match(bare) else []
    return " and ".join(found)


def parse_object(text: str) -> str:
    """Return the one JSON object a reply consists of, fence and thinking in front taken off.

    Raises:
        InvalidReplyError: It is not exactly one JSON object with distinct keys, or a number of it
            would become another one when read.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReplyError(f"the reply is longer than {MAX_REPLY_CHARS} characters")
    bare = _THINKING.sub("", text.removeprefix("\ufeff"), count=1).strip()
    fenced = _FENCE.match(bare)
    bare = fenced.group(1).strip() if fenced else bare
    if not bare:
        raise InvalidReplyError("the reply is empty")
    try:
        found = json.loads(bare, parse_float=_exact, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InvalidReplyError(f"the reply is not exactly one JSON object: {error}") from error
    if not isinstance(found, dict):
        raise InvalidReplyError("the reply is JSON but not an object")
    return bare


def _parse(reply: ChatReply, reply_type: type[T], check: Callable[[T], str | None]) -> T:
    bare = parse_object(reply.text)
    try:
        value = reply_type.model_validate_json(bare, strict=True)
    except ValidationError as error:
        raise InvalidReplyError(explain(error)) from error
    broken = check(value)
    if broken is not None:
        raise InvalidReplyError(broken)
    return value


def _check_end(reply: ChatReply) -> None:
    if reply.refusal:
        raise CallError("refused", f"the model refused: {reply.refusal}", reply.refusal)
    if reply.finish_reason == "content_filter":
        raise CallError("filtered", "the endpoint's content filter withheld the reply", reply.text)
    if reply.finish_reason == "length":
        raise CallError(
            "truncated",
            f"the reply was cut off after {reply.usage.completion_tokens} tokens; "
            "raise --max-output-tokens",
            reply.text,
        )


def _repair(request: ChatRequest, reply: ChatReply, rule: str) -> ChatRequest:
    turn = (
        f"That reply cannot be used: {rule}. "
        "Reply again with exactly one JSON object that holds to the schema, and nothing else."
    )
    # A lone surrogate, which a JSON escape can bring in, cannot be sent back.
    said = reply.text[:_SENT_BACK_CHARS].encode("utf-8", "backslashreplace").decode()
    messages = (*request.messages, Message("assistant", said), Message("user", turn))
    return replace(request, messages=messages)


def _exact(literal: str) -> float:
    number = read_float(literal)
    if isinstance(number, RoundedNumber):
        raise InvalidReplyError(f"the number {shown(number)} is not a whole one")
    return number


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found
