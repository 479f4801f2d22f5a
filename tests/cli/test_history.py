"""`evaluate` adds to the history, `history` tells of it."""

import json

import pytest
from ranked_sets import ranked_set

from ragforge.cli import main
from ragforge.files.set.history import read_history
from ragforge.files.set.opening import open_dataset
from ragforge.records import Judgment


@pytest.fixture
def evaluated(tmp_path):
    """A dataset whose run was evaluated twice, the second time better."""
    path = tmp_path / "set"
    for ranks in ([2, 4, 2, 2, 4, 2, 4, 2], [1, 1, 2, 1, 1, 1, 2, 1]):
        ranked_set(path, {"bm25": ranks})
        assert main(["evaluate", "--dataset", str(path), "-m", "RR", "-q"]) == 0
    return path


def test_each_evaluation_adds_a_line_for_each_run(tmp_path):
    """Nobody remembers to keep numbers by hand."""
    ranked_set(tmp_path / "set", {"a": [1, 2], "b": [2, 1]})

    main(["evaluate", "--dataset", str(tmp_path / "set"), "-q"])

    assert read_history(tmp_path / "set").runs == ("a", "b")


def test_no_history_leaves_the_set_as_it_is(tmp_path):
    """A look at a set is not always to be remembered."""
    path = ranked_set(tmp_path / "set", {"a": [1, 2]}).path
    before = sorted(path.rglob("*"))

    main(["evaluate", "--dataset", str(path), "--no-history", "-q"])

    assert sorted(path.rglob("*")) == before


def test_a_set_that_cannot_be_written_is_evaluated_all_the_same(tmp_path, capsys):
    """A published set is mounted read-only; its numbers are what was asked for."""
    path = ranked_set(tmp_path / "set", {"a": [1, 2]}).path
    (path / "history.jsonl").mkdir()

    code = main(["evaluate", "--dataset", str(path), "-m", "RR", "-q"])

    told = capsys.readouterr()
    assert code == 0
    assert "0.7500" in told.out
    assert "warning: not kept in the history" in told.err


def test_what_changed_and_the_verdict_are_told(evaluated, capsys):
    """This is what one looks at in the morning."""
    capsys.readouterr()

    assert main(["history", "--dataset", str(evaluated)]) == 0

    told = capsys.readouterr().out
    assert "The retriever ranks otherwise on the same corpus and queries" in told
    assert "IMPROVING" in told
    assert "on the 8 that are the same: the system moved." in told


def test_json_is_one_object_with_all_of_it(evaluated, capsys):
    """Other tools draw their own pictures."""
    capsys.readouterr()

    main(["history", "--dataset", str(evaluated), "--dataset", str(evaluated), "--json"])

    first, second = json.loads(capsys.readouterr().out)["datasets"]
    [run] = first["runs"]
    assert first == second
    assert [item["what"] for item in run["changes"]] == ["retriever"]
    assert [(item["measure"], item["verdict"]) for item in run["trends"]] == [("RR", "IMPROVING")]
    assert [(item["measure"], item["cause"]) for item in run["moved"]] == [("RR", "system")]
    assert len(run["evaluations"]) == 2


def test_lines_that_were_passed_over_are_told(evaluated, capsys):
    """A history with a gap must not look whole."""
    path = evaluated / "history.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2', 1))
    capsys.readouterr()

    main(["history", "--dataset", str(evaluated)])

    assert "history.jsonl:1: was changed by hand" in capsys.readouterr().err


def test_a_set_without_evaluations_says_how_to_make_one(tmp_path, capsys):
    """An empty screen explains nothing."""
    path = ranked_set(tmp_path / "set", {"a": [1, 2]}).path

    assert main(["history", "--dataset", str(path)]) == 0

    assert "no evaluation yet; `ragforge evaluate --dataset" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--run", "dense"], "no evaluation of run 'dense'; there are: bm25"),
        (["-m", "AP"], "never measured by AP; there are: RR"),
        (["-m", "nonsense"], "nonsense"),
        (["-n", "0"], "-n 0: expected at least 1"),
        (["--difference", "0"], "--difference 0: expected a number above 0"),
        (["--difference", "nan"], "--difference nan: expected a number above 0"),
    ],
)
def test_what_is_not_there_is_a_usage_error(evaluated, capsys, words, message):
    """A typing error is to be seen at once, with what could have been meant."""
    assert main(["history", "--dataset", str(evaluated), *words]) == 2

    assert message in capsys.readouterr().err


def test_validate_reads_the_history(evaluated, capsys):
    """A damaged history is found before it is needed."""
    [old, _] = sorted((evaluated / "history").iterdir())
    old.write_bytes(b"rot")
    with (evaluated / "history.jsonl").open("a", encoding="utf-8") as stream:
        stream.write("{")
    capsys.readouterr()

    assert main(["validate", "--dataset", str(evaluated)]) == 3

    told = capsys.readouterr().err
    assert "history.jsonl:3: the last line is torn" in told
    assert "jsonl.gz: is damaged" in told


def test_items_that_a_verdict_would_need_are_in_json_too(tmp_path, capsys):
    """Eight items, of which two moved by a half, up and down: sd is the root of .5 over 7."""
    path = tmp_path / "set"
    for ranks in ([1, 2, 1, 1, 2, 1, 2, 1], [2, 1, 1, 1, 2, 1, 2, 1]):
        ranked_set(path, {"bm25": ranks})
        assert main(["evaluate", "--dataset", str(path), "-m", "RR", "-q"]) == 0
    capsys.readouterr()

    main(["history", "--dataset", str(path), "--json", "--difference", "0.2"])

    [run] = json.loads(capsys.readouterr().out)["datasets"][0]["runs"]
    assert run["trends"][0]["sd"] == pytest.approx((0.5 / 7) ** 0.5)
    # (1.960 + 0.842)^2 (.5 / 7) / .04 is 14.02, so 15 by the normal distribution; t takes two more.
    assert run["queries_needed"] == {
        "RR": {"for_seen": None, "least": 0.2, "for_least": 17, "is_lower_end": True}
    }


@pytest.fixture
def weeks(tmp_path):
    """A set with two weeks of six questions each; the log ranks the right chunk first, or second.

    Week 47 asks q1 again, which is there already, so that its batch is q6 to q11.
    """
    path, chunks = tmp_path / "set", tmp_path / "chunks.jsonl"
    rows = [{"id": f"c{n}", "document": f"d{n}", "text": f"About device{n}."} for n in range(12)]
    chunks.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for week, numbers, first in ((46, range(6), 6), (47, [1, *range(6, 12)], 3)):
        log = tmp_path / f"week{week}.jsonl"
        logged = [
            {
                "query": f"device{n}",
                "retrieved": [f"c{n}", "c0"] if n % 6 < first else ["c0", f"c{n}"],
            }
            for n in numbers
        ]
        log.write_text("".join(f"{json.dumps(row)}\n" for row in logged))
        into = ["--dataset", str(path)] if week == 47 else ["--chunks", str(chunks)]
        out = [] if week == 47 else ["--out", str(path)]
        batch = ["--sample", "10", "--batch", f"2026-W{week}", "-q"]
        assert main(["import", "--logs", str(log), *into, *out, *batch]) == 0
    dataset = open_dataset(path)
    dataset.write_judgments(
        Judgment(
            query_id=query.query_id,
            chunk_id=query.query.replace("device", "c"),
            grade=3,
            source="human",
        )
        for query in dataset.queries()
    )
    assert main(["evaluate", "--dataset", str(path), "-m", "RR", "-q"]) == 0
    return path


def test_weeks_of_production_make_a_series(weeks, capsys):
    """RR is 1 in all six of week 46; in week 47 half are at rank 2, so 3/4."""
    capsys.readouterr()

    assert main(["history", "--dataset", str(weeks), "--by", "batch", "--json"]) == 0

    [series] = json.loads(capsys.readouterr().out)["datasets"][0]["series"]
    assert [
        (row["batch"], row["run"], row["n"], row["as_asked"]["mean"], row["since"])
        for row in series["rows"]
    ] == [("2026-W46", "2026-W46", 6, 1.0, ""), ("2026-W47", "2026-W47", 6, 0.75, "2026-W46")]
    # Of seven questions of week 47 one was there.
    assert series["rows"][1]["share"] == pytest.approx(6 / 7)
    assert series["rows"][1]["diff"] == pytest.approx(-0.25)
    assert series["notes"] == [
        "batch 2026-W46, run 2026-W47: not shown, it has rankings for 1 of 6 queries"
    ]


def test_a_series_is_printed_with_what_it_is_not(weeks, capsys):
    """A mean of other questions beside this one looks like a trend."""
    capsys.readouterr()

    assert main(["history", "--dataset", str(weeks), "--by", "batch", "-m", "RR"]) == 0

    told = capsys.readouterr().out
    assert "-0.250 [" in told
    assert "no trend of the set" in told
    assert "85.7%" in told


def test_a_set_without_batches_says_how_to_draw_one(evaluated, capsys):
    """An empty table explains nothing."""
    assert main(["history", "--dataset", str(evaluated), "--by", "batch"]) == 2

    assert "`ragforge import --logs LOG --sample N --batch NAME` draws" in capsys.readouterr().err


def test_the_report_shows_the_series_too(weeks, tmp_path, capsys):
    """Who reads the page should see the weeks, in every form."""
    out = {form: tmp_path / f"report.{form}" for form in ("html", "md", "txt")}
    for path in out.values():
        assert main(["report", "--dataset", str(weeks), "-m", "RR", "--out", str(path), "-q"]) == 0
    capsys.readouterr()
    main(["report", "--dataset", str(weeks), "-m", "RR", "--json"])

    rows = json.loads(capsys.readouterr().out)["batches"]["rows"]
    assert [(row["batch"], row["as_asked"]["mean"]) for row in rows] == [
        ("2026-W46", 1.0),
        ("2026-W47", 0.75),
    ]
    page = out["html"].read_text("utf-8")
    assert '<section id="batches"' in page
    assert "no trend of the set" in page
    assert "## RR by batch of production" in out["md"].read_text("utf-8")
    assert "RR by batch of production" in out["txt"].read_text("utf-8")
    assert rows[0]["evaluated_at"] == ""


def test_what_a_comparison_calls_a_tie_is_stable(tmp_path, capsys):
    """Four queries of thirty that were lost are chance in one case of eight."""
    path = tmp_path / "set"
    for ranks in ([1] * 30, [1] * 26 + [2] * 4):
        ranked_set(path, {"bm25": ranks})
        main(["evaluate", "--dataset", str(path), "-m", "Success@1", "-q"])
    capsys.readouterr()
    main(["history", "--dataset", str(path), "--json"])

    [trend] = json.loads(capsys.readouterr().out)["datasets"][0]["runs"][0]["trends"]
    assert trend["high"] < 0
    assert trend["verdict"] == "STABLE"
