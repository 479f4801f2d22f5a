"""The report command."""

import json
from pathlib import Path

import pytest
from ranked_sets import ranked_set

from ragforge.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture
def compared(dataset):
    """A dataset with two runs, judged by rule."""
    path = str(dataset)
    assert main(["retrieve", "--dataset", path, "--retriever", "chargram", "-q"]) == 0
    assert main(["judge", "--dataset", path, "-q"]) == 0
    return path


def test_page_holds_what_was_asked_for(compared, tmp_path, capsys):
    """One command, one file, and its name on stdout for the next one."""
    out = tmp_path / "report.html"

    assert main(["report", "--dataset", compared, "--out", str(out), "--base", "chargram"]) == 0

    assert capsys.readouterr().out == f"{out}\n"
    assert "<bdi>bm25</bdi> (B) against <bdi>chargram</bdi> (A)" in out.read_text("utf-8")


def test_same_dataset_gives_the_same_page(compared, tmp_path):
    """A page that differs without a cause cannot be compared or cached."""
    first, second = tmp_path / "1.html", tmp_path / "2.html"

    main(["report", "--dataset", compared, "--out", str(first)])
    main(["report", "--dataset", compared, "--out", str(second)])

    assert first.read_bytes() == second.read_bytes()


def test_json_goes_to_stdout_alone(compared, tmp_path, capsys):
    """What is piped on has to be data and nothing else."""
    out = tmp_path / "report.md"
    capsys.readouterr()

    assert main(["report", "--dataset", compared, "--out", str(out), "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["report"] == str(out)
    assert [run["name"] for run in found["runs"]] == ["bm25", "chargram"]
    assert out.exists()


def test_what_was_not_evaluated_yet_is_what_changed(compared, capsys):
    """A page that calls an older state "now", beside other numbers, gives a false verdict."""
    main(["evaluate", "--dataset", compared, "-m", "RR", "--run", "bm25"])
    path = Path(compared) / "runs" / "bm25.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    worst_first = [
        {**row, "ranking": [{**hit, "score": -hit["score"]} for hit in row["ranking"]]}
        for row in rows
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in worst_first), "utf-8")
    capsys.readouterr()

    assert main(["report", "--dataset", compared, "--run", "bm25", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert [item["what"] for item in found["changes"]] == ["retriever"]
    assert found["not_evaluated_yet"] == ["bm25"]


def test_judgments_that_are_not_utf_8_are_bad_data(compared, tmp_path, capsys):
    """A file somebody saved wrongly is no bug of the tool."""
    with (Path(compared) / "judgments.jsonl").open("ab") as stream:
        stream.write(b"\xff")

    assert main(["report", "--dataset", compared, "--out", str(tmp_path / "r.html")]) == 3

    assert "judgments.jsonl" in capsys.readouterr().err


def test_only_named_runs_are_reported(compared, capsys):
    """Old runs stay in a dataset."""
    capsys.readouterr()

    assert main(["report", "--dataset", compared, "--run", "bm25", "--json"]) == 0

    assert [run["name"] for run in json.loads(capsys.readouterr().out)["runs"]] == ["bm25"]


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--base", "dense"], 2, "base 'dense': expected one of the runs: bm25, chargram"),
        (["--run", "dense"], 3, "no 'dense'; there are: bm25, chargram"),
        (["--out", "report.pdf"], 2, "expected an ending of .html"),
        (["-m", "nDGC@10"], 2, "nDGC@10"),
    ],
)
def test_bad_requests_get_a_sentence(compared, capsys, flags, code, message):
    """A traceback is for us, a sentence for the user."""
    assert main(["report", "--dataset", compared, *flags]) == code
    assert message in capsys.readouterr().err


def test_a_report_costs_no_file_of_the_set(tmp_path, capsys):
    """The card of the set has an ending of reports."""
    dataset = ranked_set(tmp_path / "set", {"a": [1] * 5})
    dataset.write_card("# Card")
    card = tmp_path / "set" / "README.md"

    assert main(["report", "--dataset", str(dataset.path), "--out", str(card)]) == 2
    assert "is a file of the dataset" in capsys.readouterr().err
    assert card.read_text("utf-8") == "# Card"
