"""Grades of answers after these, or their queries, were edited: they are of others."""

import json

import pytest

from ragforge.cli import main
from ragforge.records import answer_sha256


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Answer three queries by a system, graded, and return what runs a command on the set."""
    rows = ["query_id,question,expected_answer"]
    rows += [f"q{n},What is fact {n}?,Fact {n} it is." for n in (1, 2, 3)]
    (tmp_path / "golden.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "edited_rag.py").write_text(
        "asked = []\n"
        "def ask(query):\n"
        "    asked.append(query)\n"
        "    return 'Fact ' + query.split()[-1].rstrip('?') + ' it is.'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def call(command, *words):
        capsys.readouterr()
        code = main([command, "--dataset", "set", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    assert main(["import", "golden.csv", "--out", "set", "-q"]) == 0
    assert call("answer", *ASKED)[0] == 0
    return call


ASKED = ("--system", "edited_rag:ask", "--name", "mine")


def edited(path, query_id, **changes):
    """Change a query by hand, and accept that."""
    rows = [json.loads(line) for line in (path / "set/queries.jsonl").read_text().splitlines()]
    rows = [{**row, **changes} if row["query_id"] == query_id else row for row in rows]
    (path / "set/queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["validate", "--dataset", "set", "--accept"]) == 0


def rates(run, tmp_path):
    """Return n and number of unanswered and ungraded queries, as the report has them."""
    assert main(["report", "--dataset", "set", "--out", "r.md", "-q"]) == 0
    text = (tmp_path / "r.md").read_text()
    [row] = [line for line in text.splitlines() if line.startswith("| mine | ")][:1]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    return {"correct": cells[1], "not graded": cells[6], "no answer": cells[7]}


def test_a_grade_by_another_expected_answer_does_not_count(run, tmp_path):
    """It says how the answer compares with what nobody expects any more."""
    assert rates(run, tmp_path) == {"correct": "3", "not graded": "0", "no answer": "0"}

    edited(tmp_path, "q1", expected_answer="Nothing of the kind.")

    assert rates(run, tmp_path) == {"correct": "2", "not graded": "1", "no answer": "0"}
    assert "mine: 1 query asks or expects something else" in (tmp_path / "r.md").read_text()


def test_graded_again_it_counts_by_the_new_one(run, tmp_path):
    """The answer is the same, and wrong now."""
    edited(tmp_path, "q1", expected_answer="Nothing of the kind.")

    code, _, _ = run("answer", "--answers", "set/answers/mine.jsonl", "--name", "mine")

    assert code == 0
    assert rates(run, tmp_path) == {"correct": "2", "not graded": "0", "no answer": "0"}


def test_an_answer_to_another_question_is_none(run, tmp_path):
    """Neither by its grade, nor graded again; the system is asked anew."""
    edited(tmp_path, "q1", query="What is fact 7?", expected_answer="Fact 7 it is.")
    lost = {"correct": "2", "not graded": "0", "no answer": "1"}
    assert rates(run, tmp_path) == lost

    _, _, told = run("answer", "--answers", "set/answers/mine.jsonl", "--name", "mine")
    assert "1 answer to questions that were worded otherwise: not graded" in told
    assert rates(run, tmp_path) == lost

    code, _, _ = run("answer", *ASKED)

    assert code == 0
    assert rates(run, tmp_path) == {"correct": "3", "not graded": "0", "no answer": "0"}


def test_a_gate_does_not_go_by_the_former_truth(run, tmp_path):
    """It passed on answers of which none is right any more."""
    held = ("--answers", "mine", "--min", "correct=0.1", "--allow-few")
    edited(tmp_path, "q1", expected_answer="Nothing of the kind.")

    _, out, _ = run("gate", *held)
    for n in (2, 3):
        edited(tmp_path, f"q{n}", expected_answer="Nothing of the kind.")
    code, _, err = run("gate", *held)

    assert "mine: 1 query asks or expects something else" in out
    assert code != 0
    assert "mine: 3 queries ask or expect something else" in err


def test_a_comparison_leaves_open_what_was_edited(run, tmp_path):
    """A winner by the former truth is none by this one."""
    answers = (tmp_path / "set/answers/mine.jsonl").read_text().replace("it is.", "it is not.")
    rows = [json.loads(line) for line in answers.splitlines()]
    rows = [{"query_id": row["query_id"], "answer": row["answer"]} for row in rows]
    (tmp_path / "other.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert run("answer", "--answers", "other.jsonl")[0] == 0
    for n in (1, 2, 3):
        edited(tmp_path, f"q{n}", expected_answer=f"Fact {n} it is not.")

    code, out, err = run("compare", "--answers", "mine", "other")

    assert (code, out) == (3, "")
    assert "mine: 3 queries ask or expect something else" in err


def test_grades_of_edited_answers_count_nowhere(run, tmp_path):
    """A gate passed on the grades of right answers, where all said that they do not know."""
    path = tmp_path / "set/answers/mine.jsonl"
    held = ("--answers", "mine", "--min", "correct=0.1", "--allow-few", "--allow-baseline-judge")
    assert run("gate", *held)[0] == 0
    path.write_text(path.read_text().replace(" it is.", " it is not."))
    told = "mine: 3 answers, or their contexts, are others than what was graded"

    for accepted in (False, True):
        if accepted:
            assert main(["validate", "--dataset", "set", "--accept"]) == 0
        code, out, err = run("gate", *held)
        assert (code != 0, told in out + err) == (True, True)
        assert rates(run, tmp_path) == {"correct": "0", "not graded": "3", "no answer": "0"}
        assert told in (tmp_path / "r.md").read_text()

    assert run("answer", "--answers", str(path), "--name", "mine")[0] == 0
    assert rates(run, tmp_path)["not graded"] == "0"


def test_grades_from_before_a_question_was_to_be_refused_count_nowhere(run, tmp_path):
    """A system that invents 30 of 30 kept `correct` 1.000, and PASS."""
    for n in (1, 2, 3):
        edited(tmp_path, f"q{n}", answerable=False)

    code, _, err = run("gate", "--answers", "mine", "--min", "correct=0.1", "--allow-few")

    assert code != 0
    assert "mine: 3 queries ask or expect something else" in err


@pytest.fixture
def labelled(run, tmp_path):
    """Have Ann label all answers, and return what reports on her beside the judge."""
    answers = (tmp_path / "set/answers/mine.jsonl").read_text()
    rows = [json.loads(line) for line in answers.splitlines()]
    saved = [
        {
            "query_id": row["query_id"],
            "system": "mine",
            "labeller": "Ann",
            "answer_sha256": answer_sha256(row["answer"]),
            "verdict": "correct",
        }
        for row in rows
    ]
    (tmp_path / "ann.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in saved))
    of_set = ("--dataset", "set")
    assert main(["calibrate", "sample", *of_set, "--answers", "mine", "-n", "3"]) == 0
    assert main(["calibrate", "label-answers", *of_set, "--from", "ann.jsonl"]) == 0
    human = "set/calibration/people/answer_labels.jsonl"
    graded = "set/answer_grades/mine.jsonl"
    return ["calibrate", "report", "--answers", "--human", human, "--graded", graded, "--json"]


def test_labels_by_a_former_expected_answer_are_held_against_no_grade(
    run, labelled, tmp_path, capsys
):
    """Kappa fell to 0.333 by 15 answers that a person "called correct" by what nobody expects."""
    edited(tmp_path, "q1", expected_answer="Nothing of the kind.")
    capsys.readouterr()

    for graded_again in (False, True):
        if graded_again:
            assert run("answer", "--answers", "set/answers/mine.jsonl", "--name", "mine")[0] == 0
        assert main(labelled) == 0
        said = capsys.readouterr()
        assert json.loads(said.out)["judges"]["mine"]["scores"]["n"] == 2
        assert "1 row left out: by an expected answer, or facts, that have changed" in said.err


def test_grades_of_former_answers_are_held_against_no_label(labelled, tmp_path, capsys):
    """They are of words that nobody labelled."""
    path = tmp_path / "set/answers/mine.jsonl"
    path.write_text(path.read_text().replace("Fact 1 it is.", "Who knows."))
    capsys.readouterr()

    assert main(labelled) == 0
    assert json.loads(capsys.readouterr().out)["judges"]["mine"]["scores"]["n"] == 2
