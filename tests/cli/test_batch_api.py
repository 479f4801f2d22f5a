"""Judging through a batch API: the file is that of live calls, and nothing is paid twice."""

import json

import pytest
from shards import digests, write_pairs

from ragforge.llm.batches import records
from ragforge.llm.batches.records import BatchFolder, BatchRecord
from ragforge.llm.store.ledger import read_ledger
from ragforge.mock import Script, serving

PRICES = ["--input-usd-per-mtok", "1", "--output-usd-per-mtok", "2"]


@pytest.fixture
def judge(run, tmp_path):
    """Judge 108 pairs with 96 distinct texts, into a folder by name."""
    pairs = write_pairs(tmp_path / "pairs.jsonl")

    def go(endpoint, folder, *how, out="judged.jsonl", pairs=pairs):
        out = tmp_path / folder / out
        words = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "prod", "-q"]
        return run("judge", "--pairs", pairs, "--out", out, *words, *PRICES, *how)

    return go


@pytest.fixture
def files(tmp_path):
    return lambda folder: digests(tmp_path / folder / "judged.jsonl")


def bought(tmp_path, folder):
    return read_ledger(tmp_path / folder / ".ragforge" / "calls.sqlite")


def spent(tmp_path, folder):
    return bought(tmp_path, folder).spent


def counted(tmp_path, folder):
    """Return calls and tokens that batches, and live calls before them, are said to have taken."""
    records = BatchFolder(tmp_path / folder / ".ragforge" / "batches").records()
    return sum(item.calls for item in records), sum(item.tokens for item in records)


class Clock:
    """Moves when a test says so: what a batch takes is no matter of the machine."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


WAIT = ("--batch-api", "--wait", "--poll-every", 0)
SMALL = ("--requests-per-batch", 40)


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
        code, *_ = judge(endpoint, "batches", *WAIT, *how)
        assert endpoint.ledger()["dup"] == 0

    assert code == 0
    assert files("batches") == files("live")


FAULTS = {
    "expired": (["expired"] * 3, 96),
    "torn": (["torn"], 128),
    "cut on its way": (["cut"], 96),
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
        code, *_ = judge(endpoint, "batches", *WAIT)
        billed = endpoint.ledger()["billed"]

    assert (code, live[0]) == (0, 0)
    assert files("batches") == files("live")
    assert 96 <= billed <= most


def test_replies_that_were_torn_off_are_the_only_ones_paid_again(judge):
    """What came is in the store, whatever became of its batch."""
    with serving(Script(batch_fault=("torn",))) as endpoint:
        judge(endpoint, "batches", *WAIT)
        ledger = endpoint.ledger()

    assert 0 < ledger["dup"] <= 96 // 3 + 1


def test_a_batch_that_was_not_worked_on_is_sent_again_by_the_same_command(judge, files):
    """The provider's words are told; nothing was paid."""
    with serving(Script(batch_fault=("failed",))) as endpoint:
        judge(endpoint, "live")
        endpoint.reset()
        code, _, err = judge(endpoint, "batches", *WAIT)
        assert code == 4
        assert "Enqueued token limit reached" in err
        assert endpoint.ledger()["billed"] == 1
        assert judge(endpoint, "batches", *WAIT)[0] == 0
        assert endpoint.ledger()["dup"] == 0

    assert files("batches") == files("live")


def test_the_price_is_half(judge, tmp_path):
    """The sums of a set are what was paid."""
    with serving(Script()) as endpoint:
        judge(endpoint, "live")
        judge(endpoint, "batches", *WAIT)

    live, batched = spent(tmp_path, "live"), spent(tmp_path, "batches")
    assert (live.calls, batched.calls) == (96, 96)
    # One call is live: by it the endpoint shows how it wants to be asked.
    assert 0.5 < batched.cost_usd / live.cost_usd < 0.52


def test_each_start_goes_on_where_the_last_one_stopped(judge, files):
    """Nobody leaves a terminal open for a day."""
    clock = Clock()
    with serving(Script(batch_s=3600), clock=clock) as endpoint:
        first = judge(endpoint, "batches", "--batch-api")
        assert "in_progress" in judge(endpoint, "batches", "--batch-api")[2]
        assert files("batches") == {}
        clock.now_s = 3600
        judge(endpoint, "batches", "--batch-api")
        assert (endpoint.ledger()["dup"], endpoint.stats()["batches"]) == (0, 1)

    assert first[0] == 0
    assert "95 requests sent" in first[2]
    assert files("batches")


def test_each_step_can_be_taken_alone(judge, files):
    """A scheduler submits in the evening and collects in the morning."""
    clock = Clock()
    with serving(Script(batch_s=3600), clock=clock) as endpoint:
        for step in ("submit", "poll", "collect"):
            assert "in_progress" in judge(endpoint, "batches", "--batch-api", step)[2]
        clock.now_s = 3600
        assert "no batch is open" in judge(endpoint, "batches", "--batch-api", "collect")[2]
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


def test_a_batch_that_was_never_sent_takes_nothing_once_it_is_cancelled(judge, tmp_path):
    """What was reserved for it would else be missing for good."""
    folder = BatchFolder(tmp_path / "batches" / ".ragforge" / "batches")
    folder.path.mkdir(parents=True)
    folder.write(BatchRecord(name="00000-x", endpoint="prod", model="m", calls=90, tokens=90_000))
    folder.requests_path("00000-x").write_bytes(b"")
    with serving(Script()) as endpoint:
        judge(endpoint, "batches", "--batch-api", "cancel")
        code, *_ = judge(endpoint, "batches", *WAIT, "--max-calls", "96")

    assert code == 0


def test_large_jobs_become_several_batches(judge, files):
    """Providers take so many requests at a time."""
    with serving(Script()) as endpoint:
        judge(endpoint, "live")
        endpoint.reset()
        judge(endpoint, "batches", *WAIT, *SMALL)
        assert (endpoint.ledger()["dup"], endpoint.stats()["batches"]) == (0, 3)

    assert files("batches") == files("live")


@pytest.mark.parametrize("fault", ["failed", "expired", "torn", "errors"])
def test_what_other_batches_brought_is_kept_before_a_failure_ends_the_job(
    judge, files, tmp_path, fault
):
    """Who comes back a month later finds nothing at the provider any more."""
    with serving(Script(batch_fault=(fault,))) as endpoint:
        judge(endpoint, "live")
        endpoint.reset()
        judge(endpoint, "batches", "--batch-api", "submit", *SMALL)
        judge(endpoint, "batches", "--batch-api", "collect")
        stored = spent(tmp_path, "batches").calls
        judge(endpoint, "batches", *WAIT)
        judge(endpoint, "batches", *WAIT)

    assert stored >= 1 + 40 + 15
    assert files("batches") == files("live")


def test_a_batch_that_the_provider_lost_does_not_hold_up_the_others(judge, tmp_path):
    """One broken record must not cost the replies of all."""
    with serving(Script()) as endpoint:
        judge(endpoint, "batches", "--batch-api", "submit", *SMALL)
        folder = BatchFolder(tmp_path / "batches" / ".ragforge" / "batches")
        first = next(record for record in folder.records() if record.state == "sent")
        folder.write(first.model_copy(update={"remote_id": "batch_lost"}))
        code, _, err = judge(endpoint, "batches", "--batch-api")

    assert code == 4
    assert "No such batch: batch_lost" in err
    assert spent(tmp_path, "batches").calls == 96 - first.calls


def test_a_batch_that_is_gone_for_good_can_be_given_up(judge, files, tmp_path):
    """A job would else never end; and what the batch may have cost stays counted."""
    with serving(Script(batch_s=60)) as endpoint:
        judge(endpoint, "batches", "--batch-api", "submit")
    with serving(Script()) as endpoint:
        judge(endpoint, "live")
        code, _, err = judge(endpoint, "batches", "--batch-api")
        assert (code, "--batch-api cancel gives it up" in err) == (4, True)

        cancelled, *_ = judge(endpoint, "batches", "--batch-api", "cancel")
        stopped, *_ = judge(endpoint, "batches", *WAIT, "--max-calls", "96")
        ended, *_ = judge(endpoint, "batches", *WAIT)

    assert (cancelled, stopped, ended) == (0, 5, 0)
    assert files("batches") == files("live")
    assert bought(tmp_path, "batches").unanswered == 95


def test_a_reply_that_cannot_be_read_counts_as_paid(judge, files, tmp_path):
    """The provider bills it, and the limits are on what is billed."""
    with serving(Script(p_empty=0.05)) as endpoint:
        judge(endpoint, "live")
        endpoint.reset()
        code, *_ = judge(endpoint, "batches", *WAIT)
        ledger = endpoint.ledger()

    tokens = ledger["prompt_tokens"] + ledger["completion_tokens"]
    assert code == 0
    assert files("batches") == files("live")
    assert counted(tmp_path, "batches") == (ledger["billed"], tokens)
    assert bought(tmp_path, "batches").unanswered == ledger["billed"] - 96 > 0


def test_a_reply_that_was_cut_off_counts_as_perhaps_paid(judge, tmp_path):
    """Its tokens are not known: it counts as the most that it can have taken."""
    with serving(Script(batch_fault=("torn",))) as endpoint:
        judge(endpoint, "batches", *WAIT)
        ledger = endpoint.ledger()

    calls, tokens = counted(tmp_path, "batches")
    assert calls == ledger["billed"] == 96 + ledger["dup"]
    assert tokens > ledger["prompt_tokens"] + ledger["completion_tokens"]
    assert bought(tmp_path, "batches").unanswered == ledger["dup"] > 0


def test_a_limit_holds_over_replies_that_cannot_be_read(judge):
    """A model that garbles all it says must not be asked for ever."""
    with serving(Script(p_empty=0.3)) as endpoint:
        judge(endpoint, "batches", *WAIT, "--max-calls", "100")
        judge(endpoint, "batches", *WAIT, "--max-calls", "100")

        assert endpoint.ledger()["billed"] == 100


def test_another_job_of_the_same_folder_keeps_what_it_meets(judge, tmp_path):
    """Batches belong to a call store, not to the command that sent them."""
    other = write_pairs(tmp_path / "other.jsonl", queries=20)
    other.write_text("".join(other.read_text().splitlines(keepends=True)[12 * 9 :]))
    with serving(Script()) as endpoint:
        judge(endpoint, "both", "--batch-api", "submit")
        judge(endpoint, "both", *WAIT, out="other.jsonl", pairs=other)
        judge(endpoint, "both", *WAIT)
        billed, batches = endpoint.ledger()["billed"], endpoint.stats()["batches"]

    assert (billed, batches) == (160, 2)
    assert counted(tmp_path, "both")[0] == spent(tmp_path, "both").calls == 160
    assert sorted(path.suffix for path in (tmp_path / "both/.ragforge/batches").iterdir()) == [
        ".json",
        ".json",
        ".json",
    ]


def test_live_calls_say_that_batches_are_under_way(run, judge, tmp_path):
    """The same would be paid twice."""
    with serving(Script(batch_s=3600)) as endpoint:
        judge(endpoint, "batches", "--batch-api", "submit")
        err = run(
            *("judge", "--pairs", tmp_path / "pairs.jsonl"),
            *("--out", tmp_path / "batches" / "judged.jsonl", "--dry-run"),
            *("--model", "m", "--base-url", endpoint.url, "--endpoint-id", "prod"),
        )[2]

    assert "95 requests are under way in batches" in err


def test_a_limit_is_kept_over_all_batches(judge, tmp_path):
    """What was reserved for a batch and not used goes into the next one."""
    with serving(Script()) as endpoint:
        code, _, err = judge(endpoint, "batches", *WAIT, "--max-calls", "60")
        assert (code, endpoint.ledger()["billed"]) == (5, 60)
        written = (tmp_path / "batches" / "judged.jsonl").read_text()
        alone = judge(endpoint, "batches", "--batch-api", "submit", "--max-calls", "60")
        assert judge(endpoint, "batches", *WAIT, "--max-calls", "96")[0] == 0
        assert (endpoint.ledger()["billed"], endpoint.ledger()["dup"]) == (96, 0)

    assert "--max-calls 60 is reached" in err
    assert (alone[0], "have no room" in alone[2]) == (5, True)
    assert written.count('"grade":') >= 60  # What was bought, with the pairs of the same text.


@pytest.mark.parametrize("how", [("--batch-api",), WAIT, ("--batch-out", "requests.jsonl")])
def test_a_limit_in_dollars_without_a_price_is_refused_before_anything_is_sent(run, tmp_path, how):
    """Requests that count 0 dollars would all fit, however low the limit is."""
    pairs, out = write_pairs(tmp_path / "pairs.jsonl"), tmp_path / "out" / "judged.jsonl"
    with serving(Script()) as endpoint:
        words = ["--pairs", pairs, "--out", out, "--model", "m", "--base-url", endpoint.url, "-q"]
        assert run("judge", *words, "--max-calls", "5")[0] == 5
        code, _, err = run("judge", *words, *how, "--max-cost-usd", "0.0001")

        assert (endpoint.ledger()["billed"], endpoint.stats()["batches"]) == (5, 0)
    assert code == 2
    assert "--max-cost-usd: the price of the model is not known; give it with" in err


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
        code, *_ = judge(endpoint, "batches", *WAIT)

    assert code == 0
    assert files("batches") == files("live")
    assert ".failures.jsonl" in files("live")


def test_few_refusals_of_many_are_asked_live(judge, files, monkeypatch):
    """One in a hundred is counted over all batches, not over the last one."""
    monkeypatch.setattr(records, "_FEW", 0)
    monkeypatch.setattr(records, "_LIVE_SHARE", 0.05)
    with serving(Script(bad_text="Note 3 of 7")) as endpoint:
        judge(endpoint, "live")
        code, *_ = judge(endpoint, "batches", *WAIT)

    assert code == 0
    assert files("batches") == files("live")


def test_an_endpoint_that_refuses_everything_ends_the_job(judge):
    """Asked live instead, all of it would cost twice as much."""
    with serving(Script(batch_fault=("errors",) * 9)) as endpoint:
        code, _, err = judge(endpoint, "batches", *WAIT)

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
