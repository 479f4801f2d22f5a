"""Raised numbers that are powers: 10 with a raised 6 is written 10^6, as 106 is another number."""

from typing import Final

from ragforge.deferred import pattern

_NUMBER: Final = pattern("[+\u2013\u2212-]?[0-9]{1,4}")
_BASE: Final = pattern(r"(?:[0-9)]|(?<![^\W\d_])[^\W\d_]{1,3})\Z")
REACH: Final = 4
"""Characters before a raised text that tell."""


def is_power(before: str, raised: str) -> bool:
    """Whether a raised text is the power of what stands right before it.

    Numbers, brackets and short words, such as units, have powers; behind a longer word, or a stop,
    a number is that of a footnote.
    """
    return bool(_NUMBER.fullmatch(raised) and _BASE.search(before[-REACH:]))
