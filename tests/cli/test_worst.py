"""`ragforge worst` from the command line."""

import json

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Hit, Judgment, Query, Ranking

GRADES = {
    "good": {"c1": 3, "c2": 0},
    "low": {"c2": 3, "c1": 0},
    "gone": {"c3": 3, "c1": 0, "c2": 0},
    "hopeless": {"c1": 0, "c2": 0},
}


@pytest.fixture
def small(tmp_path):
    """Four queries, of which a run does well on one; it always returns c1, c2."""
    made = create_dataset(tmp_path / "set", {"seed": "0"})
    made.write_chunks(
        Chunk(chunk_id=name, doc_id="d", text=text)
        for name, text in {"c1": "One text.", "c2": "\x1b[31mRed\u202e.", "c3": "Else."}.items()
    )
    made.write_queries(Query(query_id=name, query=f"What \x1b[0mis {name}?") for name in GRADES)
    made.write_judgments(
        Judgment(query_id=query_id, chunk_id=chunk_id, grade=grade, source="human")
        for query_id, grades in GRADES.items()
        for chunk_id, grade in grades.items()
    )
    hits = (Hit(chunk_id="c1", score=2), Hit(chunk_id="c2", score=1))
    made.write_run("bm25", [Ranking(query_id=name, ranking=hits) for name in GRADES])
    return made


def test_who_graded_stands_first(small, capsys):
    """What is bad by a rule's grades may be good."""
    assert main(["worst", "--dataset", str(small.path)]) == 0

    assert capsys.readouterr().out.splitlines()[0] == "graded by people: 9"


def told(dataset, capsys, *more):
    assert main(["worst", "--dataset", str(dataset.path), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_causes_are_counted_and_the_worst_queries_listed(small, capsys):
    """What to repair first is the first thing said."""
    run = told(small, capsys)["runs"]["bm25"]

    assert {cause["code"]: cause["count"] for cause in run["causes"]} == {
        "no_relevant_known": 1,
        "not_retrieved": 1,
        "ranked_low": 1,
    }
    assert [item["query_id"] for item in run["worst"]] == ["gone", "low"]


def test_a_listed_query_has_its_chunks_with_grades_and_texts(small, capsys):
    """One sees why without opening a file."""
    gone = told(small, capsys)["runs"]["bm25"]["worst"][0]

    assert [(item["chunk_id"], item["grade"]) for item in gone["retrieved"]] == [
        ("c1", 0),
        ("c2", 0),
    ]
    assert gone["missed"] == [
        {"chunk_id": "c3", "rank": None, "grade": 3, "state": "graded", "text": "Else."}
    ]


def test_a_cause_lists_its_queries_also_where_no_run_is_to_blame(small, capsys):
    """Every group that is counted can be looked at."""
    found = told(small, capsys, "--cause", "no_relevant_known")["runs"]["bm25"]["worst"]

    assert [item["query_id"] for item in found] == ["hopeless"]


def test_n_limits_the_list_and_not_the_counts(small, capsys):
    """A short list must not look like few faults."""
    run = told(small, capsys, "-n", "1")["runs"]["bm25"]

    assert (len(run["worst"]), run["n_bad"]) == (1, 3)


def test_the_measure_decides_what_is_bad(small, capsys):
    """A hit at rank 2 is as good as one at rank 1 for Success@2."""
    found = told(small, capsys, "-m", "Success@2")["runs"]["bm25"]["worst"]

    assert [item["query_id"] for item in found] == ["gone"]


def test_the_text_names_cause_remedy_and_chunks(small, capsys):
    """It is read without a manual."""
    assert main(["worst", "--dataset", str(small.path)]) == 0
    shown = capsys.readouterr().out

    assert "relevant, but low                  1   33 %  0.631  ranked_low" in shown
    assert "2. 0.631  What \\x1b[0mis low?" in shown
    assert "   low · relevant, but low (the first is at rank 2)" in shown
    assert "   none  [3] c3  Else." in shown


def test_texts_cannot_steer_the_terminal(small, capsys):
    """Chunks and queries are data."""
    main(["worst", "--dataset", str(small.path)])
    shown = capsys.readouterr().out

    assert ("\x1b" in shown, "\u202e" in shown, "\\x1b[31mRed\\u202e." in shown) == (
        False,
        False,
        True,
    )


def test_a_corpus_that_is_not_there_is_told(small, capsys):
    """A dataset may be shared without its texts."""
    (small.path / "chunks.jsonl").unlink()
    main(["worst", "--dataset", str(small.path), "-n", "1"])

    assert "[3] c3  (not in the dataset)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["-m", "nope"], 2, "no measure 'nope'"),
        (["-m", "P@5", "-m", "R@5"], 2, "expected one measure"),
        (["--run", "zz"], 3, "no 'zz'; there are: bm25"),
        (["--cause", "bad"], 2, "got 'bad'"),
        (["-n", "-1"], 2, "expected a whole number from 0, got '-1'"),
        (["--rel-threshold", "0"], 2, "rel_threshold"),
    ],
)
def test_bad_input_is_told_in_a_sentence(small, capsys, more, code, said):
    """No traceback, and the right exit code."""
    found = main(["worst", "--dataset", str(small.path), *more])

    assert (found, said in capsys.readouterr().err) == (code, True)


def test_a_dataset_without_runs_says_how_to_make_one(small, capsys):
    """It is the next step."""
    (small.path / "runs" / "bm25.jsonl").unlink()

    assert main(["worst", "--dataset", str(small.path)]) == 3
    assert "ragforge retrieve" in capsys.readouterr().err


def test_a_dataset_without_judgments_says_so(small, capsys):
    """Nothing can be called bad."""
    small.write_judgments([])

    assert main(["worst", "--dataset", str(small.path)]) == 3
    assert "no answerable query is judged" in capsys.readouterr().err


def test_a_value_above_all_that_a_measure_has_is_refused(small, capsys):
    """Whoever writes 30 means 0.3, and would get every query."""
    assert main(["worst", "--dataset", str(small.path), "--below", "30"]) == 2

    assert "--below 30: nDCG@10 is from 0 to 1" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "many"])
def test_a_bound_that_no_value_can_be_below_is_refused(small, capsys, value):
    """An empty list would look like a run without a bad query."""
    assert main(["worst", "--dataset", str(small.path), f"--below={value}"]) == 2

    assert f"expected a number above 0, as no value is less than 0, got '{value}'" in (
        capsys.readouterr().err
    )


def test_queries_below_a_value_are_listed_alone(small, capsys):
    """Who mends the failures of a demo does not want the merely fair ones."""
    run = told(small, capsys, "--below", "0.5")["runs"]["bm25"]

    assert [item["query_id"] for item in run["worst"]] == ["gone"]
