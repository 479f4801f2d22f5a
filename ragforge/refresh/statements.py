"""Where statements begin and end, so that what is quoted reads as a whole."""

import re
import unicodedata
from typing import Final

from ragforge.corpus.anchors import Location

_MARK: Final = r"[ \t]*(?:[-+*•][ \t]+|\d{1,9}[.)][ \t]+|#{1,6}[ \t]+|>[ \t]?)"
_BREAK: Final = re.compile(
    rf"(?<=[.!?…])[\"'”’)\]*_`]*(?P<blank>\s+)(?:{_MARK})?"  # noqa: RUF001
    r"|(?<=[。！？])(?P<nothing>)"  # noqa: RUF001
    rf"|(?P<empty>\n[^\S\n]*\n\s*)(?:{_MARK})?"
    rf"|(?P<line>\n)(?:{_MARK}|(?=[ \t]*\|| {{4}}|\t|\Z))"
)
"""Where a statement ends and the next begins: sentences, paragraphs, items, rows, lines of code;
an item begins before its mark, and behind it."""
_LEAST_REACH: Final = 60
_INWARD_SHARE: Final = 10
_LONGEST_WORD: Final = 40


def statement_at(text: str, rough: Location) -> Location:
    """Return the stretch of whole statements, or words, whose ends are nearest to a rough one."""
    size = rough.end - rough.start
    reach, inward = max(_LEAST_REACH, size // 2), size // _INWARD_SHARE
    start = _nearest(text, rough.start, reach, inward, is_start=True)
    end = _nearest(text, rough.end, inward, reach, is_start=False)
    start = _word_start(text, rough.start) if start is None else start
    end = _word_end(text, rough.end) if end is None else end
    return _trimmed(text, start, end) or rough


def _nearest(text: str, at: int, back: int, ahead: int, *, is_start: bool) -> int | None:
    """Return the nearest start or end of a statement within reach; None for none.

    The ends of the text are such.
    """
    first, last = max(0, at - back), min(len(text), at + ahead)
    # What stands before a break tells whether it is one; an empty line may be long.
    window_start, window_end = max(0, first - _LONGEST_WORD), min(len(text), last + _LONGEST_WORD)
    found = [0] if is_start else [len(text)]
    for gap in _BREAK.finditer(text[window_start:window_end]):
        left, right = gap.span(gap.lastgroup or 0)
        found += (window_start + place for place in ((right, gap.end()) if is_start else (left,)))
    within = [place for place in found if first <= place <= last]
    return min(within, key=lambda place: (abs(place - at), place), default=None)


def _word_start(text: str, at: int) -> int:
    for place in range(at, max(0, at - _LONGEST_WORD) - 1, -1):
        if place == 0 or text[place - 1].isspace():
            return place
    return _before_marks(text, at)


def _word_end(text: str, at: int) -> int:
    for place in range(at, min(len(text), at + _LONGEST_WORD) + 1):
        if place == len(text) or text[place].isspace() or text[place - 1].isspace():
            return place
    while at < len(text) and unicodedata.combining(text[at]):
        at += 1
    return at


def _before_marks(text: str, at: int) -> int:
    while at > 0 and unicodedata.combining(text[at]):
        at -= 1
    return at


def _trimmed(text: str, start: int, end: int) -> Location | None:
    said = text[start:end]
    start += len(said) - len(said.lstrip())
    said = said.strip()
    return Location(start, start + len(said)) if said else None
