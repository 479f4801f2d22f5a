"""`ragforge calibrate plan`, `sample` and `apply`."""

import json
import re

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
    assert re.search(r"P@10 of b - a: people are expected to find -[\d.]+, by ", output)
    assert re.search(r"\(the judge finds -[\d.]+\); about [\d,]+ labels show that", output)


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


def test_after_a_sample_the_next_step_is_to_label_it(made, capsys):
    """Nobody should have to look for the page."""
    calibrate("sample", made, *QUESTION, "-n", "60", "--name", "spring")

    assert "calibrate label --dataset" in capsys.readouterr().err


def test_after_apply_the_next_step_is_to_decide(made, capsys):
    """The command compares the runs and measures that were drawn for."""
    calibrate("sample", made, *QUESTION, "-n", "60")
    label_all(made)
    capsys.readouterr()

    calibrate("apply", made)

    assert "a b -m P@10 -m DCG@10 --calibrated" in capsys.readouterr().err


def test_where_labels_are_missing_the_next_step_is_to_go_on(made, capsys):
    """Half a sample decides less than it could."""
    calibrate("sample", made, *QUESTION, "-n", "60")
    label_all(made, most=40)
    capsys.readouterr()

    calibrate("apply", made)

    assert "20 drawn pairs have no label yet" in capsys.readouterr().err


def test_labels_in_the_judgments_change_nothing(made, capsys):
    """People's grades go before the judge's in the set; the judge's must be found even so."""
    calibrate("sample", made, *QUESTION, "-n", "60")
    files = label_all(made)
    exported = made.path.parent / "labels.jsonl"
    exported.write_bytes((files.folder / "labels.jsonl").read_bytes())
    calibrate("apply", made)
    before = files.calibration().figures

    main(["calibrate", "label", "--dataset", str(made.path), "--from", str(exported)])
    calibrate("apply", made)

    assert files.calibration().figures == before


@pytest.mark.parametrize("way", [("--export", "jsonl", "--out", "a.jsonl"), ("--from", "a.jsonl")])
def test_what_cannot_settle_a_pair_is_refused(made, capsys, way):
    """All pairs came out, and what was said of them counted as one more label."""
    calibrate("sample", made, *QUESTION, "-n", "120")
    capsys.readouterr()

    code = calibrate("label", made, "--labeller", "Cyd", "--adjudicate", *way)

    assert code == 2
    assert "--adjudicate goes with --page or --terminal" in capsys.readouterr().err
