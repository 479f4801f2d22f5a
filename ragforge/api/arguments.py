"""Whether arguments are of the kind that a call takes: told before anything is done.

A flag of the command line is text and is parsed; an argument from Python is taken as it is, and a
`point="False"` that counts as true lets a run pass.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Final, Literal, ParamSpec, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

from ragforge.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

_SHOWN: Final = 80
_LISTS: Final = (Sequence, Iterable, Collection, list, tuple)
_WORDS: Final[Mapping[object, str]] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "None",
}


def checked(call: Callable[P, T]) -> Callable[P, T]:
    """Return a call that refuses arguments of another kind than its annotations say."""

    @wraps(call)
    def checking(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_other_kinds(call, args, kwargs)
        return call(*args, **kwargs)

    return checking


def refuse_other_kinds(
    call: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    """Refuse arguments of another kind than a call's annotations say.

    Keywords that are settings are looked at where they are read: see `ragforge.api.call.begin`.

    Raises:
        UsageError: One is.
    """
    signature, hints = _taken(call)
    try:
        bound = signature.bind_partial(*args, **kwargs).arguments
    except TypeError:
        return  # Python's own message says more once the call is made.
    for name, value in bound.items():
        parameter = signature.parameters[name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD or value is parameter.default:
            continue
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for item in value if several else (value,):
            refuse_other_kind(f"{call.__name__}: {name}", item, hints.get(name, Any))


def refuse_other_kind(name: str, value: object, hint: object) -> None:
    """Refuse a value that is not of a kind.

    Args:
        name: What messages call it.
        value: As it was given.
        hint: The annotation that it is held to.

    Raises:
        UsageError: It is not.
    """
    if not _fits(value, hint):
        raise UsageError(f"{name}: expected {_in_words(hint)}, got {repr(value)[:_SHOWN]}")


@cache
def _taken(call: Callable[..., object]) -> tuple[inspect.Signature, dict[str, Any]]:
    return inspect.signature(call), hints_of(call)


def _fits(value: object, hint: object) -> bool:
    if hint is Any:
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, item) for item in arguments)
    if origin is Literal:
        return isinstance(value, str | int) and value in arguments
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items()
        )
    if origin in _LISTS:
        return _is_list(value) and all(_fits(item, arguments[0]) for item in _held(value))
    return _is_of(value, origin or hint)


def _is_of(value: object, kind: object) -> bool:
    if kind is bool:
        return type(value).__name__ in ("bool", "bool_")  # numpy's are as good.
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    return isinstance(value, kind) if isinstance(kind, type) else True


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _held(value: object) -> Iterable[object]:
    """Return what can be looked at without taking it away."""
    return value if isinstance(value, Collection) else ()


def _in_words(hint: object) -> str:
    return " or ".join(dict.fromkeys(_each_in_words(hint)))


def _each_in_words(hint: object) -> Iterator[str]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for item in arguments:
            yield from _each_in_words(item)
    elif origin is Literal:
        yield f"one of: {', '.join(map(str, arguments))}"
    elif origin is Mapping:
        yield f"a mapping of {_in_words(arguments[0])} to {_in_words(arguments[1])}"
    elif origin in _LISTS:
        yield f"a list of {_in_words(arguments[0])}"
    else:
        kind = origin or hint
        name = getattr(kind, "__name__", str(kind))
        yield _WORDS.get(kind, "a path" if name == "PathLike" else name)
