"""The calls of a dataset's commands in shards or batches: what is written is what they write."""

import shutil

import pytest
from shards import write_answers

from ragforge.llm.batches import records
from ragforge.mock import Script, serving


@pytest.fixture
def twins(dataset, tmp_path):
    """Two copies of one set."""
    other = tmp_path / "twin"
    shutil.copytree(dataset, other)
    return dataset, other


def published(folder):
    """Return the files of a set that are published."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".ragforge" not in path.parts
    }


def in_shards(run, command, work):
    """Run a command in shards of four calls, worked off by the command line."""
    how = [*command, "--shards", work, "--requests-per-shard", 4]
    assert run(*how)[0] == 0
    assert run("shard", "run", work, "-q")[0] == 0
    return run(*how)


def in_batches(run, command, work):
    return run(*command, "--batch-api", "--wait", "--poll-every", 0)


@pytest.fixture(params=[in_shards, in_batches], ids=lambda way: way.__name__)
def elsewhere(request, run, tmp_path):
    """Run a command whose calls are made elsewhere."""
    return lambda *command: request.param(run, command, tmp_path / "work")


@pytest.fixture
def answers(dataset, tmp_path):
    return write_answers(dataset, tmp_path / "mine.jsonl")


def test_the_pool_of_a_set_is_judged_elsewhere(run, twins, elsewhere):
    """Judgments, failures and the manifest are those of one process."""
    here, there = twins
    with serving(Script(p_schema=0.2, p_refusal=0.1)) as endpoint:
        how = ["--model", "m", "--base-url", endpoint.url, "-q"]
        assert run("judge", "--dataset", here, *how)[0] == 0
        endpoint.reset()
        code, *_ = elsewhere("judge", "--dataset", there, *how)
        assert endpoint.ledger()["dup"] == 0

    assert code == 0
    assert published(there) == published(here)


def test_answers_are_graded_elsewhere(run, twins, elsewhere, answers):
    """Facts are drawn first, and answers graded by them after."""
    here, there = twins
    with serving(Script()) as endpoint:
        how = ["--answers", answers, "--model", "m", "--base-url", endpoint.url, "-q"]
        assert run("answer", "--dataset", here, *how)[0] == 0
        calls = endpoint.ledger()["billed"]
        endpoint.reset()
        code, *_ = elsewhere("answer", "--dataset", there, *how)
        assert (endpoint.ledger()["billed"], endpoint.ledger()["dup"]) == (calls, 0)

    assert code == 0
    assert published(there) == published(here)


def test_answers_are_grounded_elsewhere(run, elsewhere, answers, tmp_path):
    """A log of traffic may be larger than any set."""
    one, other = tmp_path / "a" / "g.jsonl", tmp_path / "b" / "g.jsonl"
    with serving(Script(p_schema=0.2)) as endpoint:
        how = ["--answers", answers, "--model", "m", "--base-url", endpoint.url, "-q"]
        assert run("ground", "--out", one, *how)[0] == 0
        endpoint.reset()
        other.parent.mkdir()
        code, *_ = elsewhere("ground", "--out", other, *how)
        assert endpoint.ledger()["dup"] == 0

    assert code == 0
    assert other.read_bytes() == one.read_bytes()


def test_a_limit_holds_over_workers_and_the_command_itself(run, dataset, tmp_path):
    """What a worker spent the command cannot spend again."""
    work = tmp_path / "work"
    with serving(Script()) as endpoint:
        how = ["judge", "--dataset", dataset, "--model", "m", "--base-url", endpoint.url, "-q"]
        how += ["--shards", work, "--requests-per-shard", 2, "--max-calls", 3]
        assert run(*how)[0] == 0
        assert run("shard", "run", work, "-q")[0] == 5
        code, _, err = run(*how)

        assert endpoint.ledger()["billed"] == 3
    assert code == 5
    assert "are not done" in err or "is not done" in err


def test_what_shards_left_unanswered_is_not_bought_in_one_process(
    run, twins, tmp_path, monkeypatch
):
    """A worker whose server refused all it was asked would leave the whole job to the command."""
    monkeypatch.setattr(records, "_FEW", 0)
    here, there = twins
    work = tmp_path / "work"
    with serving(Script()) as endpoint, serving(Script(always_status=400)) as refusing:
        how = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "e", "-q"]
        assert run("judge", "--dataset", here, *how)[0] == 0
        endpoint.reset()
        again = ["judge", "--dataset", there, *how, "--shards", work]
        assert run(*again)[0] == 0
        assert run("shard", "run", work, "-q", "--base-url", refusing.url)[0] == 0

        code, _, err = run(*again)
        assert (code, endpoint.ledger()["billed"]) == (5, 0)
        assert f"`ragforge shard run {work} --retry-failed` asks again" in err

        assert run("shard", "run", work, "-q", "--retry-failed")[0] == 0
        billed = endpoint.ledger()["billed"]
        assert run(*again)[0] == 0
        assert endpoint.ledger()["billed"] == billed
    assert published(here) == published(there)


def test_shards_of_requests_are_not_merged_by_hand(run, dataset, tmp_path):
    """Replies are no judgments; the command that they are of makes these."""
    work = tmp_path / "work"
    with serving(Script()) as endpoint:
        how = ["--dataset", dataset, "--model", "m", "--base-url", endpoint.url, "-q"]
        run("judge", *how, "--shards", work)
    code, _, err = run("shard", "merge", work, "--out", tmp_path / "out.jsonl")

    assert code == 2
    assert "holds requests of another command" in err


def test_requests_go_where_the_command_was_made_to_ask(run, dataset, tmp_path, monkeypatch):
    """The worker's own variable names another server, which the command's calls are not for."""
    work = tmp_path / "work"
    how = ["judge", "--dataset", dataset, "--model", "m", "-q", "--shards", work]
    with serving(Script()) as named, serving(Script()) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", named.url)
        assert run(*how)[0] == 0
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        assert run("shard", "run", work, "-q")[0] == 0
        monkeypatch.setenv("OPENAI_BASE_URL", named.url)
        n_billed = named.ledger()["billed"]

        assert run(*how)[0] == 0
        assert n_billed > 0
        assert named.ledger()["billed"] == n_billed
        assert other.ledger()["billed"] == 0
