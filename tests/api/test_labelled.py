"""Labels by people, from Python: the way out to them and the way back."""

import asyncio
import json

import pytest
from label_samples import answered_set, sampled_set

import ragforge as rf
from ragforge.errors import DataError, UsageError
from ragforge.records import answer_sha256


@pytest.fixture
def ds(tmp_path):
    """A set with a sample of twenty pairs."""
    return rf.open(sampled_set(tmp_path / "set").path)


def labels(*grades, **fields):
    return [
        {"query_id": f"q{k}", "chunk_id": f"c{k}", "grade": grade, **fields}
        for k, grade in enumerate(grades)
    ]


def test_records_are_taken_in(ds):
    """A notebook has labels in a list or a frame, and no file."""
    found = ds.add_labels(labels(3, 0, 1), labeller="Ann")

    assert found.taken.n_new == 3
    assert [(row["labeller"], row["n_graded"]) for row in found.rows()] == [("Ann", 3)]
    assert found.to_dict()["n_new"] == 3


def test_labels_become_grades_of_people(ds):
    """So that every measure counts them, as with the command."""
    ds.add_labels(labels(3), labeller="Ann")

    assert [one.grade for one in ds.judgments() if one.source == "human"] == [3]


def test_judgments_stay_where_that_is_said(ds):
    """As with `--labels-only`."""
    ds.add_labels(labels(3), labeller="Ann", labels_only=True)

    assert not [one for one in ds.judgments() if one.source == "human"]


def test_what_is_left_out_is_told_in_keywords(ds):
    """A note that names a flag helps nobody in Python."""
    found = ds.add_labels(labels(3))

    assert found.taken.left_out
    assert any("labeller does" in note for note in found.notes)
    assert not any("--" in note for note in found.notes)


def test_what_is_left_out_is_told_by_its_row(ds):
    """It was told by a file in a temporary folder, which was gone."""
    found = ds.add_labels([*labels(3), *labels(1, query_id="other")], labeller="Ann")

    [told] = [note for note in found.notes if "left out" in note]
    assert told == "1 left out: pair is not in the sample, first at given, row 2: 1"


def test_a_frame_of_labels_may_be_half_filled(ds):
    """As the file that it was read from may be; it was refused for the first blank cell."""
    found = ds.add_labels(labels(3, float("nan"), None), labeller="Ann")

    assert (found.taken.n_new, found.taken.n_open) == (1, 2)


def test_a_file_of_another_tool_goes_out_and_comes_back(ds, tmp_path):
    """Whoever labels elsewhere must get the same labels."""
    ds.add_labels(labels(3, 0), labeller="Ann")
    written = ds.export_labels(tmp_path / "tasks.json", "label-studio", labeller="Ann")
    again = ds.add_labels(tmp_path / "tasks.json")

    assert (written.n_done, written.n_open) == (2, 18)
    assert (again.taken.n_known, again.taken.n_open) == (2, 18)


def test_another_form_is_refused(ds, tmp_path):
    """With those that there are."""
    with pytest.raises(UsageError, match="expected one of: jsonl, csv, label-studio, argilla"):
        ds.export_labels(tmp_path / "x", "excel")


def test_the_page_holds_what_is_open(ds, tmp_path):
    """What somebody labelled before is not asked again."""
    ds.add_labels(labels(3, 0), labeller="Ann")
    page = ds.write_labelling_page(tmp_path / "ann.html", labeller="Ann")

    assert (page.n_open, page.n_done) == (18, 2)
    assert page.path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads(json.dumps(page.to_dict()))["open"] == 18


def test_the_awaited_twin_tells_the_same(ds):
    """A service calls it from its loop."""
    ds.add_labels(labels(1), labeller="Ann")

    assert asyncio.run(ds.aio.labels()).to_dict() == ds.labels().to_dict()


def test_without_a_sample_there_is_nothing_to_label(tmp_path):
    """The message must name what draws one."""
    ds = rf.from_queries([{"query_id": "q", "query": "What?"}], out=tmp_path / "bare")

    with pytest.raises(DataError, match="calibrate sample"):
        ds.labels()


def test_answers_are_drawn_and_their_labels_taken_in(tmp_path):
    """The way of answers is that of pairs."""
    ds = rf.open(answered_set(tmp_path / "answered").path)
    drawn = ds.draw_answers("one", n=4)
    facts = [{"fact_id": name, "status": "supported"} for name in ("f0", "f1")]
    rows = [
        {
            "query_id": f"q{k}",
            "system": "one",
            "answer_sha256": answer_sha256(f"Answer {k} of one."),
            "facts": facts,
        }
        for k in range(6)
    ]
    taken = ds.add_answer_labels(rows, labeller="Ann")
    before = ds.write_answer_labelling_page(tmp_path / "bob.html", labeller="Bob")

    assert (drawn.to_dict()["answers"], drawn.to_dict()["probability"]) == (4, 4 / 6)
    assert (taken.to_dict()["n_new"], before.n_open) == (4, 4)
    assert any("not among those drawn" in note for note in taken.notes)
