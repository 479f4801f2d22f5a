"""Made-up values, checked by the models that the schemas were written by."""

from datetime import date, datetime
from enum import Enum
from typing import Annotated, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ragforge.mock.content import SchemaError, example
from ragforge.mock.script import Draws

DRAWS = range(25)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Inner(Strict):
    colour: Colour
    size: Annotated[int, Field(ge=3, le=5)]


class Tree(Strict):
    name: str
    left: "Tree | None"
    children: list["Tree"]


class Cat(Strict):
    kind: Literal["cat"]
    lives: int


class Dog(Strict):
    kind: Literal["dog"]
    tricks: list[str]


class Flat(Strict):
    text: str
    count: int
    share: float
    sure: bool
    nothing: None
    one: Literal["only"]
    some: Literal[1, 2, 3]
    optional: str = "x"


class Nested(Strict):
    inner: Inner
    many: Annotated[list[Inner], Field(min_length=2, max_length=3)]
    maybe: Inner | None
    either: int | str | list[bool]
    named: dict[str, int]
    pair: tuple[int, str]


class Bounded(Strict):
    short: Annotated[str, Field(min_length=2, max_length=4)]
    long: Annotated[str, Field(min_length=80)]
    above: Annotated[int, Field(gt=5, lt=7)]
    below: Annotated[int, Field(le=-10)]
    share: Annotated[float, Field(gt=0, lt=1)]
    even: Annotated[int, Field(multiple_of=7, ge=1, le=20)]
    exactly: Annotated[list[int], Field(min_length=3, max_length=3)]
    empty: Annotated[list[int], Field(max_length=0)]


class Dated(Strict):
    day: date
    at: datetime
    key: UUID


class Told(Strict):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


def holds(adapter, value):
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


SHAPES = [Flat, Inner, Tree, Nested, Bounded, Dated, Told, list[Inner], Colour, int | None]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_hold_to_the_schemas_that_pydantic_writes(shape):
    """Users bring models of their own."""
    adapter = TypeAdapter(shape)
    schema = adapter.json_schema()

    wrong = [number for number in DRAWS if not holds(adapter, example(schema, Draws(number)))]

    assert wrong == []


def test_other_draws_give_other_values():
    """A pipeline fed with one value finds no mistake that depends on it."""
    schema = Nested.model_json_schema()

    assert len({str(example(schema, Draws(number))) for number in DRAWS}) == len(DRAWS)


def test_equal_draws_give_equal_values():
    """Replies must not change from run to run."""
    schema = Nested.model_json_schema()

    assert example(schema, Draws(1)) == example(schema, Draws(1))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "#/$defs/A"}, "no definition '#/\\$defs/A'"),
        ({"type": "strange"}, "no type 'strange'"),
        ({"type": "array", "minItems": 10**9}, "minItems: expected 100000 or less"),
        ({"type": "string", "minLength": 10**9}, "minLength: expected 100000 or less"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no integer is inside its bounds"),
        ({"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}, "without an end"),
    ],
)
def test_what_holds_no_value_is_named(schema, message):
    """Making one up would hide the mistake."""
    with pytest.raises(SchemaError, match=message):
        example(schema, Draws(0))


def test_draws_are_evenly_spread():
    """A fault with probability 0.1 must come in a tenth of the attempts."""
    found = [Draws("x", number).fraction() < 0.1 for number in range(2000)]

    assert 150 <= sum(found) <= 250


def test_integers_stay_below_their_bound():
    """An index beyond the end is a crash."""
    draws = Draws(1)

    assert {draws.below(3) for _ in range(100)} == {0, 1, 2}


def test_the_parts_of_a_draw_are_told_apart():
    """Attempt 12 of seed 1 is not attempt 2 of seed 11."""
    assert Draws(1, 12).fraction() != Draws(11, 2).fraction()
