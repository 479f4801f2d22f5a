"""`ragforge validate`, and taking over what somebody changed."""

import pytest
from pipeline.generation.making import run
from versioned_sets import make_set

from ragforge.files.set.opening import open_dataset


@pytest.fixture
def edited(tmp_path):
    """A set with a query that somebody mended in its file."""
    home = make_set(tmp_path / "set").path
    path = home / "queries.jsonl"
    path.write_text(path.read_text("utf-8").replace("What is a of 00?", "What, then?"), "utf-8")
    return home


def test_an_edit_is_noted_and_stays_one(edited):
    """Looking must not change what refreshes go by."""
    done = run(["validate", "--dataset", str(edited), "--json"])

    assert (done.code, done.json["problems"]) == (0, [])
    assert done.json["notes"] == ["queries.jsonl: changed since ragforge wrote it"]
    assert open_dataset(edited).changed_by_hand("queries.jsonl")


def test_an_edit_is_accepted_where_that_is_asked_for(edited):
    """It is the way on for whoever mends queries in the file."""
    done = run(["validate", "--dataset", str(edited), "--accept", "--json"])

    assert (done.code, done.json["notes"]) == (0, ["queries.jsonl: accepted as it is"])
    assert not open_dataset(edited).changed_by_hand("queries.jsonl")


def test_a_missing_file_ends_with_3(edited):
    """A schedule that checks its set must be stopped by that."""
    (edited / "judgments.jsonl").unlink()

    done = run(["validate", "--dataset", str(edited), "--json"])

    assert done.code == 3
    assert done.json["problems"] == ["judgments.jsonl: is missing, though manifest.json lists it"]
