"""Checking answers against their contexts, from the shell."""

import json
import os
import signal
import threading
from dataclasses import replace

import pytest
from command_processes import CommandProcess
from endpoint import Reply, completion, datum, fault

from ragforge.cli import main
from ragforge.mock import Script, serving

MANY = 30
KRILL = "Far out at sea, blue whales eat krill."
TRAFFIC = [
    {
        "id": "q1",
        "query": "What do whales eat?",
        "answer": "Blue whales eat krill [1]. They sing at night [2].",
        "contexts": [KRILL, "Oak is a tree."],
    },
    {"id": "q2", "query": "Why?", "answer": "I don't know.", "contexts": [KRILL]},
    {"id": "q0", "query": "Why?", "answer": "Because of krill.", "contexts": []},
]


def lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def model(endpoint, *more):
    return ["--model", "test-model", "--base-url", endpoint.url, "--max-attempts", "2", "-q", *more]


def checking(path, body, number):
    """Answer well: what speaks of krill is supported."""
    answer = datum(body["messages"][-1]["content"], "answer")
    found = [{"passage": "p1", "quote": "krill"}]
    claims = [
        {"claim": part, "evidence": found * ("krill" in part), "supported": "krill" in part}
        for part in answer.split(". ")
    ]
    return Reply(completion({"claims": claims, "no_claim": []}))


@pytest.fixture
def traffic(tmp_path):
    """A file of three answers."""
    return lines(tmp_path / "traffic.jsonl", TRAFFIC)


@pytest.fixture
def many(tmp_path):
    """A file of thirty answers."""
    row = {"answer": "Whales eat krill", "contexts": [KRILL]}
    return lines(tmp_path / "many.jsonl", [{"id": f"q{n:02}", **row} for n in range(MANY)])


@pytest.fixture
def out(tmp_path):
    """Where groundings go."""
    return tmp_path / "out.jsonl"


def ground(answers, out, *more):
    return main(["ground", "--answers", str(answers), "--out", str(out), *more])


def test_answers_are_checked_by_a_model(traffic, out, serve, capsys):
    """It is the job: claims, quotes and citations of traffic that has no reference."""
    endpoint = serve(checking)

    assert ground(traffic, out, *model(endpoint)) == 0

    first, second, third = rows(out)
    assert [row["query_id"] for row in (first, second, third)] == ["q0", "q1", "q2"]
    assert (first["rule"], third["rule"]) == ("no context", "abstains")
    assert (second["faithfulness"], second["is_grounded"]) == (0.5, False)
    assert [one["status"] for one in second["citations"]] == ["supports", "does not support"]
    assert second["claims"][0]["quote"] == "krill"
    assert len(endpoint.seen) == 1
    shown = capsys.readouterr()
    assert "judge test-model: 1 of 3 answers checked, 0 failed" in shown.err
    assert shown.out == f"{out}\n"


def test_the_offline_baseline_is_named(traffic, out, capsys):
    """Shared words must not be taken for a judge's finding."""
    assert ground(traffic, out, "--json") == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["judge"], found["answers"], found["checked"]) == ("offline", 3, 1)
    assert found["rules"] == {"abstains": 1, "no context": 1}
    assert found["faithfulness"]["mean"] == 0.5
    assert found["citations"] == {"does not support": 1, "supports": 1}
    assert rows(out)[1]["provenance"]["kind"] == "baseline"


def test_the_mock_endpoint_answers_well(traffic, out):
    """A rehearsal in which good replies fail rehearses nothing."""
    with serving(Script()) as endpoint:
        assert ground(traffic, out, *model(endpoint)) == 0

    assert [row["failure"] for row in rows(out)] == [None] * 3


def test_a_finished_run_asks_nothing_and_changes_nothing(many, out, serve):
    """Running the nightly job twice must not cost twice."""
    endpoint = serve(checking)
    ground(many, out, *model(endpoint))
    before, asked = out.read_bytes(), len(endpoint.seen)

    assert ground(many, out, *model(endpoint)) == 0
    assert out.read_bytes() == before
    assert len(endpoint.seen) == asked


def test_a_bad_row_at_the_end_is_found_before_anything_is_asked(tmp_path, many, out, serve, capsys):
    """A torn file must neither cost a call nor replace what was whole."""
    endpoint = serve(checking)
    ground(many, out)
    before = out.read_bytes()
    bad = tmp_path / "bad.jsonl"
    lines(bad, [*TRAFFIC, {"id": "q3", "query": "Why?"}])

    assert ground(bad, out, *model(endpoint)) == 3
    assert "bad.jsonl:4: answer: expected one of" in capsys.readouterr().err
    assert endpoint.seen == []
    assert out.read_bytes() == before


def test_a_bad_row_of_a_pipe_leaves_what_was_whole(tmp_path, many, out):
    """It can be read once only, so that the row comes late."""
    ground(many, out)
    before = out.read_bytes()
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lines, args=(pipe, [*TRAFFIC, {"id": "q3"}]))
    writer.start()

    assert ground(pipe, out) == 3
    writer.join()
    assert out.read_bytes() == before


def test_a_dry_run_asks_and_writes_nothing(traffic, out, serve, capsys):
    """The cost is wanted before it is spent; what a rule decides costs nothing."""
    endpoint = serve(checking)

    assert ground(traffic, out, "--dry-run", "--json", *model(endpoint)) == 0

    assert json.loads(capsys.readouterr().out)["calls"] == 1
    assert endpoint.seen == []
    assert not out.exists()


def test_a_budget_stops_the_run_and_keeps_what_is_done(tmp_path, many, out, serve, capsys):
    """A limit that is passed by a hair is a bill nobody agreed to."""
    lines(many, [{**row, "answer": f"{row['id']} eats krill"} for row in rows(many)])
    endpoint = serve(checking)

    assert ground(many, out, *model(endpoint, "--max-calls", "10")) == 5
    assert (len(endpoint.seen), len(rows(out))) == (10, 10)
    assert "--max-calls 10 is reached" in capsys.readouterr().err
    assert ground(many, out, *model(endpoint)) == 0
    assert (len(endpoint.seen), len(rows(out))) == (MANY, MANY)


def test_one_bad_reply_leaves_one_answer_unchecked(tmp_path, traffic, out, serve):
    """It must neither stop the others nor become a faithfulness."""
    lines(traffic, [*TRAFFIC, {**TRAFFIC[0], "id": "q3", "answer": "Oak is a tree."}])

    def respond(path, body, number):
        bad = "Oak is" in datum(body["messages"][1]["content"], "answer")
        return Reply(completion("It is faithful.")) if bad else checking(path, body, number)

    endpoint = serve(respond)

    assert ground(traffic, out, *model(endpoint)) == 0
    [failure] = rows(tmp_path / "out.jsonl.failures.jsonl")
    assert (failure["what"], failure["key"], failure["raw"]) == ("ground", "q3", "It is faithful.")
    assert (rows(out)[3]["faithfulness"], rows(out)[3]["failure"]) == (None, "invalid")

    endpoint.respond = checking
    assert ground(traffic, out, *model(endpoint, "--retry-failed")) == 0
    assert rows(out)[3]["faithfulness"] == 0.0
    assert rows(tmp_path / "out.jsonl.failures.jsonl") == []


def test_an_endpoint_that_never_works_ends_in_exit_code_4(traffic, out, serve, capsys):
    """A file without any finding must not look like a finished one."""
    endpoint = serve(lambda path, body, n: fault(401, "Incorrect API key provided"))

    assert ground(traffic, out, *model(endpoint)) == 4
    assert "Incorrect API key provided" in capsys.readouterr().err


def test_every_check_failing_ends_in_exit_code_4(many, out, serve, capsys):
    """The first reason is told, for it is most likely that of all."""
    endpoint = serve(lambda path, body, n: Reply(completion("Faithful.")))

    assert ground(many, out, *model(endpoint)) == 4
    assert "checking failed on all 30 answers" in capsys.readouterr().err


def test_answers_of_a_dataset_are_held_against_its_chunks(tmp_path, dataset, out, capsys):
    """Whoever has a dataset need not copy texts into the answers."""
    [chunk, *_] = rows(dataset / "chunks.jsonl")
    sentence = chunk["text"].splitlines()[-1]
    answer = {"query_id": "x", "answer": f"{sentence} [1]", "chunk_ids": [chunk["chunk_id"]]}
    lost = {"query_id": "y", "answer": "Whales sing.", "chunk_ids": ["nowhere"]}
    answers = lines(tmp_path / "rag.jsonl", [answer, lost])

    assert ground(answers, out, "--dataset", str(dataset), "-q") == 0

    first, second = rows(out)
    assert first["claims"][0]["chunk_ids"] == [chunk["chunk_id"]]
    assert [one["chunk_id"] for one in first["citations"]] == [chunk["chunk_id"]]
    assert (second["faithfulness"], second["failure"]) == (None, "error")


def test_answers_about_another_corpus_are_refused(tmp_path, dataset, out, capsys):
    """Every check would fail, as if the model were to blame."""
    answers = lines(tmp_path / "rag.jsonl", [{"id": "x", "answer": "So.", "chunk_ids": ["d7"]}])

    assert ground(answers, out, "--dataset", str(dataset), "-q") == 3
    assert "has none of the chunks that the answers name, such as 'd7'" in capsys.readouterr().err


def test_a_system_of_a_dataset_is_named(tmp_path, dataset, out, capsys):
    """Its answers were taken in when they were graded."""
    [query, *_] = rows(dataset / "queries.jsonl")
    quote = {"doc_id": "care.txt", "quote": "Beeswax is a natural polish"}
    answer = {"query_id": query["query_id"], "answer": "Beeswax is a polish.", "retrieved": [quote]}
    answers = lines(tmp_path / "rag.jsonl", [answer])
    base = ["--dataset", str(dataset), "-q"]
    main(["answer", "--answers", str(answers), "--name", "rag", *base])

    assert main(["ground", "--system-name", "rag", "--out", str(out), *base]) == 0
    assert rows(out)[0]["is_grounded"] is True
    assert ground(answers, out, *base) == 0
    assert rows(out)[0]["is_grounded"] is True
    assert main(["ground", "--system-name", "gar", "--out", str(out), *base]) == 3
    assert "has no answers of a system 'gar'; there are: rag" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--out", "x"], 2, "--answers --system-name is required"),
        (["--answers", "nowhere"], 2, "--out"),
        (["--answers", "nowhere", "--out", "x"], 3, "nowhere"),
        (["--system-name", "rag", "--out", "x"], 2, "--system-name goes with --dataset"),
        (["--answers", "a", "--dataset", "nowhere", "--out", "x"], 3, "no such directory"),
        (["--answers", "traffic.jsonl", "--out", "traffic.jsonl"], 2, "the file of answers itself"),
    ],
)
def test_a_wrong_word_or_path_is_named(
    tmp_path, traffic, monkeypatch, capsys, words, code, message
):
    """Whoever mistypes must see what, and what would be right."""
    monkeypatch.chdir(tmp_path)

    assert main(["ground", *words]) == code
    assert message in capsys.readouterr().err
    assert rows(traffic) == TRAFFIC


@pytest.mark.slow
def test_an_interrupt_keeps_what_is_done(tmp_path, many, out, serve):
    """What was paid for must be there when the same command is typed again."""
    lines(many, [{**row, "answer": f"{row['id']} eats krill"} for row in rows(many)])
    begun = threading.Event()

    def respond(path, body, number):
        if number == 4:
            begun.set()
        return replace(checking(path, body, number), delay_s=0.05)

    endpoint = serve(respond)
    words = ["ground", "--answers", str(many), "--out", str(out), *model(endpoint)]
    process = CommandProcess([*words, "--concurrency", "2"], tmp_path, os.environ)
    begun.wait(30)
    process.send_signal(signal.SIGINT)
    shown = process.communicate(timeout=60)[1]

    assert process.returncode == 130
    assert "what was done is kept" in shown
    kept = len(rows(out))
    assert 0 < kept < MANY
    assert ground(many, out, *model(endpoint)) == 0
    assert len(endpoint.seen) == len(rows(out)) == MANY
