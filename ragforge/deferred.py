"""What is put off until it is used: modules, patterns, and the methods of dataclasses.

numpy takes as long as all else that a short command does, and most modules that compute with it are
imported by commands that compute nothing. There stands `from ragforge.deferred import numpy as np`,
and `from __future__ import annotations`, so that no signature asks for it. Those of Python that are
here take two to five milliseconds each.

`dataclass` takes half a millisecond for each class, as it writes methods and compiles them. A
command imports hundreds of classes and makes objects of some dozens: see `_dataclass`.
"""

import dataclasses
import re
from collections.abc import Callable
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Final

__all__ = [
    "DeferredModule",
    "asyncio",
    "dataclass",
    "difflib",
    "hashlib",
    "numpy",
    "pattern",
    "shutil",
    "socket",
    "tempfile",
    "tomllib",
    "zipfile",
]

_FIRST: Final = ("__dataclass_fields__", "__init__", "__match_args__", "__signature__")
"""What is there when an object has been made; a signature only until then."""
_NO_MORE: Final = {"repr": False, "eq": False, "order": False}
_FROZEN: Final = ("__setattr__", "__delattr__")
_ORDERED: Final = ("__lt__", "__le__", "__gt__", "__ge__")
_COMPLETING: Final = RLock()


class _Later:
    """An attribute of a dataclass that completes it when it is asked for."""

    __slots__ = ("_complete", "_name")

    def __init__(self, name: str, complete: Callable[[], None]) -> None:
        self._name = name
        self._complete = complete

    def __get__(self, instance: object | None, owner: type) -> object:
        """Complete the class, and return what now stands in this one's place."""
        self._complete()
        return getattr(owner if instance is None else instance, self._name)


def _dataclass(bare: type | None = None, /, **options: bool) -> type | Callable[[type], type]:
    """Return what `dataclasses.dataclass` does, with the methods written when one is used.

    Only what `slots` asks for is done at once, as a class cannot be given any later. A class with
    fields that are none (`ClassVar` and its kin) is completed at once.

    Args:
        bare: The class, where no options are given.
        options: Those of `dataclasses.dataclass`; without `slots` nothing is put off.
    """

    def decorate(plain: type) -> type:
        own = plain.__annotations__
        if not options.get("slots") or any(map(_is_no_field, own.values())):
            return dataclasses.dataclass(**options)(plain)
        content = {name: value for name, value in vars(plain).items() if name not in own}
        for name in ("__dict__", "__weakref__"):
            content.pop(name, None)
        there = {name for base in plain.__mro__[1:] for name in _slots(base)}
        content["__slots__"] = tuple(name for name in own if name not in there)
        made = type(plain)(plain.__name__, plain.__bases__, content)
        made.__qualname__ = plain.__qualname__
        _put_off(made, plain, options)
        return made

    return decorate if bare is None else decorate(bare)


def _is_no_field(annotation: object) -> bool:
    if isinstance(annotation, str):
        return any(kind in annotation for kind in ("ClassVar", "InitVar", "KW_ONLY"))
    if annotation is dataclasses.KW_ONLY or isinstance(annotation, dataclasses.InitVar):
        return True
    return getattr(annotation, "__origin__", annotation) is ClassVar


def _slots(base: type) -> tuple[str, ...]:
    found = vars(base).get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


def _put_off(made: type, plain: type, options: dict[str, bool]) -> None:
    """Let a class be completed by the first use of what it lacks.

    What comes with the first object and all else are written apart: most classes are never
    compared nor shown in a command, and that is half of what there is to compile.

    Args:
        made: With slots.
        plain: The same without; the dataclasses that are made of it then have the methods.
        options: Those of `dataclasses.dataclass`.
    """
    is_frozen, is_compared = options.get("frozen", False), options.get("eq", True)
    own = vars(made)
    _put_off_some(made, plain, options | _NO_MORE, [*_FIRST, *(_FROZEN if is_frozen else ())])
    _put_off_some(
        made, plain, options, _others(options, is_frozen=is_frozen, is_compared=is_compared)
    )
    if is_compared and not is_frozen:
        made.__hash__ = own.get("__hash__")  # type: ignore[assignment]  # None, as in any class
    if is_frozen:
        for name, method in (("__getstate__", _state), ("__setstate__", _set_state)):
            setattr(made, name, own.get(name, method))


def _put_off_some(made: type, plain: type, options: dict[str, bool], names: list[str]) -> None:
    def complete() -> None:
        with _COMPLETING:
            if isinstance(vars(made)[names[0]], _Later):
                _complete(made, plain, options, names)

    for name in names:
        # A class that defines how it is compared, and no hash, has None for it here.
        if vars(made).get(name) is None:
            setattr(made, name, _Later(name, complete))


def _others(options: dict[str, bool], *, is_frozen: bool, is_compared: bool) -> list[str]:
    """Return the names of what else `dataclasses.dataclass` gives a class that has none itself."""
    return [
        "__dataclass_params__",
        *(["__repr__"] if options.get("repr", True) else []),
        *(["__eq__"] if is_compared else []),
        *(["__hash__"] if is_compared and is_frozen else []),
        *(_ORDERED if options.get("order") else []),
    ]


def _complete(made: type, plain: type, options: dict[str, bool], names: list[str]) -> None:
    content = dict(vars(plain))
    for name in ("__dict__", "__weakref__"):
        content.pop(name, None)
    # The signature that would stand there otherwise is read out of the written method.
    content["__doc__"] = plain.__doc__ or plain.__name__
    copy = type(plain)(plain.__name__, plain.__bases__, content)
    found = vars(dataclasses.dataclass(**options)(copy))
    for name in reversed(names):  # The first one last: it tells that all others are there.
        if not isinstance(vars(made).get(name), _Later):
            continue
        if name in found:
            setattr(made, name, found[name])
        else:
            delattr(made, name)


def _state(self: object) -> list[object]:
    """Return the values of a frozen object, for pickling."""
    return [getattr(self, each.name) for each in dataclasses.fields(self)]  # type: ignore[arg-type]


def _set_state(self: object, state: list[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):  # type: ignore[arg-type]
        object.__setattr__(self, each.name, value)


class DeferredModule(ModuleType):
    """A module that stands for one of the same name until something of it is asked for."""

    def __getattr__(self, name: str) -> object:
        """Import the module, and keep what was asked for."""
        found = self.__dict__[name] = getattr(import_module(self.__name__), name)
        return found


class DeferredPattern:
    """A regular expression that is compiled when something of it is asked for.

    Those with sets of many scripts take two to five milliseconds each.

    Args:
        text: The expression.
        flags: As for `re.compile`.
    """

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Compile it, and keep what was asked for."""
        found = self.__dict__[name] = getattr(re.compile(self._text, self._flags), name)
        return found


if TYPE_CHECKING:
    import asyncio
    import difflib
    import hashlib
    import shutil
    import socket
    import tempfile
    import tomllib
    import zipfile
    from dataclasses import dataclass
    from re import compile as pattern

    import numpy
else:
    dataclass = _dataclass
    pattern = DeferredPattern
    asyncio = DeferredModule("asyncio")
    difflib = DeferredModule("difflib")
    hashlib = DeferredModule("hashlib")
    numpy = DeferredModule("numpy")
    shutil = DeferredModule("shutil")
    socket = DeferredModule("socket")
    tempfile = DeferredModule("tempfile")
    tomllib = DeferredModule("tomllib")
    zipfile = DeferredModule("zipfile")
