"""Judging through a batch API: the file is that of live calls, and nothing is paid twice."""

import json

import pytest
from shards import digests, write_pairs

from ragforge.llm.batches import session
from ragforge.llm.store.ledger import read_ledger
from ragforge.mock import Script, serving

PRICES = ["--input-usd-per-mtok", "1", "--output-usd-per-mtok", "2"]


@pytest.fixture
def judge(run, tmp_path):
    """Judge 108 pairs with 96 distinct texts, into a folder by name."""
    pairs = write_pairs(tmp_path / "pairs.jsonl")

    def go(endpoint, folder, *how):
        out = tmp_path / folder / "judged.jsonl"
        words = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "prod", "-q"]
        return run("judge", "--pairs", pairs, "--out", out, *words, *PRICES, *how)

    return go


@pytest.fixture
def files(tmp_path):
    return lambda folder: digests(tmp_path / folder / "judged.jsonl")


def spent(tmp_path, folder):
    return read_ledger(tmp_path / folder / ".ragforge" / "calls.sqlite").spent


@pytest.mark.parametrize(
    "how",
    [
        [],
        ["--panel", "a,b"],
        ["--votes", "3", "--temperature", "0.5"],
        ["--batch", "4", "--permutations", "2"],
    ],
    ids=" ".join,
)
def test_the_file_is_that_of_live_calls(judge, files, how):
    """Half the price is no reason for another result; repair turns make a wave of their own."""
    with serving(Script(p_schema=0.1, p_refusal=0.1, p_length=0.05)) as endpoint:
        assert judge(endpoint, "live", *how)[0] == 0
        endpoint.reset()
        code, *_ = judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0, *how)
        assert endpoint.ledger()["dup"] == 0

    assert code == 0
    assert files("batches") == files("live")


FAULTS = {
    "expired": (["expired"] * 3, 96),
    "torn": (["torn"], 128),
    "half": (["half"], 96),
    "duplicated": (["duplicated"], 96),
    "only errors": (["errors"], 96),
    "untold": (["untold"], 96),
    "one after the other": (["torn", "expired", "duplicated"], 128),
}


@pytest.mark.parametrize(("faults", "most"), FAULTS.values(), ids=FAULTS.keys())
def test_a_batch_that_goes_wrong_changes_nothing_but_the_time(judge, files, faults, most):
    """Expired batches hold paid replies, finished ones may hold none, and files are cut."""
    with serving(Script(batch_fault=tuple(faults))) as endpoint:
        live = judge(endpoint, "live")
        endpoint.reset()
        code, *_ = judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)
        billed = endpoint.ledger()["billed"]

    assert (code, live[0]) == (0, 0)
    assert files("batches") == files("live")
    assert 96 <= billed <= most


def test_replies_that_were_torn_off_are_the_only_ones_paid_again(judge):
    """What came is in the store, whatever became of its batch."""
    with serving(Script(batch_fault=("torn",))) as endpoint:
        judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)
        ledger = endpoint.ledger()

    assert 0 < ledger["dup"] <= 96 // 3 + 1


def test_a_batch_that_was_not_worked_on_is_sent_again_by_the_same_command(judge, files):
    """The provider's words are told; nothing was paid."""
    with serving(Script(batch_fault=("failed",))) as endpoint:
        judge(endpoint, "live")
        endpoint.reset()
        code, _, err = judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)
        assert code == 4
        assert "Enqueued token limit reached" in err
        assert endpoint.ledger()["billed"] == 1
        assert judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)[0] == 0
        assert endpoint.ledger()["dup"] == 0

    assert files("batches") == files("live")


def test_the_price_is_half(judge, tmp_path):
    """The sums of a set are what was paid."""
    with serving(Script()) as endpoint:
        judge(endpoint, "live")
        judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)

    live, batched = spent(tmp_path, "live"), spent(tmp_path, "batches")
    assert (live.calls, batched.calls) == (96, 96)
    # One call is live: by it the endpoint shows how it wants to be asked.
    assert 0.5 < batched.cost_usd / live.cost_usd < 0.52


def test_each_start_goes_on_where_the_last_one_stopped(judge, files):
    """Nobody leaves a terminal open for a day."""
    with serving(Script(batch_s=0.4)) as endpoint:
        first = judge(endpoint, "batches", "--batch-api")
        while not files("batches"):
            judge(endpoint, "batches", "--batch-api")
        assert (endpoint.ledger()["dup"], endpoint.stats()["batches"]) == (0, 1)

    assert first[0] == 0
    assert "95 requests sent" in first[2]


def test_each_step_can_be_taken_alone(judge, files):
    """A scheduler submits in the evening and collects in the morning."""
    with serving(Script(batch_s=0.3)) as endpoint:
        assert "in_progress" in judge(endpoint, "batches", "--batch-api", "submit")[2]
        assert "in_progress" in judge(endpoint, "batches", "--batch-api", "poll")[2]
        assert endpoint.stats()["batches"] == 1
        while "in_progress" in judge(endpoint, "batches", "--batch-api", "collect")[2]:
            pass
        assert files("batches") == {}
        judge(endpoint, "batches", "--batch-api")
        assert endpoint.stats()["batches"] == 1

    assert files("batches")


def test_what_a_cancelled_batch_did_is_kept(judge, tmp_path):
    """It is paid for."""
    with serving(Script(batch_s=60)) as endpoint:
        judge(endpoint, "batches", "--batch-api", "submit")
        judge(endpoint, "batches", "--batch-api", "cancel")
        judge(endpoint, "batches", "--batch-api", "collect")

    assert spent(tmp_path, "batches").calls == 1 + 95 // 2


def test_large_jobs_become_several_batches(judge, files, monkeypatch):
    """Providers take so many requests at a time."""
    monkeypatch.setattr(session, "LARGEST", session.BatchSize(requests=40))
    monkeypatch.setattr("ragforge.pipeline.batch_job.LARGEST", session.BatchSize(requests=40))
    with serving(Script()) as endpoint:
        judge(endpoint, "live")
        endpoint.reset()
        judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)
        assert endpoint.ledger()["dup"] == 0

    assert files("batches") == files("live")


def test_a_limit_is_kept_over_all_batches(judge):
    """What was reserved for a batch and not used goes into the next one."""
    with serving(Script()) as endpoint:
        how = ["--batch-api", "--wait", "--poll-every", 0]
        code, _, err = judge(endpoint, "batches", *how, "--max-calls", "60")
        assert (code, endpoint.ledger()["billed"]) == (5, 60)
        assert judge(endpoint, "batches", *how, "--max-calls", "96")[0] == 0
        assert (endpoint.ledger()["billed"], endpoint.ledger()["dup"]) == (96, 0)

    assert "have no room" in err


def test_an_offline_server_works_on_files(judge, files, tmp_path):
    """vLLM runs such a file without any endpoint; its replies stand under the endpoint's name."""
    asked, replied = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    with serving(Script(p_schema=0.2)) as endpoint:
        judge(endpoint, "live")
        endpoint.reset()
        for _ in range(3):
            judge(endpoint, "files", "--batch-out", asked)
            replied.write_text("".join(map(answered(endpoint), asked.read_text().splitlines())))
            judge(endpoint, "files", "--batch-in", replied)
        endpoint.reset()
        code, *_ = judge(endpoint, "files", "--offline-replay")
        assert endpoint.ledger()["billed"] == 0

    assert code == 0
    assert files("files") == files("live")


def answered(endpoint):
    """Return a function that has a line answered, as `vllm run-batch` would."""
    from urllib.request import Request, urlopen

    def answer(text):
        line = json.loads(text)
        request = Request(f"{endpoint.url}/chat/completions", json.dumps(line["body"]).encode())
        with urlopen(request) as reply:
            body = json.loads(reply.read())
        response = {"status_code": 200, "request_id": "r", "body": body}
        found = {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}
        return json.dumps(found) + "\n"

    return answer


def test_a_request_that_is_refused_becomes_the_failure_of_a_live_call(judge, files):
    """Two batches refuse it, then it is asked live, and fails as it would have."""
    with serving(Script(bad_text="Note 3 of 7")) as endpoint:
        judge(endpoint, "live")
        code, *_ = judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)

    assert code == 0
    assert files("batches") == files("live")
    assert ".failures.jsonl" in files("live")


def test_an_endpoint_that_refuses_everything_ends_the_job(judge):
    """Asked live instead, all of it would cost twice as much."""
    with serving(Script(batch_fault=("errors",) * 9)) as endpoint:
        code, _, err = judge(endpoint, "batches", "--batch-api", "--wait", "--poll-every", 0)

        assert endpoint.stats()["batches"] == 2
    assert code == 4
    assert "95 requests were left unanswered by 2 batches" in err


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (["--batch-api", "--dry-run"], "--dry-run goes with live calls"),
        (["--batch-api", "--batch-in", "x"], "do not go together"),
        (["--wait"], "--wait goes with --batch-api"),
        (["--batch-api", "--model", "offline"], "has no batch API"),
    ],
)
def test_what_makes_no_sense_is_refused(judge, how, said):
    """A wrong flag must not start a day of waiting."""
    with serving(Script()) as endpoint:
        code, _, err = judge(endpoint, "batches", *how)

    assert code == 2
    assert said in err
