"""The notebook under examples/ runs the whole way, as a kernel runs it."""

import ast
import asyncio
import inspect
import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = json.loads((EXAMPLES / "first_steps.ipynb").read_text(encoding="utf-8"))


async def shown_by(source, names):
    """Run a cell in a running loop, and return what its last expression comes to."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None
    await evaluated(ast.Module(body, []), "exec", names)
    return None if last is None else await evaluated(last, "eval", names)


async def evaluated(tree, mode, names):
    """Return what code comes to that may await at its top."""
    code = compile(tree, "cell", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(code, names)
    return await found if code.co_flags & inspect.CO_COROUTINE else found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What each code cell shows, by its id, the names that are left, and where it all ran."""
    folder, names = tmp_path_factory.mktemp("notebook"), {}

    async def kernel():
        return {
            cell["id"]: await shown_by("".join(cell["source"]), names)
            for cell in NOTEBOOK["cells"]
            if cell["cell_type"] == "code"
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return asyncio.run(kernel()), names, folder


@pytest.fixture
def shown(run, monkeypatch):
    """What each code cell shows."""
    monkeypatch.chdir(run[2])
    return list(run[0].values())


@pytest.fixture
def names(run, monkeypatch):
    """The names that the notebook leaves."""
    monkeypatch.chdir(run[2])
    return run[1]


def test_every_cell_runs_without_a_model_or_a_network(shown):
    """The first thing that a newcomer runs must run."""
    assert len(shown) == sum(cell["cell_type"] == "code" for cell in NOTEBOOK["cells"])


def test_the_notebook_says_what_its_text_says(shown, names):
    """Two runs, no winner by the baseline, a gate that passes, and a page."""
    assert names["ds"].runs == ("bm25", "mine")
    assert (names["verdict"].winner, names["verdict"].outcome) == (None, "UNKNOWN")
    assert names["decision"].passed
    assert [item.name for item in shown if isinstance(item, Path)] == ["report.html"]


def test_results_are_shown_as_tables(shown):
    """A notebook shows the HTML of what a cell ends with."""
    htmls = [item._repr_html_() for item in shown if hasattr(item, "_repr_html_")]

    assert len(htmls) == 5
    assert sum("<table>" in html for html in htmls) == 3


def test_the_notebook_is_stored_without_outputs():
    """Outputs of another version would contradict the text one day."""
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]

    assert {(cell["execution_count"], len(cell["outputs"])) for cell in code} == {(None, 0)}
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
