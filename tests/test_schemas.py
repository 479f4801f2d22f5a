"""File formats are frozen: a change of one is a decision that the diff must show."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from ragforge import records
from ragforge.cli import main

SNAPSHOTS = Path(__file__).parent / "data" / "schemas"


def test_every_record_has_a_snapshot(capsys):
    """A new record must not slip in without its format being looked at."""
    main(["schema"])

    names = capsys.readouterr().out.split()
    assert names == sorted(path.stem for path in SNAPSHOTS.glob("*.json"))


@pytest.mark.parametrize("path", sorted(SNAPSHOTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_format_is_the_one_agreed_on(path, capsys):
    """Datasets outlive versions of the tool; `ragforge schema NAME` renews a snapshot."""
    main(["schema", path.stem])

    assert capsys.readouterr().out == path.read_text(encoding="utf-8")


def test_the_stub_of_records_names_what_can_be_imported():
    """Type checkers read the stub, and Python the table of what is where."""
    stub = ast.parse(Path(records.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    named = {
        alias.name: getattr(import_module(node.module), alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert named == {name: getattr(records, name) for name in records.__all__}
