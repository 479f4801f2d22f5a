import json

import pytest
from measured_set import make_measured_set

from ragforge.cli import main


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A dataset in the working directory."""
    monkeypatch.chdir(tmp_path)
    return make_measured_set(tmp_path / "set")


def test_evaluate_tells_an_observer_each_query(dataset, tmp_path):
    """Observers are named the same way as for the commands that ask models."""
    words = ["evaluate", "--dataset", "set", "--run", "good", "--observer", "events=e.jsonl"]

    assert main(words) == 0

    lines = (tmp_path / "e.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [row for row in map(json.loads, lines) if row["name"] == "evaluation.query"]
    assert [row["outcome"] for row in queries] == ["done", "done", "done", "failed"]
    assert queries[0]["measures"]["RR"] == 1.0


def test_evaluate_writes_a_file_for_prometheus(dataset, tmp_path):
    """A nightly job is gone before it could be scraped."""
    (tmp_path / "out").mkdir()

    assert main(["evaluate", "--dataset", "set", "--prometheus", "out/ragforge.prom"]) == 0

    text = (tmp_path / "out" / "ragforge.prom").read_text(encoding="utf-8")
    assert 'ragforge_measure{dataset="set",run="bad",measure="RR"} 0.5\n' in text
    assert 'ragforge_queries_failed{dataset="set",run="good"} 1\n' in text


def test_a_mistyped_folder_for_prometheus_is_refused_before_anything_is_done(
    dataset, tmp_path, capsys
):
    """No collector reads a folder that was made by mistake, and nobody notices."""
    before = {path.name for path in dataset.path.iterdir()}

    code = main(["evaluate", "--dataset", "set", "--prometheus", "textfil/ragforge.prom"])

    assert code == 2
    assert "--prometheus textfil/ragforge.prom: there is no folder" in capsys.readouterr().err
    assert {path.name for path in dataset.path.iterdir()} == before
    assert not (tmp_path / "textfil").exists()


def test_a_file_that_the_collector_passes_over_is_noted(dataset, capsys):
    """node_exporter says nothing about files of other names."""
    main(["evaluate", "--dataset", "set", "--prometheus", "ragforge.txt"])

    assert "names end in .prom only" in capsys.readouterr().err


def test_an_observer_makes_no_other_noise(dataset, capsys):
    """Schedulers mail whatever is printed."""
    main(["evaluate", "--dataset", "set", "--run", "bad", "--observer", "otel"])

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("flag", [["--observer", "otel"], ["--prometheus", "x.prom"]])
def test_files_have_no_runs_to_tell_of(flag, capsys):
    """A flag that is passed over leaves a dashboard empty."""
    code = main(["evaluate", "--qrels", "q.trec", "--run", "r.trec", *flag])

    assert code == 2
    assert "go with --dataset DIR" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--prometheus", "set/queries.jsonl"],
        ["--prometheus", "set/runs/good.jsonl"],
        ["--observer", "events=set/judgments.jsonl"],
    ],
)
def test_nothing_is_told_into_a_file_of_the_set(dataset, tmp_path, capsys, words):
    """A slip of the hand must not cost a set that people graded."""
    kept = {path: path.read_bytes() for path in (tmp_path / "set").rglob("*.jsonl")}

    assert main(["evaluate", "--dataset", "set", "--no-history", *words]) == 2
    assert "is a file of the dataset" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in (tmp_path / "set").rglob("*.jsonl")} == kept
