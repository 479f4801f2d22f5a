"""Text, numbers and tables for readers: nothing hidden, long texts cut, one number format."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from math import floor, log10
from typing import Final, NamedTuple

from ragforge.deferred import dataclass, pattern

MISSING: Final = "\u2013"
"""Stands where there is no value; a missing value is never shown as 0."""
_HIDDEN: Final = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Controls, bidirectional marks, characters without a width, and surrogates; not tab and line feed.

The zero-width joiners stay: Persian, the scripts of India and emoji are wrong without them.
"""
_COMMANDS: Final = pattern(r"^[^\S\n]*:(?=:)|#(?=#\w*\[)", re.MULTILINE)
"""What CI services obey in a log: `::` at the start of a line, `##[` and `##vso[` anywhere."""
_COMMANDS_OF_WORDS: Final = pattern(r"(?<!\S)::|##(?=\w*\[)")
"""Likewise, of a text that may be broken into lines at any space."""
_EXACT_DIGITS: Final = 12
_GAP: Final = "  "
_NUMERIC: Final = pattern(r"[-+±$]?\d[\d,.]*(?:e-?\d+)?(?: ?[%\w]{1,2})?(?: ?[\[(].*[\])])?")
_WORD: Final = pattern(r"[^\W\d_]{3,}")
"""Longer than the units that may follow a number."""


class Excerpt(NamedTuple):
    """The start of a text."""

    text: str
    length: int
    """Characters of the whole text."""

    @property
    def cut_note(self) -> str:
        """What was cut, in words; "" where nothing was."""
        if len(self.text) == self.length:
            return ""
        return f"first {len(self.text):,} of {self.length:,} characters"


def excerpt(text: str, limit: int) -> Excerpt:
    """Return the first `limit` characters with the length of the whole."""
    return Excerpt(text[:limit], len(text))


def visible(text: str) -> str:
    r"""Return the text with its hidden characters as escapes such as `\x1b` and `\u202e`.

    Line feeds and tabs stay. What comes back cannot steer a terminal, nor reorder or hide text.
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_escape, text.replace("\r\n", "\n"))


def escaped_json(text: str) -> str:
    """Return JSON that means the same, its hidden characters as escapes of JSON."""
    return _HIDDEN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def one_line(text: str, limit: int = 120) -> str:
    """Return the text on one line, hidden characters visible, cut with an ellipsis."""
    line = visible(" ".join(text[: limit * 4].split()))
    cut = len(line) > limit or len(text) > limit * 4
    return f"{line[: limit - 1].rstrip()}…" if cut else line


def both_ends(name: str, limit: int) -> str:
    """Return a name without the middle that is too much: ends tell versions of one apart."""
    line = one_line(name, len(name))
    half = (limit - 1) // 2
    return line if len(line) <= limit else f"{line[: limit - 1 - half]}…{line[-half:]}"


def inert(text: str) -> str:
    """Return a text for a log, on as many lines: no terminal and no CI service obeys any of it."""
    return _COMMANDS.sub(lambda match: f"{match.group()} ", visible(text))


def harmless(text: str, limit: int = 160) -> str:
    """Return a text on one line that is no workflow command, wherever it stands in a log."""
    line = one_line(text, limit)
    return _COMMANDS_OF_WORDS.sub(lambda match: " ".join(match.group()) + " ", line).strip()


def number(value: float | None, digits: int = 3) -> str:
    """Return a value of a measure; a dash where there is none."""
    return MISSING if value is None else f"{rounded(value, digits):.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """Return a difference with its sign; a dash where there is none."""
    if value is None:
        return MISSING
    shown = rounded(value, digits)
    return f"{shown:+.{digits}f}" if shown else f"{0:.{digits}f}"


def rounded(value: float, digits: int = 3) -> float:
    """Return a value as it is shown; one that rounds to 0 has no sign."""
    # Sums of halves end in noise beyond any digit shown: 0.4925 must not be 0.492 and 0.493.
    return round(round(value, _EXACT_DIGITS), digits) + 0.0


def with_ends(value: float | None, low: float | None, high: float | None, digits: int = 3) -> str:
    """Return a value with the ends of its interval in square brackets, where it has one."""
    if value is None or low is None or high is None:
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def from_to(low: float | None, high: float | None, digits: int = 3) -> str:
    """Return the ends of a range in words, which a minus sign does not make harder to read."""
    return f"{number(low, digits)} to {number(high, digits)}"


def share(part: float | None, whole: float = 1.0) -> str:
    """Return a part as a percentage of the whole; a dash where there is none."""
    return MISSING if part is None or not whole else f"{100 * part / whole:.0f} %"


def duration(seconds: float) -> str:
    """Return a time in the unit it reads best in, with at least two significant digits."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 9.95 else f"{milliseconds:#.2g} ms"


def enumerated(parts: Sequence[str], last: str = "and") -> str:
    """Return parts as a list in words."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def cost_of_thousand(usd_per_query: float | None) -> str:
    """Return the US dollars for a thousand queries, to three digits and at least to the cent.

    A dash where the cost is not known.
    """
    if usd_per_query is None:
        return MISSING
    usd = 1000 * usd_per_query
    digits = 2 if usd <= 0 else max(2, 2 - floor(log10(usd)))
    whole, _, decimals = f"{usd:,.{digits}f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: `1 query`, `1,200 queries`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with what a reader has to know about it."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def render_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of aligned columns, without a line feed at its end.

    Columns that hold nothing but numbers, dashes and empty cells are right-aligned. Cells are
    data: hidden characters become visible escapes, and line feeds and tabs become spaces.

    Args:
        headers: Names of the columns.
        rows: As many cells in each as there are headers.

    Raises:
        ValueError: A row has another number of cells.
    """
    head = [_cell(text) for text in headers]
    body = [[_cell(text) for text in row] for row in rows]
    for row in body:
        if len(row) != len(head):
            raise ValueError(f"row {row}: expected {len(head)} cells, got {len(row)}")
    columns = [[row[index] for row in body] for index in range(len(head))]
    right = [numeric_column(column) for column in columns]
    widths = [
        max(display_width(text) for text in (name, *column))
        for name, column in zip(head, columns, strict=True)
    ]
    lines = [_line(head, widths, right), _GAP.join("─" * width for width in widths)]
    return "\n".join([*lines, *(_line(row, widths, right) for row in body)])


def numeric_column(cells: Iterable[str]) -> bool:
    """Whether a column reads as numbers and is therefore aligned on its right."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(cell == MISSING or _is_number(cell) for cell in filled)


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: wide characters 2, combining marks 0."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _is_number(text: str) -> bool:
    return bool(_NUMERIC.fullmatch(text)) and not _WORD.search(text)


def _cell(text: str) -> str:
    return visible(" ".join(text.split()))


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        space = " " * (width - display_width(cell))
        padded.append(space + cell if to_right else cell + space)
    return _GAP.join(padded).rstrip()
