"""From a reply to a checked object, or to a named failure: nothing in between.

A reply must be exactly one JSON object that holds to its schema. Nothing is searched for in prose:
a model may repeat what it was shown, and a verdict quoted from a chunk is not the model's verdict.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Generic, TypeVar

from ragforge.deferred import dataclass, pattern
from ragforge.errors import CallError
from ragforge.files.record_files import explain
from ragforge.files.row import RoundedNumber, read_float
from ragforge.files.text import shown
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Message
from ragforge.records.model import pydantic

T = TypeVar("T", bound="pydantic.BaseModel")

PARSER = "relevance replies 1"
"""What reads a judge's replies, here, in `stages.judge` and in `stages.quotes`. Calibrations are
bound to it: another number where any reply is read otherwise than before, as a test sees to."""

MAX_REPLY_CHARS = 1_000_000
"""A longer reply is not parsed."""

_SENT_BACK_CHARS = 8000
"""How much of a reply that broke a rule is shown to the model again; each character is paid."""

_ROOMIER = 2
"""How much more a reply may have when it was cut off."""

_THOUGHT = pattern(
    r"\s{0,40}<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE
)
_THOUGHT_BEGINS = pattern(r"<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHT_ENDS = pattern(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_TURN = r"\s{0,40}(?:<\|start\|>assistant)?<\|channel\|>"
_ASIDE = pattern(_TURN + r"(?:analysis|commentary)<\|message\|>.*?<\|end\|>", re.DOTALL)
_FINAL = pattern(_TURN + r"final(?:\s*<\|constrain\|>\s*json)?\s*(?:<\|message\|>)?")
_END_OF_TURN = pattern(r"<\|(?:return|end)\|>\s*\Z")
_FENCE = pattern(r"\A```(?:json)?[ \t]*\n(.*)\n?```\Z", re.DOTALL | re.IGNORECASE)
_REFUSAL = pattern(
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
    asked = _Asked()
    try:
        request, reply = await _ask_whole(model, request, asked)
        try:
            return Structured(_parse(reply, reply_type, check), reply, repaired=False)
        except InvalidReplyError as broken:
            again = _repair(request, reply, str(broken))
        reply = await _ask(model, again, asked)
        try:
            return Structured(_parse(reply, reply_type, check), reply, repaired=True)
        except InvalidReplyError as broken:
            kind = "refused" if _REFUSAL.match(reply.text) else "invalid"
            raise CallError(kind, f"{broken} (after one repair turn)", reply.text) from broken
    except CallError as error:
        error.call_keys = tuple(asked.keys)
        error.is_kept = bool(asked.keys) and not asked.has_new
        raise


@dataclass(slots=True)
class _Asked:
    """The replies of a question so far.

    Args:
        keys: Of those that the call store has.
        has_new: Whether one was bought now.
    """

    keys: list[str] = field(default_factory=list)
    has_new: bool = False


async def _ask_whole(
    model: ChatModel, request: ChatRequest, asked: _Asked
) -> tuple[ChatRequest, ChatReply]:
    """Ask; a reply that was cut off is asked for once more with room for twice as much."""
    try:
        return request, await _ask(model, request, asked)
    except CallError as error:
        if error.kind != "truncated":
            raise
    roomier = replace(request, max_output_tokens=_ROOMIER * request.max_output_tokens)
    return roomier, await _ask(model, roomier, asked)


async def _ask(model: ChatModel, request: ChatRequest, asked: _Asked) -> ChatReply:
    reply = await model.ask(request)
    asked.has_new |= not reply.cached
    if reply.key:
        asked.keys.append(reply.key)
    _check_end(reply)
    return reply


@functools.cache
def reply_schema(reply_type: "type[pydantic.BaseModel]") -> Mapping[str, object]:
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


@dataclass(frozen=True, slots=True)
class _Unwrapped:
    """A reply without what stands around its object.

    Args:
        bare: What is left; whether it is one object is not yet known.
        wrappings: What was taken off: thinking, channel, fence.
    """

    bare: str
    wrappings: tuple[str, ...]


def reply_wrapping(text: str) -> str:
    """Return the wrapping of a reply's object: "thinking", "channel", "fence", several, or ""."""
    return " and ".join(_unwrapped(text).wrappings)


def parse_object(text: str) -> str:
    """Return the one JSON object a reply consists of, without what models put around it.

    Taken off are thoughts in front (`<think>…</think>` and its kin, several of them, also one whose
    beginning the server kept), channels in front of the final one, and a fence. It goes by marks at
    the beginning and the end alone: what is left must be the object and nothing else.

    Raises:
        InvalidReplyError: It is not exactly one JSON object with distinct keys, or a number of it
            would become another one when read.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReplyError(f"the reply is longer than {MAX_REPLY_CHARS} characters")
    bare = _unwrapped(text).bare
    if not bare:
        raise InvalidReplyError("the reply is empty")
    try:
        found = json.loads(bare, parse_float=_exact, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InvalidReplyError(f"the reply is not exactly one JSON object: {error}") from error
    if not isinstance(found, dict):
        raise InvalidReplyError("the reply is JSON but not an object")
    return bare


def _unwrapped(text: str) -> _Unwrapped:
    whole = text.removeprefix("\ufeff").strip()
    if whole.startswith("{"):
        return _Unwrapped(whole, ())  # Nearly all replies.
    wrappings = []
    at = _after(_THOUGHT.match, whole, _after_lone_thought(whole))
    if at:
        wrappings.append("thinking")
    final = _FINAL.match(whole, _after(_ASIDE.match, whole, at))
    if final is not None:
        wrappings.append("channel")
        at, whole = final.end(), _END_OF_TURN.sub("", whole)
    bare = whole[at:].strip()
    fenced = _FENCE.match(bare)
    if fenced is not None:
        wrappings.append("fence")
        bare = fenced.group(1).strip()
    return _Unwrapped(bare, tuple(wrappings))


def _after(match: Callable[[str, int], re.Match[str] | None], text: str, at: int) -> int:
    """Return the place behind all that a pattern matches in a row from a place on."""
    while found := match(text, at):
        at = found.end()
    return at


def _after_lone_thought(text: str) -> int:
    """Return the place behind a thought whose beginning stood in the prompt; 0 where none does.

    What begins like an object or a fence is no thought: it may be the reply.
    """
    ends = None if text.startswith(("[", "```", "<|")) else _THOUGHT_ENDS.search(text)
    if ends is None or _THOUGHT_BEGINS.search(text, 0, ends.start()):
        return 0
    return ends.end()


def _parse(reply: ChatReply, reply_type: type[T], check: Callable[[T], str | None]) -> T:
    bare = parse_object(reply.text)
    try:
        value = reply_type.model_validate_json(bare, strict=True)
    except pydantic.ValidationError as error:
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
