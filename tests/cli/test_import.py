import json

import pytest

from ragforge.cli import main
from ragforge.files.opening import open_dataset


def run(capsys, *words):
    code = main(["import", *map(str, words), "-q"])
    return code, *capsys.readouterr()


@pytest.fixture
def log(tmp_path):
    """A log with one labelled question and two others."""
    rows = [
        {"query": "What does it cost to send back furniture?", "doc_id": "care.txt", "label": 0},
        {"query": "What keeps oak from drying out?", "doc_id": "care.txt", "label": 3},
        {"query": "beeswax", "user": "u1"},
        {"query": "parcel locker size", "user": "u2"},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_table_made_by_hand_becomes_a_set(documents, tmp_path, capsys):
    """Experts work in spreadsheets."""
    table, out = tmp_path / "golden.csv", tmp_path / "set"
    table.write_text(
        "question,answer,doc_id,quote,difficulty,category\n"
        "What keeps oak?,Beeswax.,care.txt,Beeswax is a natural polish,2,Care\n",
        encoding="utf-8-sig",
    )

    code, found, told = run(capsys, table, "--documents", documents, "--out", out)

    [query] = open_dataset(out).queries()
    assert (code, found) == (0, f"{out}\n")
    assert "1 queries, 1 judgments taken in" in told
    assert (query.difficulty, query.category) == ("medium", "Care")


def test_log_becomes_queries_and_a_record_of_how_people_ask(documents, log, tmp_path, capsys):
    """One file gives truth and style."""
    out = tmp_path / "set"

    code, found, _ = run(capsys, "--logs", log, "--documents", documents, "--out", out, "--json")

    counts = json.loads(found)
    assert (code, counts["labelled"], counts["judgments"], counts["real_queries"]) == (0, 2, 2, 2)
    assert len(open_dataset(out).queries()) == 2
    assert [real.query for real in open_dataset(out).real_queries()] == [
        "beeswax",
        "parcel locker size",
    ]


def test_unlabelled_questions_can_be_retrieved_for(documents, log, tmp_path, capsys):
    """They are pooled and judged before anybody knows an answer."""
    out = tmp_path / "set"

    words = ("--logs", log, "--documents", documents, "--out", out, "--as-queries")
    code, _, told = run(capsys, *words)
    assert main(["retrieve", "--dataset", str(out), "--retriever", "bm25", "-q"]) == 0

    assert code == 0
    assert "2 other questions kept, which became queries too" in told
    assert len(open_dataset(out).run("bm25")) == 4
    assert main(["validate", "--dataset", str(out)]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name either a hand-made set, or logs with --logs"),
        (["golden.csv", "--logs", "log.jsonl"], "name either a hand-made set, or logs"),
        (["golden.csv", "--as-queries"], "--as-queries and --clicks go with --logs"),
        (
            ["golden.csv", "--clicks", "relevant"],
            "--as-queries and --clicks go with --logs",
        ),
    ],
)
def test_words_that_do_not_go_together_are_refused(tmp_path, capsys, words, message):
    """A flag without effect misleads."""
    code, _, told = run(capsys, *words, "--dataset", tmp_path)

    assert (code, message in told) == (2, True)
