"""A row of a data file, and how the values of its fields are read."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ragforge.deferred import dataclass, decimal, pattern
from ragforge.errors import DataError
from ragforge.files.field_names import (
    COST_USD,
    FAILED,
    LATENCY_MS,
    LATENCY_S,
    QUERY_ID,
    QUERY_ID_OF_PAIR,
    QUERY_OF_PAIR,
    Field,
    normal_name,
    normal_names,
)
from ragforge.files.text import SHOWN_CHARS, is_unicode, shown

_WORDS_FOR_GRADES: Final = dict.fromkeys(("true", "yes", "relevant"), 1) | dict.fromkeys(
    ("false", "no", "irrelevant", "not relevant", "not_relevant"), 0
)
_WHOLE = pattern(r"[+-]?[0-9]{1,18}(\.0*)?")
_SEPARATORS = pattern(r"[;|,\r\n]")
_QUOTED = pattern(
    r"""('(?>(?:[^'\\]|\\.|\\\Z)*)(?:'|\Z)|"(?>(?:[^"\\]|\\.|\\\Z)*)(?:"|\Z))(\s++(?=['"]))?""",
    re.DOTALL,
)
"""Numpy writes no comma between texts, and Python would read them as one."""


@dataclass(frozen=True, slots=True)
class Row:
    """An object of a JSON file or a line of a table, and where it stands."""

    where: str
    given: Mapping[str, object]
    _by_name: Mapping[str, object]
    is_of_table: bool = False
    """Whether its values are cells, in which several ids stand in one text."""

    def has(self, *fields: Field) -> bool:
        """Whether the row has one of the fields, whatever its value."""
        given = self._by_name.keys()
        for field in fields:  # noqa: SIM110  # twice as fast, and asked several times of each row
            if not given.isdisjoint(normal_names(field)):
                return True
        return False

    def get(self, field: Field) -> object:
        """Return the value of a field; None where it is missing or null."""
        for name in normal_names(field):
            value = self._by_name.get(name)
            if value is not None or (field.null_counts and name in self._by_name):
                return value
        return None

    def named(self, name: str) -> object:
        """Return the value under one name; None where it is missing or null."""
        return self._by_name.get(normal_name(name))

    def text(self, field: Field) -> str:
        """Return a text that has to be there and to hold more than blanks.

        Raises:
            DataError: It is missing, of another type, or blank.
        """
        value = self.get(field)
        if isinstance(value, str) and value.strip() and is_unicode(value):
            return value
        self.require(field)
        raise self.wrong(field, "text", value)

    def optional_text(self, field: Field) -> str | None:
        """Return a text; None where it is missing, null or blank.

        Raises:
            DataError: It is of another type.
        """
        value = self.get(field)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return self.text(field)

    def identifier(self, field: Field) -> str:
        """Return an id that has to be there; a whole number becomes its digits.

        Raises:
            DataError: It is missing, empty or of another type.
        """
        value = self.get(field)
        if value is None:
            self.require(field)
        return self.as_id(value, field)

    def as_id(self, value: object, field: Field) -> str:
        """Return a value found in a field as an id.

        Raises:
            DataError: It is empty or neither text nor a whole number.
        """
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip() and is_unicode(value):
            return value
        raise self.wrong(field, "an id (text or a whole number)", value)

    def as_whole(self, value: object, field: Field) -> int:
        """Return a value found in a field as a whole number; `2.0` and "2" are 2.

        Raises:
            DataError: It is none.
        """
        number = parse_whole(value)
        if number is None:
            raise self.wrong(field, "a whole number", value)
        return number

    def as_grade(self, value: object, field: Field) -> int:
        """Return a value found in a field as a grade: true or "yes" is 1, false or "no" is 0.

        Raises:
            DataError: It is neither such a word nor a whole number.
        """
        grade = grade_in_words(value)
        if grade is None:
            raise self.wrong(field, "a whole number", value)
        return grade

    def as_number(self, value: object, field: Field) -> float:
        """Return a value found in a field as a number; infinities are numbers, NaN is none.

        Raises:
            DataError: It is none.
        """
        number = parse_number(value)
        if number is None:
            raise self.wrong(field, "a number", value)
        return number

    def require(self, field: Field) -> None:
        """Refuse a row that lacks a field.

        Raises:
            DataError: It does; the message says by which names the field is known.
        """
        if not self.has(field):
            raise DataError(
                f"{self.where}: {field.name}: expected one of {', '.join(field.accepted)}, "
                f"got {self.names()}"
            )

    def refuse_two(self, field: Field) -> None:
        """Refuse a row in which two names of a field have different values.

        Raises:
            DataError: It is so; one of them would be passed over.
        """
        accepted = {normal_name(name) for name in field.accepted}
        valued = {
            name: value
            for name, value in self.given.items()
            if normal_name(name) in accepted and value not in (None, "")
        }
        first = next(iter(valued.values()), None)
        if any(value != first for value in valued.values()):
            both = " and ".join(map(repr, list(valued)[:2]))
            raise DataError(
                f"{self.where}: {both} both say {field.name}, and differ; put them into one"
            )

    def refuse_blank(self, field: Field) -> None:
        """Refuse a row in which one name of a field is blank, and another has a value.

        Raises:
            DataError: It is so; which of them is meant is not known.
        """
        accepted = {normal_name(name) for name in field.accepted}
        named = {name: of for name, of in self.given.items() if normal_name(name) in accepted}
        blank = next((name for name, value in named.items() if value in (None, "")), None)
        valued = next((name for name, value in named.items() if value not in (None, "")), None)
        if blank is not None and valued is not None:
            raise DataError(
                f"{self.where}: {blank!r} is blank, {valued!r} is not, and both say {field.name}; "
                "put them into one, or leave one out"
            )

    def names(self) -> str:
        """Return the names of the first fields as a message repeats them."""
        return ", ".join(repr(name)[:SHOWN_CHARS] for name in list(self.given)[:8]) or "nothing"

    def wrong(self, field: Field, expected: str, found: object) -> DataError:
        """Return the error that says which value was expected under the row's own name."""
        name = self.name_of(field) or field.name
        return DataError(f"{self.where}: {name}: expected {expected}, got {shown(found)}")

    def name_of(self, field: Field) -> str | None:
        """Return the name by which the row knows a field: one that has a value, if there is."""
        there = [name for name in field.accepted if normal_name(name) in self._by_name]
        valued = (name for name in there if self._by_name[normal_name(name)] is not None)
        return next(valued, there[0] if there else None)


def make_row(where: str, given: Mapping[str, object], *, is_of_table: bool = False) -> Row:
    """Return the row of an object, or of a line of a table.

    Raises:
        DataError: Two of its names are spellings of one.
    """
    by_name = {normal_name(name): value for name, value in given.items()}
    if len(by_name) != len(given):
        spellings: dict[str, str] = {}
        for name in given:
            first = spellings.setdefault(normal_name(name), name)
            if first != name:
                raise DataError(f"{where}: {first!r} and {name!r} are one field; leave one out")
    return Row(where, given, by_name, is_of_table)


def query_name(row: Row) -> str:
    """Return the id of the query that a row is about; its text where it has no id.

    Raises:
        DataError: It has neither.
    """
    if row.get(QUERY_ID) is None and row.has(QUERY_OF_PAIR):
        return row.text(QUERY_OF_PAIR)
    return row.identifier(QUERY_ID)


def query_of_pair(row: Row) -> str:
    """Return the id of the query of a row about a query and a chunk, else the query's text.

    A plain `id` is not taken: it may well be the id of the pair.

    Raises:
        DataError: The row has neither.
    """
    if row.get(QUERY_ID_OF_PAIR) is None and row.has(QUERY_OF_PAIR):
        return row.text(QUERY_OF_PAIR)
    return row.identifier(QUERY_ID_OF_PAIR)


def latency_of(row: Row) -> float | None:
    """Return the seconds that a row says something took; None where it does not say.

    Raises:
        DataError: They are no number of at least 0.
    """
    for name, per_second in ((LATENCY_S, 1.0), (LATENCY_MS, 1000.0)):
        value = row.get(name)
        if value is None or value == "":
            continue
        latency = row.as_number(value, name)
        if not 0 <= latency < float("inf"):
            raise row.wrong(name, "a number of at least 0", value)
        return latency / per_second
    return None


def cost_of(row: Row) -> float | None:
    """Return the US dollars that a row says something cost; None where it does not say.

    Raises:
        DataError: They are no number of at least 0.
    """
    value = row.get(COST_USD)
    if value is None or value == "":
        return None
    usd = row.as_number(value, COST_USD)
    if not 0 <= usd < float("inf"):
        raise row.wrong(COST_USD, "a number of at least 0", value)
    return usd


def cell_items(row: Row, field: Field) -> object:
    """Return the value of a field that holds several; one cell of a table is taken apart.

    A cell is a JSON list or object, one as Python or numpy writes it, or ids between `;`, `|`, `,`
    or line ends. None counts as no items.

    Raises:
        DataError: The cell starts as a list or an object does and is none.
    """
    value = row.get(field)
    try:
        return value_items(value)
    except ValueError:
        raise row.wrong(field, "a JSON list or object", value) from None


def value_items(value: object) -> object:
    """Return a value that holds several, see `cell_items`.

    Raises:
        ValueError: The cell starts as a list or an object does and is none.
    """
    if value is None:
        return []
    if not isinstance(value, str):
        return value
    if value.lstrip()[:1] in ("[", "{"):
        try:
            return _read_cell(value.strip())
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError from error
    return [item for part in _SEPARATORS.split(value) if (item := part.strip())]


def _read_cell(cell: str) -> object:
    try:
        return load_json(cell)
    except json.JSONDecodeError:
        return load_literal(cell)


def load_literal(cell: str) -> object:
    """Return what a list or an object says as Python or numpy writes it.

    Raises:
        ValueError, SyntaxError, RecursionError, MemoryError: It is none.
    """
    from ast import literal_eval  # Few files need it.

    return literal_eval(_QUOTED.sub(_with_comma, cell))


def _with_comma(text: re.Match[str]) -> str:
    return f"{text[1]}, " if text[2] else text[0]


def load_json(text: str | bytes) -> object:
    """Return what a JSON text says, which must not be open to two readings.

    A number that only rounding makes whole is a `RoundedNumber`.

    Raises:
        ValueError: It is no JSON (JSONDecodeError), holds NaN or an infinity, or an object holds a
            name twice.
        RecursionError: It is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    return _DECODER.decode(text)


def pair_twice(where: str, query_id: str, chunk_id: str) -> DataError:
    """Return the error about a chunk that a query has twice."""
    return DataError(f"{where}: query {shown(query_id)}: chunk {shown(chunk_id)} comes twice")


def examples(shapes: Iterable[str]) -> str:
    """Return the shapes that a reader accepts, one an indented line."""
    return "".join(f"\n  {shape}" for shape in shapes)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_repeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"{shown(counts.most_common(1)[0][0])} comes twice in one object")
    return found


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
        return number if decimal.Decimal(literal) == number else RoundedNumber(literal)
    except decimal.InvalidOperation:  # An exponent of twenty digits.
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


def grade_in_words(value: object) -> int | None:
    """Return the grade that a value says: true or "yes" is 1, false or "no" 0; None for others."""
    word = _WORDS_FOR_GRADES.get(str(value).strip().lower())
    return parse_whole(value) if word is None else word


def is_grade(value: object) -> bool:
    """Whether a value can be meant as a grade: a number, or a word for relevant or not."""
    return grade_in_words(value) is not None or parse_number(value) is not None


_DECODER: Final = json.JSONDecoder(
    parse_float=read_float, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated
)
"""Made once: `json.loads` makes one for each text that is read in a way of its own."""


def failure_of(row: Row, result: Field) -> str:
    """Return why a row has no result: its error, or that the result is null; "" where it has one.

    Args:
        row: Its result is empty.
        result: What the row is to hold. In a table nothing tells null from nothing.
    """
    if failure := given_failure(row):
        return failure
    return "" if row.is_of_table or row.get(result) is not None else f"its {result.name} is null"


def given_failure(row: Row) -> str:
    """Return the error that a row says it has; "" for none."""
    error = row.get(FAILED)
    return (
        error if isinstance(error, str) else json.dumps(error, ensure_ascii=False) if error else ""
    )
