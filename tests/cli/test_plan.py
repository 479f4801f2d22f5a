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


def test_what_counts_evidence_is_planned_without_grades(tmp_path, capsys):
    """The first path of the README decides by EvidenceR@10, where nobody graded."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "wax.md").write_text(
        "# Wax\n\nBeeswax is a natural polish that keeps oak from drying out in heated rooms.\n\n"
        "## Oak\n\nOak is a hard wood that lasts for centuries where it is kept from the rain.\n"
    )
    made = str(tmp_path / "set")
    words = ["--documents", str(tmp_path / "docs"), "-n", "2", "--out", made, "-q"]
    assert main(["generate", *words]) in (0, 7)
    (tmp_path / "set" / "judgments.jsonl").unlink(missing_ok=True)

    code, shown, _ = run(capsys, "--dataset", made, "-m", "EvidenceR@10")
    assert (code, "EvidenceR@10: two retrievers typically differ" in shown) == (0, True)
    assert main(["gate", "--dataset", made, "--min", "EvidenceR@10=0.5", "--plan"]) == 0


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


def test_a_gate_says_what_its_rules_can_show(tmp_path, capsys):
    """Before there is a run, and in the words of a plan."""
    make_measured_set(tmp_path / "set", 40)
    words = ["gate", "--dataset", tmp_path / "set", "--plan"]
    rules = ["--min", "RR=0.5", "--max-drop", "RR=0.02", "--max-drop", "P@5=auto"]

    assert main([*map(str, words), *rules]) == 0
    shown = capsys.readouterr().out
    assert main([*map(str, words), *rules, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    planned = ragforge.open(tmp_path / "set").plan_gate(
        min={"RR": 0.5}, max_drop={"RR": 0.02, "P@5": "auto"}
    )

    assert "max-drop P@5=auto: 40 queries rule out a drop of " in shown
    assert found == planned.to_dict()
    assert [rule["kind"] for rule in found["rules"]] == ["min", "max-drop", "max-drop"]
    assert found["rules"][1]["queries"] > 40
    assert 0 < found["rules"][1]["passes_unchanged"] < 0.8


def test_queries_that_are_all_alike_promise_nothing(dataset, capsys):
    """A plan that shows differences of 0.000 is held by no gate."""
    ragforge.open(dataset).retrieve("bm25", quiet=True)
    words = ["gate", "--dataset", str(dataset), "--min", "EvidenceR@10=0.5", "--plan", "--json"]
    capsys.readouterr()

    assert main(words) == 0
    [rule] = json.loads(capsys.readouterr().out)["rules"]

    assert rule["is_typical"]
    assert rule["shows"] > 0.1


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["--max-failures", "1%"], "nothing to plan"),
        (["--answers", "mine", "--min", "correct=0.5"], "with rules of retrieval"),
    ],
)
def test_rules_without_a_plan_are_told(tmp_path, capsys, rules, message):
    """Failures are counted, and answers have plans of their own."""
    make_measured_set(tmp_path / "set", 5)

    assert main(["gate", "--dataset", str(tmp_path / "set"), "--plan", *rules]) == 2
    assert message in capsys.readouterr().err
