"""The public names with their signatures: a change of one is a decision that the diff shows."""

import ast
import inspect
import textwrap
from pathlib import Path

import pytest

import ragforge as rf
from ragforge.api import keywords
from ragforge.api.call import EVALUATE, GENERATE, JUDGE, REFRESH, RETRIEVE, SWEEP, Takes
from ragforge.api.results import Result

SNAPSHOT = Path(__file__).parents[1] / "data" / "surface.txt"
"""Renewed by `python tests/api/test_surface.py`."""


def lines():
    """Yield a line for each public name."""
    for name in sorted({*rf.__all__, "open"} - {"__version__", "aio"}):
        yield from described(f"ragforge.{name}", getattr(rf, name))
    for name in sorted(rf.aio.__all__):
        yield from described(f"ragforge.aio.{name}", getattr(rf.aio, name))
    for name in sorted(name for name in vars(keywords) if name.endswith("Keywords")):
        yield f"{name}: {', '.join(sorted(getattr(keywords, name).__annotations__))}"


def described(name, value):
    """Yield a name with its signature, and those of its methods where it is a class of the API."""
    if not inspect.isclass(value):
        yield f"{name}{signature(value)}"
        return
    yield name
    if not (issubclass(value, Result) or "EvaluationSet" in value.__name__):
        return
    for method, found in sorted(vars(value).items()):
        if not method.startswith("_") and (inspect.isfunction(found) or type(found) is property):
            call = found.fget if isinstance(found, property) else found
            yield f"{name}.{method}{signature(call)}"


def signature(call):
    """Return the signature as it is written, which no version of Python shows in another way."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(call)))
    found = ast.parse(source).body[0]
    return f"({ast.unparse(found.args)}) -> {ast.unparse(found.returns)}"


def test_the_surface_is_the_one_agreed_on():
    """Programs of users are written against these names."""
    assert SNAPSHOT.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in lines())


@pytest.mark.parametrize(
    ("takes", "typed"),
    [
        (GENERATE, keywords.GenerateKeywords),
        (RETRIEVE, keywords.RetrieveKeywords),
        (JUDGE, keywords.JudgeKeywords),
        (EVALUATE, keywords.EvaluateKeywords),
        (REFRESH, keywords.RefreshKeywords),
        (SWEEP, keywords.SweepKeywords),
        (Takes("import", ("chunk",), paid=False), keywords.ChunkKeywords),
        (Takes("ask", ("model", "budget", "prompts")), keywords.AskKeywords),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_keywords_are_the_settings(takes, typed):
    """A new setting has a keyword, or an editor would call it unknown."""
    assert set(typed.__annotations__) == set(takes.keywords)


def test_every_call_of_a_set_has_a_twin():
    """What cannot be awaited blocks a service."""
    plain = {name for name, found in vars(rf.EvaluationSet).items() if inspect.isfunction(found)}
    twins = {name for name, found in vars(rf.AsyncEvaluationSet).items() if callable(found)}

    public = {name for name in plain if not name.startswith("_")} - {"with_settings", "part"}
    assert public == {name for name in twins if not name.startswith("_")}


def test_every_function_that_works_has_a_twin():
    """The same of functions."""
    functions = {name for name in (*rf.__all__, "open") if inspect.isfunction(getattr(rf, name))}
    of_api = {name for name in functions if getattr(rf, name).__module__.startswith("ragforge.api")}

    assert of_api == set(rf.aio.__all__)


def test_the_stub_names_what_is_public():
    """Type checkers read the stub, and Python the table beside it."""
    stub = Path(rf.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    named = {line.split(" as ")[1] for line in stub.splitlines() if " as " in line}

    assert named == {*rf.__all__, "open"} - {"__version__"}


def test_all_names_can_be_had():
    """A name that is listed and cannot be imported is worse than none."""
    assert [name for name in rf.__all__ if getattr(rf, name, None) is None] == []


def test_a_star_hides_no_built_in_function():
    """`open` is public by its full name alone."""
    assert "open" in dir(rf)
    assert "open" not in rf.__all__


if __name__ == "__main__":
    SNAPSHOT.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
