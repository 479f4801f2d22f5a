"""What is taken without pydantic is what pydantic takes, and what it refuses is refused."""

import copy
import importlib
import json
import pickle
import pkgutil
import subprocess
import sys
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ragforge.config import (
    EvaluateSettings,
    ModelSettings,
    PoolSettings,
    RetrieverService,
    Settings,
)
from ragforge.config.sections import BudgetSettings, JudgeSettings
from ragforge.records import (
    AnswerGrade,
    Chunk,
    Grade,
    Judgment,
    Lineage,
    NonEmpty,
    Provenance,
    Span,
)
from ragforge.records.model import (
    MOST_PLAIN,
    MOST_PLAIN_BESIDE,
    AfterValidator,
    ConfigDict,
    JsonValue,
    Model,
    UnsureError,
    plain_json,
    plainly_taken,
    pydantic_twin,
)


def kinds(base=Model):
    """Return all models of the package."""
    for name in ("records", "config", "files", "pipeline.shards", "llm.batches"):
        folder = importlib.import_module(f"ragforge.{name}").__path__
        for module in pkgutil.iter_modules(folder, f"ragforge.{name}."):
            importlib.import_module(module.name)
    own = [kind for kind in base.__subclasses__() if kind.__module__.startswith("ragforge.")]
    return (
        [*own, *(each for kind in own for each in kinds(kind))]
        if base is not Model
        else [each for kind in own for each in (kind, *kinds(kind))]
    )


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from(
        ["1", "3", " ", "\ud800", "é\u2028\x00\x7f", "true", "offline", "GET", 10**400]
    ),
    st.sampled_from([1e-7, 1e22, 0.1, -0.0, 5e-324, 1e16, 123456789012345680.0, 2**63, 2.0]),
    st.lists(st.text(max_size=2) | st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.text(max_size=2) | st.none(), max_size=2),
    st.tuples(st.integers()),
)


NUMBERS = st.sampled_from(["0", "8", "-3", "-0", "007", "1.50", "-0.0", " 3", "1e3", "+2", "1_0"])
"""Of flags and variables, and what is nearly such."""
SIMPLE = {
    str: st.text(max_size=3) | st.sampled_from(["a.md", "a=100", "http://h/v1", "x"]),
    int: st.integers(0, 4) | st.integers() | NUMBERS,
    float: st.floats(0, 1) | st.floats() | st.integers(0, 3) | NUMBERS,
    bool: st.booleans(),
    NoneType: st.none(),
    JsonValue: ODD,
    Any: ODD,
}


def valid(hint):
    """Return values that mostly hold to an annotation."""
    if isinstance(hint, type) and issubclass(hint, Model):
        return contents(hint)
    if hint in SIMPLE:
        return SIMPLE[hint]
    return valid_form(get_origin(hint), get_args(hint))


def valid_form(origin, parts):
    """Return values of a form with parts."""
    if origin is Annotated:
        return valid(parts[0])
    if origin is Literal:
        return st.sampled_from(parts)
    if origin in (Union, UnionType):
        return st.one_of(*map(valid, parts))
    if origin is dict:
        return st.dictionaries(valid(parts[0]), valid(parts[1]), max_size=2)
    if origin is list:
        return st.lists(valid(parts[0]), max_size=2)
    assert origin is tuple
    if parts[-1] is not Ellipsis:
        return st.tuples(*map(valid, parts))
    items = st.lists(valid(parts[0]), max_size=2)
    return items | items.map(tuple)


def contents(kind):
    """Return mappings that are an object of a class, or nearly so."""
    fields = kind.model_fields
    needed = {
        name: st.deferred(lambda hint=field.hint: valid(hint)) for name, field in fields.items()
    }
    some = {name: each | ODD for name, each in needed.items()}
    must = {name for name, field in fields.items() if field.is_required()}
    exact = st.fixed_dictionaries(
        {name: needed[name] for name in must},
        optional={name: each for name, each in needed.items() if name not in must},
    )
    near = st.fixed_dictionaries({}, optional={**some, "other": ODD})
    return st.one_of(exact, exact, exact, near)


def same(one, other):
    """Whether two values are alike to their types, the names that were given, and their order."""
    if isinstance(one, Model | pydantic.BaseModel):
        mine, its = dict(one.__dict__), dict(other.__dict__)
        names = one.__pydantic_fields_set__ == other.__pydantic_fields_set__
        return list(mine) == list(its) and names and all(same(mine[k], its[k]) for k in mine)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and repr(one) == repr(other)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
@settings(max_examples=30, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pydantic_takes_whatever_is_taken_without_it_and_writes_it_alike(kind, data):
    """It is the one that decides; the rest is only faster."""
    values = data.draw(contents(kind))
    twin = pydantic_twin(kind)
    try:
        text = json.dumps(values)
    except (TypeError, ValueError):
        text = None
    for given_as, is_json in ((values, False), (text, True)):
        if given_as is None:
            continue
        try:
            taken = plainly_taken(kind, given_as, is_json=is_json)
        except UnsureError:
            continue
        theirs = (twin.model_validate_json if is_json else twin.model_validate)(given_as)
        assert same(taken, theirs)
        try:
            written = [plain_json(taken), plain_json(taken, indent=2)]
        except UnsureError:
            continue
        assert written == [theirs.model_dump_json(), theirs.model_dump_json(indent=2)]
        assert taken.model_dump() == theirs.model_dump()
        assert taken.model_dump(mode="json") == theirs.model_dump(mode="json")
        assert (repr(taken), str(taken)) == (repr(theirs), str(theirs))


PLAIN = {
    Judgment: {"query_id": "q", "chunk_id": "c", "grade": 2, "provenance": {"kind": "llm"}},
    Chunk: {
        "chunk_id": "c",
        "doc_id": "d",
        "text": "é a",
        "heading_path": ["a"],
        "hidden": [[1, 2]],
    },
    AnswerGrade: {"query_id": "q", "verdict": "correct", "score": 1, "has_hallucination": None},
    ModelSettings: {"name": "m", "base_url": "http://h/v1", "requests_per_minute": 3},
    JudgeSettings: {"depth": "20", "batch": 2},
    BudgetSettings: {"max_cost_usd": "0.50", "max_calls": "100"},
    EvaluateSettings: {"rel_threshold": "2"},
    RetrieverService: {"url": "http://h/x", "body": {"q": "{query}"}, "headers": {"a": "b"}},
}


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
def test_usual_values_need_no_pydantic(kind):
    """Else nothing would be gained."""
    taken = plainly_taken(kind, PLAIN[kind], is_json=False)

    assert taken == kind.model_validate(PLAIN[kind], context={})
    assert json.loads(plain_json(taken)) == json.loads(taken.model_dump_json(by_alias=True))


def test_all_settings_as_written_need_no_pydantic():
    """Each worker on a plan of shards reads them, as it starts."""
    text = Settings().model_dump_json()

    assert plainly_taken(Settings, text, is_json=True) == Settings()


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (Judgment, {**PLAIN[Judgment], "grade": 4}, "grade\n  Input should be less than or equal"),
        (Judgment, {**PLAIN[Judgment], "grade": True}, "grade\n  Input should be a valid integer"),
        (Judgment, {**PLAIN[Judgment], "grde": 1}, "grde\n  Extra inputs are not permitted"),
        (Judgment, {"query_id": "q", "grade": 1}, "chunk_id\n  Field required"),
        (Chunk, {**PLAIN[Chunk], "hidden": [[3, 1]]}, "expected ascending places"),
        (PoolSettings, {"pool_k": 30}, "pool_most is 20, below pool_k"),
    ],
)
def test_what_is_refused_is_explained_by_pydantic(kind, given, told):
    """Its words are what users know."""
    with pytest.raises(pydantic.ValidationError, match=told):
        kind.model_validate(given)
    with pytest.raises(pydantic.ValidationError, match=told):
        kind.model_validate_json(json.dumps(given))


class StrictCount(Model):
    """As replies of models are declared."""

    model_config = ConfigDict(extra="forbid", strict=True)

    n: int


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (StrictCount, {"n": "2"}),
        (Judgment, {**PLAIN[Judgment], "grade": "2"}),
        (ModelSettings, {**PLAIN[ModelSettings], "requests_per_minute": "3 a minute"}),
    ],
)
def test_text_is_no_number_where_the_very_type_is_asked_for(kind, given):
    """A judge that says "2" has not said 2."""
    with pytest.raises(pydantic.ValidationError, match=r"valid (integer|number)"):
        kind.model_validate(given)


def test_values_that_pydantic_converts_are_converted():
    """A file of another tool may hold a number as text."""
    assert Span.model_validate({"doc_id": "d", "start": "1", "end": 2.0}) == Span(
        doc_id="d", start=1, end=2
    )


def test_models_are_frozen_copied_and_pickled():
    """They are shared between threads and processes."""
    made = Lineage(kind="llm", model="m", call_keys=("a",))

    with pytest.raises(pydantic.ValidationError, match="Instance is frozen"):
        made.model = "other"
    assert [copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))] == [made] * 3
    changed = made.model_copy(update={"seed": 3})
    assert (changed.seed, changed.model_fields_set) == (3, {"kind", "model", "call_keys", "seed"})
    assert made.seed is None
    assert hash(made) == hash(made.model_copy())
    assert made != Provenance(kind="llm", model="m")


def test_a_model_is_a_field_of_a_model_of_the_user():
    """A service returns records of ours in replies of its own."""

    class Reply(pydantic.BaseModel):
        judgments: list[Judgment]

    made = Reply.model_validate({"judgments": [PLAIN[Judgment]]})

    assert made.judgments == [Judgment(**PLAIN[Judgment])]
    assert Reply.model_validate_json(made.model_dump_json()) == made
    assert "Judgment" in Reply.model_json_schema()["$defs"]


def test_bounds_hold_in_a_model_of_pydantics_own():
    """The reply of a judge is one, and has a grade as judgments have it."""

    class Reply(pydantic.BaseModel):
        grade: Grade
        reason: NonEmpty
        address: Annotated[str, AfterValidator(str.strip)]

    assert Reply(grade=3, reason="r", address=" a ").address == "a"
    for wrong in ({"grade": 4}, {"grade": True}, {"reason": ""}):
        with pytest.raises(pydantic.ValidationError):
            Reply.model_validate({"grade": 3, "reason": "r", "address": "a", **wrong})


MANY = f"""
import sys
from ragforge.records import Judgment
line = '{{"query_id": "q", "chunk_id": "c", "grade": 2}}'
n = {MOST_PLAIN} // len(Judgment.model_fields)
for _ in range(n):
    Judgment.model_validate_json(line)
few = "pydantic" in sys.modules
for _ in range(2):
    Judgment.model_validate_json(line)
print(few, "pydantic" in sys.modules)
"""
BESIDE = f"""
import pydantic, sys
from ragforge.records import Judgment
pydantic.BaseModel
line = '{{"query_id": "q", "chunk_id": "c", "grade": 2}}'
for _ in range({MOST_PLAIN_BESIDE}):
    Judgment.model_validate_json(line)
few = Judgment.__pydantic_complete__
Judgment.model_validate_json(line)
print(few, Judgment.__pydantic_complete__)
"""


@pytest.mark.parametrize("script", [MANY, BESIDE])
def test_many_records_are_read_by_pydantic(script: str):
    """It reads a record in a tenth of the time, and pays for its import by and by."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False True\n"
