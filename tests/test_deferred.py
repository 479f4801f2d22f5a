"""Dataclasses whose methods are written when they are used are dataclasses in every other way."""

import copy
import dataclasses
import inspect
import json
import pickle
import subprocess
import sys

import pytest

from ragforge.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Base:
    """A class that another one goes on from."""

    name: str
    sizes: list[int] = dataclasses.field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Special(Base):
    """One with a default, and a check of its own."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what weighs nothing."""
        if not self.weight:
            raise ValueError("expected a weight")


@dataclass(slots=True)
class Count:
    """One that changes."""

    n: int = 0
    seen: list[int] = dataclasses.field(default_factory=list, init=False)
    last: int | None = dataclasses.field(default=None, init=False)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One that is sorted."""

    row: int
    column: int = 0


CHECKED = """
import dataclasses, importlib, inspect, json, pkgutil, ragforge
from ragforge import deferred

made = []
LEFT_OUT = ("__annotations__", "__doc__", "__getstate__", "__setstate__")

def both(bare=None, /, **options):
    def decorate(plain):
        content = {k: v for k, v in vars(plain).items() if k not in ("__dict__", "__weakref__")}
        twin = type(plain)(plain.__name__, plain.__bases__, content)
        twin.__qualname__ = plain.__qualname__
        twin.__doc__ = twin.__doc__ or twin.__name__
        made.append((put_off(**options)(plain), twin, options))
        return made[-1][0]
    return decorate if bare is None else decorate(bare)

put_off, deferred.dataclass = deferred.dataclass, both
for module in pkgutil.walk_packages(ragforge.__path__, "ragforge."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

def looks(kind):
    fields = [
        (f.name, f.type, f.default, f.default_factory, f.init, f.repr, f.hash, f.compare, f.kw_only)
        for f in dataclasses.fields(kind)
    ]
    hashed, asked = kind.__hash__ is not None, repr(kind.__dataclass_params__)
    own = {name: value for name, value in vars(kind).items() if name not in LEFT_OUT}
    codes = {name: getattr(getattr(value, "__code__", None), "co_code", None)
             for name, value in own.items()}
    slots = getattr(kind, "__slots__", None)
    return fields, str(inspect.signature(kind)), slots, hashed, asked, codes

differing = [
    str(one) for one, twin, options in made
    if looks(one) != looks(dataclasses.dataclass(**options)(twin))
]
print(json.dumps([len(made), differing]))
"""


def test_all_of_the_package_are_what_dataclasses_makes_of_them():
    """Fields, signature, slots and methods: what is put off must not be another thing."""
    done = subprocess.run([sys.executable, "-c", CHECKED], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    n_classes, differing = json.loads(done.stdout)
    assert differing == []
    assert n_classes > 700


def test_methods_are_written_when_an_object_is_made():
    """Writing them takes most of the time that the import of a class takes."""

    @dataclass(frozen=True, slots=True)
    class Fresh:
        """Nobody used it."""

        n: int

    before = inspect.isfunction(vars(Fresh)["__init__"])
    made = Fresh(3)

    assert (before, inspect.isfunction(vars(Fresh)["__init__"])) == (False, True)
    assert (made.n, repr(made).rpartition(".")[2]) == (3, "Fresh(n=3)")


def test_methods_that_compare_and_show_are_written_when_one_of_them_is_used():
    """Most classes have objects and are never compared: half of the time of the first object."""

    @dataclass(frozen=True, slots=True)
    class Fresh:
        """Nobody compared it."""

        n: int

    made = Fresh(3)
    before = inspect.isfunction(vars(Fresh)["__eq__"])

    assert (before, made == Fresh(3), {made: 1}[Fresh(3)]) == (False, True, 1)
    assert inspect.isfunction(vars(Fresh)["__eq__"])


def test_what_refuses_changes_is_written_when_one_is_tried():
    """It takes twice the time that `__init__` takes, and no object is changed on purpose."""

    @dataclass(frozen=True, slots=True)
    class Fresh:
        """Nobody changed it."""

        n: int

    made = Fresh(3)
    before = inspect.isfunction(vars(Fresh)["__setattr__"])

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'n'"):
        made.n = 4
    assert (before, inspect.isfunction(vars(Fresh)["__setattr__"])) == (False, True)


def test_fields_that_are_given_by_name_only_are_arguments_behind_all_others():
    """They may stand between others that have no default."""

    @dataclass(frozen=True, slots=True)
    class Mixed:
        """One field between two."""

        first: int
        named: int = dataclasses.field(default=1, kw_only=True)
        sizes: list[int] = dataclasses.field(default_factory=list)

    assert str(inspect.signature(Mixed)) == (
        "(first: int, sizes: list[int] = <factory>, *, named: int = 1) -> None"
    )
    assert Mixed(1, [2], named=3) == Mixed(first=1, sizes=[2], named=3)


def test_a_subclass_has_the_fields_of_its_base_before_that_was_used():
    """The base is completed with it."""
    assert Special("a", [1], 2.0) == Special("a", [], 2.0)
    assert [each.name for each in dataclasses.fields(Special)] == ["name", "sizes", "weight"]
    with pytest.raises(ValueError, match="expected a weight"):
        Special("a", weight=0.0)


def test_frozen_objects_stay_as_they_are():
    """They are shared."""
    made = Base("a")

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
        made.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del made.name


def test_objects_are_copied_pickled_and_hashed_like_others():
    """Work is sent to other processes."""
    made = Special("a", weight=2.0)

    assert [copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))] == [made] * 3
    assert dataclasses.replace(made, name="b") == Special("b", weight=2.0)
    assert len({made, Special("a", [5], 2.0)}) == 1


def test_a_class_that_is_read_from_a_pickle_first_is_completed():
    """A process that never made one may be sent one."""
    code = (
        "import pickle, sys\n"
        "sent = bytes.fromhex(sys.argv[1])\n"
        "print(pickle.loads(sent) == pickle.loads(sent))"
    )
    from ragforge.records.judgments import GradeOrigin

    sent = pickle.dumps(GradeOrigin("llm", "m")).hex()

    done = subprocess.run(
        [sys.executable, "-c", code, sent], capture_output=True, text=True, check=True
    )

    assert done.stdout == "True\n"


def test_what_is_no_argument_has_its_default():
    """A slot has none by itself."""
    assert (Count(3).last, Count().seen) == (None, [])


def test_what_changes_has_no_hash_and_what_is_ordered_is_sorted():
    """As with any dataclass."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(Count())

    assert sorted([Place(2), Place(1, 3), Place(1)]) == [Place(1), Place(1, 3), Place(2)]
    match Place(4, 5):
        case Place(row, column):
            assert (row, column) == (4, 5)
