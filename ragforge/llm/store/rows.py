"""A stored reply as a row: text with a digest, so that damage is told from data."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any

from ragforge.llm.chat import ChatReply, Numeral, Usage

_KEPT = [
    field.name for field in fields_of(ChatReply) if field.name not in ("key", "cached", "numerals")
]
_USAGE = [field.name for field in fields_of(Usage)]

_LARGEST_STORED = 2**63 - 1
"""The largest whole number that the file holds."""
ASIDE = "#"
"""Behind the key of a row that is set aside, followed by the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """One bought reply.

    Args:
        key: Of the call; with a suffix where the row is set aside.
        endpoint, model: Who was asked.
        reply: The reply's fields as JSON.
        sha256: Over key and reply.
        cost_usd: None where the price is unknown.
        bought_at: Unix time, in seconds.
    """

    key: str
    endpoint: str
    model: str
    reply: str
    sha256: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    bought_at: float

    @property
    def aside(self) -> str:
        """Why the row is set aside: `forgotten` or `damaged`; "" where it is in use."""
        why = str(self.key).partition(ASIDE)[2]
        return why.rstrip("0123456789ABCDEF")

    @property
    def whole(self) -> bool:
        """Whether the row holds the reply that was once written."""
        return row_sha256(str(self.key).partition(ASIDE)[0], self.reply) == self.sha256

    @property
    def usage(self) -> Usage:
        """What the call took, as the reply of a whole row tells it."""
        return parse_reply(self.key, self.reply).usage


NAMES = tuple(field.name for field in fields_of(Row))
COLUMNS = ", ".join(NAMES)


def row_values(row: Row) -> tuple[object, ...]:
    """Return the values of a row in the order of the columns."""
    return tuple(getattr(row, name) for name in NAMES)


def checked_row(values: Sequence[object]) -> Row:
    """Make a row of values that may be anything.

    Args:
        values: In the order of the columns.

    Raises:
        ValueError: They are no whole row; the message says what is wrong.
    """
    row = Row(*values)  # type: ignore[arg-type]  # checked below
    for name in ("key", "endpoint", "model", "reply", "sha256"):
        if not isinstance(getattr(row, name), str):
            raise ValueError(f"{name}: expected text")  # noqa: TRY004  # values, not calls, are wrong
    if not row.whole:
        raise ValueError("sha256: does not fit key and reply")
    if _numbers(row.prompt_tokens, row.completion_tokens) != _counts(row):
        raise ValueError("prompt_tokens, completion_tokens: are not those of the reply")
    if row.cost_usd is not None and not _is_amount(row.cost_usd):
        raise ValueError("cost_usd: expected a number >= 0 or null")
    if not _is_amount(row.bought_at):
        raise ValueError("bought_at: expected seconds >= 0")
    return row


def row_sha256(key: str, reply: str) -> str:
    """Return the checksum of a row."""
    return hashlib.sha256(f"{key}\n{reply}".encode("utf-8", "replace")).hexdigest()


def reply_json(reply: ChatReply) -> str:
    """Return a reply's fields as JSON."""
    usage = reply.usage
    fields = {name: getattr(reply, name) for name in _KEPT}
    fields["usage"] = {name: getattr(usage, name) for name in _USAGE}
    if reply.numerals:
        fields["numerals"] = [(one.at, one.logprobs) for one in reply.numerals]
    return json.dumps(fields, ensure_ascii=True)


def parse_reply(key: str, text: str) -> ChatReply:
    """Return the reply that a row holds; fields of other versions of ragforge are passed over.

    Raises:
        ValueError: It holds none, whatever its checksum says.
    """
    try:
        stored = json.loads(text)
        fields = {name: stored[name] for name in _KEPT if name in stored}
        usage = stored.get("usage", {})
        counted = Usage(**{name: usage[name] for name in _USAGE if name in usage})
        numerals = tuple(
            Numeral(at, tuple((token, value) for token, value in logprobs))
            for at, logprobs in stored.get("numerals", ())
        )
        fields = {**fields, "usage": counted, "numerals": numerals}
        reply = ChatReply(**fields, key=key, cached=True)
    except (AttributeError, TypeError, KeyError, ValueError, RecursionError) as error:
        raise ValueError("reply: expected an object with text and usage") from error
    if not _is_typed(reply):
        raise ValueError("reply: has a field of another type")
    return reply


def stored_reply(key: str, text: object, sha256: object) -> ChatReply | None:
    """Return the reply of a row; None where it is damaged, or was never one."""
    # Damage can change a column's type as well.
    if row_sha256(key, str(text)) != sha256:
        return None
    try:
        return parse_reply(key, str(text))
    except ValueError:
        return None


def _is_typed(reply: ChatReply) -> bool:
    """Whether what a file said of a reply is of the types that a reply has."""
    texts = [reply.text, reply.finish_reason, reply.refusal]
    texts += [reply.model, reply.fingerprint, reply.reply_id]
    usage = reply.usage
    numbers = [usage.prompt_tokens, usage.completion_tokens, reply.latency_s]
    for numeral in reply.numerals:
        texts += [token for token, _ in numeral.logprobs]
        numbers += [numeral.at, *(value for _, value in numeral.logprobs)]
    return all(isinstance(text, str) for text in texts) and all(
        isinstance(number, int | float) for number in numbers
    )


def _counts(row: Row) -> tuple[object, ...]:
    usage = row.usage
    return _numbers(usage.prompt_tokens, usage.completion_tokens)


def _numbers(*values: object) -> tuple[object, ...]:
    """Return the values with what is no count as None, so that it equals no count."""
    return tuple(value if _is_count(value) else math.nan for value in values)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_STORED


def _is_amount(value: Any) -> bool:  # noqa: ANN401  # looked at before it is used
    if type(value) is int:
        return _is_count(value)
    return type(value) is float and math.isfinite(value) and value >= 0
