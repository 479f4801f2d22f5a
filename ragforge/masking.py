"""Keeping secrets out of what a service echoes: replies, messages, records."""

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from ragforge.deferred import dataclass

SHORTEST: Final = 8
"""Shorter secrets are placeholders, or words that texts may well hold."""
MASK: Final = "[key]"
_ESCAPES: Final = ("\\", "%", "&#")
_PACKED_LEAST: Final = 12


@dataclass(frozen=True, slots=True)
class Mask:
    """Takes one secret out of texts.

    It is known as it is, escaped as JSON, addresses and HTML do it, and in base64 at any place of
    a longer text. A service that wants to hide it in its replies has other ways.

    Args:
        secret: 8 characters or more.
    """

    secret: str = field(repr=False)
    _packed: tuple[str, ...] = field(init=False, repr=False)
    _escaped: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_escaped", re.compile("".join(map(_any_form, self.secret))))
        object.__setattr__(self, "_packed", tuple(_in_base64(self.secret)))

    def apply(self, text: str) -> str:
        """Return a text without the secret."""
        for form in (self.secret, *self._packed):
            text = text.replace(form, MASK)
        # The pattern takes longer than all else, and hardly any text needs it.
        if any(sign in text for sign in _ESCAPES):
            return self._escaped.sub(MASK, text)
        return text


class SecretValues:
    """The secrets of one service, which may grow: tokens are fetched anew.

    Args:
        values: What is secret; "" is not.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._masks: dict[str, Mask] = {}
        self._short: dict[str, re.Pattern[str]] = {}
        for value in values:
            self.add(value)

    def __repr__(self) -> str:
        return f"SecretValues({len(self._masks) + len(self._short)})"

    def add(self, value: str) -> None:
        """Take another secret."""
        if len(value) >= SHORTEST:
            self._masks.setdefault(value, Mask(value))
        elif value:
            self._short.setdefault(value, re.compile(rf"(?<!\w){re.escape(value)}(?!\w)"))

    def mask(self, text: str) -> str:
        """Return a reply without the secrets; short ones stay, as texts may hold such words."""
        # A secret that holds another one goes first.
        for secret in sorted(self._masks, key=len, reverse=True):
            text = self._masks[secret].apply(text)
        return text

    def mask_message(self, text: str) -> str:
        """Return what is shown or recorded without any of the secrets."""
        text = self.mask(text)
        for pattern in self._short.values():
            text = pattern.sub(MASK, text)
        return text


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
