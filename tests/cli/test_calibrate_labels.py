"""`ragforge calibrate plan`, `sample` and `apply`."""

import json

import pytest
from labelled_sets import graded_set, label_all

from ragforge.cli import main
from ragforge.files.set.calibrations import calibration_files

QUESTION = ["--run", "a", "--run", "b", "-m", "P@10", "-m", "DCG@10"]


@pytest.fixture
def made(tmp_path):
    """A set with a judge and two runs."""
    return graded_set(tmp_path / "set")


def calibrate(action, made, *more):
    """Run an action on the set."""
    return main(["calibrate", action, "--dataset", str(made.path), *more])


def test_sample_label_apply(made, capsys):
    """The way from a judge's grades to corrected measures."""
    calibrate("sample", made, *QUESTION, "-n", "120")
    label_all(made)
    capsys.readouterr()

    code = calibrate("apply", made)

    output = capsys.readouterr().out
    assert code == 0
    assert output.startswith("calibration people: labels on 120 of ")
    assert "judge: judge-1 with judge_relevance abababab; relevant: grade >= 2" in output
    assert "b - a" in output


def test_apply_writes_what_it_found(made, capsys):
    """Others read it without computing it again."""
    calibrate("sample", made, *QUESTION, "-n", "120")
    label_all(made)
    capsys.readouterr()

    calibrate("apply", made, "--json")

    printed = json.loads(capsys.readouterr().out)
    kept = calibration_files(made).calibration()
    assert printed["labels_sha256"] == kept.labels_sha256
    assert printed["figures"][0]["measure"] == "P@10"
    assert printed["figures"][0]["judges_share"] == kept.figures[0].judges_share


def test_sampling_twice_writes_the_same_bytes(made, capsys):
    """The same inputs, the same bytes."""
    path = calibration_files(made).folder / "sample.json"
    calibrate("sample", made, *QUESTION, "-n", "120")
    before = path.read_bytes()

    calibrate("sample", made, *QUESTION, "-n", "120")

    assert path.read_bytes() == before
    assert "0 pairs new; 120 drawn before" in capsys.readouterr().out


def test_a_plan_says_how_many_labels_tell_the_runs_apart(made, capsys):
    """It is asked before anybody labels."""
    code = calibrate("plan", made, *QUESTION)

    output = capsys.readouterr().out
    assert code == 0
    assert "n 200" in output
    assert "labels show a difference of -" in output


def test_a_run_without_a_measure_is_refused(made, capsys):
    """Half a question has no answer."""
    code = calibrate("plan", made, "--run", "a")

    assert code == 2
    assert "--run and -m go together" in capsys.readouterr().err


def test_apply_without_a_sample_says_how_one_is_drawn(made, capsys):
    """The first thing that anybody will see."""
    code = calibrate("apply", made)

    assert code == 3
    assert "draw one with `ragforge calibrate sample`" in capsys.readouterr().err
