"""What a cell of a spreadsheet shows of its number: 50% of 0.5, € 12.50 of 12.5.

A format is written as spreadsheets keep it, with a point before decimals and commas between
thousands, whatever the country. Those of days, fractions and powers of ten are not read.
"""

from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Final

from ragforge.deferred import dataclass, pattern

_GENERAL: Final = ("General", "@", "")
"""Formats of cells that show a number as it is."""
_TOKEN: Final = pattern(
    r'"(?P<quoted>[^"]{0,250})"|\\(?P<escaped>.)|_(?P<width>.)|\*(?P<fill>.)|\[(?P<bracket>[^\]]{0,60})\]'
    r"|(?P<number>(?:[0#?][0#?,]*)?\.[0#?]+,*|[0#?][0#?,]*\.?)|(?P<general>General)|(?P<end>;)"
    r"|(?P<other>.)"
)
_COLOUR: Final = pattern(r"(?i:black|blue|cyan|green|magenta|red|white|yellow|colou?r ?\d{1,2})")
_SIGNS: Final = frozenset("%$€£¥₹ -+()/:!&'~{}=<>\u00a0\u202f")
"""Characters that a format shows without quotes."""
_LEFT_OUT_SEMICOLON: Final = (")_(", ");_(")
"""As openpyxl has the accounting format, which Excel names by the number 44 alone."""
_MOST: Final = 1e15
"""Spreadsheets keep no more digits."""
_NEGATIVE: Final = 1
_ZERO: Final = 2


@dataclass(frozen=True, slots=True)
class _Number:
    """How a number is written between what stands before and behind it."""

    before: str
    after: str
    digits: str | None
    """Placeholders, such as `#,##0.00`; "" for a number as it is, None where none is shown."""
    n_percent: int


def shown_number(value: float, number_format: str) -> str | None:
    """Return a number as a cell shows it; None where its format is not read.

    Args:
        value: Whole or not.
        number_format: As the file has it.
    """
    if number_format in _GENERAL:
        return plain_number(value)
    if not abs(value) < _MOST:
        return None
    sections = _sections(number_format.replace(*_LEFT_OUT_SEMICOLON))
    exact = Decimal(str(value))
    at = _NEGATIVE if exact < 0 else _ZERO if exact == 0 else 0
    own = at < len(sections)
    section = sections[at if own else 0]
    if section is None:
        return None
    written = _written(abs(exact), section)
    sign = "-" if exact < 0 and not own and any(sign in "123456789" for sign in written) else ""
    return f"{sign}{section.before}{written}{section.after}".strip() or None


def plain_number(value: float) -> str:
    """Return a number as a cell without a format shows it."""
    return str(int(value)) if float(value).is_integer() else str(value)


def _written(value: Decimal, section: _Number) -> str:
    """Return the digits of a number."""
    if section.digits is None:
        return ""
    value *= 100**section.n_percent
    if not section.digits:
        return plain_number(float(value))
    whole, _, decimals = (part.rstrip(",") for part in section.digits.partition("."))
    n_thousands = len(section.digits.replace(".", "")) - len(whole) - len(decimals)
    value /= 1000**n_thousands
    rounded = value.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    digits, _, fraction = f"{rounded:f}".partition(".")
    digits = digits.lstrip("0").rjust(whole.count("0"), "0")
    if "," in whole:
        digits = _grouped(digits)
    least = len(decimals.rstrip("#?"))
    fraction = fraction[:least] + fraction[least:].rstrip("0")
    return f"{digits}.{fraction}" if fraction else digits


def _grouped(digits: str) -> str:
    first = len(digits) % 3
    groups = [digits[:first], *(digits[at : at + 3] for at in range(first, len(digits), 3))]
    return ",".join(filter(None, groups))


@lru_cache(maxsize=256)
def _sections(number_format: str) -> tuple[_Number | None, ...]:
    """Return the parts of a format: of numbers, of those below 0, of 0; None for one not read."""
    parts: list[list[tuple[str, str]]] = [[]]
    for found in _TOKEN.finditer(number_format):
        kind = found.lastgroup or ""
        if kind == "end":
            parts.append([])
        else:
            parts[-1].append((kind, found[kind]))
    return tuple(map(_section, parts[:3]))


def _section(tokens: list[tuple[str, str]]) -> _Number | None:
    """Return one part of a format; None where it is not read."""
    texts = ["", ""]
    digits: str | None = None
    n_percent = 0
    for kind, text in tokens:
        if kind in ("number", "general"):
            if digits is not None:
                return None
            digits = text if kind == "number" else ""
            continue
        literal = _literal(kind, text)
        if literal is None:
            return None
        n_percent += (kind, text) == ("other", "%")
        texts[digits is not None] += literal
    before, after = texts
    return _Number(before, after, digits, n_percent)


def _literal(kind: str, text: str) -> str | None:
    """Return what a token that is no number shows; None where it is not read."""
    if kind == "bracket":
        currency, _, _ = text.removeprefix("$").partition("-")
        is_colour = _COLOUR.fullmatch(text) is not None
        return currency if text.startswith("$") else "" if is_colour else None
    if kind == "other":
        return text if text in _SIGNS else None
    return "" if kind == "width" else text
