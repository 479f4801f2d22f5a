"""What a paid command prints that failed: what went wrong, how to go on, and no more."""

import json

import pytest
from endpoint import fault

from ragforge.cli import main

MOST_LINES = 8
"""Three tries, three lines of the error and of how to go on, two notes."""

COMMANDS = {
    "generate": "generate --documents {docs} -n 3 --out {new}",
    "judge": "judge --dataset {set} --again",
    "judge --complete": "judge --dataset {set} --complete --again",
    "judge audit": "judge audit --dataset {set}",
    "answer": "answer --dataset {set} --answers {answers}",
    "ground": "ground --dataset {set} --answers {answers} --out {new}",
    "refresh": "refresh --dataset {set} --documents {changed}",
    "retrieve": "retrieve --dataset {set} --retriever dense --embedding-model m",
}


@pytest.fixture
def failing(tmp_path, documents, dataset, capsys):
    """Run a paid command at an address; return its exit code and what it printed."""
    queries = (dataset / "queries.jsonl").read_text("utf-8").splitlines()
    chunks = (dataset / "chunks.jsonl").read_text("utf-8").splitlines()
    row = {
        "query_id": json.loads(queries[0])["query_id"],
        "answer": "It is a charge of ten percent.",
        "chunk_ids": [json.loads(chunks[0])["chunk_id"]],
    }
    answers, changed = tmp_path / "answers.jsonl", tmp_path / "changed"
    answers.write_text(json.dumps(row) + "\n", "utf-8")
    changed.mkdir()
    for path in documents.iterdir():
        text = path.read_text("utf-8").replace("Beeswax", "Now beeswax")
        (changed / path.name).write_text(text, "utf-8")
    places = {
        "docs": documents,
        "set": dataset,
        "new": tmp_path / "new",
        "answers": answers,
        "changed": changed,
    }
    capsys.readouterr()

    def go(command, url, *more):
        words = COMMANDS[command].format(**places).split()
        code = main([*words, "--model", "m", "--base-url", url, "--max-wait-s", "1", *more])
        shown = capsys.readouterr()
        return code, shown.out, shown.err.splitlines()

    return go


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_refused_key_is_told_with_the_way_to_go_on_and_no_more(command, failing, serve):
    """Fifty lines of figures about nothing hide the one that matters."""
    endpoint = serve(lambda path, body, number: fault(401, "Incorrect API key"))

    code, out, told = failing(command, endpoint.url)

    assert (code, out) == (4, "")
    assert "Incorrect API key" in told[-3]
    assert told[-2] == "When that is mended, the same command goes on where this one stopped:"
    assert told[-1].startswith(f"  ragforge {COMMANDS[command].split()[0]} ")
    assert len(told) <= MOST_LINES


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_an_endpoint_that_is_down_is_told_with_the_way_to_go_on_and_no_more(command, failing):
    """It is how most first runs with a local model end."""
    code, out, told = failing(command, "http://127.0.0.1:9/v1", "--max-attempts", "2")

    assert (code, out) == (4, "")
    assert told[-3].startswith("ragforge: error: ")
    assert "cannot be reached" in told[-3]
    assert len(told) <= MOST_LINES


def test_a_script_gets_one_object_and_no_report_of_a_run_that_failed(failing, serve):
    """What cannot be parsed is of no use to it."""
    endpoint = serve(lambda path, body, number: fault(404, "no such model"))

    code, out, told = failing("generate", endpoint.url, "--json")

    assert (code, json.loads(out)["error"]["exit_code"]) == (4, 4)
    assert len(told) <= MOST_LINES


def test_a_budget_that_allows_nothing_is_told_with_the_limit_to_raise(failing, serve):
    """The same command with the same limit would end at the same place."""
    endpoint = serve()

    code, out, told = failing("generate", endpoint.url, "--max-tokens", "10")

    assert (code, out, endpoint.seen) == (5, "", [])
    assert "--max-tokens 10 is reached" in told[-3]
    assert told[-2] == "With a higher limit, the same command goes on where this one stopped:"
    assert len(told) <= MOST_LINES


def test_a_corpus_that_carries_no_query_is_told_in_a_line(tmp_path, capsys):
    """Shares of no queries say nothing."""
    (tmp_path / "a.md").write_text("The harbour.\n", "utf-8")

    code = main(["generate", "--documents", str(tmp_path), "-n", "2", "--out", str(tmp_path / "s")])
    shown = capsys.readouterr()

    assert (code, shown.out) == (5, "")
    assert "0 of 2 queries" in shown.err.splitlines()[-1]
    assert len(shown.err.splitlines()) <= MOST_LINES
