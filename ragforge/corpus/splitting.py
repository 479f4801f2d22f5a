"""Cutting text that is too long for one chunk, where a reader would."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragforge.corpus.blocks import Kind

_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
_BEFORE_ITEM = re.compile(r"\n(?=[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t])")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]+")  # noqa: RUF001
_LINE_END = re.compile(r"\n")
_BLANK = re.compile(r"\s+")
_EMPTY_LINES = re.compile(r"(?:[^\S\n]*\n)+")

_PROSE = (_EMPTY_LINE, _BEFORE_ITEM, _SENTENCE_END, _LINE_END, _BLANK)
_ROWS = (_EMPTY_LINE, _LINE_END, _SENTENCE_END, _BLANK)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a text, from its first character to behind its last."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Length in code points."""
        return self.end - self.start


def trim(text: str, start: int, end: int) -> Stretch:
    """Return the stretch without blank lines at its ends; indentation of its first line stays."""
    leading = _EMPTY_LINES.match(text, start, end)
    start = leading.end() if leading else start
    return Stretch(start, start + len(text[start:end].rstrip()))


def split(text: str, whole: Stretch, kind: Kind, limit: int, body: int) -> Iterator[Stretch]:
    """Yield pieces of at most `limit` characters that leave out nothing but blanks.

    Cuts prose at the end of a paragraph, before a list item, at the end of a sentence, at a line
    end, at a blank, else anywhere but before a combining mark; code and tables at line ends if
    any. Headings before `body` are not cut off alone, unless they fill a piece themselves.
    """
    cuts = _ROWS if kind in {"code", "table"} else _PROSE
    at = whole.start
    while whole.end - at > limit:
        # The last two pieces share what is left, so that the last one is no scrap.
        window = min(limit, (whole.end - at) * 5 // 8 + 1)
        floor = max(at + window // 2, body + window // 4 if at < body else at)
        behind = _cut(text, min(floor, at + window - 1), at + window, cuts)
        yield from _visible(text, at, behind)
        at = behind
    yield from _visible(text, at, whole.end)


def _visible(text: str, start: int, end: int) -> Iterator[Stretch]:
    piece = trim(text, start, end)
    if piece.size > 0:
        yield piece


def _cut(text: str, floor: int, stop: int, cuts: Sequence[re.Pattern[str]]) -> int:
    for cut in cuts:
        last = 0
        for found in cut.finditer(text, floor, stop):
            last = found.end()
        if last:
            return last
    while stop > floor + 1 and unicodedata.combining(text[stop]):
        stop -= 1
    return stop
