"""`gate`, `report` and `worst` on files alone."""

import json

import pytest

from ragforge.cli import main


@pytest.fixture
def files(tmp_path):
    """Qrels of thirty queries, a run that finds all first and one that finds nothing."""
    ids = [f"q{n}" for n in range(30)]
    texts = {
        "qrels.trec": "".join(f"{q} 0 d{q} 3\n{q} 0 x{q} 0\n" for q in ids),
        "good.trec": "".join(f"{q} Q0 d{q} 1 2 t\n{q} Q0 x{q} 2 1 t\n" for q in ids),
        "bad.csv": "query_id,chunk_id,score\n" + "".join(f"{q},x{q},2\n" for q in ids),
        "queries.tsv": "query_id\tquery\n" + "".join(f"{q}\tWhat is {q}?\n" for q in ids),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(capsys, *words):
    code = main([*map(str, words)])
    return code, *capsys.readouterr()


def test_gate_passes_a_file(files, capsys):
    """A CI job has a file of qrels and the run of the branch, and no dataset."""
    words = ("--qrels", files / "qrels.trec", "--run", files / "good.trec")

    code, found, _ = run(capsys, "gate", *words, "--min", "nDCG@10=0.8")

    assert code == 0
    assert "gate: PASS" in found


def test_gate_holds_a_file_against_a_baseline_of_files(files, capsys):
    """What the last release ranked is a file in git."""
    qrels, base = files / "qrels.trec", files / "base.json"
    run(capsys, "gate", "--qrels", qrels, "--run", files / "good.trec", "--write-baseline", base)
    capsys.readouterr()

    words = ("--qrels", qrels, "--run", files / "bad.csv", "--max-drop", "nDCG@10=0.02")
    code, found, _ = run(capsys, "gate", *words, "--baseline", base)

    assert code == 1
    assert "gate: FAIL" in found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--min", "RR=0.1"], "give either --dataset DIR, or --qrels FILE"),
        (["--qrels", "qrels.trec", "--min", "RR=0.1"], "--qrels needs --run FILE"),
        (
            "--qrels qrels.trec --run good.trec --max-drop RR=0.1 --baseline last".split(),
            "--baseline last: goes with --dataset DIR, which has a history",
        ),
        (
            ["--qrels", "qrels.trec", "--run", "good.trec", "--min", "EvidenceR@10=0.5"],
            "measure 'EvidenceR@10': needs a dataset",
        ),
        (
            ["--qrels", "qrels.trec", "--run", "good.trec", "--min", "RR=1", "--sample", "3"],
            "--sample: goes with --dataset DIR",
        ),
    ],
)
def test_gate_says_what_files_lack(files, capsys, monkeypatch, words, told):
    """A flag that cannot work must not be passed over."""
    monkeypatch.chdir(files)

    code, _, errors = run(capsys, "gate", *words)

    assert code == 2
    assert told in errors


def test_worst_names_the_questions_of_a_file(files, capsys):
    """An id says nothing to a reader."""
    words = ("--qrels", files / "qrels.trec", "--run", files / "bad.csv", "-n", "1")

    code, found, _ = run(capsys, "worst", *words, "--queries", files / "queries.tsv")

    assert code == 0
    assert "no relevant chunk retrieved" in found
    assert "What is q" in found


def test_report_is_written_of_files(files, capsys):
    """A page is what a team looks at."""
    runs = ("--run", files / "good.trec", "--run", files / "bad.csv")
    words = ("--qrels", files / "qrels.trec", *runs)

    code, found, _ = run(capsys, "report", *words, "--out", files / "r.md")

    text = (files / "r.md").read_text(encoding="utf-8")
    assert (code, found) == (0, f"{files / 'r.md'}\n")
    assert "good" in text
    assert "are not in the corpus" not in text


def test_import_takes_questions_qrels_and_runs_at_once(files, tmp_path, capsys):
    """What somebody has lies in three files."""
    words = ("--qrels", files / "qrels.trec", "--run", files / "good.trec", "--run")
    out = tmp_path / "set"

    code, found, _ = run(
        capsys,
        *("import", files / "queries.tsv", *words, files / "bad.csv", "--name", "one"),
        *("--out", out, "--json"),
    )

    counts = json.loads(found)
    assert (code, counts["queries"], counts["qrels"]["judgments"]) == (0, 30, 60)
    assert counts["runs"]["one"]["queries"] == counts["runs"]["bad"]["queries"] == 30
    assert main(["evaluate", "--dataset", str(out)]) == 0
    assert main(["validate", "--dataset", str(out)]) == 0
