"""Colours, where a terminal shows them: not in a pipe, nor where NO_COLOR is set."""

import os
from typing import Final, TextIO

from ragforge.deferred import pattern

BOLD: Final = "1"
_DIM: Final = "2"
_RED: Final = "31"
_GREEN: Final = "32"
_YELLOW: Final = "33"

_BEGINNINGS: Final = {
    "ragforge: error:": _RED,
    "ragforge: this is a bug:": _RED,
    "warning:": _YELLOW,
    "next:": BOLD,
}
_VERDICTS: Final = {
    **dict.fromkeys(("PASSED", "PASS", "IMPROVING"), _GREEN),
    **dict.fromkeys(("FAILED", "FAIL", "REFUSED", "DEGRADING"), _RED),
    **dict.fromkeys(("UNKNOWN", "TIE", "MIXED", "SEVERAL"), _YELLOW),
}
_VERDICT: Final = pattern(rf"\b({'|'.join(_VERDICTS)})\b")
_RULE: Final = pattern(r"^─[─ ]*$")


def has_colours(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that shows colours, and its user wants them.

    NO_COLOR goes before FORCE_COLOR: https://no-color.org.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def coloured(text: str, code: str, stream: TextIO | None) -> str:
    """Return a text in a colour where a stream shows that."""
    return f"\x1b[{code}m{text}\x1b[0m" if text and has_colours(stream) else text


def coloured_message(text: str, stream: TextIO | None) -> str:
    """Return a message with its first word in the colour of what it is: an error, a warning."""
    for beginning, code in _BEGINNINGS.items():
        if text.startswith(beginning):
            return coloured(beginning, code, stream) + text[len(beginning) :]
    return text


def coloured_result(text: str, stream: TextIO | None) -> str:
    """Return a result with its verdicts in colour and the heads of its tables in bold."""
    if not has_colours(stream):
        return text
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if _RULE.match(line):
            lines[index] = coloured(line, _DIM, stream)
            if index:
                lines[index - 1] = coloured(lines[index - 1], BOLD, stream)
        else:
            lines[index] = _VERDICT.sub(
                lambda found: coloured(found[0], _VERDICTS[found[0]], stream), line
            )
    return "\n".join(lines)
