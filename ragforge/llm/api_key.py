"""An API key, and how to keep it out of whatever an endpoint echoes."""

from dataclasses import field, replace
from typing import Final

from ragforge.deferred import dataclass
from ragforge.llm.chat import ChatReply, Numeral
from ragforge.masking import SHORTEST, Mask

_RAW_SHOWN: Final = 2000
_MESSAGE_SHOWN: Final = 500
_PLACEHOLDERS: Final = frozenset(
    {
        "api-key",
        "dummy-key",
        "lm-studio",
        "no-key-required",
        "not-needed",
        "not-used",
        "placeholder",
        "sk-no-key-required",
        "your-api-key",
    }
)
"""Longer ones, by the manuals of servers that check none; texts may well hold such words."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A key, and how to keep it out of whatever an endpoint echoes; see `Mask`.

    Shorter keys than 8 characters are placeholders that local servers want, such as "none".
    """

    key: str = field(repr=False)
    _mask: Mask | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = len(self.key) >= SHORTEST and self.key.lower() not in _PLACEHOLDERS
        object.__setattr__(self, "_mask", Mask(self.key) if known else None)

    def mask(self, text: str) -> str:
        """Return a text without the key."""
        return text if self._mask is None else self._mask.apply(text)

    def mask_reply(self, reply: ChatReply) -> ChatReply:
        """Return a reply without the key in any of its fields."""
        text = self.mask(reply.text)
        return replace(
            reply,
            text=text,
            finish_reason=self.mask(reply.finish_reason),
            refusal=self.mask(reply.refusal),
            model=self.mask(reply.model),
            fingerprint=self.mask(reply.fingerprint),
            reply_id=self.mask(reply.reply_id),
            # They are found by their offsets in the text.
            numerals=tuple(map(self._of_numeral, reply.numerals)) if text == reply.text else (),
        )

    def start(self, text: str) -> str:
        """Return the start of a body for a failure record."""
        return self.mask(text)[:_RAW_SHOWN]

    def line(self, text: str) -> str:
        """Return a text as one line for a message."""
        return " ".join(self.mask(text).split())[:_MESSAGE_SHOWN]

    def _of_numeral(self, numeral: Numeral) -> Numeral:
        kept = tuple((self.mask(token), value) for token, value in numeral.logprobs)
        return replace(numeral, logprobs=kept)
