import json
from xml.etree import ElementTree

import pytest

from ragforge.cli import main


@pytest.fixture
def run(capsys):
    """Run the command and return its code, output and messages."""

    def call(*words):
        code = main(["plot", *map(str, words)])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_a_file_is_drawn_and_named(run, many_queries, tmp_path):
    """Its name is what a script goes on with."""
    out = tmp_path / "c.svg"

    code, printed, _ = run("compare", "--dataset", many_queries(8).path, "--out", out)

    assert (code, printed) == (0, f"{out}\n")
    assert ElementTree.parse(out).getroot().get("role") == "img"


def test_json_says_in_words_what_is_drawn(run, many_queries, tmp_path):
    """For who cannot see it."""
    out = tmp_path / "c.svg"

    _, printed, _ = run(
        "compare", "--dataset", many_queries(8).path, "--out", out, "--base", "new", "--json"
    )

    found = json.loads(printed)
    assert found["title"] == "nDCG@10 of base (B) less new (A)"
    assert "better in 8" in found["shows"]


@pytest.mark.parametrize(("measure", "n_worse"), [("nDCG@10", 6), ("P@1", 6), ("R@2", 0)])
def test_the_measure_asked_for_is_drawn(run, many_queries, tmp_path, measure, n_worse):
    """Bars by one measure under a verdict by another one would tell of two winners."""
    out = tmp_path / "a.svg"
    words = ("compare", "--dataset", many_queries(6).path, "-m", measure)
    code, told, _ = run(*words, "--out", out, "--json")

    shown = json.loads(told)
    drawn = out.read_text()
    assert code == 0
    assert shown["title"] == f"{measure} of new (B) less base (A)"
    assert f"worse in {n_worse} quer" in shown["shows"]
    assert drawn.count('class="worse"') == 2 * n_worse  # a bar and a point
    assert measure == "nDCG@10" or "nDCG@10" not in drawn


def test_the_means_of_two_evaluations_are_a_trend(run, many_queries, tmp_path):
    """A line a run."""
    made, out = many_queries(8), tmp_path / "t.svg"
    for _ in range(2):
        assert main(["evaluate", "--dataset", str(made.path), "-q"]) == 0
        made.write_queries([*made.queries()][:6])

    code, _, _ = run("trend", "--dataset", made.path, "--out", out)

    assert code == 0
    assert "over 2 evaluations" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("subject", ["trend", "calibration"])
def test_what_is_not_there_is_told_with_the_way_to_it(run, many_queries, tmp_path, subject):
    """Nothing is written."""
    out = tmp_path / "x.svg"

    code, _, told = run(subject, "--dataset", many_queries(5).path, "--out", out)

    assert code != 0
    assert "`ragforge " in told
    assert not out.exists()


def test_files_of_the_set_are_not_drawn_over(run, many_queries):
    """A picture is worth less than the queries."""
    made = many_queries(5)
    inside = made.path / "queries.jsonl"

    code, _, told = run("compare", "--dataset", made.path, "--out", inside)

    assert code == 2
    assert "is a file of the dataset" in told
