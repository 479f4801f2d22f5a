"""The benchmark of calibrating."""

import importlib.util
from pathlib import Path

import pytest


def test_each_step_has_a_row(monkeypatch, capsys):
    """The figures of the documents come from it."""
    path = Path(__file__).parents[2] / "benchmarks" / "calibrating.py"
    if not path.exists():
        pytest.skip("benchmarks are not shipped")
    spec = importlib.util.spec_from_file_location("calibrating", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr("sys.argv", ["calibrating.py", "--queries", "40"])

    module.main()

    rows = capsys.readouterr().out.splitlines()[3:]
    assert [row.split("|")[1].strip() for row in rows] == ["---", "sample", "apply", "plan"]
