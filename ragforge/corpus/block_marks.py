"""Marks of items, headings, fences and tables in one form: formatters write each in another."""

import re
from typing import Final

from ragforge.deferred import pattern

_MAY_DIFFER: Final = pattern(
    r"^[ \t]*(?:[*|]|~~~|````|[=-]{2,}[ \t]*$|___|#.*#[ \t]*$)", re.MULTILINE
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
_TICKS: Final = "```"


def with_one_form(text: str) -> str:
    """Return a text whose marks are in one form, to be compared with another; code stays.

    Items begin with `-`, headings with `#` alone, fences have three ticks, rules three dashes, and
    cells one blank on both sides. A text that begins or ends amid code stays as it is.
    """
    if not _MAY_DIFFER.search(text):
        return text
    lines: list[str] = []
    opened = ""
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        if opened:
            closes = fence is not None and fence["sign"].startswith(opened) and not fence["info"]
            opened = "" if closes else opened
            lines.append(_TICKS if closes else line)
        elif fence:
            opened = fence["sign"]
            lines.append(f"{_TICKS}{fence['info'].strip()}")
        elif _UNDERLINE.fullmatch(line) and lines and not _NO_TITLE.match(lines[-1]):
            lines[-1] = f"{'#' if line[0] == '=' else '##'} {lines[-1].strip()}"
        else:
            lines.append(_marked(line))
    return text if opened else "\n".join(lines)


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
