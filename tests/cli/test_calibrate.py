"""`ragforge calibrate report`."""

import json

import numpy as np
import pytest

from ragforge.cli import main


@pytest.fixture
def files(tmp_path):
    """People's labels and those of thirty judges."""
    generator = np.random.default_rng(3)
    human, judges = [], [[] for _ in range(30)]
    for query in range(15):
        for text in range(12):
            grade = int(generator.choice(4, p=(0.5, 0.2, 0.2, 0.1)))
            human.append(f"q{query} 0 d{text} {grade}\n")
            for noise, judge in enumerate(judges):
                judged = round(np.clip(grade + generator.normal(0, 0.1 * noise), 0, 3))
                judge.append(f"q{query} 0 d{text} {judged}\n")
    (tmp_path / "people.trec").write_text("".join(human) + "q1 0 junk -2\n")
    for noise, judge in enumerate(judges):
        (tmp_path / f"judge{noise}.trec").write_text("".join(judge))
    return tmp_path


def test_thirty_judges_give_one_table(files, capsys):
    """Which judge to take is asked of all of them at once."""
    judges = sorted(str(path) for path in files.glob("judge*.trec"))

    code = main(
        ["calibrate", "report", "--human", str(files / "people.trec"), "--judge", *judges, "--json"]
    )

    output = capsys.readouterr()
    found = json.loads(output.out)["judges"]
    assert code == 0
    assert len(found) == 30
    assert found["judge0"]["kappa"] == 1.0
    assert found["judge0"]["quadratic_kappa"] > found["judge29"]["quadratic_kappa"]
    low, high = found["judge9"]["intervals"]["alpha"]
    assert low < found["judge9"]["alpha"] < high
    assert "people: 1 row left out: grade outside of the scale" in output.err


def test_the_table_has_a_row_for_each_judge_and_each_of_peoples_grades(files, capsys):
    """One number hides where a judge errs."""
    main(
        [
            "calibrate",
            "report",
            "--human",
            str(files / "people.trec"),
            "--judge",
            str(files / "judge5.trec"),
            "--by-query",
        ]
    )

    shown = capsys.readouterr().out
    assert "quadratic kappa" in shown
    assert "people gave" in shown
    assert "judge5, queries with the largest bias" in shown


def test_a_file_named_twice_is_refused(files, capsys):
    """Two rows of one judge would look like two judges."""
    name = str(files / "judge1.trec")

    code = main(
        ["calibrate", "report", "--human", str(files / "people.trec"), "--judge", name, name]
    )

    assert code == 2
    assert "comes twice" in capsys.readouterr().err


def test_weights_of_a_panel_are_tried_on_queries_kept_out(files, capsys):
    """Weights that are tried on the pairs of their fit always look good."""
    words = ["calibrate", "report", "--human", str(files / "people.trec"), "--judge"]
    words += [str(path) for path in sorted(files.glob("judge*"))[:3]]

    assert main([*words, "--panel-weights", "--json"]) == 0

    panel = json.loads(capsys.readouterr().out)["panel"]
    assert sum(panel["weights"].values()) == pytest.approx(1)
    assert set(panel["tried"]) == {"weighted", "equal weights", "best single judge"}
    assert main([*words, "--panel-weights"]) == 0
    assert "on queries kept out" in capsys.readouterr().out


def test_weights_of_one_judge_are_refused(files, capsys):
    """One judge is no panel."""
    judge = str(sorted(files.glob("judge*"))[0])
    words = ["calibrate", "report", "--human", str(files / "people.trec"), "--judge", judge]

    assert main([*words, "--panel-weights"]) == 2
    assert "expected two judges or more" in capsys.readouterr().err


def test_routing_shows_what_each_share_of_dear_calls_gives(files, capsys):
    """How much of the dear judge is worth its price is asked before it is paid."""
    lines = (files / "judge9.trec").read_text().splitlines()
    rows = [line.split() for line in lines]
    cheap = [
        {"query_id": q, "chunk_id": c, "grade": int(g), "entropy_bits": n % 5 / 4}
        for n, (q, _, c, g) in enumerate(rows)
    ]
    (files / "cheap.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in cheap))
    words = ["calibrate", "report", "--human", str(files / "people.trec"), "--route", "--judge"]

    assert main([*words, str(files / "cheap.jsonl"), str(files / "judge1.trec"), "--json"]) == 0

    routing = json.loads(capsys.readouterr().out)["routing"]
    assert list(routing) == ["0%", "10%", "20%", "30%", "50%", "100%"]
    assert routing["100%"]["kappa"]["value"] > routing["0%"]["kappa"]["value"]
    assert routing["100%"]["dear_minus_this"] == {}
    assert main([*words, str(files / "cheap.jsonl"), str(files / "judge1.trec")]) == 0
    assert "dear calls" in capsys.readouterr().out
    assert main([*words, str(files / "judge2.trec"), str(files / "judge1.trec")]) == 3
    assert "tells no doubt" in capsys.readouterr().err


def test_where_no_grade_is_above_1_relevant_begins_there(tmp_path, capsys):
    """A threshold that nobody reaches makes every judge look perfectly specific."""
    people, judge = tmp_path / "people.trec", tmp_path / "judge.trec"
    people.write_text("".join(f"q{n} 0 d{k} {(n + k) % 2}\n" for n in range(9) for k in range(4)))
    judge.write_text("".join(f"q{n} 0 d{k} {k % 2}\n" for n in range(9) for k in range(4)))
    words = ["calibrate", "report", "--human", str(people), "--judge", str(judge), "--json"]

    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["judges"]["judge"]

    assert found["threshold"] == 1
    assert 0 < found["sensitivity"] < 1


@pytest.mark.parametrize(("highest", "is_told"), [(3, True), (1, False)])
def test_a_judge_of_more_grades_than_people_gave_is_told(highest, is_told, tmp_path, capsys):
    """Its 1 is no part of the answer, and would be held for what people call relevant."""
    people, judge = tmp_path / "people.trec", tmp_path / "judge.trec"
    rows = [(f"q{k % 6}", f"d{k}") for k in range(24)]
    people.write_text("".join(f"{q} 0 {d} {k % 2}\n" for k, (q, d) in enumerate(rows)))
    judge.write_text(
        "".join(f"{q} 0 {d} {k % 4 % (highest + 1)}\n" for k, (q, d) in enumerate(rows))
    )

    main(["calibrate", "report", "--human", str(people), "--judge", str(judge)])

    told = "careful: people gives 0 and 1 alone, and judge up to 3"
    assert (told in capsys.readouterr().err) is is_told


def test_a_judge_that_finds_nothing_relevant_is_told(tmp_path, capsys):
    """Its specificity of 1 is no merit."""
    people, judge = tmp_path / "people.trec", tmp_path / "judge.trec"
    people.write_text("".join(f"q{n} 0 d{k} {k}\n" for n in range(9) for k in range(4)))
    judge.write_text("".join(f"q{n} 0 d{k} {k % 2}\n" for n in range(9) for k in range(4)))

    assert main(["calibrate", "report", "--human", str(people), "--judge", str(judge)]) == 0

    assert "judge gives no grade of 2 or above" in capsys.readouterr().err


def test_the_order_of_a_file_moves_no_interval(tmp_path, capsys):
    """Rows are in the order in which people happened to work."""
    lines = [f"q{n} 0 d{k} {(3 * n + k) % 4}\n" for n in range(12) for k in range(5)]
    judged = [f"q{n} 0 d{k} {(n + k) % 4}\n" for n in range(12) for k in range(5)]
    judge = tmp_path / "judge.trec"
    judge.write_text("".join(judged))
    found = []
    for name, rows in (("there", lines), ("back", lines[::-1])):
        people = tmp_path / f"{name}.trec"
        people.write_text("".join(rows))
        words = ["calibrate", "report", "--human", str(people), "--judge", str(judge), "--json"]
        assert main(words) == 0
        found.append(json.loads(capsys.readouterr().out)["judges"]["judge"]["intervals"])

    assert found[0] == found[1]
