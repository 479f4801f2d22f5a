"""`ragforge answer --system` from end to end."""

import json
import sys

import pytest

from ragforge.cli import main

pytestmark = pytest.mark.slow


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def answer(dataset, capsys):
    """Run the command; return its exit code, what it printed and what it said."""
    capsys.readouterr()

    def go(*words):
        code = main(["answer", "--dataset", str(dataset), *words, "-q"])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module that a user could have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    return write


def test_a_service_is_asked_and_its_answers_are_graded(server, answer, dataset):
    """One command takes a system's address and says how good it is."""
    known = rows(dataset / "chunks.jsonl")[0]["chunk_id"]
    server.body = json.dumps({"answer": "I don't know.", "chunk_ids": [known]}).encode()

    code, out, _ = answer("--system", server.url, "--name", "rag", "--json")

    found = json.loads(out)
    assert code == 0
    assert (found["asked"], found["kept"], found["not_answered"]) == (3, 0, 0)
    assert found["decided_by_rule"] == {"abstention": 3}
    assert found["verdicts"] == {"not_attempted": 3}
    assert {tuple(row["chunk_ids"]) for row in rows(dataset / "answers" / "rag.jsonl")} == {
        (known,)
    }
    asked = {json.loads(content)["query"] for _, _, content in server.requests}
    assert asked == {row["query"] for row in rows(dataset / "queries.jsonl")}


def test_what_a_users_system_prints_is_no_data(module, answer):
    """Scripts read stdout."""
    module("printing_rag", "def ask(query):\n    print('asked')\n    return 'Krill.'\n")

    code, out, err = answer("--system", "printing_rag:ask", "--name", "rag", "--json")

    assert code == 0
    assert json.loads(out)["system"] == "rag"
    assert "asked" in err


def test_asking_twice_asks_nothing_and_changes_no_byte(server, answer, dataset):
    """A finished run has nothing left to do."""
    server.body = b'{"answer": "I don\'t know."}'
    answer("--system", server.url, "--name", "rag")
    before = (dataset / "answers" / "rag.jsonl").read_bytes()

    _, out, _ = answer("--system", server.url, "--name", "rag", "--json")

    assert json.loads(out)["kept"] == 3
    assert len(server.requests) == 3
    assert (dataset / "answers" / "rag.jsonl").read_bytes() == before


def test_answers_can_be_collected_only(server, answer, dataset):
    """They may be graded later, or by people."""
    server.body = b'{"answer": "Krill."}'

    code, out, err = answer("--system", server.url, "--name", "rag", "--answers-only")

    assert code == 0
    assert out == f"{dataset / 'answers' / 'rag.jsonl'}\n"
    assert "rag: 3 queries answered, 0 failed" in err
    assert not (dataset / "answer_grades").exists()


def test_a_dry_run_asks_no_system(server, answer, dataset):
    """Its calls may cost more than those of the judge."""
    code, out, err = answer("--system", server.url, "--name", "rag", "--dry-run")

    assert code == 0
    assert out == "queries to ask the system: 3\n"
    assert "cannot be counted" in err
    assert server.requests == []
    assert not (dataset / "answers").exists()


def test_a_dry_run_over_answers_counts_both(server, answer, dataset):
    """Some may be answered and others not yet."""
    server.body = b'{"answer": "Krill."}'
    answer("--system", server.url, "--name", "rag", "--answers-only")

    _, out, _ = answer("--system", server.url, "--name", "rag", "--dry-run", "--json")

    assert json.loads(out) == {"calls": 0, "cached": 0, "system_calls": 0}


def test_a_service_that_is_down_is_told_with_the_code_of_endpoints(server, answer, dataset):
    """No answer is graded where none came."""
    server.status, server.body = 500, b"down"

    code, _, err = answer("--system", server.url, "--name", "rag")

    assert code == 4
    assert "system 'rag' failed on all 3 queries; the first: " in err
    assert {row["what"] for row in rows(dataset / "failures.jsonl")} == {"ask"}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 4, "--max-failures allows 5.0%: run it again, or allow more"),
        (("--answers-only",), 4, "--max-failures allows 5.0%: run it again, or allow more"),
        (("--max-failures", "40%"), 0, "they have no value and widen the bounds"),
    ],
)
def test_many_failures_have_the_code_of_endpoints(module, answer, dataset, words, code, told):
    """A system that is broken must not pass for one that is bad, in a nightly job least."""
    first = rows(dataset / "queries.jsonl")[0]["query"]
    module("half_rag", f"def ask(query):\n    return None if query == {first!r} else 'Krill.'\n")

    found, _, err = answer("--system", "half_rag:ask", "--name", "rag", *words)

    assert found == code
    assert "rag: 2 queries answered, 1 failed" in err
    assert "answers rag: the system failed on 1 of 3 queries (33.3%); the first: " in err
    assert told in err
    assert len(rows(dataset / "answers" / "rag.jsonl")) == 2


def test_queries_without_an_answer_count_as_failed_in_the_report(module, answer, dataset, tmp_path):
    """They must neither be left out nor count as wrong."""
    first = rows(dataset / "queries.jsonl")[0]["query"]
    module(
        "shaky_rag",
        f'def ask(query):\n    return None if query == {first!r} else "I don\'t know."\n',
    )
    answer("--system", "shaky_rag:ask", "--name", "rag")

    main(["report", "--dataset", str(dataset), "--out", str(tmp_path / "r.md")])

    assert len(rows(dataset / "answer_grades" / "rag.jsonl")) == 2
    assert [row["what"] for row in rows(dataset / "failures.jsonl")] == ["ask"]
    assert "| rag | 0 | 0 | 0 | 2 | 1 |" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_answers_from_a_file_end_the_failures_of_asking(module, answer, dataset, tmp_path):
    """What failed for other answers says nothing about these."""
    first, *others = rows(dataset / "queries.jsonl")
    module("shaky", f"def ask(query):\n    return None if query == {first['query']!r} else 'a'\n")
    answer("--system", "shaky:ask", "--name", "rag")
    path = tmp_path / "rag.jsonl"
    path.write_text(json.dumps({"query_id": others[0]["query_id"], "answer": "b"}))

    answer("--answers", str(path))

    assert rows(dataset / "failures.jsonl") == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--system", "m:f"], "--system: expected --name NAME"),
        (["--answers", "a.jsonl", "--max-failures", "1%"], "--max-failures: goes with --system"),
        (["--answers", "a.jsonl", "--ask-again"], "--ask-again: goes with --system"),
        (["--answers", "a.jsonl", "--answers-only"], "--answers-only: goes with --system"),
        (["--system", "m:f", "--name", "a/b"], "name 'a/b'"),
        (["--system", "http:host", "--name", "a"], "expected an address such as"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(answer, words, message):
    """Nothing may be asked before the command is known to be whole."""
    code, _, err = answer(*words)

    assert code == 2
    assert message in err


def test_what_rules_decide_is_told(dataset, tmp_path, capsys):
    """Whoever reads a score must know how much of it no judge has seen."""
    first, second, third = rows(dataset / "queries.jsonl")
    answers = [(first, first["expected_answer"]), (second, "I don't know."), (third, "Elephants.")]
    path = tmp_path / "rag.jsonl"
    path.write_text(
        "".join(
            f"{json.dumps({'query_id': query['query_id'], 'answer': text})}\n"
            for query, text in answers
        )
    )

    main(["answer", "--dataset", str(dataset), "--answers", str(path)])

    told = "rag: 2 of 3 decided by rule, without the judge: abstention 1, exact match 1"
    assert told in capsys.readouterr().err
