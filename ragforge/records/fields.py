"""What pydantic's models are described by, without pydantic: it is imported when a model needs it.

For checkers of types all names here are pydantic's own.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from ragforge.deferred import DeferredModule

__all__ = [
    "AfterValidator",
    "BeforeValidator",
    "ConfigDict",
    "Field",
    "FieldInfo",
    "JsonValue",
    "WithJsonSchema",
    "computed_field",
    "model_validator",
    "pydantic",
]

NOTHING: Final = object()
"""Stands where there is no default."""


class _Grouped(ABC):
    """Of an annotation: a model of pydantic's own that has it takes what it stands for."""

    __slots__ = ()
    __is_annotated_types_grouped_metadata__: Final = True

    def __iter__(self) -> Iterator[object]:
        """Yield it in pydantic's terms."""
        made = self.made()
        yield from getattr(made, "metadata", [made])

    @abstractmethod
    def made(self) -> object:
        """Return pydantic's own."""


class ValidatorMark(_Grouped):
    """A function, in an annotation, that a value goes through.

    Args:
        name: What pydantic calls it.
        function: Returns the value, or another in its place; raises `ValueError`.
    """

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self.name = name
        self.function = function

    def made(self) -> object:
        """Return pydantic's own."""
        return getattr(pydantic, self.name)(self.function)


class SchemaMark(_Grouped):
    """The JSON schema, in an annotation, of what a value is given as.

    Args:
        schema: In the place of what pydantic would make of the type.
    """

    __slots__ = ("schema",)

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema

    def made(self) -> object:
        """Return pydantic's own."""
        return pydantic.WithJsonSchema(self.schema)


class FieldMark(_Grouped):
    """What `Field` was given: bounds, defaults, notes for the schema."""

    __slots__ = ("given",)

    def __init__(self, **given: Any) -> None:  # noqa: ANN401  # as pydantic's
        self.given = given

    def made(self) -> object:
        """Return pydantic's own."""
        return pydantic.Field(**self.given)


class ModelField:
    """A field of a model: what pydantic's `FieldInfo` has under the same names.

    Args:
        annotation: As it stands in the class; `annotation` is that without what `Annotated` adds.
        default: What the class has behind it; `NOTHING` where it has nothing.
    """

    __slots__ = ("annotation", "default", "default_factory", "given", "hint", "metadata")

    def __init__(self, annotation: Any, default: object = NOTHING) -> None:  # noqa: ANN401
        marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
        self.hint = annotation
        self.annotation = get_args(annotation)[0] if marks else annotation
        self.metadata = [mark for mark in marks if not isinstance(mark, FieldMark)]
        self.given: dict[str, Any] = {}
        for mark in (*marks, default):
            if isinstance(mark, FieldMark):
                self.given |= mark.given
        is_plain = default is not NOTHING and not isinstance(default, FieldMark)
        self.default = default if is_plain else self.given.get("default", NOTHING)
        self.default_factory = self.given.get("default_factory")

    @property
    def json_schema_extra(self) -> object:
        """What `Field` was given of this name; None where nothing."""
        return self.given.get("json_schema_extra")

    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is NOTHING and self.default_factory is None

    def get_default(self) -> object:
        """Return the default, which its caller may change."""
        if self.default_factory is not None:
            return self.default_factory()
        return (
            copy.deepcopy(self.default) if isinstance(self.default, dict | list) else self.default
        )


def for_pydantic(hint: Any) -> Any:  # noqa: ANN401  # any form of annotation
    """Return an annotation with pydantic's own in the place of what stands for it here."""
    if hint is JsonValue:
        return pydantic.JsonValue
    origin, parts = get_origin(hint), get_args(hint)
    if origin is None or origin is Literal:
        return hint
    if origin is Annotated:
        kind, *marks = parts
        return Annotated[(for_pydantic(kind), *map(_made, marks))]
    inside = tuple(part if part is Ellipsis else for_pydantic(part) for part in parts)
    return Union[inside] if origin in (Union, UnionType) else origin[inside]  # noqa: UP007


def _made(mark: object) -> object:
    return mark.made() if isinstance(mark, _Grouped) else mark


class WrittenProperty(property):
    """A property that is written behind the fields."""

    def __init__(self, read: property) -> None:
        super().__init__(read.fget, doc=read.__doc__)


class ModelCheck:
    """Marks a method that checks a model as a whole.

    Args:
        mode: `before` its fields are looked at, or `after`.
    """

    def __init__(self, *, mode: Literal["before", "after"]) -> None:
        self.mode = mode

    def __call__(self, function: Any) -> ModelCheck:  # noqa: ANN401  # a function or class method
        """Take the method."""
        self.function = function
        return self

    def __get__(self, instance: object, owner: type) -> Any:  # noqa: ANN401  # the method, bound
        """Return the method."""
        return self.function.__get__(instance, owner)


if TYPE_CHECKING:
    import pydantic
    from pydantic import (
        AfterValidator,
        BeforeValidator,
        ConfigDict,
        Field,
        JsonValue,
        WithJsonSchema,
        computed_field,
        model_validator,
    )
    from pydantic.fields import FieldInfo
else:
    pydantic = DeferredModule("pydantic")
    ConfigDict = dict
    Field = FieldMark
    FieldInfo = ModelField
    WithJsonSchema = SchemaMark
    computed_field = WrittenProperty
    model_validator = ModelCheck

    class JsonValue:
        """Stands for whatever JSON has."""

    def AfterValidator(function):  # noqa: ANN001, ANN201
        """Mark what a value goes through when it has its type."""
        return ValidatorMark("AfterValidator", function)

    def BeforeValidator(function):  # noqa: ANN001, ANN201
        """Mark what a value goes through first."""
        return ValidatorMark("BeforeValidator", function)
