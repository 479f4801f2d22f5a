"""Taking and writing values that plainly are what a field says, without pydantic.

A value is taken that has the very type of its field, holds to its bounds and goes through its
validators. All else is for pydantic to decide: whether it converts it, or what it says against it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from ragforge.deferred import pattern
from ragforge.records.fields import FieldMark, JsonValue, ValidatorMark

Check = Callable[[Any, bool], Any]
"""Takes a value, and whether it comes from JSON, and returns what the field holds; raises
`UnsureError`."""

_MOST_EXACT: Final = 1 << 53
_BOUNDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "ge": lambda value, bound: value >= bound,
    "gt": lambda value, bound: value > bound,
    "le": lambda value, bound: value <= bound,
    "lt": lambda value, bound: value < bound,
    "min_length": lambda value, bound: len(value) >= bound,
    "max_length": lambda value, bound: len(value) <= bound,
    "allow_inf_nan": lambda value, is_allowed: is_allowed or math.isfinite(value),
    # Of other text pydantic's patterns and Python's may say different things.
    "pattern": lambda value, pattern: (
        value.isascii() and value.isprintable() and re.search(pattern, value) is not None
    ),
}
_NO_BOUNDS: Final = {"default", "default_factory", "exclude_if", "json_schema_extra", "strict"}
"""What else `Field` may be given; `strict` asks for the very type, which is taken alone anyway."""

_WHOLE: Final = pattern("-?[1-9][0-9]{0,14}|0")
_DECIMAL: Final = pattern(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")


class UnsureError(Exception):
    """A value is not plainly what its field says, or may be written in another way."""


def is_number(hint: Any, marks: tuple[object, ...] = ()) -> bool:  # noqa: ANN401
    """Whether an annotation says a number, or none, so that its text is as good.

    Args:
        hint: The annotation.
        marks: What stands beside it; a field that is strict takes no text.
    """
    if any(isinstance(mark, ValidatorMark) for mark in marks):
        return False
    if any(isinstance(mark, FieldMark) and mark.given.get("strict") for mark in marks):
        return False
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return is_number(parts[0], parts[1:])
    if origin in (Union, UnionType):
        kinds = [part for part in parts if part is not NoneType]
        return len(kinds) == 1 and is_number(kinds[0])
    return hint is int or hint is float


def number_in(text: str) -> int | float:
    """Return the number that a flag or a variable plainly holds.

    Raises:
        UnsureError: It may hold none, or one that is written in another way.
    """
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    raise UnsureError


def check_of(hint: Any) -> Check:  # noqa: ANN401  # any form of annotation
    """Return how a value of an annotation is taken; of one that is not known here nothing is."""
    if getattr(hint, "take_plainly", None):
        return _of_model(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return marked(check_of(parts[0]), parts[1:])
    made = _OF_FORM.get(origin)
    return made(parts) if made else _OF_TYPE.get(hint, _nothing)


def marked(inner: Check, marks: tuple[object, ...]) -> Check:
    """Return a check that holds to bounds and validators, too."""
    before = [
        mark.function
        for mark in reversed(marks)
        if isinstance(mark, ValidatorMark) and mark.name == "BeforeValidator"
    ]
    after = [step for mark in marks for step in _steps(mark)]
    if not before and not after:
        return inner

    def check(value: Any, is_json: bool) -> Any:  # noqa: ANN401  # whatever a field has
        try:
            given = value
            for function in before:
                value = function(value)
            # What such a function made is no longer what JSON had.
            value = inner(value, is_json and value is given)
            for function in after:
                value = function(value)
        except (ValueError, AssertionError, TypeError):
            raise UnsureError from None
        return value

    return check


def _steps(mark: object) -> list[Callable[[Any], Any]]:
    if isinstance(mark, ValidatorMark) and mark.name == "AfterValidator":
        return [mark.function]
    if not isinstance(mark, FieldMark):
        return []
    return [
        _within(_BOUNDS.get(name, _never), bound)
        for name, bound in mark.given.items()
        if name not in _NO_BOUNDS
    ]


def _never(_: object, __: object) -> bool:
    """Leave to pydantic what is not known here."""
    return False


def _within(holds: Callable[[Any, Any], bool], bound: object) -> Callable[[Any], Any]:
    def step(value: Any) -> Any:  # noqa: ANN401
        if value is not None and not holds(value, bound):
            raise UnsureError
        return value

    return step


def _nothing(_: Any, __: bool) -> Any:  # noqa: ANN401
    raise UnsureError


def _text(value: Any, _: bool) -> Any:  # noqa: ANN401
    if type(value) is not str:
        raise UnsureError
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UnsureError from None
    return value


def _exactly(kind: type) -> Check:
    def check(value: Any, _: bool) -> Any:  # noqa: ANN401
        if type(value) is not kind:
            raise UnsureError
        return value

    return check


def _number(value: Any, _: bool) -> Any:  # noqa: ANN401
    if type(value) is int and abs(value) < _MOST_EXACT:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise UnsureError
    return value


def _json(value: Any, is_json: bool) -> Any:  # noqa: ANN401
    if type(value) is list:
        return [_json(item, is_json) for item in value]
    if type(value) is dict:
        return {_text(key, is_json): _json(item, is_json) for key, item in value.items()}
    return _scalar(value)


def _scalar(value: Any) -> Any:  # noqa: ANN401
    """Return a value that JSON has as it is."""
    kind = type(value)
    if value is None or kind is bool or kind is int or (kind is float and math.isfinite(value)):
        return value
    return _text(value, False)


def _of_model(kind: Any) -> Check:  # noqa: ANN401
    def check(value: Any, is_json: bool) -> Any:  # noqa: ANN401
        if type(value) is dict:
            return kind.take_plainly(value, is_json=is_json)
        if is_json or not isinstance(value, kind):
            raise UnsureError
        return value

    return check


def _of_words(words: tuple[Any, ...]) -> Check:
    allowed = {(type(word), word) for word in words}

    def check(value: Any, _: bool) -> Any:  # noqa: ANN401
        if type(value) not in (str, int) or (type(value), value) not in allowed:
            raise UnsureError
        return value

    return check


def _of_several(kinds: tuple[Any, ...]) -> Check:
    checks = [check_of(kind) for kind in kinds if kind is not NoneType]
    has_none = NoneType in kinds
    [first, *others] = checks

    def check(value: Any, is_json: bool) -> Any:  # noqa: ANN401
        if value is None and has_none:
            return None
        if not others:
            return first(value, is_json)
        # Which of several kinds that take it a value is of is not told here.
        taken = [made for each in checks for made in _tried(each, value, is_json)]
        if len(taken) != 1 or type(taken[0]) is not type(value):
            raise UnsureError
        return taken[0]

    return check


def _tried(check: Check, value: Any, is_json: bool) -> list[Any]:  # noqa: ANN401
    try:
        return [check(value, is_json)]
    except UnsureError:
        return []


def _of_tuple(kinds: tuple[Any, ...]) -> Check:
    checks = [check_of(kind) for kind in kinds if kind is not Ellipsis]
    is_any_length = Ellipsis in kinds

    def check(value: Any, is_json: bool) -> Any:  # noqa: ANN401
        if type(value) is not list and (is_json or type(value) is not tuple):
            raise UnsureError
        each = checks * len(value) if is_any_length else checks
        if len(each) != len(value):
            raise UnsureError
        return tuple([take(item, is_json) for take, item in zip(each, value, strict=True)])

    return check


def _of_dict(kinds: tuple[Any, ...]) -> Check:
    take_key, take = map(check_of, kinds)

    def check(value: Any, is_json: bool) -> Any:  # noqa: ANN401
        if type(value) is not dict:
            raise UnsureError
        return {take_key(key, is_json): take(item, is_json) for key, item in value.items()}

    return check


_OF_TYPE: Final[dict[object, Check]] = {
    str: _text,
    int: _exactly(int),
    float: _number,
    bool: _exactly(bool),
    NoneType: _exactly(NoneType),
    JsonValue: _json,
}
_OF_FORM: Final[dict[object, Callable[[tuple[Any, ...]], Check]]] = {
    Literal: _of_words,
    Union: _of_several,
    UnionType: _of_several,
    tuple: _of_tuple,
    dict: _of_dict,
}


def plain_data(value: Any, *, is_json: bool) -> Any:  # noqa: ANN401  # whatever a field has
    """Return a field's value as plain data, models as mappings.

    Raises:
        UnsureError: It is something else than what fields of this package hold.
    """
    if type(value) is tuple or type(value) is list:
        items = [plain_data(item, is_json=is_json) for item in value]
        return items if is_json or type(value) is list else tuple(items)
    if type(value) is dict:
        return {_text(k, is_json): plain_data(item, is_json=is_json) for k, item in value.items()}
    if hasattr(value, "dump_plainly"):
        return value.dump_plainly(is_json=is_json)
    return _scalar(value)


def has_exponent(value: Any) -> bool:  # noqa: ANN401
    """Whether data hold a number with an exponent, which pydantic writes in a way of its own."""
    if type(value) is dict:
        return any(map(has_exponent, value.values()))
    if type(value) is list:
        return any(map(has_exponent, value))
    return type(value) is float and "e" in repr(value)
