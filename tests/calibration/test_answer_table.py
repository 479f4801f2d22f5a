"""Judges of answers beside people, by files of labels."""

import json

import pytest

from ragforge.calibration.answer_table import read_answer_labels, report_answers
from ragforge.cli import main
from ragforge.errors import DataError


@pytest.fixture
def files(tmp_path):
    """People's verdicts and preferences, and a judge's grades of two systems."""
    people = ["query_id,system,verdict,labeller"]
    preferred, judge = [], []
    for query in range(12):
        for system, verdict in (
            ("rag-1", "correct"),
            ("rag-2", "incorrect" if query % 2 else "correct"),
        ):
            people.append(f"q{query},{system},{verdict},ann")
            score = 1.0 if verdict == "correct" else 0.0
            judge.append({"query_id": f"q{query}", "system": system, "verdict": verdict})
            judge[-1]["score"] = 0.5 if query == 3 else score
        people.append(f"q{query},rag-1,{'partial' if query == 5 else 'correct'},bob")
        preferred.append(
            {
                "query_id": f"q{query}",
                "system_a": "rag-2",
                "system_b": "rag-1",
                "preference": "b" if query % 2 else "tie",
            }
        )
    (tmp_path / "people.csv").write_text("\n".join(people) + "\n")
    (tmp_path / "preferred.jsonl").write_text("".join(json.dumps(row) + "\n" for row in preferred))
    (tmp_path / "judge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in judge))
    return tmp_path


def test_verdicts_are_held_against_those_of_people(files):
    """The judge repeats every verdict of the labeller with most labels."""
    report = report_answers(
        read_answer_labels(files / "people.csv"), (read_answer_labels(files / "judge.jsonl"),)
    )

    [judge] = report.judges
    assert judge.verdicts.kappa.value == 1.0
    assert judge.scores.n == 24
    assert report.people.verdicts.same.value == pytest.approx(11 / 12)


def test_scores_of_two_answers_are_held_against_preferences(files):
    """People who compare answers give no verdicts, and are right all the same."""
    report = report_answers(
        read_answer_labels(files / "preferred.jsonl"), (read_answer_labels(files / "judge.jsonl"),)
    )

    [judge] = report.judges
    assert judge.scores is None
    assert judge.preferences.n_ties == 6
    assert judge.preferences.same_sign.value == pytest.approx(5.5 / 6)


def test_the_command_prints_each_part(files, capsys):
    """Verdicts by class tell where the judge errs."""
    code = main(
        [
            *("calibrate", "report", "--answers", "--human", str(files / "people.csv")),
            *("--graded", str(files / "judge.jsonl")),
        ]
    )

    shown = capsys.readouterr().out
    assert code == 0
    assert "people say" in shown
    assert "(people: bob beside the other)" in shown


def test_the_json_has_values_with_their_ends(files, capsys):
    """A pipeline reads them."""
    main(
        [
            *("calibrate", "report", "--answers", "--human", str(files / "preferred.jsonl")),
            *("--graded", str(files / "judge.jsonl"), "--json"),
        ]
    )

    found = json.loads(capsys.readouterr().out)["judges"]["judge"]
    assert found["verdicts"] is None
    assert found["preferences"]["same_side"]["low"] <= 5.5 / 6


def test_preferences_alone_have_their_table_alone(files, capsys):
    """A table of dashes looks like figures that got lost."""
    human, judge = str(files / "preferred.jsonl"), str(files / "judge.jsonl")
    code = main(["calibrate", "report", "--answers", "--human", human, "--graded", judge])

    shown = capsys.readouterr().out
    assert code == 0
    assert shown.startswith("judge  comparisons")
    assert "answers" not in shown


def test_a_preference_has_no_bias(files, capsys):
    """A score less another, minus which of two is better, is a number that means nothing."""
    main(
        [
            *("calibrate", "report", "--answers", "--human", str(files / "preferred.jsonl")),
            *("--graded", str(files / "judge.jsonl"), "--json"),
        ]
    )

    found = json.loads(capsys.readouterr().out)["judges"]["judge"]["preferences"]
    assert found["bias"] is None
    assert found["pearson"]["value"] is not None


@pytest.mark.parametrize(("name", "n"), [("rag-2", 6), ("rag-1", 12)])
def test_graded_answers_of_a_dataset_are_of_the_system_that_the_file_is_named_for(
    files, tmp_path, name, n
):
    """Their rows name no system, and people's do."""
    rows = [{"query_id": f"q{query}", "verdict": "correct", "score": 1.0} for query in range(12)]
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    people = read_answer_labels(files / "people.csv")
    [judge] = report_answers(people, (read_answer_labels(path),)).judges

    assert judge.verdicts.counts[0][0] == n


def test_a_verdict_that_nobody_knows_is_refused(tmp_path):
    """Taken for a failure it would vanish from the figures."""
    path = tmp_path / "people.csv"
    path.write_text("query_id,verdict\nq1,good\n")

    with pytest.raises(DataError, match=r"people\.csv:2: verdict: expected correct, partial"):
        read_answer_labels(path)


def test_answers_of_other_systems_are_refused(files, tmp_path):
    """Names that differ would give an empty table."""
    path = tmp_path / "other.csv"
    path.write_text("query_id,system,verdict\nq1,c,correct\n")

    with pytest.raises(DataError, match="none of the answers that people labelled"):
        report_answers(read_answer_labels(files / "people.csv"), (read_answer_labels(path),))


def test_a_preference_for_a_place_that_is_the_other_systems_name_is_refused(tmp_path):
    """Read the other way round it would turn the judge into its opposite."""
    path = tmp_path / "preferred.csv"
    path.write_text("query_id,system_a,system_b,preference\nq1,b,a,b\n")

    with pytest.raises(DataError, match="a name that is no place: is 'b' meant"):
        read_answer_labels(path)
