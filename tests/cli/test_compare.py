"""Comparing runs and answer systems by command."""

import json

import pytest

from ragforge.cli import main

N = 12
MODULE = """
def broken(query, k):
    raise ValueError("the index is gone")

def nothing(query, k):
    return []
"""


def trec(rows):
    return "".join(f"{query_id} Q0 {chunk_id} 1 1.0 x\n" for query_id, chunk_id in rows)


@pytest.fixture
def folder(tmp_path):
    """Judgments and three runs of twelve queries: a good, a bad, and an equally bad one."""
    ids = [f"q{n:02}" for n in range(N)]
    qrels = "".join(f"{q} 0 yes 1\n{q} 0 no 0\n{q} 0 not 0\n" for q in ids)
    (tmp_path / "qrels.trec").write_text(qrels, encoding="utf-8")
    (tmp_path / "good.trec").write_text(trec((q, "yes") for q in ids), encoding="utf-8")
    (tmp_path / "bad.trec").write_text(trec((q, "no") for q in ids), encoding="utf-8")
    (tmp_path / "same.trec").write_text(trec((q, "not") for q in ids), encoding="utf-8")
    (tmp_path / "alien.trec").write_text("z1 Q0 yes 1 1.0 x\n", encoding="utf-8")
    (tmp_path / "empty.trec").write_text("", encoding="utf-8")
    (tmp_path / "single.trec").write_text("q00 Q0 yes 1 1.0 x\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def compared(folder, capsys):
    """Compare run files of the folder; return exit code, stdout and stderr."""

    def go(*runs, more=("-m", "RR")):
        words = [word for name in runs for word in ("--run", str(folder / f"{name}.trec"))]
        capsys.readouterr()
        code = main(["compare", "--qrels", str(folder / "qrels.trec"), *words, *more])
        return code, *capsys.readouterr()

    return go


def test_the_agreed_json_is_printed(compared):
    """Scripts read this shape; it is a contract."""
    code, out, _ = compared("bad", "good", more=["-m", "RR", "-m", "P@5", "--json"])

    found = json.loads(out)["comparisons"]
    assert code == 0
    assert [(one["a"], one["b"], one["measure"], one["winner"]) for one in found] == [
        ("bad", "good", "RR", "B"),
        ("bad", "good", "P@5", "TIE"),
    ]
    assert (found[0]["wins"], found[0]["ties"], found[0]["losses"]) == (N, 0, 0)


def test_the_text_says_who_is_better(compared):
    """That is what was asked."""
    code, out, _ = compared("good", "bad")

    assert code == 0
    assert "good is better in RR by 1.000" in out


def test_all_ties_are_a_tie_and_no_error(compared):
    """Two runs may do alike; that is a result."""
    code, out, err = compared("bad", "same")

    assert code == 0
    assert "No difference shown in RR" in out
    assert "bad and same: every value is 0" in err


def test_one_query_alone_decides_nothing(compared):
    """One query says nothing about the next."""
    more = ["-m", "RR", "--only-retrieved", "--json"]

    code, out, err = compared("single", "bad", more=more)

    [only] = json.loads(out)["comparisons"]
    assert (code, only["n"], only["winner"]) == (0, 1, "TIE")
    assert (only["low"], only["power"]) == (None, None)
    assert "one query tells nothing" in err


def test_three_runs_have_letters(compared):
    """A table of many runs is read by its letters."""
    _, out, _ = compared("bad", "same", "good", more=["-m", "RR", "--json"])

    assert json.loads(out)["letters"] == {"RR": {"bad": "b", "same": "b", "good": "a"}}


def test_with_a_base_only_pairs_with_it_are_compared(compared):
    """Each pair more makes every other harder to win by."""
    more = ["-m", "RR", "--base", "same", "--json"]

    _, out, _ = compared("bad", "same", "good", more=more)

    found = json.loads(out)
    assert [(one["a"], one["b"]) for one in found["comparisons"]] == [
        ("same", "bad"),
        ("same", "good"),
    ]


def test_so_many_queries_are_named_as_asked_for(compared):
    """Ten are too many for a pull request and too few for a hunt."""
    _, out, _ = compared("bad", "good", more=["-m", "RR", "--moved", "2", "--json"])

    assert len(json.loads(out)["comparisons"][0]["moved"]["gained"]) == 2


@pytest.mark.parametrize(
    ("runs", "more", "code", "message"),
    [
        (["good"], [], 2, "at least two runs, got good"),
        ([], [], 2, "at least two runs, got none"),
        (["good", "good"], [], 2, "given twice"),
        (["good", "nowhere"], [], 3, "nowhere.trec: cannot be read"),
        (["good", "empty"], [], 3, "empty.trec: is empty"),
        (["good", "alien"], [], 3, "are they of the same dataset?"),
        (["good", "bad"], ["-m", "nDCH@10"], 2, "nearest: nDCG"),
        (["good", "bad"], ["-m", "Judged@10"], 2, "no run is the better for it"),
        (["good", "bad"], ["--alpha", "1.5"], 2, "expected a number between 0 and 1"),
        (["good", "bad"], ["--alpha", "x"], 2, "invalid float value"),
        (["good", "bad"], ["--base", "ugly"], 2, "expected one of the runs compared"),
        (["good", "bad"], ["--moved", "-1"], 2, "expected a whole number from 0"),
        (["good"], ["bad"], 2, "give files as --run FILE"),
        (["good", "bad"], ["--retriever", "bm25"], 2, "go with --dataset DIR"),
        (["good", "bad"], ["--answers"], 2, "go with --dataset DIR"),
        (["good", "bad"], ["--dataset", "x"], 2, "either --dataset DIR, or --qrels FILE"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(compared, runs, more, code, message):
    """Whoever mistypes must see what, and what would be right."""
    found, out, err = compared(*runs, more=more)

    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


@pytest.fixture
def of_set(dataset, tmp_path, monkeypatch, capsys):
    """Compare on the dataset; return exit code, stdout and stderr."""
    (tmp_path / f"theirs_{tmp_path.name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def go(*words):
        capsys.readouterr()
        code = main(["compare", "--dataset", str(dataset), "-m", "RR", "-q", *words])
        return code, *capsys.readouterr()

    return go


@pytest.fixture
def theirs(tmp_path):
    """Name of the module with retrievers of a user."""
    return f"theirs_{tmp_path.name}"


def test_retrievers_are_run_on_the_spot(of_set, dataset):
    """One command from an idea to an answer."""
    code, out, _ = of_set("--retriever", "bm25", "--retriever", "chargram", "--json")

    found = json.loads(out)
    assert (code, found["names"]) == (0, ["bm25", "chargram"])
    assert (dataset / "runs" / "chargram.jsonl").exists()


def test_a_new_retriever_is_held_against_a_run_that_is_there(of_set, theirs):
    """The run of last night need not be made again."""
    words = ["bm25", "--retriever", f"{theirs}:nothing", "--name", "new", "--json"]

    code, out, _ = of_set(*words)

    [only] = json.loads(out)["comparisons"]
    assert (code, only["a"], only["b"], only["diff"] < 0) == (0, "bm25", "new", True)


def test_the_base_need_not_be_named_twice(of_set):
    """It is one of the runs, as its flag says."""
    _, out, _ = of_set("--retriever", "chargram", "--base", "bm25", "--json")

    assert json.loads(out)["names"] == ["bm25", "chargram"]


def test_a_retriever_that_fails_on_all_queries_is_compared_with_nothing(of_set, theirs):
    """What failed is no 0, against which everything wins, and no run that widens intervals."""
    code, out, err = of_set("bm25", "--retriever", "chargram", "--retriever", f"{theirs}:broken")

    assert code == 4
    assert "failed on all 3 queries" in err
    assert "has no value in any query, and is left out" in err
    assert "A = bm25, B = chargram" in out


def test_the_run_of_before_is_not_compared_as_that_of_a_retriever_that_failed(of_set, theirs):
    """Yesterday's run would win today's comparison."""
    of_set("bm25", "--retriever", "chargram", "--name", "mine")
    names = ["--name", "new", "--name", "mine"]

    code, out, err = of_set(
        "bm25", "--retriever", "chargram", "--retriever", f"{theirs}:broken", *names, "--json"
    )

    assert (code, json.loads(out)["names"]) == (4, ["bm25", "new"])
    assert "warning: mine: retriever" in err


def test_where_a_retriever_fails_that_is_the_base_nothing_is_compared(of_set, theirs):
    """All others were to be held against it."""
    of_set("bm25", "--retriever", "chargram", "--name", "mine")
    words = ["--retriever", "chargram", "--retriever", f"{theirs}:broken"]
    names = ["--name", "new", "--name", "mine", "--base", "mine"]

    code, out, err = of_set("bm25", *words, *names)

    assert (code, out) == (4, "")
    assert "mine: retriever" in err


def test_where_no_retriever_worked_nothing_is_compared(of_set, theirs):
    """A comparison with nothing looks like one that was lost."""
    code, out, err = of_set("bm25", "--retriever", f"{theirs}:broken")

    assert (code, out) == (4, "")
    assert "failed on all 3 queries" in err


def test_all_runs_are_compared_where_none_is_named(of_set):
    """What is there is what is meant."""
    of_set("--retriever", "chargram", "--base", "bm25")

    _, out, _ = of_set("--json")

    assert json.loads(out)["names"] == ["bm25", "chargram"]


def test_an_empty_run_is_refused_by_name(of_set, dataset):
    """It would be compared as 0 everywhere."""
    (dataset / "runs" / "blank.jsonl").write_text("", encoding="utf-8")

    code, _, err = of_set("bm25", "blank")

    assert code == 3
    assert "run blank: is empty" in err


def test_answer_systems_are_compared_by_their_grades(of_set, dataset, tmp_path, capsys):
    """Users read answers, not rankings."""
    rows = [json.loads(line) for line in (dataset / "queries.jsonl").read_text().splitlines()]
    for name, text in (("right", None), ("wrong", "Nobody knows.")):
        answers = [
            {"query_id": row["query_id"], "answer": text or row["expected_answer"]} for row in rows
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(one)}\n" for one in answers), encoding="utf-8")
        assert main(["answer", "--dataset", str(dataset), "--answers", str(path), "-q"]) == 0
    capsys.readouterr()

    code = main(["compare", "--dataset", str(dataset), "--answers", "wrong", "right", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert (code, found["of"], found["names"]) == (0, "answers", ["wrong", "right"])
    assert found["comparisons"][0]["diff"] > 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["bm25"], 2, "at least two runs, got bm25"),
        (["bm25", "nope"], 3, "no 'nope'"),
        (["--retriever", "chargram"], 2, "at least two runs, got chargram"),
        (["bm25", "--retriever", "bm25"], 2, "run 'bm25' is given twice"),
        (["bm25", "--name", "x"], 2, "--name: goes with --retriever"),
        (["--answers", "--retriever", "bm25"], 2, "make no answers"),
        (["--answers"], 2, "at least two"),
    ],
)
def test_what_a_dataset_cannot_compare_is_refused(of_set, words, code, message):
    """No retriever works for a comparison that cannot be made."""
    found, out, err = of_set(*words)

    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
