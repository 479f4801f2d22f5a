"""Texts of data in the logs of CI services, which obey some lines."""

import json

import pytest
from ranked_sets import ranked_set

from ragforge.cli import main

MODULE = """
def broken(query, k):
    raise RuntimeError("boom\\n::error::mine\\r##[error]x")

def half(query, k):
    if query.endswith("0"):
        return broken(query, k)
    return [("right", 1.0)]
"""
TEXTS = [f"##[add-path]/tmp {n}\n::error::q {n}" for n in range(30)]


@pytest.fixture(autouse=True)
def hostile_set(tmp_path, monkeypatch):
    """Thirty queries whose texts are commands, with two runs, and retrievers that fail."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "hostile_retrievers.py").write_text(MODULE, encoding="utf-8")
    ranked_set(tmp_path / "set", {"a": [1] * 30, "b": [2] * 29 + [-1]}, texts=TEXTS)
    (tmp_path / "set" / "chunks.jsonl").write_text("", encoding="utf-8")


def commands(capsys):
    out, err = capsys.readouterr()
    lines = [*out.split("\n"), *err.split("\n")]
    return [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


@pytest.mark.parametrize(
    "words",
    [
        "retrieve --retriever hostile_retrievers:broken",
        "retrieve --retriever hostile_retrievers:half",
        "evaluate --retriever hostile_retrievers:broken",
        "evaluate --retriever hostile_retrievers:half --per-query",
        "compare --retriever hostile_retrievers:half --retriever hostile_retrievers:broken",
        "compare a b",
        "compare a b --json",
        "worst",
        "worst --json",
        "report",
        "report --json",
        "history",
        "gate --run b --min RR=0.9",
        "validate",
    ],
)
def test_no_text_of_data_is_a_command_in_a_log(capsys, words):
    """A query of the set, or what a retriever says, would set variables of the job."""
    name, *rest = words.split()
    main([name, "--dataset", "set", *rest])

    assert commands(capsys) == []


def test_json_holds_the_texts_as_they_are(capsys):
    """Escapes of JSON are undone by whoever reads it."""
    main(["compare", "--dataset", "set", "a", "b", "--json"])
    [first, *_] = json.loads(capsys.readouterr().out)["comparisons"]

    assert first["moved"]["lost"][0]["text"].startswith("##[add-path]/tmp")


def test_why_a_retriever_failed_is_told_on_one_line(capsys):
    """The rest of it would read as lines of ragforge's own."""
    main(["retrieve", "--dataset", "set", "--retriever", "hostile_retrievers:broken"])
    lines = capsys.readouterr().err.splitlines()
    [told] = [line for line in lines if line.startswith("ragforge: error: retriever")]

    assert "RuntimeError: boom ::error::mine" in told
