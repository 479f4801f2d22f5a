"""`--calibrated` of evaluate, gate and report."""

import json

import pytest
from labelled_sets import drawn, graded_set, label_all, truth

import ragforge as rf
from ragforge.calibration.population import Question
from ragforge.cli import main
from ragforge.errors import UsageError
from ragforge.files.set.calibrations import calibration_files


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A set with a calibration of P@10 and DCG@10 of its two runs."""
    found = graded_set(tmp_path_factory.mktemp("set") / "set")
    drawn(found, 150)
    label_all(found)
    return found


def said(capsys, *words):
    """Run a command; return its exit code and what it prints."""
    capsys.readouterr()
    return main([str(word) for word in words]), capsys.readouterr()


def test_evaluate_shows_corrected_levels(made, capsys):
    """The judge's own stand above them."""
    _, output = said(
        capsys, "evaluate", "--dataset", made.path, "-m", "P@10", "--no-history", "--calibrated"
    )

    assert "corrected by 150 labels of people" in output.out.partition("\n")[0]
    assert "Corrected by people's labels" in output.out


def test_evaluate_without_a_calibration_says_so(made, capsys):
    """Nobody should take a judge's level for the truth."""
    _, output = said(capsys, "evaluate", "--dataset", made.path, "-m", "P@10", "--no-history")

    assert output.out.partition("\n")[0].endswith("; uncalibrated")


def test_evaluate_gives_corrected_levels_as_json(made, capsys):
    """Scripts take them on."""
    words = ("--dataset", made.path, "-m", "P@10", "--no-history", "--calibrated", "--json")

    _, output = said(capsys, "evaluate", *words)

    found = json.loads(output.out)["calibration"]
    assert {(f["measure"], f["run"]) for f in found["figures"]} >= {("P@10", "a"), ("P@10", "b")}


def test_evaluate_shows_corrected_levels_of_what_was_asked_for(made, capsys):
    """A table that nobody asked for hides the one that was."""
    words = ("--dataset", made.path, "-m", "P@10", "--no-history", "--calibrated", "--json")

    _, output = said(capsys, "evaluate", *words)

    assert {f["measure"] for f in json.loads(output.out)["calibration"]["figures"]} == {"P@10"}


def test_evaluate_shows_all_that_is_corrected_where_no_measure_is_named(made, capsys):
    """The usual measures are of no sample, and labels on others are not to be hidden."""
    words = ("--dataset", made.path, "--no-history", "--calibrated", "--json")

    _, output = said(capsys, "evaluate", *words)

    figures = json.loads(output.out)["calibration"]["figures"]
    assert {f["measure"] for f in figures} == {"P@10", "DCG@10"}


def test_evaluate_says_which_measures_are_corrected(made, capsys):
    """RR stands above them, and is none."""
    words = ("--dataset", made.path, "-m", "RR", "--no-history", "--calibrated")

    _, output = said(capsys, "evaluate", *words)

    line = "P@10, DCG@10 corrected by 150 labels of people, the rest uncalibrated"
    assert line in output.out.partition("\n")[0]


@pytest.mark.parametrize("most", [0, 12])
def test_evaluate_with_too_few_labels_is_uncalibrated(capsys, tmp_path, most):
    """A line that says "corrected" above dashes is read for the dashes."""
    few = graded_set(tmp_path / "set", 6)
    drawn(few, 40)
    label_all(few, most=most)
    words = ("--dataset", few.path, "-m", "P@10", "--no-history", "--calibrated")

    _, output = said(capsys, "evaluate", *words)

    assert output.out.partition("\n")[0].endswith("; uncalibrated")
    assert "not corrected: " in output.out


@pytest.mark.parametrize(("threshold", "code"), [(0.30, 0), (0.44, 1)])
def test_a_gate_decides_on_the_corrected_mean(made, capsys, threshold, code):
    """By the judge alone run a is at 0.5; people's labels leave it above 0.3 for sure."""
    words = ("--dataset", made.path, "--run", "a", "--min", f"P@10={threshold}", "--calibrated")
    words = (*words, "--fail-on", "not-shown")

    found, output = said(capsys, "gate", *words)

    assert found == code
    assert "corrected by 150 labels of people" in output.out.partition("\n")[0]


def test_a_gate_takes_no_failed_judgment_for_a_failed_query(capsys, tmp_path):
    """The sample has the pair, and labels stand for its grade: it was counted as 0 beside them."""
    set_ = graded_set(tmp_path / "set", judge=lambda q, c: None if c == 3 else truth(q, c))
    drawn(set_, 150)
    label_all(set_)

    words = ("--dataset", set_.path, "--run", "a", "--min", "P@10=0.3", "--calibrated", "--json")
    code, output = said(capsys, "gate", *words)

    [check] = json.loads(output.out)["checks"]
    assert (code, check["n_failed"]) == (0, 0)
    assert check["decided"] == check["low"] > 0.3


def test_a_gate_refuses_a_measure_that_was_not_drawn_for(made, capsys):
    """A pass by the judge alone would look corrected."""
    words = ("--dataset", made.path, "--run", "a", "--min", "RR=0.1", "--calibrated")

    code, output = said(capsys, "gate", *words)

    assert code == 2
    assert "RR of a is not corrected: the sample was not drawn for it" in output.err


def test_a_gate_says_why_ndcg_is_not_corrected(capsys, tmp_path):
    """It said that the sample was not drawn for it, though it was."""
    set_ = graded_set(tmp_path / "set")
    drawn(set_, 150, Question(("a", "b"), ("DCG@10", "nDCG@10")))
    label_all(set_)

    words = ("--dataset", set_.path, "--run", "a", "--min", "nDCG@10=0.1", "--calibrated")
    code, output = said(capsys, "gate", *words)

    assert code == 2
    assert "levels of nDCG rest on a model of the grades, by which no gate decides" in output.err
    assert "name DCG@10" in output.err


def test_a_gate_says_that_labels_are_of_differences_alone(capsys, tmp_path):
    """Another draw gives levels."""
    set_ = graded_set(tmp_path / "set")
    drawn(set_, 150, Question(("a", "b"), ("DCG@10",), "differences"))
    label_all(set_)

    words = ("--dataset", set_.path, "--run", "a", "--min", "DCG@10=0.1", "--calibrated")
    _, output = said(capsys, "gate", *words)

    assert "the sample was drawn for differences alone" in output.err


def test_a_gate_corrects_no_drop(made, capsys, tmp_path):
    """A baseline's rankings were not drawn for."""
    baseline = tmp_path / "baseline.json"
    said(
        capsys,
        *("gate", "--dataset", made.path, "--run", "b", "--min", "P@10=0"),
        *("--write-baseline", baseline),
    )

    words = ("--run", "a", "--max-drop", "P@10=0.1", "--baseline", baseline, "--calibrated")
    code, output = said(capsys, "gate", "--dataset", made.path, *words)

    assert code == 2
    assert "labels correct no drop" in output.err


@pytest.mark.parametrize("ending", ["html", "md", "txt"])
def test_a_report_has_the_corrected_levels(made, capsys, tmp_path, ending):
    """Whoever reads the page has no command line."""
    out = tmp_path / f"page.{ending}"

    said(capsys, "report", "--dataset", made.path, "--out", out, "-m", "P@10", "--calibrated")

    assert "orrected by" in out.read_text(encoding="utf-8")


def test_files_have_no_calibration(capsys, tmp_path):
    """The labels belong to a set."""
    (tmp_path / "q.trec").write_text("q1 0 d1 1\n")
    (tmp_path / "r.trec").write_text("q1 Q0 d1 1 1.0 r\n")

    words = ("--qrels", tmp_path / "q.trec", "--run", tmp_path / "r.trec", "--calibrated")
    code, output = said(capsys, "evaluate", *words)

    assert code == 2
    assert "--calibrated goes with --dataset DIR" in output.err


def test_one_of_several_calibrations_is_named(made, capsys):
    """Which one decides must not depend on the alphabet."""
    files = calibration_files(made)
    other = calibration_files(made, "other")
    other.write_sample(files.sample())
    other.write_labels(files.labels())

    words = ("--dataset", made.path, "-m", "P@10", "--no-history")
    refused, _ = said(capsys, "evaluate", *words, "--calibrated")
    named, _ = said(capsys, "evaluate", *words, "--calibration", "other")
    (other.folder / "sample.json").unlink()

    assert (refused, named) == (3, 0)


def test_a_report_gives_corrected_levels_as_json(made, capsys):
    """Scripts take them on from there, too."""
    words = ("--dataset", made.path, "-m", "P@10", "--calibrated", "--json")

    _, output = said(capsys, "report", *words)

    found = json.loads(output.out)["calibration"]
    assert found["labels"] == 150
    assert {figure["run"] for figure in found["figures"]} == {"a", "b"}


@pytest.mark.parametrize("command", ["evaluate", "compare", "report"])
def test_another_threshold_is_refused(made, capsys, command):
    """P@10 of grade 1 is another measure than P@10 of grade 2."""
    words = ("--dataset", made.path, "-m", "P@10", "--rel-threshold", "1", "--calibrated")

    code, output = said(capsys, command, *words)

    assert code == 2
    assert "give both the same --rel-threshold" in output.err


@pytest.fixture(scope="module")
def lacking(tmp_path_factory):
    """A set with a calibration whose run b holds but 20 of the 30 queries."""
    found = graded_set(tmp_path_factory.mktemp("lacking") / "set")
    found.write_run("b", [ranking for ranking in found.run("b")][:20])
    drawn(found, 150)
    label_all(found)
    return found


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_levels_without_what_a_run_lacks_are_refused(lacking, capsys, command):
    """Labels count those queries 0: one table must not answer two questions."""
    words = ("--dataset", lacking.path, "-m", "P@10", "--calibrated", "--only-retrieved")

    code, output = said(capsys, command, *words)

    assert code == 2
    assert "run b lacks 10 queries, left out by --only-retrieved" in output.err
    assert "go without --only-retrieved, or let the run answer them" in output.err


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_nothing_is_left_out_of_runs_that_lack_nothing(made, capsys, command):
    """The flag changes no number of theirs."""
    words = ("--dataset", made.path, "-m", "P@10", "--calibrated", "--only-retrieved")

    code, output = said(capsys, command, *words)

    assert code == 0
    assert "corrected by 150 labels of people" in output.out.partition("\n")[0]


@pytest.mark.parametrize("call", ["evaluate", "compare"])
def test_a_refused_call_keeps_nothing_in_the_history(lacking, call):
    """In Python, too, and a number that nobody was shown is no part of the set's past."""
    handle = rf.open(lacking.path)

    with pytest.raises(UsageError, match="run b lacks 10 queries"):
        getattr(handle, call)(measures=["P@10"], calibrated=True, only_retrieved=True)

    assert not (lacking.path / "history.jsonl").exists()


def test_validate_reads_calibrations(made, capsys):
    """A label that is none must be found before it stops a gate at night."""
    path = calibration_files(made).folder / "labels.jsonl"
    before = path.read_text()
    path.write_text(before.replace('"look":1', '"look":0', 1))

    code, output = said(capsys, "validate", "--dataset", made.path)
    path.write_text(before)

    assert code == 3
    assert "labels.jsonl:1: look:" in output.out + output.err
