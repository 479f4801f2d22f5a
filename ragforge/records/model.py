"""Models that pydantic validates, and that it is imported for only where it is needed.

pydantic takes longer to import than a short command has, and its validators take as long again to
build. `Model` stands in the place of its `BaseModel`, with what this package uses of that. Values
that plainly are what their fields say are taken by `plain_values`. About all others (another type,
an unknown key, a number out of its range) pydantic decides, on the same fields: what it accepts,
how it converts, and what it says are its own. So it does once there were so many fields that its
speed pays for its import.

For checkers of types all of it is pydantic.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from threading import RLock
from types import new_class
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, get_type_hints

from ragforge.records.fields import (
    NOTHING,
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    FieldInfo,
    FieldMark,
    JsonValue,
    ModelCheck,
    ModelField,
    WithJsonSchema,
    WrittenProperty,
    computed_field,
    for_pydantic,
    model_validator,
    pydantic,
)
from ragforge.records.plain_values import (
    Check,
    UnsureError,
    check_of,
    has_exponent,
    is_number,
    marked,
    number_in,
    plain_data,
)

__all__ = [
    "AfterValidator",
    "BeforeValidator",
    "ConfigDict",
    "Field",
    "FieldInfo",
    "JsonValue",
    "Model",
    "WithJsonSchema",
    "computed_field",
    "model_validator",
    "pydantic",
]

MOST_PLAIN: Final = 100_000
"""Fields that are taken and written without pydantic: it would take no less time for them, its
import counted in."""
MOST_PLAIN_BESIDE: Final = 300
"""Records of a class that are, where pydantic is imported: its validator takes time to build."""
_COMPLETING: Final = RLock()


class _Plan:
    """What is known of a class: its fields, how values are taken, and how often that was done."""

    n_fields: ClassVar[int] = 0
    """Taken and written without pydantic, of all classes."""

    def __init__(self, kind: type[_Model]) -> None:
        self.kind = kind
        hints = get_type_hints(kind, include_extras=True)
        bases = list(reversed(kind.__mro__))
        self.defaults = {k: v for base in bases for k, v in vars(base).get("_own", {}).items()}
        self.fields = {name: ModelField(hints[name], item) for name, item in self.defaults.items()}
        self.content = {name: value for base in bases for name, value in vars(base).items()}
        self.computed = [k for k, v in self.content.items() if isinstance(v, WrittenProperty)]
        self.validators = [k for k, v in self.content.items() if isinstance(v, ModelCheck)]
        self.n_taken = 0
        self._checks: dict[str, Check] = {}
        self._numbers: set[str] = set()
        """Fields that take a number as text, as flags and variables have it."""

    @property
    def checks(self) -> dict[str, Check]:
        """How the value of each field is taken."""
        if not self._checks:
            for name, field in self.fields.items():
                default = self.defaults[name]
                marks = (default,) if isinstance(default, FieldMark) else ()
                self._checks[name] = marked(check_of(field.hint), marks)
                if is_number(field.hint, marks) and not self.kind.model_config.get("strict"):
                    self._numbers.add(name)
        return self._checks

    def methods(self, mode: str) -> list[str]:
        """Return the names of the methods that check a model before, or after, its fields."""
        return [name for name in self.validators if self.content[name].mode == mode]

    def may_be_plain(self) -> bool:
        """Count a record, and return whether it may be taken or written without pydantic."""
        self.n_taken += 1
        if "pydantic.main" in sys.modules:
            pays = self.n_taken > MOST_PLAIN_BESIDE
        else:
            pays = _Plan.n_fields > MOST_PLAIN
        return not pays and self.kind.model_config.get("extra") == "forbid"

    def values(self, given: dict[Any, Any], *, is_json: bool) -> dict[str, Any]:
        """Return the values of all fields.

        Raises:
            UnsureError: What is given may not be what it should.
        """
        values = {}
        n_given = 0
        _Plan.n_fields += len(self.checks)
        for name, check in self.checks.items():
            if name in given:
                value = given[name]
                if name in self._numbers and type(value) is str and not is_json:
                    value = number_in(value)
                values[name] = check(value, is_json)
                n_given += 1
            elif self.fields[name].is_required():
                raise UnsureError
            else:
                values[name] = self.fields[name].get_default()
        if n_given != len(given):
            raise UnsureError
        return values


class _OfClass:
    """An attribute of a class that is computed when it is asked for."""

    def __init__(self, read: Callable[[Any], object]) -> None:
        self._read = read

    def __get__(self, instance: object, owner: type) -> object:
        return self._read(owner)


class _Model:
    """Base of models, which are immutable."""

    __slots__ = (
        "__dict__",
        "__pydantic_extra__",
        "__pydantic_fields_set__",
        "__pydantic_private__",
    )

    model_config: ClassVar[dict[str, Any]] = {}
    model_fields: ClassVar[Any] = _OfClass(lambda kind: kind.plan().fields)
    __signature__: ClassVar[Any] = _OfClass(lambda kind: _signature(kind))
    __pydantic_complete__: ClassVar[bool] = False
    __pydantic_fields_set__: set[str]
    __pydantic_core_schema__: ClassVar[Any]
    __pydantic_validator__: ClassVar[Any]
    __pydantic_serializer__: ClassVar[Any]
    _own: ClassVar[dict[str, object]]
    _planned: ClassVar[_Plan]

    def __init_subclass__(cls, **_: object) -> None:
        """Note the fields; what they mean is looked at when there is a value."""
        cls.__pydantic_complete__ = False
        names = [n for n in vars(cls).get("__annotations__", {}) if not n.startswith("_")]
        cls._own = {name: vars(cls).get(name, NOTHING) for name in names}
        for name, default in cls._own.items():
            if default is not NOTHING:
                delattr(cls, name)
        configs = (vars(base).get("model_config", {}) for base in reversed(cls.__mro__))
        cls.model_config = {name: value for config in configs for name, value in config.items()}

    def __init__(self, /, **given: Any) -> None:  # noqa: ANN401  # values of any type
        kind = type(self)
        if not kind.__pydantic_complete__ and kind.plan().may_be_plain():
            with suppress(UnsureError):
                kind._take_into(self, given, is_json=False)
                return
        kind._complete().__pydantic_validator__.validate_python(given, self_instance=self)

    @classmethod
    def plan(cls) -> _Plan:
        """Return what is known of the class."""
        if "_planned" not in vars(cls):
            cls._planned = _Plan(cls)
        return cls._planned

    @classmethod
    def take_plainly(cls, given: dict[Any, Any], *, is_json: bool) -> Self:
        """Return an object of values by field.

        Raises:
            UnsureError: They may not be what they should.
        """
        made = cls.__new__(cls)
        cls._take_into(made, given, is_json=is_json)
        return made

    @classmethod
    def _take_into(cls, made: Self, given: dict[Any, Any], *, is_json: bool) -> None:
        plan = cls.plan()
        try:
            for name in plan.methods("before"):
                given = getattr(cls, name)(given)
            _fill(made, plan.values(given, is_json=is_json), set(given))
            for name in plan.methods("after"):
                getattr(made, name)()
        except (ValueError, AssertionError, RecursionError):
            raise UnsureError from None

    @classmethod
    def _complete(cls) -> type[Self]:
        """Have pydantic make what it validates and writes the class with."""
        with _COMPLETING:
            if not cls.__pydantic_complete__:
                from pydantic_core import SchemaSerializer, SchemaValidator

                twin = pydantic_twin(cls)
                schema = _with_class(twin.__pydantic_core_schema__, twin, cls)
                cls.__pydantic_core_schema__ = schema
                cls.__pydantic_validator__ = SchemaValidator(schema)
                cls.__pydantic_serializer__ = SchemaSerializer(schema)
                cls.__pydantic_complete__ = True
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> object:
        """Return what pydantic validates a field of this class by."""
        return cls._complete().__pydantic_core_schema__

    @classmethod
    def model_validate(cls, value: Any, **how: Any) -> Self:  # noqa: ANN401
        """Do as pydantic's."""
        if isinstance(value, cls) and not how:
            return value
        is_plain = type(value) is dict and not how and not cls.__pydantic_complete__
        if is_plain and cls.plan().may_be_plain():
            with suppress(UnsureError):
                return cls.take_plainly(value, is_json=False)
        made: Self = cls._complete().__pydantic_validator__.validate_python(value, **how)
        return made

    @classmethod
    def model_validate_json(cls, text: str | bytes, **how: Any) -> Self:  # noqa: ANN401
        """Do as pydantic's."""
        if not how and not cls.__pydantic_complete__ and cls.plan().may_be_plain():
            with suppress(UnsureError):
                taken: Self = plainly_taken(cls, text, is_json=True)
                return taken
        made: Self = cls._complete().__pydantic_validator__.validate_json(text, **how)
        return made

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **given: Any) -> Self:  # noqa: ANN401
        """Do as pydantic's: nothing is checked."""
        made = cls.__new__(cls)
        fields = cls.plan().fields
        values = {
            name: given[name] if name in given else field.get_default()
            for name, field in fields.items()
            if name in given or not field.is_required()
        }
        _fill(made, values, fields.keys() & given if _fields_set is None else _fields_set)
        return made

    @classmethod
    def model_json_schema(cls, **how: Any) -> dict[str, Any]:  # noqa: ANN401
        """Do as pydantic's."""
        from pydantic import TypeAdapter

        return TypeAdapter(cls).json_schema(**how)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Do as pydantic's: what is new is not checked."""
        made = copy.deepcopy(self) if deep else copy.copy(self)
        if update:
            made.__dict__.update(update)
            made.__pydantic_fields_set__.update(update)
        return made

    @property
    def model_fields_set(self) -> set[str]:
        """The names of the fields that were given."""
        return self.__pydantic_fields_set__

    def dump_plainly(self, *, is_json: bool) -> dict[str, Any]:
        """Return the fields as plain data.

        Raises:
            UnsureError: A value is none that fields of this package hold.
        """
        plan = type(self).plan()
        made = {}
        _Plan.n_fields += len(self.__dict__)
        for name, value in self.__dict__.items():
            leave_out = plan.fields[name].given.get("exclude_if")
            if leave_out is None or not leave_out(value):
                made[name] = plain_data(value, is_json=is_json)
        for name in plan.computed:
            made[name] = plain_data(getattr(self, name), is_json=is_json)
        return made

    def model_dump(self, *, mode: str = "python", **how: Any) -> dict[str, Any]:  # noqa: ANN401
        """Do as pydantic's."""
        kind = type(self)
        if not kind.__pydantic_complete__ and kind.plan().may_be_plain():
            with suppress(UnsureError):
                return _some(self.dump_plainly(is_json=mode == "json"), how)
        writer = kind._complete().__pydantic_serializer__
        made: dict[str, Any] = writer.to_python(self, mode=mode, **how)
        return made

    def model_dump_json(self, *, indent: int | None = None, **how: Any) -> str:  # noqa: ANN401
        """Do as pydantic's."""
        kind = type(self)
        if not kind.__pydantic_complete__ and kind.plan().may_be_plain():
            with suppress(UnsureError):
                return plain_json(self, indent=indent, **how)
        writer = kind._complete().__pydantic_serializer__
        text: bytes = writer.to_json(self, indent=indent, **how)
        return text.decode()

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        _fill(made, dict(self.__dict__), set(self.__pydantic_fields_set__))
        return made

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        made = type(self).__new__(type(self))
        _fill(made, copy.deepcopy(self.__dict__, memo), set(self.__pydantic_fields_set__))
        return made

    def __getstate__(self) -> tuple[dict[str, Any], set[str]]:
        return self.__dict__, self.__pydantic_fields_set__

    def __setstate__(self, state: tuple[dict[str, Any], set[str]]) -> None:
        _fill(self, *state)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Model):
            return NotImplemented
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __setattr__(self, name: str, value: object) -> None:
        raise _refusal(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise _refusal(self, name, None)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from self.__dict__.items()

    def _shown(self) -> list[str]:
        computed = {name: getattr(self, name) for name in type(self).plan().computed}
        return [f"{name}={value!r}" for name, value in (self.__dict__ | computed).items()]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def __str__(self) -> str:
        return " ".join(self._shown())


def _fill(made: _Model, values: dict[str, Any], names: set[str]) -> None:
    put = object.__setattr__
    put(made, "__dict__", values)
    put(made, "__pydantic_fields_set__", names)
    put(made, "__pydantic_extra__", None)
    put(made, "__pydantic_private__", None)


def plainly_taken(kind: Any, given: Any, *, is_json: bool) -> Any:  # noqa: ANN401  # any model
    """Return an object of a mapping, or of JSON, without pydantic.

    Raises:
        UnsureError: It may not be one.
    """
    try:
        value = json.loads(given) if is_json else given
    except (ValueError, RecursionError):
        raise UnsureError from None
    if type(value) is not dict:
        raise UnsureError
    return kind.take_plainly(value, is_json=is_json)


def plain_json(model: Any, *, indent: int | None = None, **how: Any) -> str:  # noqa: ANN401
    """Return a model's JSON without pydantic.

    Raises:
        UnsureError: pydantic might write it in another way.
    """
    made = _some(model.dump_plainly(is_json=True), how)
    if has_exponent(made):
        raise UnsureError
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(made, ensure_ascii=False, indent=indent, separators=separators)


def _some(made: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are to be in what is written."""
    for wanted, names in how.items():
        if wanted not in ("include", "exclude") or not isinstance(names, set | frozenset):
            raise UnsureError
        made = {name: made[name] for name in made if (name in names) is (wanted == "include")}
    return made


def _refusal(model: _Model, name: str, value: object) -> Exception:
    """Return what pydantic says of a change to what is frozen."""
    from pydantic_core import ValidationError

    fault: Any = {"type": "frozen_instance", "loc": (name,), "input": value}
    return ValidationError.from_exception_data(type(model).__name__, [fault])


def pydantic_twin(kind: Any) -> Any:  # noqa: ANN401  # a model, and a model of pydantic's
    """Return the model that pydantic makes of the same fields, validators and texts."""
    plan = kind.plan()
    content: dict[str, Any] = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__annotations__": {n: for_pydantic(field.hint) for n, field in plan.fields.items()},
        "model_config": {**kind.model_config, "defer_build": False},
    }
    for name, default in plan.defaults.items():
        if default is not NOTHING:
            content[name] = default.made() if isinstance(default, FieldMark) else default
    for name in plan.validators:
        method = plan.content[name]
        checked: Any = pydantic.model_validator(mode=method.mode)
        content[name] = checked(method.function)
    for name in plan.computed:
        content[name] = pydantic.computed_field(property(plan.content[name].fget))
    return new_class(kind.__name__, (pydantic.BaseModel,), {}, lambda own: own.update(content))


def _with_class(schema: Any, old: type, new: type) -> Any:  # noqa: ANN401  # of pydantic's core
    """Return a schema that makes objects of another class."""
    if isinstance(schema, dict):
        return {name: _with_class(part, old, new) for name, part in schema.items()}
    if isinstance(schema, list):
        return [_with_class(part, old, new) for part in schema]
    return new if schema is old else schema


def _signature(kind: type[_Model]) -> object:
    import inspect

    none = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=none if field.is_required() else field.default,
            annotation=field.hint,
        )
        for name, field in kind.plan().fields.items()
    ]
    return inspect.Signature(parameters, return_annotation=None)


if TYPE_CHECKING:
    from pydantic import BaseModel as Model
else:
    Model = _Model
