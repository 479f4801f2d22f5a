"""An API key, and how to keep it out of whatever an endpoint echoes."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from ragforge.llm.chat import ChatReply, Numeral

_MASK: Final = "[key]"
_RAW_SHOWN: Final = 2000
_MESSAGE_SHOWN: Final = 500
_SHORTEST: Final = 8
"""Shorter keys are placeholders that local servers want, such as "none" or "EMPTY"."""
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
_ESCAPES: Final = ("\\", "%", "&#")
_PACKED_LEAST: Final = 12


@dataclass(frozen=True, slots=True)
class Secret:
    """A key, and how to keep it out of whatever an endpoint echoes.

    It is known as it is, escaped as JSON, addresses and HTML do it, and in base64 at any place of
    a longer text. An endpoint that wants to hide it in its replies has other ways.
    """

    key: str
    _packed: tuple[str, ...] = field(init=False, repr=False)
    _escaped: re.Pattern[str] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = len(self.key) >= _SHORTEST and self.key.lower() not in _PLACEHOLDERS
        escaped = "".join(map(_any_form, self.key))
        object.__setattr__(self, "_escaped", re.compile(escaped) if known else None)
        object.__setattr__(self, "_packed", tuple(_in_base64(self.key)) if known else ())

    def mask(self, text: str) -> str:
        """Return a text without the key."""
        if self._escaped is None:
            return text
        for form in (self.key, *self._packed):
            text = text.replace(form, _MASK)
        # The pattern takes longer than all else, and hardly any text needs it.
        if any(sign in text for sign in _ESCAPES):
            return self._escaped.sub(_MASK, text)
        return text

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


def _any_form(character: str) -> str:
    """Return a pattern of what a character may be written as."""
    code = f"{ord(character):02x}"
    return (
        rf"(?:\\{{0,3}}{re.escape(character)}|\\{{1,4}}u00(?i:{code})|%(?i:{code})"
        rf"|&#(?:0{{0,4}}{ord(character)}|[xX]0{{0,4}}(?i:{code}));)"
    )


def _in_base64(key: str) -> Iterator[str]:
    """Yield the forms of the key in base64, wherever in a longer text it begins."""
    for before in range(3):
        whole = (before + len(key)) // 3 * 3 - before
        coded = base64.b64encode(b"\0" * before + key[:whole].encode())
        # The first of them depend on what stands before the key.
        form = coded[(4 if before else 0) :].decode("ascii")
        if len(form) >= _PACKED_LEAST:
            yield form
            yield form.replace("+", "-").replace("/", "_")
