"""The commands against an endpoint: what goes right, and every way it goes wrong."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from command_processes import CommandProcess
from endpoint import Reply, answering, completion, fault

from ragforge.cli import main
from ragforge.stages.generate.checks.checking import PROMPTS as CHECK_PROMPTS
from ragforge.stages.generate.kinds import PROMPTS as WRITER_PROMPTS

pytestmark = pytest.mark.slow


BIG = 40
"""Pairs of the files that are interrupted."""


def model(endpoint, *more):
    return ["--model", "test-model", "--base-url", endpoint.url, "--max-attempts", "2", "-q", *more]


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def many_pairs(tmp_path):
    """A file of forty pairs to judge."""
    lines = [
        {"query_id": "q", "query": "What is wax?", "chunk_id": f"c{n:02}", "text": f"Wax no. {n}."}
        for n in range(BIG)
    ]
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def slowly(delay_s):
    return lambda path, body, n: replace(answering(path, body, n), delay_s=delay_s)


def start(endpoint, pairs, out):
    words = ["judge", "--pairs", str(pairs), "--out", str(out), *model(endpoint)]
    return CommandProcess([*words, "--concurrency", "2"], out.parent, os.environ)


def finish(process):
    shown = process.communicate(timeout=60)[1]
    return process.returncode, shown


def until_asked(endpoint, number):
    deadline = time.monotonic() + 30
    while len(endpoint.seen) < number and time.monotonic() < deadline:
        time.sleep(0.01)


def test_the_main_job_runs_against_an_endpoint(tmp_path, documents, serve, capsys):
    """Generate, retrieve, judge and answer are one path; each hands over to the next."""
    endpoint, out = serve(), str(tmp_path / "set")
    base = model(endpoint)

    assert main(["generate", "--documents", str(documents), "-n", "3", "--out", out, *base]) == 0
    assert main(["retrieve", "--dataset", out, "--retriever", "bm25", "-q"]) == 0
    assert main(["judge", "--dataset", out, *base]) == 0
    [first, *_] = rows(tmp_path / "set" / "queries.jsonl")
    answers = tmp_path / "rag.jsonl"
    answer = {"query_id": first["query_id"], "answer": "Ten percent.", "chunk_ids": []}
    answers.write_text(json.dumps(answer), encoding="utf-8")
    assert main(["answer", "--dataset", out, "--answers", str(answers), *base]) == 0
    assert main(["validate", "--dataset", out]) == 0

    kinds = {row["provenance"]["kind"] for row in rows(tmp_path / "set" / "judgments.jsonl")}
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert kinds == {"llm"}
    assert manifest["models"] == ["test-model"]
    assert manifest["spent"]["calls"] == len(endpoint.seen)
    assert set(manifest["prompts"]) == {
        *CHECK_PROMPTS,
        *WRITER_PROMPTS,
        "judge_relevance",
        "judge_relevance_batch",
        "extract_facts",
        "grade_facts",
    }


def test_a_finished_run_asks_nothing_and_changes_nothing(tmp_path, pairs, serve):
    """Running the nightly job twice must not cost twice."""
    endpoint, out = serve(), tmp_path / "judged.jsonl"
    main(["judge", "--pairs", str(pairs), "--out", str(out), *model(endpoint)])
    before, asked = out.read_bytes(), len(endpoint.seen)

    assert main(["judge", "--pairs", str(pairs), "--out", str(out), *model(endpoint)]) == 0
    assert out.read_bytes() == before
    assert len(endpoint.seen) == asked


def test_a_dry_run_asks_nothing(tmp_path, pairs, serve, capsys):
    """The cost is wanted before it is spent."""
    endpoint, out = serve(), tmp_path / "judged.jsonl"

    words = ["judge", "--pairs", str(pairs), "--out", str(out), "--dry-run", "--json"]
    assert main([*words, *model(endpoint)]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["calls"] == 2
    assert found["cost_usd"]["high"] is None
    assert endpoint.seen == []
    assert not out.exists()


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (fault(401, "Incorrect API key provided"), 4, "Incorrect API key provided"),
        (fault(403, "Country not supported"), 4, "Country not supported"),
        (fault(404, "The model `test-model` does not exist"), 4, "does not exist"),
        (fault(429, "You exceeded your quota", code="insufficient_quota"), 4, "your quota"),
        (Reply(b"<html>login</html>", content_type="text/html"), 4, "the reply is not JSON"),
        (Reply({**completion("x"), "choices": []}), 4, "no chat completion"),
        (Reply(status=503, body=b"<html>busy</html>"), 4, "503"),
        (Reply(reset=True), 4, "cannot be reached"),
        (Reply(completion("I'd say two.")), 4, "not exactly one JSON object"),
        (Reply(completion("{", finish_reason="length")), 4, "cut off"),
        (Reply(completion("", finish_reason="content_filter")), 4, "content filter"),
    ],
)
def test_an_endpoint_that_never_works_ends_in_exit_code_4(
    tmp_path, pairs, serve, capsys, reply, code, message
):
    """A set without any judgment must not look like a finished one."""
    endpoint, out = serve(lambda path, body, n: reply), tmp_path / "judged.jsonl"

    assert main(["judge", "--pairs", str(pairs), "--out", str(out), *model(endpoint)]) == code
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_an_endpoint_that_is_down_is_named(tmp_path, pairs, serve, capsys):
    """Connection refused is the second commonest first error."""
    words = ["judge", "--pairs", str(pairs), "--out", str(tmp_path / "j.jsonl"), "-q"]

    code = main(
        [*words, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--max-attempts", "1"]
    )

    assert code == 4
    assert "http://127.0.0.1:9/v1/: cannot be reached" in capsys.readouterr().err


def test_one_refusal_leaves_one_pair_unjudged(tmp_path, pairs, serve):
    """One bad reply must neither stop the others nor become a grade."""

    def respond(path, body, number):
        refused = "Oak is" in body["messages"][-1]["content"]
        return (
            Reply(completion("", refusal="I cannot judge this."))
            if refused
            else answering(path, body, number)
        )

    endpoint, out = serve(respond), tmp_path / "judged.jsonl"

    assert main(["judge", "--pairs", str(pairs), "--out", str(out), *model(endpoint)]) == 0
    [judged, failed] = rows(out)
    [failure] = rows(tmp_path / "judged.jsonl.failures.jsonl")
    assert judged["grade"] is not None
    assert (failed["grade"], failed["failure"]) == (None, "refused")
    assert failure["raw"] == "I cannot judge this."


def test_a_budget_stops_the_run_and_keeps_what_is_done(tmp_path, many_pairs, serve, capsys):
    """A limit that is passed by a hair is a bill nobody agreed to."""
    endpoint, out = serve(), tmp_path / "judged.jsonl"
    words = ["judge", "--pairs", str(many_pairs), "--out", str(out)]

    assert main([*words, *model(endpoint, "--max-calls", "10")]) == 5
    assert len(endpoint.seen) == 10
    assert "--max-calls 10 is reached" in capsys.readouterr().err
    assert main([*words, *model(endpoint)]) == 0
    assert len(rows(out)) == BIG
    assert len(endpoint.seen) == BIG


def test_an_interrupt_keeps_what_is_done_and_says_how_to_go_on(tmp_path, many_pairs, serve):
    """Ctrl-C is how people stop; it must not cost them what they paid for."""
    endpoint = serve(slowly(0.05))
    out = tmp_path / "judged.jsonl"
    process = start(endpoint, many_pairs, out)
    until_asked(endpoint, 10)

    process.send_signal(signal.SIGINT)
    code, shown = finish(process)

    kept = len(rows(out))
    assert code == 130
    assert "ragforge judge --pairs" in shown
    assert 0 < kept < BIG
    assert finish(start(endpoint, many_pairs, out))[0] == 0
    assert len(rows(out)) == BIG
    assert len(endpoint.seen) <= BIG + 2


def test_a_killed_run_is_finished_by_the_next_one_with_the_same_bytes(tmp_path, many_pairs, serve):
    """The machine may go away at any moment; the money spent until then must not."""
    endpoint = serve(slowly(0.02))
    calm, out = tmp_path / "calm" / "judged.jsonl", tmp_path / "killed" / "judged.jsonl"
    calm.parent.mkdir()
    out.parent.mkdir()
    assert finish(start(endpoint, many_pairs, calm))[0] == 0
    process = start(endpoint, many_pairs, out)
    until_asked(endpoint, BIG + 15)

    process.send_signal(signal.SIGKILL)
    finish(process)

    assert not out.exists()
    assert finish(start(endpoint, many_pairs, out))[0] == 0
    assert out.read_bytes() == calm.read_bytes()
    assert len(endpoint.seen) <= 2 * BIG + 2


def test_the_key_is_written_nowhere(tmp_path, pairs, serve, monkeypatch, capsys):
    """A key in a log or a dataset is a key on the internet."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    replies = iter([fault(500, "busy"), fault(500, "busy")])
    endpoint = serve(lambda path, body, n: next(replies, None) or answering(path, body, n))

    main(["judge", "--pairs", str(pairs), "--out", str(tmp_path / "out.jsonl"), *model(endpoint)])

    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    shown = capsys.readouterr()
    assert endpoint.seen[0].headers["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in shown.out + shown.err
    assert b"sk-very-secret" not in written


def test_dense_retrieval_goes_through_the_endpoint(dataset, serve):
    """Embeddings come from where the model comes from."""

    def respond(path, body, number):
        data = [
            {"index": index, "embedding": [float(len(text)), float(text.count("e")), 1.0]}
            for index, text in enumerate(body["input"])
        ]
        return Reply({"object": "list", "data": data, "model": "e", "usage": {}})

    endpoint = serve(respond)
    words = ["retrieve", "--dataset", str(dataset), "--retriever", "dense"]

    assert main([*words, *model(endpoint, "--embedding-model", "e")]) == 0
    assert {seen.path for seen in endpoint.seen} == {"/v1/embeddings"}
    assert len(rows(dataset / "runs" / "dense.jsonl")) == 3


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_closed_pipe_is_no_error(dataset):
    """`| head` is not a failure."""
    words = f"{sys.executable} -m ragforge evaluate --dataset {dataset} --per-query | head -1"

    shown = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)

    assert "Traceback" not in shown.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("more", ["", "--json"])
def test_a_reader_that_left_changes_no_exit_code(dataset, more):
    """Under pipefail, `gate | grep -q` let a change ship that the gate had failed."""
    gate = f"{sys.executable} -m ragforge gate --dataset {dataset} --min RR=1.01 {more}"
    words = f"(sleep 1; {gate}; echo $? >&2) | true"

    shown = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    alone = subprocess.run(["bash", "-c", f"{gate}"], capture_output=True, check=False)

    assert shown.stderr.split()[-1] == str(alone.returncode) != "0"


def test_a_model_judges_what_the_baseline_judged(dataset, serve):
    """The baseline is a stopgap; its grades must give way to a judge's."""
    assert main(["judge", "--dataset", str(dataset), "-q"]) == 0

    assert main(["judge", "--dataset", str(dataset), *model(serve())]) == 0

    kinds = {row["provenance"]["kind"] for row in rows(dataset / "judgments.jsonl")}
    assert kinds == {"llm"}


def test_another_model_judges_again_only_when_told(dataset, serve):
    """A judge that is swapped by accident must not overwrite a bought set of grades."""
    first, second = serve(), serve()
    words = ["judge", "--dataset", str(dataset)]
    main([*words, *model(first)])

    assert main([*words, *model(second)]) == 0
    assert second.seen == []
    assert main([*words, "--again", "--prompts-dir", ".", *model(first)]) == 0
    assert main([*words, "--again", "--model", "other", *model(second)[2:]]) == 0
    assert len(second.seen) == len(first.seen)


def test_grades_of_another_judge_are_told_of(dataset, serve, capsys):
    """Who names a model and reads "0 judged" would take the grades for that model's."""
    endpoint = serve()
    words = ["judge", "--dataset", str(dataset), *model(endpoint)]
    main(words)
    capsys.readouterr()

    assert main([*words, "--model", "other"]) == 0
    assert "graded by another judge" in capsys.readouterr().err


def test_grades_outside_of_a_pool_are_told_of(dataset, serve, capsys):
    """Judged anew was the pool only; beside it stand the grades of another judge."""
    endpoint = serve()
    words = ["judge", "--dataset", str(dataset), *model(endpoint)]
    main([*words, "--depth", "3"])
    capsys.readouterr()

    assert main([*words, "--depth", "1", "--again", "--model", "other"]) == 0
    assert "outside of this pool the set holds grades of another judge" in capsys.readouterr().err


def test_a_judge_that_fails_throughout_replaces_no_grades(dataset, serve):
    """What was bought before is worth more than a list of failures."""
    good, bad = serve(), serve(lambda path, body, n: Reply(completion("nonsense")))
    main(["judge", "--dataset", str(dataset), *model(good)])
    before = (dataset / "judgments.jsonl").read_bytes()

    words = ["judge", "--dataset", str(dataset), "--again", *model(bad), "--model", "other"]
    assert main(words) == 4
    assert (dataset / "judgments.jsonl").read_bytes() == before


def test_failed_replies_are_asked_again_when_told(tmp_path, pairs, serve):
    """A bad reply is kept like a good one, until somebody wants another try."""
    sick = [True]

    def respond(path, body, number):
        return Reply(completion("nonsense")) if sick else answering(path, body, number)

    endpoint, out = serve(respond), tmp_path / "judged.jsonl"
    words = ["judge", "--pairs", str(pairs), "--out", str(out), *model(endpoint)]
    assert main(words) == 4
    asked = len(endpoint.seen)
    sick.clear()

    assert main(words) == 4
    assert len(endpoint.seen) == asked
    assert main([*words, "--retry-failed"]) == 0
    assert None not in {row["grade"] for row in rows(out)}


def test_evidence_is_not_given_up_for_a_failed_judgment(dataset, serve):
    """A weak judge must not empty a set of what is known without it."""
    endpoint = serve(lambda path, body, n: Reply(completion("nonsense")))

    assert main(["judge", "--dataset", str(dataset), *model(endpoint)]) == 4

    found = rows(dataset / "judgments.jsonl")
    assert [row["grade"] for row in found if row["source"] == "evidence"] == [3, 3, 3]


def test_embeddings_that_fail_stop_the_run_before_any_query(dataset, serve, capsys):
    """A corpus that cannot be embedded is one failure, not one a query."""
    endpoint = serve(lambda path, body, n: fault(500, "no such engine"))
    words = ["retrieve", "--dataset", str(dataset), "--retriever", "dense"]

    assert main([*words, *model(endpoint, "--embedding-model", "e")]) == 4
    assert "retriever 'dense' cannot be built" in capsys.readouterr().err
    assert not (dataset / "runs" / "dense.jsonl").exists()


def test_the_pairs_are_not_overwritten_by_their_judgments(tmp_path, pairs, serve, capsys):
    """The texts may exist nowhere else."""
    endpoint, before = serve(), pairs.read_bytes()

    assert main(["judge", "--pairs", str(pairs), "--out", str(pairs), *model(endpoint)]) == 2
    assert "is the file of pairs itself" in capsys.readouterr().err
    assert pairs.read_bytes() == before
    assert endpoint.seen == []


def test_a_wish_for_a_million_calls_at_once_is_no_hang(tmp_path, pairs, serve):
    """As many units in work as calls wanted would be millions of tasks."""
    endpoint, out = serve(), tmp_path / "judged.jsonl"
    words = ["judge", "--pairs", str(pairs), "--out", str(out), "--concurrency", "1000000"]

    assert main([*words, *model(endpoint)]) == 0
    assert len(rows(out)) == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_the_messages_fails_no_run(
    tmp_path, pairs, serve, monkeypatch, unbuffered
):
    """What was judged counts, not what could be said about it."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    endpoint, out = serve(), tmp_path / "judged.jsonl"
    words = ["judge", "--pairs", str(pairs), "--out", str(out), "--model", "test-model"]
    command = [sys.executable, "-m", "ragforge", *words, "--base-url", endpoint.url]
    with pathlib.Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stderr=full, stdout=subprocess.PIPE, check=False)

    assert ended.returncode == 0
    assert len(rows(out)) == 2


@pytest.mark.parametrize("key", ["sk-abc\ndef", "sk-é☃", "sk abc"])
def test_a_key_that_cannot_be_one_is_named_before_any_call(
    tmp_path, pairs, serve, monkeypatch, capsys, key
):
    """It was cut from a page together with something else."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    endpoint = serve()

    words = ["judge", "--pairs", str(pairs), "--out", str(tmp_path / "o.jsonl"), *model(endpoint)]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "OPENAI_API_KEY" in said
    assert key not in said
    assert endpoint.seen == []
