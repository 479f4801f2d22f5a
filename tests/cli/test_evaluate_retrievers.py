"""Evaluating retrievers on the spot."""

import json

import pytest

from ragforge.cli import main
from ragforge.files.set.dataset import Dataset

pytestmark = pytest.mark.slow


MODULE = """
import asyncio

def broken(query, k):
    raise ValueError("the index is gone")

def half(query, k):
    if asked.append(query) or len(asked) % 2:
        raise ValueError("no")
    return []

def loud(query, k):
    print("looking")
    return []

async def hanging(query, k):
    await asyncio.Event().wait()

def surrogate(query, k):
    return ["\\ud800"]

asked = []
"""


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """Name of a module with retrievers of a user."""
    name = f"retrievers_for_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.fixture
def evaluated(dataset, capsys):
    """Evaluate the dataset with some retrievers; return exit code, stdout and stderr."""

    def go(*words):
        capsys.readouterr()
        code = main(["evaluate", "--dataset", str(dataset), "-m", "RR", "-q", *words])
        return code, *capsys.readouterr()

    return go


def test_runs_are_made_and_measured_in_one_command(evaluated, dataset):
    """Two commands less in every loop of trying."""
    code, out, _ = evaluated("--retriever", "bm25", "--retriever", "chargram", "--json")

    runs = json.loads(out)["runs"]
    assert (code, list(runs)) == (0, ["bm25", "chargram"])
    assert (dataset / "runs" / "chargram.jsonl").exists()


def test_only_the_runs_made_are_shown_unless_others_are_named(evaluated):
    """A table of forty old runs hides the new one."""
    evaluated("--retriever", "chargram")

    _, out, _ = evaluated("--retriever", "bm25", "--name", "mine", "--run", "chargram", "--json")

    assert list(json.loads(out)["runs"]) == ["chargram", "mine"]


def test_latencies_come_in_percentiles(evaluated):
    """The slowest hundredth of queries is what users complain about."""
    _, out, _ = evaluated("--retriever", "bm25", "--json")

    latency = json.loads(out)["runs"]["bm25"]["latency_s"]
    assert 0 < latency["p50_s"] <= latency["p95_s"] <= latency["p99_s"]
    assert latency["n"] == 3


def test_mean_and_percentiles_of_latency_are_in_the_table(evaluated):
    """They stand beside the quality that they pay for."""
    _, out, _ = evaluated("--retriever", "bm25")

    labels = [line.split("  ")[0] for line in out.splitlines()]
    assert [label for label in labels if "latency" in label] == [
        "mean latency",
        "p50 latency",
        "p95 latency",
        "p99 latency",
    ]


def test_failed_queries_have_no_value_and_bound_the_mean(evaluated, theirs):
    """A query that fails is neither 0 nor gone."""
    _, out, err = evaluated("--retriever", f"{theirs}:half", "--name", "half", "--json")

    found = json.loads(out)["runs"]["half"]["measures"]["RR"]
    assert (found["n"], found["n_failed"]) == (1, 2)
    assert found["low"] < found["high"]
    assert "the retriever failed on 2 of 3 queries" in err


def test_one_that_fails_on_all_queries_has_a_row_without_a_value(evaluated, theirs):
    """A row that is left out looks like a retriever that was never asked."""
    _, out, err = evaluated("--retriever", "bm25", "--retriever", f"{theirs}:broken", "--json")

    broken = json.loads(out)["runs"][f"{theirs}-broken".replace("_", "-")]
    assert broken["measures"]["RR"] == {
        "mean": None,
        "n": 0,
        "n_failed": 3,
        "low": 0.0,
        "high": 1.0,
    }
    assert "failed on all 3 queries; the first: ValueError: the index is gone" in err


@pytest.mark.parametrize("others", [[], ["--retriever", "bm25"]])
def test_where_one_worked_on_no_query_the_exit_code_says_so(evaluated, theirs, others):
    """A nightly job must not go on with a row of dashes, which nobody reads."""
    code, out, _ = evaluated(*others, "--retriever", f"{theirs}:broken", "--json")

    assert code == 4
    assert f"{theirs}-broken".replace("_", "-") in json.loads(out)["runs"]


def test_the_run_of_before_is_not_measured_as_that_of_a_retriever_that_failed(evaluated, theirs):
    """Yesterday's good numbers would hide today's breakdown."""
    evaluated("--retriever", "bm25", "--name", "mine")
    words = ["--retriever", f"{theirs}:broken", "--name", "mine"]

    code, out, err = evaluated("--retriever", "bm25", *words[:2], "--name", "new", *words[2:])

    assert (code, "new" in out, "mine" in out) == (4, True, False)
    assert "warning: mine: retriever" in err
    assert "left out, as the run of before does not show it" in err


def test_where_only_runs_of_before_are_left_nothing_is_measured(evaluated, dataset, theirs):
    """All runs of the set would be measured instead, and the old one with them."""
    evaluated("--retriever", "bm25", "--name", "mine")
    before = (dataset / "runs" / "mine.jsonl").read_bytes()

    code, out, err = evaluated("--retriever", f"{theirs}:broken", "--name", "mine")

    assert (code, out) == (4, "")
    assert "failed on all 3 queries; the first: ValueError: the index is gone" in err
    assert (dataset / "runs" / "mine.jsonl").read_bytes() == before


@pytest.mark.parametrize("command", ["retrieve", "evaluate"])
def test_a_fuller_run_of_before_is_not_replaced_by_one_of_a_failed_retriever(
    evaluated, dataset, theirs, command, capsys
):
    """26 rankings of 40 stood where 40 had been, by `evaluate` with exit code 0."""
    evaluated("--retriever", "bm25", "--name", "mine")
    before = (dataset / "runs" / "mine.jsonl").read_bytes()

    words = ["--dataset", str(dataset), "--retriever", f"{theirs}:half", "--name", "mine"]
    code = main([command, *words])

    assert code == 4
    assert "failed on 2 of 3 queries" in capsys.readouterr().err
    assert (dataset / "runs" / "mine.jsonl").read_bytes() == before


def test_latencies_say_of_how_many_queries_they_are(evaluated, theirs):
    """Those that timed out were the slowest, and are not among them."""
    words = ["--retriever", f"{theirs}:half", "--name", "half"]

    _, text, _ = evaluated(*words)
    _, out, _ = evaluated("--run", "half", "--json")

    latency = json.loads(out)["runs"]["half"]["latency_s"]
    assert "latency of the queries that succeeded: half 1 of 3" in text
    assert (latency["n"], latency["n_failed"]) == (1, 2)


def test_a_hanging_retriever_is_given_up_in_time(evaluated, theirs):
    """It would hang for ever, whatever --timeout-s says."""
    words = ["--retriever", f"{theirs}:hanging", "--name", "hangs", "--timeout-s", "0.1"]

    code, _, err = evaluated(*words)

    assert code == 4
    assert "no result in 0.1 s" in err


def test_what_no_file_can_hold_is_refused_in_one_line(evaluated, theirs):
    """Four lines of a validator, three times over, hide what is wrong."""
    _, _, err = evaluated("--retriever", f"{theirs}:surrogate", "--name", "odd")

    assert err.count("\\ud800") == 1
    assert "validation error" not in err


def test_what_a_retriever_prints_does_not_end_up_in_the_data(evaluated, theirs):
    """One print in a user's module would break every script."""
    _, out, err = evaluated("--retriever", f"{theirs}:loud", "--json")

    assert json.loads(out)["runs"]
    assert "looking" in err


def test_an_empty_run_is_named_as_left_out(evaluated, dataset):
    """A row that is not there is noticed by nobody."""
    (dataset / "runs" / "blank.jsonl").write_text("", encoding="utf-8")

    code, out, err = evaluated("--json")

    assert (code, list(json.loads(out)["runs"])) == (0, ["bm25"])
    assert "warning: blank: the run is empty" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--retriever", "bm52"], 2, "no 'bm52'"),
        (["--retriever", "bm25", "--retriever", "bm25"], 2, "both runs would be called 'bm25'"),
        (["--retriever", "bm25", "--run", "bm25"], 2, "a retriever would replace it"),
        (["--retriever", "bm25", "--run", "nope"], 3, "no 'nope'"),
        (["--retriever", "bm25", "-m", "nDCH@10"], 2, "nearest: nDCG"),
        (["--retriever", "dense"], 2, "no embedding model is set"),
        (["--name", "x"], 2, "--name: goes with --retriever"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_query(evaluated, words, code, message):
    """A retriever of an hour must not end in a misspelt measure."""
    found, out, err = evaluated(*words)

    assert (found, out) == (code, "")
    assert message in err
    assert "retrieve:" not in err


def test_retrievers_need_a_dataset(tmp_path, capsys):
    """Files of judgments hold no questions."""
    words = ["evaluate", "--qrels", str(tmp_path), "--run", "x", "--retriever", "bm25"]

    assert main(words) == 2
    assert "go with --dataset DIR" in capsys.readouterr().err


def test_brackets_are_explained_where_there_are_any(evaluated, theirs):
    """They look like an interval, and are none."""
    _, failing, _ = evaluated("--retriever", f"{theirs}:half")
    _, whole, _ = evaluated("--retriever", "bm25")

    told = "[low, high]: no interval; the mean, had all failures come out worst, and best"
    assert (told in failing, told in whole) == (True, False)


def test_a_run_shallower_than_a_cutoff_is_told(evaluated):
    """Recall at 10 of three chunks is recall at 3."""
    words = ("--retriever", "bm25", "-m", "R@10", "-m", "R@3")
    _, out, _ = evaluated(*words, "-k", "3")
    _, deep, _ = evaluated(*words, "-k", "3", "--json")

    assert "bm25: no ranking has more than 3 chunks; R@10 looks further down\n" in out
    assert json.loads(deep)["runs"]["bm25"]["depth"] == 3


def test_the_judgments_of_a_set_measure_what_the_set_is_measured_on(tmp_path, capsys):
    """One set has one number: queries that no chunk answers are in no mean of either way."""
    chunks = [{"id": f"c{n}", "document": "a.md", "text": f"Room {n} is blue."} for n in range(3)]
    rows = [
        {"query_id": "q1", "query": "which room is blue", "relevant": ["c1"]},
        {"query_id": "q2", "query": "who painted it", "relevant": []},
    ]
    (tmp_path / "chunks.json").write_text(json.dumps(chunks))
    (tmp_path / "golden.json").write_text(json.dumps(rows))
    (tmp_path / "run.json").write_text(json.dumps({"q1": ["c1", "c0"], "q2": ["c0", "c2"]}))
    out = tmp_path / "set"
    brought = [str(tmp_path / "golden.json"), "--chunks", str(tmp_path / "chunks.json")]
    main(["import", *brought, "--out", str(out), "-q"])
    dataset = Dataset(out)
    queries = [
        query.model_copy(update={"answerable": query.query_id == "q1"})
        for query in dataset.all_queries()
    ]
    dataset.write_queries(queries)
    unrelated = dataset.judgments()[0].model_copy(update={"query_id": "q2", "grade": 0})
    dataset.write_judgments([*dataset.judgments(), unrelated])
    capsys.readouterr()

    code = main(["evaluate", "--qrels", str(out), "--run", str(tmp_path / "run.json"), "-m", "RR"])

    said = capsys.readouterr()
    assert code == 0, said.err
    assert ["queries", "1"] in [line.split() for line in said.out.splitlines()]
    assert "1 unanswerable queries left out" in said.out + said.err
