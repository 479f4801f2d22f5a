"""Judges of answers beside people, by files of labels."""

import json

import pytest

from ragforge.calibration.answer_table import read_answer_labels, report_answers
from ragforge.cli import main
from ragforge.errors import DataError
from ragforge.records import answer_sha256


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
    """Of two people the stricter verdict counts, as for one answer that bob calls partial."""
    report = report_answers(
        read_answer_labels(files / "people.csv"), (read_answer_labels(files / "judge.jsonl"),)
    )

    [judge] = report.judges
    assert judge.verdicts.same.value == pytest.approx(23 / 24)
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


@pytest.mark.parametrize(("name", "n"), [("rag-2", 6), ("rag-1", 11)])
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


@pytest.mark.parametrize("first", ["ann", "zed"])
def test_all_people_count_whatever_their_names(tmp_path, first):
    """One of two counted, by the name: as zed ann's labels vanished, and kappa was another."""
    rows = ["query_id,system,labeller,verdict"]
    for query in range(12):
        rows += [f"q{query},rag,{first},correct", f"q{query},rag,bob,incorrect"]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    graded = "".join(f"q{query},rag,incorrect\n" for query in range(12))
    (tmp_path / "judge.csv").write_text(f"query_id,system,verdict\n{graded}")

    [judge] = report_answers(
        read_answer_labels(tmp_path / "people.csv"), (read_answer_labels(tmp_path / "judge.csv"),)
    ).judges

    assert judge.verdicts.same.value == 1.0
    assert judge.scores.bias.value == -0.5


def test_people_who_share_the_work_count_both(tmp_path):
    """Of 12 answers that two people shared 6 were left out without a word."""
    people = [f"q{n},rag,{'ann' if n < 6 else 'bob'},correct\n" for n in range(12)]
    (tmp_path / "people.csv").write_text(f"query_id,system,labeller,verdict\n{''.join(people)}")
    graded = "".join(f"q{n},rag,correct\n" for n in range(12))
    (tmp_path / "judge.csv").write_text(f"query_id,system,verdict\n{graded}")

    [judge] = report_answers(
        read_answer_labels(tmp_path / "people.csv"), (read_answer_labels(tmp_path / "judge.csv"),)
    ).judges

    assert judge.scores.n == 12


@pytest.fixture
def changed(tmp_path):
    """A set with graded answers, and labels of people: one in four of an answer given before."""
    for folder in ("answers", "answer_grades"):
        (tmp_path / folder).mkdir()
    answers, graded, labels = [], [], []
    for n in range(12):
        told = f"Answer {n}"
        answers.append({"query_id": f"q{n:02}", "answer": told})
        graded.append({"query_id": f"q{n:02}", "verdict": "correct"})
        labelled = "Another" if n % 4 == 0 else told
        labels.append({"query_id": f"q{n:02}", "system": "rag", "labeller": "Ann"})
        labels[-1] |= {"verdict": "correct", "answer_sha256": answer_sha256(labelled)}
    for name, rows in (
        ("answers/rag.jsonl", answers),
        ("answer_grades/rag.jsonl", graded),
        ("labels.jsonl", labels),
    ):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_labels_of_an_earlier_answer_are_left_out_and_counted(changed, capsys):
    """They were held against the grade of an answer that nobody had labelled."""
    main(
        [
            *("calibrate", "report", "--answers", "--human", str(changed / "labels.jsonl")),
            *("--graded", str(changed / "answer_grades" / "rag.jsonl"), "--json"),
        ]
    )

    said = capsys.readouterr()
    assert json.loads(said.out)["judges"]["rag"]["scores"]["n"] == 9
    assert "labels.jsonl: 3 rows left out: of an answer that has changed since" in said.err


def test_labels_of_earlier_answers_alone_are_refused(changed, capsys):
    """Kappa would be of answers that are gone."""
    (changed / "answers" / "rag.jsonl").write_text(
        "".join(f'{{"query_id": "q{n:02}", "answer": "New"}}\n' for n in range(12))
    )

    code = main(
        [
            *("calibrate", "report", "--answers", "--human", str(changed / "labels.jsonl")),
            *("--graded", str(changed / "answer_grades" / "rag.jsonl")),
        ]
    )

    assert code == 3
    assert "`ragforge calibrate label-answers` shows these again" in capsys.readouterr().err
