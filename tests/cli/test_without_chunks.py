"""A set of questions alone: the texts that a service returns are judged as they come."""

import json

import pytest

from ragforge.cli import main
from ragforge.mock import Script, serving

SEARCH = """
def old(query, k):
    return [{"id": "1", "text": "Beeswax is a natural polish."}, {"text": "Oak is a tree."}]

def new(query, k):
    return [{"text": f"{query} Beeswax is a natural polish."}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A folder with a set of two questions, and two retrievers in Python."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_search.py").write_text(SEARCH, encoding="utf-8")
    (tmp_path / "q.csv").write_text("question\nWhat is beeswax?\nWhat is oak?\n")
    assert main(["import", "q.csv", "--out", "set", "-q"]) == 0
    capsys.readouterr()
    return tmp_path


def run(capsys, *words):
    code = main([*words])
    return code, *capsys.readouterr()


def test_texts_of_a_retriever_are_judged_and_compared(folder, capsys):
    """Nobody has the documents of a service but the service."""
    runs = ["--retriever", "own_search:old", "--name", "old"]
    runs += ["--retriever", "own_search:new", "--name", "new"]
    with serving(Script()) as endpoint:
        address = ["--model", "m", "--base-url", endpoint.url]
        code, _, told = run(capsys, "compare", "--dataset", "set", *runs, "--judge", *address)

    assert code == 0
    assert "run old: 4 hits are texts to be judged as they are, as the set has no documents" in told
    assert "stand nowhere" not in told
    assert "no grade reaches the threshold" not in told


def test_what_searches_chunks_is_refused(folder, capsys):
    """Its empty run would count 0 everywhere."""
    code, _, told = run(capsys, "retrieve", "--dataset", "set", "--retriever", "bm25+minilm")

    assert code == 3
    assert "set: has no chunks that 'bm25+minilm' could search; name the address of your" in told


def test_the_set_is_whole(folder, capsys):
    """Every command reads it."""
    code, found, _ = run(capsys, "validate", "--dataset", "set", "--json")

    assert (code, json.loads(found)["problems"]) == (0, [])


@pytest.mark.parametrize(
    ("name", "text", "flag"),
    [
        ("q.trec", "q1 0 d1 3\n", "--qrels FILE"),
        ("q.csv", "query_id,chunk_id,grade\nq1,d1,3\n", "--qrels FILE"),
        ("r.trec", "q1 Q0 d1 1 9.5 bm25\n", "--run FILE"),
        ("r.csv", "query_id,chunk_id,score\nq1,d1,3\n", "--run FILE"),
        ("r.jsonl", '{"query_id": "q1", "ranking": [{"chunk_id": "d1"}]}\n', "--run FILE"),
    ],
)
def test_a_file_in_the_wrong_place_is_told_its_flag(folder, capsys, name, text, flag):
    """That it has no known shape would not help who has the right file."""
    (folder / name).write_text(text)

    code, _, told = run(capsys, "import", name, "--dataset", "set")

    assert code == 3
    assert told == f"ragforge: error: {name}: holds no questions; is it for {flag}?\n"
