"""Single values of data files, and how messages repeat them."""

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Final

SHOWN_CHARS = 80
"""How much of a faulty value an error message repeats."""
_WORDS_FOR_GRADES: Final = dict.fromkeys(("true", "yes", "relevant"), 1) | dict.fromkeys(
    ("false", "no", "irrelevant", "not relevant", "not_relevant"), 0
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")


class RoundedNumber(float):
    """A number that is whole only because it was rounded, such as 2.9999999999999999999."""

    literal: str

    def __new__(cls, literal: str) -> "RoundedNumber":
        """Take a number as it is written."""
        made = super().__new__(cls, literal)
        made.literal = literal
        return made

    def is_integer(self) -> bool:
        """Return that it is none."""
        return False

    def __repr__(self) -> str:
        """Return what is written."""
        return self.literal


def read_float(literal: str) -> float:
    """Return the number that a literal with a fraction or exponent says.

    What is no whole number stays none, though a float has no room for its fraction: a grade of
    2.9999999999999999999 is no 3.
    """
    number = float(literal)
    if not number.is_integer():
        return number
    try:
        return number if Decimal(literal) == number else RoundedNumber(literal)
    except InvalidOperation:  # An exponent of twenty digits.
        return RoundedNumber(literal)


def parse_whole(value: object) -> int | None:
    """Return the whole number that a value or its text is; None where it is none."""
    match value:
        case bool():
            return None
        case int():
            return value
        case float():
            return int(value) if value.is_integer() else None
        case str():
            return int(value.partition(".")[0]) if _WHOLE.fullmatch(value) else None
    return None


def parse_number(value: object) -> float | None:
    """Return the number that a value or its text is, infinite ones too; None where it is none."""
    if not isinstance(value, str | float | int) or isinstance(value, bool):
        return None
    if isinstance(value, str) and "_" in value:  # Python reads 1_0 as 10.
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def parse_grade(value: object) -> int | None:
    """Return the grade that a value says: a whole number; true or "yes" is 1, false or "no" 0."""
    word = _WORDS_FOR_GRADES.get(str(value).strip().lower())
    return parse_whole(value) if word is None else word


def is_grade(value: object) -> bool:
    """Whether a value can be meant as a grade: a number, or a word for relevant or not."""
    return parse_grade(value) is not None or parse_number(value) is not None


def shown(value: object) -> str:
    """Return a faulty value as a message repeats it: escaped, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def escaped(name: str) -> str:
    r"""Return a name on one line: what is not printed, such as a line feed, as `\n`."""
    return "".join(one if one.isprintable() else _escaped(one) for one in name)


def as_unicode(name: str) -> str:
    r"""Return a name of a file as records can hold it: bytes that are not UTF-8 as `\xff`."""
    return name if is_unicode(name) else escaped(name)


def _escaped(character: str) -> str:
    # Python holds a byte of a file name that is not UTF-8 as half a surrogate pair.
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return repr(character)[1:-1]


def is_unicode(text: str) -> bool:
    """Return whether a text can be written: JSON can spell half a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
