"""Blocks: the pieces of a document that a chunk is packed from, as offsets into its text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

Kind = Literal["heading", "text", "code", "table", "mark"]
"""`code` and `table` are kept whole; a `mark` says nothing alone: a rule, a label, a comment."""

TITLE_CHARS = 200
"""A longer heading is read as text: it is a paragraph that an underline follows by accident."""


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of lines; a heading has its level, 1 outermost, and its title as plain text."""

    start: int
    end: int
    kind: Kind
    level: int = 0
    title: str = ""


class Lines:
    """The lines of a text and where each of them starts."""

    def __init__(self, text: str) -> None:
        self.lines: Sequence[str] = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def block(self, first: int, behind: int, kind: Kind, level: int = 0, title: str = "") -> Block:
        """Return the block of the lines [first, behind), without the last line end."""
        if kind == "heading" and not 0 < len(title) <= TITLE_CHARS:
            kind, level, title = "text", 0, ""
        return Block(self._starts[first], self._starts[behind] - 1, kind, level, title)

    def blank(self, number: int) -> bool:
        """Say whether the line holds nothing visible; lines behind the last one are blank."""
        return number >= len(self.lines) or not self.lines[number].strip()

    def run_end(self, first: int) -> int:
        """Return the number of the first blank line from `first` on."""
        behind = first
        while not self.blank(behind):
            behind += 1
        return behind


def text_blocks(text: str) -> Iterator[Block]:
    """Yield the paragraphs of plain text: runs of lines that blank lines part."""
    lines = Lines(text)
    at = 0
    while at < len(lines.lines):
        behind = lines.run_end(at)
        if behind > at:
            yield lines.block(at, behind, "text")
        at = behind + 1
