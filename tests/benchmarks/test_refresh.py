import importlib.util
import sys
from argparse import Namespace
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def refresh():
    """The benchmark, which is a script and in no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "refresh.py"
    if not path.exists():
        pytest.skip("benchmarks are not shipped")
    spec = importlib.util.spec_from_file_location("refresh", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform == "win32", reason="measures with `resource`")
@pytest.mark.parametrize(
    ("form", "changed"), [("files", "1 documents changed"), ("export", "6 documents changed")]
)
def test_every_step_runs_and_finds_what_changed(refresh, tmp_path, form, changed):
    """A benchmark that stopped working would be found out only when it is needed."""
    asked = Namespace(folder=tmp_path, chunks=[60], items=20, form=[form])
    refresh.change(tmp_path, form, 60, 0)
    [made] = refresh.measured(refresh.make_set, asked)
    refresh.change(tmp_path, form, 60, 0.1)
    diff, quotes = refresh.measured(refresh.refresh, asked)

    assert made["note"].startswith("60 chunks")
    assert diff["note"].startswith(changed)
    assert quotes["note"].split()[0].isdecimal()
