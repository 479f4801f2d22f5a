"""The page on Python says only what Python does."""

import re
from pathlib import Path

import pytest

import ragforge as rf

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_python_shown_runs(capsys):
    """An example that fails is the first thing a new user meets."""
    names = {}

    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)

    assert names["decision"].outcome == "NOT_SHOWN"
    assert names["judged"].grades == {0: 1, 1: 0, 2: 0, 3: 1}
    assert capsys.readouterr().out == ""


def test_all_names_that_are_told_are_there():
    """A name that is only in the page is a promise that nobody keeps."""
    of_package = set(re.findall(r"\brf\.(\w+)", PAGE + README)) - {"aio"}
    of_set = set(re.findall(r"\bds\.(?!aio)(\w+)", PAGE + README))

    assert {name for name in of_package if not hasattr(rf, name)} == set()
    assert {name for name in of_set if not hasattr(rf.EvaluationSet, name)} == set()


def test_every_call_of_a_set_is_told():
    """What is not told is not found."""
    public = {name for name in vars(rf.EvaluationSet) if not name.startswith("_")}

    assert {
        name for name in public if f"`{name}`" not in PAGE and f"ds.{name}" not in PAGE
    } == set()
