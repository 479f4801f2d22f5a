"""Measures of evidence wherever runs of a set are measured."""

import pytest

import ragforge as rf
from ragforge.files.set.opening import open_dataset
from ragforge.records import Judgment, LogDraw
from tests.evidence_sets import random_set, write_run

NAMES = ["EvidenceR@4", "TokenIoU(tokens=200)"]


@pytest.fixture
def handle(tmp_path):
    """A set of 30 queries, one of which no run has."""
    random_set(tmp_path / "set", 5, n_queries=30)
    return rf.open(tmp_path / "set")


def test_every_query_has_a_row(handle):
    """Values go into data frames as those of other measures do."""
    found = handle.evaluate("cut", measures=NAMES)
    [first, *_] = found.rows()

    assert len(found.rows()) == 30
    assert {"run", "query_id", *NAMES} == first.keys()
    assert "with evidence" in found.table()


def test_means_have_intervals_and_samples(handle):
    """What is said of nDCG can be said of these."""
    some = handle.part(sample=12, seed=3)
    found = some.evaluate("own", measures=NAMES).to_dict(interval=True)
    told = found["runs"]["own"]["measures"]["TokenIoU(tokens=200)"]

    assert told["n"] == 12
    assert told["interval"]["low"] < told["mean"] < told["interval"]["high"]
    assert told["set_interval"]["low"] <= told["mean"] <= told["set_interval"]["high"]


def test_a_gate_by_evidence_needs_no_grades(handle):
    """Of the pieces of another splitter nobody graded any, and the gate is none the worse."""
    verdict = handle.gate("cut", min={"TokenR@6": 0.05}, max_drop={})

    assert verdict.passed


def test_a_drop_is_seen_whoever_cut_the_text(handle, tmp_path):
    """The baseline may be of an index with other chunks."""
    file = tmp_path / "baseline.json"
    handle.gate("own", min={"TokenR@6": 0.01}, write_baseline_to=file)
    dataset = open_dataset(handle.path)
    empty = {item.query_id: ["d0-0000"] for item in dataset.run("own")}
    write_run(dataset, "own", **empty)
    verdict = handle.gate("own", max_drop={"TokenR@6": 0.05}, baseline=file)

    assert not verdict.passed
    assert "max-drop TokenR@6     0.0500  -0.1302" in verdict.table()


def test_grades_that_changed_do_not_move_the_history(handle):
    """Values of evidence hold whatever was judged since."""
    handle.evaluate("own", measures=["EvidenceR@4", "nDCG@4"])
    dataset = open_dataset(handle.path)
    chunk_id = next(iter(dataset.run("own"))).ranking[0].chunk_id
    query_id = next(iter(dataset.run("own"))).query_id
    regraded = Judgment(query_id=query_id, chunk_id=chunk_id, grade=3)
    kept = [item for item in dataset.judgments() if item.query_id != query_id]
    dataset.write_judgments([*kept, regraded])
    handle.evaluate("own", measures=["EvidenceR@4", "nDCG@4"])
    [found] = handle.history("own", measures=["EvidenceR@4"]).to_dict()["runs"]
    [trend] = found["trends"]

    assert (trend["on"], trend["n"], trend["diff"]) == ("same items", 30, 0.0)
    assert trend["verdict"] == "STABLE"


def test_the_worst_by_evidence_are_not_in_doubt(handle):
    """A chunk that nobody graded says nothing against a value that rests on no grade."""
    found = handle.worst("own", measure="EvidenceR@4").to_dict()
    codes = {cause["code"] for cause in found["runs"]["own"]["causes"]}

    assert codes.isdisjoint({"unjudged_on_top", "not_judged"})


def test_a_report_compares_by_evidence(handle, tmp_path):
    """The page of a set with two chunkings says by what they are compared."""
    handle.report(tmp_path / "page.md")

    assert "the runs have different chunks" in (tmp_path / "page.md").read_text("utf-8")


def test_files_alone_are_refused(handle):
    """Grades and rankings do not say where evidence stands."""
    runs = handle.path / "runs"
    files = handle.path / "judgments.jsonl", [runs / "own.jsonl", runs / "cut.jsonl"]
    with pytest.raises(rf.UsageError, match=r"'TokenR@5': needs a dataset"):
        rf.evaluate_files(files[0], files[1][:1], measures="TokenR@5")
    with pytest.raises(rf.UsageError, match=r"'TokenR@5': needs a dataset"):
        rf.compare_files(*files, measures="TokenR@5")


def test_a_sample_has_queries_with_evidence_and_without_judgments(handle, tmp_path):
    """Both kinds of measures weigh what they have of a stratum."""
    dataset = open_dataset(handle.path)
    judged = [item for item in dataset.judgments() if item.query_id < "q15"]
    dataset.write_judgments(judged)
    bare = [item.model_copy(update={"evidence": ()}) for item in dataset.queries()[:5]]
    dataset.write_queries([*bare, *dataset.queries()[5:]])
    some = handle.part(sample=14, seed=1)
    names = ["EvidenceR@4", "TokenR@6", "nDCG@10"]
    found = some.evaluate(measures=names)
    compared = some.compare("own", "cut", measures=names).to_dict()
    file = tmp_path / "baseline.json"
    some.gate("own", min={"TokenR@6": 0.0}, write_baseline_to=file, allow=["few"])
    held = some.gate("own", max_drop={"TokenR@6": 0.5}, baseline=file, allow=["few"])

    assert found["own"].summary("nDCG@10").n + found["own"].summary("TokenR@6").n > 14
    assert {item["n"] for item in compared["comparisons"] if item["measure"] != "nDCG@10"} == {
        found["own"].summary("TokenR@6").n
    }
    assert held.passed
    assert "10 queries have a value" in held.table()


def test_batches_of_a_log_are_followed_by_evidence(handle):
    """Queries without judgments are in the means of evidence, and in no other."""
    dataset = open_dataset(handle.path)
    drawn = LogDraw(
        batch="week1", log="ab", draw="even", seed=0, wanted=30, count=1, inclusion=1, share=1
    )
    dataset.write_queries([item.model_copy(update={"drawn": drawn}) for item in dataset.queries()])
    dataset.write_judgments([item for item in dataset.judgments() if item.query_id > "q00"])
    handle.evaluate("cut", measures=["TokenR@6", "nDCG@10"])
    rows = {
        name: [row["n"] for row in handle.history_by_batch(measures=name).rows()]
        for name in ("TokenR@6", "nDCG@10")
    }

    assert rows["TokenR@6"] == [30]
