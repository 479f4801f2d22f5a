"""A stored reply as a row: text with a digest, so that damage is told from data."""

import hashlib
import json
from dataclasses import dataclass
from dataclasses import fields as fields_of

from ragforge.llm.chat import ChatReply, Usage

COLUMNS = (
    "key, endpoint, model, reply, sha256, prompt_tokens, completion_tokens, cost_usd, bought_at"
)
"""In the order of the fields of `Row`."""

_KEPT = [field.name for field in fields_of(ChatReply) if field.name not in ("key", "cached")]
_USAGE = [field.name for field in fields_of(Usage)]


@dataclass(frozen=True, slots=True)
class Row:
    """One bought reply.

    Args:
        key: Of the call.
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
    def whole(self) -> bool:
        """Whether the row holds what was once written."""
        return digest(self.key, self.reply) == self.sha256


def digest(key: str, reply: str) -> str:
    """Return the checksum of a row."""
    return hashlib.sha256(f"{key}\n{reply}".encode("utf-8", "replace")).hexdigest()


def to_text(reply: ChatReply) -> str:
    """Return a reply's fields as JSON."""
    usage = reply.usage
    fields = {name: getattr(reply, name) for name in _KEPT}
    fields["usage"] = {name: getattr(usage, name) for name in _USAGE}
    return json.dumps(fields, ensure_ascii=True)


def to_reply(key: str, text: str) -> ChatReply:
    """Return the reply that a row holds."""
    fields = json.loads(text)
    fields["usage"] = Usage(**fields["usage"])
    return ChatReply(**fields, key=key, cached=True)
