"""Marks of items, headings, fences and tables in one form: formatters write each in another."""

import re
from dataclasses import field
from typing import Final

from ragforge.deferred import dataclass, pattern

_MAY_DIFFER: Final = pattern(
    r"^[ \t]*(?:[*|]|1[.)][ \t]|~~~|````|[=-]{2,}[ \t]*$|___|#.*#[ \t]*$)", re.MULTILINE
)
_FENCE: Final = pattern(r"[ \t]*(?P<sign>`{3,}|~{3,})(?P<info>.*)")
_BULLET: Final = pattern(r"(?P<indent>[ \t]*)\*(?P<text>[ \t].*)")
_CLOSED_HEADING: Final = pattern(r"(?P<title>#{1,6}[ \t].*[^# \t])[ \t]+#+[ \t]*")
_UNDERLINE: Final = pattern(r"(?:={2,}|-{2,})[ \t]*")
_NO_TITLE: Final = pattern(r"[ \t]*(?:[-*+>|#<]|\d{1,9}[.)]|\Z)")
_RULE: Final = pattern(r"[ \t]*([*_-])(?:[ \t]*\1){2,}[ \t]*")
_ROW: Final = pattern(r"[ \t]*\|.*\|[ \t]*")
_CELL_END: Final = pattern(r"(?<!\\)\|")
_CELL_RULE: Final = pattern(r":?-+:?")
_ITEM: Final = pattern(r"(?:(?P<number>\d{1,9})(?P<sign>[.)])|(?P<bullet>[-+*]))[ \t]+(?=\S)")
_ENDS_LIST: Final = pattern(r"#{1,6}[ \t]|>|`{3}|~{3}|---$")
_CODE_INDENT: Final = 4
_TICKS: Final = "```"


def with_one_form(text: str) -> str:
    """Return a text whose marks are in one form, to be compared with another; code stays.

    Items begin with `-`, or count on where all have a 1, as a reader sees them; headings begin with
    `#` alone, fences have three ticks, rules three dashes, and cells one blank on both sides. A
    text that begins or ends amid code stays as it is.
    """
    if not _MAY_DIFFER.search(text):
        return text
    lines: list[str] = []
    lists = _Lists()
    opened = ""
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        if opened:
            closes = fence is not None and fence["sign"].startswith(opened) and not fence["info"]
            opened = "" if closes else opened
            lines.append(_TICKS if closes else line)
        elif fence:
            opened = fence["sign"]
            lists.see(line, len(lines))
            lines.append(f"{_TICKS}{fence['info'].strip()}")
        elif _UNDERLINE.fullmatch(line) and lines and not _NO_TITLE.match(lines[-1]):
            lines[-1] = f"{'#' if line[0] == '=' else '##'} {lines[-1].strip()}"
        else:
            lists.see(line, len(lines))
            lines.append(_marked(line))
    return text if opened else "\n".join(lists.counted(lines))


@dataclass(slots=True)
class _List:
    """A list of Markdown.

    Args:
        sign: What ends its numbers, or its bullet.
        inner: Column where the text of its last item begins.
        items: Its lines that begin an item.
        has_ones: Whether all of them have the number 1.
    """

    sign: str
    inner: int = 0
    items: list[int] = field(default_factory=list)
    has_ones: bool = True


class _Lists:
    """The lists of a text, as CommonMark tells them apart."""

    def __init__(self) -> None:
        self._open: list[_List] = []
        self._all: list[_List] = []
        self._is_after_text = False

    def see(self, line: str, at: int) -> None:
        """Take in the next line that is no code, by its number."""
        text = line.expandtabs(_CODE_INDENT)
        bare = text.lstrip()
        indent = len(text) - len(bare)
        item = _ITEM.match(bare)
        is_rule = _RULE.fullmatch(line) is not None
        if not bare:
            self._is_after_text = False
        elif item and not is_rule and indent - self._inner(indent) < _CODE_INDENT:
            sign = item["sign"] or item["bullet"]
            self._close(indent, but=sign)
            if not self._open or self._open[-1].inner <= indent:
                self._open.append(_List(sign))
                self._all.append(self._open[-1])
            numbered = self._open[-1]
            numbered.inner = indent + len(item[0])
            numbered.items.append(at)
            numbered.has_ones &= item["number"] == "1"
            self._is_after_text = True
        else:
            ends = is_rule or _ENDS_LIST.match(bare) is not None
            if ends or not self._is_after_text:
                self._close(indent)
            self._is_after_text = not ends

    def counted(self, lines: list[str]) -> list[str]:
        """Return all lines; items of a list in which each has the number 1 count on from it."""
        for numbered in self._all:
            for number, at in enumerate(numbered.items if numbered.has_ones else (), start=1):
                lines[at] = lines[at].replace("1", str(number), 1)
        return lines

    def _inner(self, indent: int) -> int:
        return max((one.inner for one in self._open if one.inner <= indent), default=0)

    def _close(self, indent: int, but: str = "") -> None:
        """End the lists to which nothing at a column belongs, but for one that goes on there."""
        last: _List | None = None
        while self._open and self._open[-1].inner > indent:
            last = self._open.pop()
        if last and last.sign == but:
            self._open.append(last)


def _marked(line: str) -> str:
    """Return a line that is no code."""
    if _RULE.fullmatch(line):
        return "---"
    if _ROW.fullmatch(line):
        cells = (cell.strip() for cell in _CELL_END.split(line))
        return " | ".join("-" if _CELL_RULE.fullmatch(cell) else cell for cell in cells)
    if item := _BULLET.fullmatch(line):
        return f"{item['indent']}-{item['text']}"
    closed = _CLOSED_HEADING.fullmatch(line)
    return closed["title"] if closed else line
