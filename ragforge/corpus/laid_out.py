"""A text as long as its place in a file, though a reader sees more there than fits."""

from collections.abc import Iterable, Sequence
from typing import Final, SupportsIndex

BLANK: Final = "\x1c"
"""Stands for each character that a reader does not see, and is white space for Python.

Signs on both sides of it stand together, unlike those around a blank: -**5** is -5.
"""


class LaidOut(str):
    """A text with each character at its offset, and what is seen of names longer than themselves.

    A name such as `{prod}` may stand for a longer text: as much of it as fits stands in its place,
    and the rest beyond. Slices keep what is beyond; all else is as for any text.

    Args:
        text: What stands at each offset.
        beyond: Ascending offsets, each with what is seen before the character there, at the place
            of the one before.
    """

    beyond: Sequence[tuple[int, str]]

    def __new__(cls, text: str, beyond: Sequence[tuple[int, str]]) -> "LaidOut":
        """Return the text with what is beyond."""
        made = super().__new__(cls, text)
        made.beyond = beyond
        return made

    def __reduce__(self) -> tuple[type["LaidOut"], tuple[str, Sequence[tuple[int, str]]]]:
        """Return what a copy in another process is made of."""
        return LaidOut, (str(self), self.beyond)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        """Return a character, or a stretch with what is beyond it."""
        part = super().__getitem__(key)
        if not isinstance(key, slice):
            return part
        start, end, step = key.indices(len(self))
        if step != 1:
            return part
        return with_beyond(
            part, ((at - start, seen) for at, seen in self.beyond if start < at <= end)
        )


def with_beyond(text: str, beyond: Iterable[tuple[int, str]]) -> str:
    """Return a text with what is beyond; a plain one where nothing is."""
    listed = [(at, seen) for at, seen in beyond if seen]
    return LaidOut(text, listed) if listed else text


def beyond(text: str) -> Sequence[tuple[int, str]]:
    """Return what is beyond a text; nothing of a plain one."""
    return text.beyond if isinstance(text, LaidOut) else ()


def joined(parts: Iterable[str]) -> str:
    """Return parts one behind the other, with what is beyond them."""
    listed = list(parts)
    length, over = 0, []
    for part in listed:
        over += [(length + at, seen) for at, seen in beyond(part)]
        length += len(part)
    return with_beyond("".join(listed), over)
