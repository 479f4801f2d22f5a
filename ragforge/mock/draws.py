"""Random draws that depend on nothing but what they are drawn for."""

import hashlib

_WORD = (1 << 64) - 1


class Draws:
    """A stream of numbers that equal parts make equal.

    Args:
        parts: What is drawn for; told apart by their text and their order.
    """

    __slots__ = ("_state",)

    def __init__(self, *parts: object) -> None:
        text = "\x1f".join(map(str, parts)).encode()
        self._state = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound); bound is at most 2**32."""
        return (self._next() >> 32) * bound >> 32

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        return (self._next() >> 11) / (1 << 53)

    def _next(self) -> int:
        """Return the next 64 bits.

        Source: splitmix64, Steele, Lea and Flood 2014, OOPSLA.
        """
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
        return mixed ^ (mixed >> 31)
