"""File formats are frozen: a change of one is a decision that the diff must show."""

from pathlib import Path

import pytest

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
