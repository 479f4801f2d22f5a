"""What is told where two judges graded a set: `evaluate` counts both, a comparison one."""

from pathlib import Path

import pytest
from two_judges import IDS, NEW, OLD, make_set, rank

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.records import Judgment, Provenance

LENIENT = Provenance(kind="llm", model="lenient", prompt="judge", prompt_sha256="ab" * 32)
STRICT = LENIENT.model_copy(update={"model": "strict"})


@pytest.fixture
def place(tmp_path):
    """A set whose two runs hold what `lenient` graded; `strict` graded three more a query."""
    dataset = make_set(tmp_path / "set")
    rank(dataset, OLD[::-1], run="turned")
    dataset.write_judgments(
        Judgment(
            query_id=query_id,
            chunk_id=f"{query_id}-{name}",
            grade=int(name[-1]),
            provenance=LENIENT if name in OLD else STRICT,
        )
        for query_id in IDS
        for name in sorted({*OLD, *NEW})
    )
    return str(dataset.path)


def test_evaluate_says_that_its_means_rest_on_several_judges(place, capsys):
    """Held beside those of a comparison they look like another run's."""
    assert main(["evaluate", "--dataset", place, "-m", "nDCG@5"]) == 0

    assert (
        "warning: means rest on grades of several judges (lenient; strict) in 30 queries; compare "
        "and gate count those of one in each (lenient)\n"
    ) in capsys.readouterr().err


def test_compare_says_below_its_table_whose_grades_are_left_out(place, capsys):
    """It stands at the numbers, and not among what comes after."""
    runs = ["--run", "bm25", "--run", "turned"]
    assert main(["compare", "--dataset", place, *runs, "-m", "nDCG@5"]) == 0

    output = capsys.readouterr()
    said = " ".join(output.out.split())
    assert "the means are not those of `evaluate`: 90 grades by strict are left out" in said
    assert "by strict" not in output.err


def test_nothing_is_said_of_one_judge(tmp_path, capsys):
    """Its means are those of a comparison."""
    dataset = make_set(tmp_path / "set")
    dataset.write_judgments(
        Judgment(query_id=q, chunk_id=f"{q}-a2", grade=2, provenance=LENIENT) for q in IDS
    )
    assert main(["evaluate", "--dataset", str(dataset.path), "-m", "nDCG@5"]) == 0

    assert "several judges" not in capsys.readouterr().err


def test_judges_of_one_model_are_told_apart(place, capsys):
    """One model asked in two ways is two judges, and one name twice says nothing."""
    dataset = open_dataset(Path(place))
    votes = LENIENT.model_copy(update={"protocol": "votes 2"})
    dataset.write_judgments(
        item.model_copy(update={"provenance": votes}) if item.provenance == STRICT else item
        for item in dataset.judgments()
    )
    assert main(["evaluate", "--dataset", place, "-m", "nDCG@5"]) == 0

    assert (
        "several judges (lenient, judge; lenient, votes 2) in 30 queries; compare and gate count "
        "those of one in each (lenient, judge)"
    ) in capsys.readouterr().err


def test_a_report_says_at_its_decision_and_its_numbers_whose_grades_count(place, tmp_path):
    """Its reader sees no terminal, and two kinds of means."""
    several = (
        "means rest on grades of several judges (lenient; strict) in 30 queries; compare and gate "
        "count those of one in each (lenient)"
    )
    said = []
    for form in ("html", "md", "txt"):
        out = tmp_path / f"report.{form}"
        assert main(["report", "--dataset", place, "--out", str(out), "-m", "nDCG@5", "-q"]) == 0
        said.append(" ".join(out.read_text("utf-8").split()))

    page, markdown, text = said
    assert f"<dt>Whose grades</dt><dd>{several}</dd>" in page
    assert f"<p>Whose grades: {several}.</p>" in page
    assert "90 grades by strict are left out" in page
    assert several in text
    assert several in markdown.replace("\\", "")


def test_a_report_of_one_judge_says_nothing_of_it(tmp_path):
    """Its means are those of a comparison."""
    dataset = make_set(tmp_path / "set")
    rank(dataset, OLD[::-1], run="turned")
    dataset.write_judgments(
        Judgment(query_id=q, chunk_id=f"{q}-a2", grade=2, provenance=LENIENT) for q in IDS
    )
    out = tmp_path / "report.html"
    assert main(["report", "--dataset", str(dataset.path), "--out", str(out), "-q"]) == 0

    assert "Whose grades" not in out.read_text("utf-8")
