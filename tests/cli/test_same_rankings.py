"""A system that did not change shows no difference, whatever became of the judging meanwhile."""

import json

import pytest
from ranked_sets import FAILED, JUDGE, ranked_set

from ragforge.cli import main
from ragforge.records import Judgment

RECHECK = JUDGE.model_copy(update={"prompt": "recheck_answer", "prompt_sha256": "cd" * 32})
RANKS = [1, 2, 3, 4, 1, 2, 3] * 7
HOLES = ("--max-holes", "1")
ANYONE = "--allow-grading-change"
MEASURES = ("-m", "nDCG@10", "-m", "RR")


@pytest.fixture(autouse=True)
def outside_of_github(monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture
def evaluated(tmp_path):
    """Return a set of 49 queries that was evaluated, its baseline written, and graded further.

    Args:
        by: Who made the grades; None for people.
        then: Judgments that were made after.
        ranks: Of the run at last.
    """

    def make(by=None, then=(), ranks=RANKS):
        dataset = ranked_set(tmp_path / "set", {"bm25": RANKS}, judge=by, n_unjudged=2)
        where = ["--dataset", str(dataset.path), "-q"]
        main(["evaluate", *where, *MEASURES])
        main(["gate", *where, "--write-baseline", str(tmp_path / "before.json"), *HOLES, *MEASURES])
        if ranks != RANKS:
            ranked_set(tmp_path / "set", {"bm25": ranks}, judge=by, n_unjudged=2)
        dataset.write_judgments([*dataset.judgments(), *then])
        main(["evaluate", *where, *MEASURES])
        return dataset

    return make


@pytest.fixture
def gated(tmp_path, capsys):
    """Return what a gate on a drop of RR says, held against the baseline."""

    def gate(dataset, *more):
        words = ["gate", "--dataset", str(dataset.path), "--max-drop", "RR=0.02", "--json"]
        capsys.readouterr()
        main([*words, "--baseline", str(tmp_path / "before.json"), *HOLES, *more])
        return json.loads(capsys.readouterr().out)

    return gate


@pytest.fixture
def told(capsys):
    """Return what the history says of the run."""

    def history(dataset):
        capsys.readouterr()
        main(["history", "--dataset", str(dataset.path), "--json"])
        return json.loads(capsys.readouterr().out)["datasets"][0]["runs"][0]

    return history


def judged(number, grade=2, chunk_id="wrong2", **fields):
    failure = "invalid" if grade is None else None
    made = {"query_id": f"q{number:03d}", "chunk_id": chunk_id, "grade": grade, "failure": failure}
    return Judgment.model_validate({"provenance": JUDGE, **made, **fields})


SOME_FAILED = [judged(n, None if n in (10, 17) else n % 3) for n in range(7, 40)]
QUOTES = [judged(n, 3, source="evidence", provenance=RECHECK) for n in range(3)]


def test_failed_judgments_open_no_interval_of_rankings_that_are_the_same(evaluated, told):
    """A failed judgment is of the chunk, which stands at the same rank on both sides."""
    trends = told(evaluated(then=SOME_FAILED))["trends"]

    assert {item["measure"]: (item["diff"], item["low"], item["high"]) for item in trends} == {
        "nDCG@10": (0.0, 0.0, 0.0),
        "RR": (0.0, 0.0, 0.0),
    }


def test_a_gate_passes_what_did_not_change_though_judgments_failed(evaluated, gated):
    """Else more judging would make the gate fail a system that nobody touched."""
    [check] = gated(evaluated(then=SOME_FAILED), ANYONE)["checks"]

    assert (check["outcome"], check["decided"], check["n_failed"]) == ("PASS", 0.0, 0)


def test_a_query_that_fails_now_is_still_at_its_worst(evaluated, gated):
    """It has no ranking, so it is not the same one."""
    ranks = [FAILED, FAILED, *RANKS[2:]]

    [check] = gated(evaluated(then=SOME_FAILED, ranks=ranks), ANYONE)["checks"]

    assert (check["outcome"], check["n_failed"]) == ("NOT_SHOWN", 2)


def test_failed_judgments_of_items_ranked_alike_do_not_count_where_another_moved(evaluated, gated):
    """Only the item whose ranking differs could have changed by what the judge did not say."""
    [check] = gated(evaluated(then=SOME_FAILED, ranks=[*RANKS[:-1], 2]), ANYONE)["checks"]

    assert check["n_failed"] == 0


def test_quotes_checked_again_are_no_other_judge(evaluated, gated):
    """A chunk that holds a quote has its grade whoever looked, so the same judge graded."""
    verdict = gated(evaluated(by=JUDGE, then=QUOTES))

    assert verdict["verdict"] == "PASS"


def test_history_names_no_other_judge_nor_prompt_for_quotes_checked_again(evaluated, told):
    """What the reader would look into did not happen."""
    changes = told(evaluated(by=JUDGE, then=QUOTES))["changes"]

    assert [item["what"] for item in changes] == ["judgments"]
