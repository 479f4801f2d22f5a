"""A run is no better than another because a more lenient judge graded it."""

import json
import shlex

import pytest
from two_judges import NEW, judge, judges, make_set, rank

from ragforge.cli import main

pytestmark = pytest.mark.slow


MEASURES = ("nDCG@10", "P@5", "RR")


@pytest.fixture(scope="module")
def endpoint():
    with judges() as found:
        yield found


@pytest.fixture
def dataset(tmp_path):
    return make_set(tmp_path / "set")


def compared(dataset, capsys):
    """Return what `compare --json` says of each measure."""
    capsys.readouterr()
    assert main(["compare", "--dataset", str(dataset.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    return {item["measure"]: item for item in found}


def test_runs_that_two_judges_graded_have_no_winner(dataset, endpoint, capsys):
    """The second run was graded by the more lenient judge."""
    judge(dataset, endpoint, "strict")
    rank(dataset, NEW, "new")
    judge(dataset, endpoint, "lenient", "--run", "new", "--mix")

    found = compared(dataset, capsys)

    assert {found[name]["winner"] for name in MEASURES} == {"UNKNOWN"}
    assert "in 30 queries no one judge graded what both hold" in found["RR"]["why"]
    words = shlex.split(found["RR"]["why"].partition("`ragforge ")[2].partition("`")[0])
    assert main([*words, "--base-url", endpoint.url, "-q"]) == 0
    bought = compared(dataset, capsys)
    assert {item["why"] for item in bought.values()} == {None}


def test_a_regrade_that_was_stopped_is_led_to_its_end(dataset, endpoint, capsys):
    """Half of the grades are of one judge, half of the other; another command would buy nothing."""
    rank(dataset, NEW, "new")
    judge(dataset, endpoint, "strict")
    assert judge(dataset, endpoint, "lenient", "--again", "--max-calls", "90") == 5
    capsys.readouterr()

    assert main(["compare", "--dataset", str(dataset.path)]) == 0

    out, err = capsys.readouterr()
    text = " ".join(out.split())
    assert "new is better" not in text
    assert "old is better" not in text
    assert "next: " not in err
    words = shlex.split(text.partition("`ragforge ")[2].partition("`")[0])
    assert main([*words, "--base-url", endpoint.url, "-q"]) == 0
    assert {one.provenance.model for one in dataset.judgments()} == {"lenient"}
    assert {item["why"] for item in compared(dataset, capsys).values()} == {None}


def test_the_report_names_no_winner_either(dataset, endpoint, capsys):
    """It is what people who never see the command line look at."""
    judge(dataset, endpoint, "strict")
    rank(dataset, NEW, "new")
    judge(dataset, endpoint, "lenient", "--run", "new", "--mix")
    capsys.readouterr()

    main(["report", "--dataset", str(dataset.path)])

    text = " ".join(capsys.readouterr().out.split())
    assert "UNKNOWN which is better in nDCG@10, RR, R@10 and P@5" in text


def test_grades_of_another_judge_that_no_run_holds_change_no_winner(dataset, endpoint, capsys):
    """Left behind by an earlier run, they are only in what values are divided by."""
    judge(dataset, endpoint, "strict")
    rank(dataset, NEW)
    rank(dataset, NEW[1:], "new")
    judge(dataset, endpoint, "lenient", "--again")

    found = compared(dataset, capsys)

    assert {item["why"] for item in found.values()} == {None}
    assert {item["n"] for item in found.values()} == {30}


def test_files_of_grades_by_two_judges_name_no_winner_either(dataset, endpoint, capsys):
    """A file that says who graded is no less mixed than the set it was taken from."""
    judge(dataset, endpoint, "strict")
    rank(dataset, NEW, "new")
    judge(dataset, endpoint, "lenient", "--run", "new", "--mix")
    paths = [dataset.path / "runs" / f"{name}.jsonl" for name in ("bm25", "new")]
    runs = [word for path in paths for word in ("--run", str(path))]
    capsys.readouterr()

    main(["compare", "--qrels", str(dataset.path / "judgments.jsonl"), *runs, "--json"])

    found = {item["measure"]: item for item in json.loads(capsys.readouterr().out)["comparisons"]}
    assert {found[name]["winner"] for name in MEASURES} == {"UNKNOWN"}
    assert "90 pairs are without a grade of strict" in found["RR"]["why"]


def test_a_run_that_was_not_judged_does_not_lose_for_it(dataset, endpoint, capsys):
    """Its chunks without a grade count as not relevant, and judging them turns the difference."""
    judge(dataset, endpoint, "lenient")
    rank(dataset, NEW, "new")

    found = compared(dataset, capsys)["P@5"]

    assert found["winner"] == "UNKNOWN"
    assert any("have no grade" in str(value) for value in found.values())
