"""`ragforge plan`, as somebody types it before anything is bought."""

import json

import pytest
from measured_set import make_measured_set

import ragforge
from ragforge.cli import main


def run(capsys, *words):
    code = main(["plan", *map(str, words)])
    return code, *capsys.readouterr()


def test_it_answers_without_a_set(capsys):
    """How large a set is to be is asked before there is one."""
    code, shown, told = run(capsys)

    assert code == 0
    assert "0.05      285         4,845" in shown
    assert "next: ragforge generate" in told


def test_what_a_size_can_show(capsys):
    """A set of so many queries is planned, and may be too small for what matters."""
    code, shown, _ = run(capsys, "--queries", 100)

    assert code == 0
    assert "100 queries can show differences from 0.085 on in nDCG@10; 0.05 takes 285" in shown


def test_json_and_python_say_the_same(tmp_path, capsys):
    """Scripts plan too."""
    make_measured_set(tmp_path / "set", 20)

    code, shown, _ = run(capsys, "--dataset", tmp_path / "set", "--difference", "0.04", "--json")
    found = ragforge.open(tmp_path / "set").plan(differences=[0.04])

    assert code == 0
    assert json.loads(shown) == found.to_dict()
    assert found.rows()[0]["queries"] == found.queries_for(0.04)


def test_generate_says_what_its_queries_will_show(tmp_path, capsys):
    """In the same words, before they are bought."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "wax.md").write_text(
        "# Wax\n\nBeeswax is a natural polish that keeps oak from drying out in heated rooms.\n"
    )

    words = ["generate", "--documents", tmp_path / "docs", "-n", 100, "--out", tmp_path / "out"]
    assert main([*map(str, words), "--dry-run", "-q"]) == 0

    assert "100 queries can show differences from 0.085 on in nDCG@10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--difference", "0"], "expected a number above 0, got '0'"),
        (["-m", "RR", "-m", "AP"], "expected one measure"),
        (["--queries", "-3"], "expected a whole number from 0"),
        (["--queries", "3", "--dataset", "set"], "a dataset has its own"),
        (["a", "b"], "runs such as 'a' are of a dataset"),
    ],
)
def test_what_cannot_be_planned_is_told(words, message, capsys):
    """Nothing is planned for something else."""
    code, _, told = run(capsys, *words)

    assert code == 2
    assert message in told
