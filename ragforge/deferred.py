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
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field
from importlib import import_module
from threading import RLock
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final

__all__ = [
    "DeferredModule",
    "asyncio",
    "csv",
    "dataclass",
    "datetime",
    "decimal",
    "difflib",
    "fractions",
    "gzip",
    "hashlib",
    "html",
    "http_client",
    "numpy",
    "pattern",
    "random",
    "shutil",
    "socket",
    "ssl",
    "statistics",
    "string",
    "subprocess",
    "tempfile",
    "textwrap",
    "tomllib",
    "zipfile",
]

_FIRST: Final = ("__dataclass_fields__", "__init__", "__match_args__", "__signature__")
"""What is there when an object has been made; a signature only until then."""
_NO_MORE: Final = {"init": False, "repr": False, "eq": False, "order": False}
_FROZEN: Final = ("__setattr__", "__delattr__")
_ORDERED: Final = ("__lt__", "__le__", "__gt__", "__ge__")
_COMPLETING: Final = RLock()


class _Factory:
    """The default that stands in a signature for what is made anew for each object."""

    def __repr__(self) -> str:
        """Say it as `dataclasses` does."""
        return "<factory>"


_FACTORY: Final = _Factory()


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
    compared nor shown in a command, no frozen object is changed, and that is most of what there is
    to compile.

    Args:
        made: With slots.
        plain: The same without; the dataclasses that are made of it then have the methods.
        options: Those of `dataclasses.dataclass`.
    """
    is_frozen, is_compared = options.get("frozen", False), options.get("eq", True)
    own = vars(made)
    _put_off_some(made, lambda: _what_makes(made, plain, options), _FIRST)
    _put_off_some(
        made,
        lambda: _what_dataclasses_makes(plain, options),
        _others(options, is_frozen=is_frozen, is_compared=is_compared),
    )
    if is_compared and not is_frozen:
        made.__hash__ = own.get("__hash__")  # type: ignore[assignment]  # None, as in any class
    if is_frozen:
        for name, method in (("__getstate__", _state), ("__setstate__", _set_state)):
            setattr(made, name, own.get(name, method))


def _put_off_some(
    made: type, write: Callable[[], Mapping[str, object]], names: Sequence[str]
) -> None:
    def complete() -> None:
        with _COMPLETING:
            if isinstance(vars(made)[names[0]], _Later):
                _complete(made, write(), names)

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
        *(_FROZEN if is_frozen else ()),
        *(_ORDERED if options.get("order") else []),
    ]


def _complete(made: type, found: Mapping[str, object], names: Sequence[str]) -> None:
    for name in reversed(names):  # The first one last: it tells that all others are there.
        if not isinstance(vars(made).get(name), _Later):
            continue
        if name in found:
            setattr(made, name, found[name])
        else:
            delattr(made, name)


def _what_dataclasses_makes(plain: type, options: Mapping[str, bool]) -> Mapping[str, Any]:
    content = dict(vars(plain))
    for name in ("__dict__", "__weakref__"):
        content.pop(name, None)
    # The signature that would stand there otherwise is read out of the written method.
    content["__doc__"] = plain.__doc__ or plain.__name__
    copy = type(plain)(plain.__name__, plain.__bases__, content)
    return vars(dataclasses.dataclass(**{**options, "slots": False})(copy))


def _what_makes(made: type, plain: type, options: Mapping[str, bool]) -> Mapping[str, object]:
    """Return what an object is made with: the fields, and `__init__` as `dataclasses` writes it.

    With that of a frozen class it would also compile what refuses changes, in three times the time;
    of one whose base is frozen it does.
    """
    is_free = not any(map(dataclasses.is_dataclass, plain.__bases__))
    no_more = {**_NO_MORE, **({"frozen": False} if is_free else {})}
    found = _what_dataclasses_makes(plain, {**options, **no_more})
    if "__init__" in vars(plain):
        return found
    fields = list(found["__dataclass_fields__"].values())
    init = _written_init(made, fields, is_frozen=options.get("frozen", False))
    return {**found, "__init__": init}


def _written_init(made: type, fields: Sequence[Field[Any]], *, is_frozen: bool) -> object:
    known: dict[str, object] = {"_FACTORY": _FACTORY, "_OBJECT": object}
    lines = []
    for each in fields:
        has_factory = each.default_factory is not MISSING
        known[f"_default_{each.name}"] = each.default_factory if has_factory else each.default
        value = _value(each)
        if value and is_frozen:
            lines.append(f"_OBJECT.__setattr__(self, {each.name!r}, {value})")
        elif value:
            lines.append(f"self.{each.name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    taken = [each for each in fields if each.init]
    by_name = [_argument(each) for each in taken if each.kw_only]
    arguments = ["self", *(_argument(each) for each in taken if not each.kw_only)]
    arguments += ["*", *by_name] if by_name else []
    body = "".join(f"  {line}\n" for line in lines or ["pass"])
    method = f" def __init__({', '.join(arguments)}):\n{body} return __init__"
    there: dict[str, Callable[..., FunctionType]] = {}
    exec(f"def _write({', '.join(known)}):\n{method}", vars(sys.modules[made.__module__]), there)  # noqa: S102
    init = there["_write"](**known)
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = {**{each.name: each.type for each in taken}, "return": None}
    return init


def _argument(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=_FACTORY"
    return field.name if field.default is MISSING else f"{field.name}=_default_{field.name}"


def _value(field: Field[Any]) -> str:
    """Return how the value of a field is told; "" where it stays without."""
    default = f"_default_{field.name}"
    if field.default_factory is not MISSING:
        given = f" if {field.name} is _FACTORY else {field.name}" if field.init else ""
        return f"{default}(){given}"
    if field.init:
        return field.name
    return "" if field.default is MISSING else default


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
    import csv
    import datetime
    import decimal
    import difflib
    import fractions
    import gzip
    import hashlib
    import html
    import random
    import shutil
    import socket
    import ssl
    import statistics
    import string
    import subprocess
    import tempfile
    import textwrap
    import tomllib
    import zipfile
    from dataclasses import dataclass
    from http import client as http_client
    from re import compile as pattern

    import numpy
else:
    dataclass = _dataclass
    pattern = DeferredPattern
    asyncio = DeferredModule("asyncio")
    csv = DeferredModule("csv")
    datetime = DeferredModule("datetime")
    decimal = DeferredModule("decimal")
    difflib = DeferredModule("difflib")
    fractions = DeferredModule("fractions")
    gzip = DeferredModule("gzip")
    hashlib = DeferredModule("hashlib")
    html = DeferredModule("html")
    http_client = DeferredModule("http.client")
    numpy = DeferredModule("numpy")
    random = DeferredModule("random")
    shutil = DeferredModule("shutil")
    socket = DeferredModule("socket")
    ssl = DeferredModule("ssl")
    statistics = DeferredModule("statistics")
    string = DeferredModule("string")
    subprocess = DeferredModule("subprocess")
    tempfile = DeferredModule("tempfile")
    textwrap = DeferredModule("textwrap")
    tomllib = DeferredModule("tomllib")
    zipfile = DeferredModule("zipfile")
