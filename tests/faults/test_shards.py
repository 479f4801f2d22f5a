"""Workers of shards as processes: they are killed, suspended, and share a budget."""

import json
import os
import random
import re
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from command_processes import CommandProcess
from faults.harness import KEY, finish, until
from shards import digests, write_pairs

from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Query

AT_ONCE = 16
"""Calls in flight of both workers together."""
KILLS = 6


class Workers:
    """Two workers, or more, on one folder of shards."""

    def __init__(self, folder, endpoint):
        self.folder, self.endpoint = folder, endpoint
        self.pairs = write_pairs(folder / "pairs.jsonl", queries=24)
        self.work = folder / "work"
        self.begun = []

    def begin(self, *words):
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "RAGFORGE_"))},
            "OPENAI_API_KEY": KEY,
        }
        process = CommandProcess([str(word) for word in words], self.folder, environment)
        self.begun.append(process)
        return process

    def call(self, *words):
        ended = finish(self.begin(*words))
        assert ended.code == 0, ended.err
        return ended

    def plan(self, *how):
        self.call(
            *("shard", "plan", "--pairs", self.pairs, "--into", self.work, "-q"),
            *("--model", "mock", "--base-url", self.endpoint.url, "--endpoint-id", "prod"),
            *("--pairs-per-shard", 30, "--workers", 2, "--concurrency", AT_ONCE, *how),
        )

    def worker(self):
        return self.begin("shard", "run", self.work, "-q")

    def together(self):
        return self.begin("shard", "run", self.work, "--on", "this-machine", "-q")

    def alone(self):
        out = self.folder / "alone" / "judged.jsonl"
        self.call(
            *("judge", "--pairs", self.pairs, "--out", out, "-q", "--concurrency", AT_ONCE),
            *("--model", "mock", "--base-url", self.endpoint.url, "--endpoint-id", "prod"),
        )
        return digests(out)

    def merged(self):
        out = self.folder / "merged" / "judged.jsonl"
        self.call("shard", "merge", self.work, "--out", out)
        return digests(out)


@pytest.fixture
def workers(tmp_path, start):
    made = []

    def make(**script):
        made.append(Workers(tmp_path, start(**{"latency": "lognorm:60,0.4", **script})))
        return made[-1]

    yield make
    for process in (process for each in made for process in each.begun):
        process.kill()


def test_workers_that_are_killed_are_made_up_for(workers):
    """Machines of a job array are lost; what they bought is not, and the file is the same."""
    here, draws = workers(), random.Random(24)
    expected = here.alone()
    here.endpoint.reset()
    here.plan()
    running = [here.worker(), here.worker()]
    for _ in range(KILLS):
        goal = here.endpoint.count("billed") + draws.randint(8, 24)
        until(lambda goal=goal: here.endpoint.count("billed") >= goal)
        victim = running.pop(draws.randint(0, 1))
        victim.kill()
        finish(victim)
        running.append(here.worker())
    codes = [finish(worker).code for worker in running]

    assert codes == [0, 0]
    assert here.merged() == expected
    assert here.endpoint.count("dup") <= KILLS * AT_ONCE // 2
    assert here.endpoint.count("bodies") == 24 * 8


def test_a_worker_keeps_its_connections_from_shard_to_shard(workers):
    """New ones for each shard would be paid for in time, and what the endpoint takes be forgotten.

    Nor does the dialect have to be found again: the endpoint refuses one form, once.
    """
    here = workers(refuse=("json_schema",))
    here.plan("--workers", 1)
    here.call("shard", "run", here.work, "-q")

    assert here.endpoint.count("connections") <= AT_ONCE + 1
    assert here.endpoint.running.stats()["by_status"]["400"] == 1


def test_a_limit_on_calls_is_that_of_all_workers_together(workers):
    """The endpoint's own ledger is what the user pays by, kills or not.

    A worker that is killed may have taken twice its concurrency: half in flight, half to come next.
    """
    here = workers()
    here.plan("--max-calls", 100)
    running = [here.worker() for _ in range(3)]
    here.endpoint.until_billed(30)
    running[0].kill()
    codes = [finish(worker).code for worker in running]

    assert set(codes[1:]) == {5}
    assert 100 - 2 * (AT_ONCE // 2) <= here.endpoint.count("billed") <= 100


def test_a_limit_on_tokens_is_that_of_all_workers_together(workers):
    """Prices are by token."""
    here = workers()
    here.plan("--max-tokens", 40_000, "--max-output-tokens", 300)
    codes = [finish(worker).code for worker in [here.worker(), here.worker()]]

    spent = here.endpoint.count("prompt_tokens") + here.endpoint.count("completion_tokens")
    assert codes == [5, 5]
    assert 20_000 < spent <= 40_000


def test_a_worker_that_was_suspended_repeats_no_more_than_it_had_in_work(workers):
    """A laptop that slept finds its shard done, and leaves it as the other worker wrote it."""
    here = workers()
    here.plan()
    asleep = here.worker()
    here.endpoint.until_billed(20)
    asleep.send_signal(signal.SIGSTOP)
    [lease] = here.work.glob("shards/*/lease.json")
    owner, boot, *_ = json.loads(lease.read_text())
    lease.write_text(json.dumps([owner, boot, 0.0, 0.0]))
    with closing(sqlite3.connect(lease.parent / ".ragforge" / "calls.sqlite")) as store:
        store.execute("UPDATE leases SET until_boot = 0, until_wall = 0")
        store.commit()
    assert finish(here.worker()).code == 0
    done = lease.parent / "done.json"
    written = done.stat().st_ino
    asleep.send_signal(signal.SIGCONT)
    assert finish(asleep).code == 0

    assert here.endpoint.count("dup") <= AT_ONCE
    assert done.stat().st_ino == written


def test_an_interrupted_worker_gives_its_shard_back_at_once(workers):
    """Ctrl-C on one machine must not keep the others waiting."""
    here = workers()
    here.plan()
    worker = here.worker()
    here.endpoint.until_billed(20)
    worker.send_signal(signal.SIGINT)
    ended = finish(worker)

    assert ended.code == 130
    assert "what was done is kept" in ended.err
    assert list(here.work.glob("shards/*/lease.json")) == []
    assert finish(here.worker()).code == 0
    assert here.endpoint.count("dup") == 0


def children(process):
    """Return the workers that a process started."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


def test_workers_of_this_machine_are_started_again(workers):
    """Whoever judges on one machine needs no script that looks after the workers."""
    here, draws = workers(), random.Random(45)
    expected = here.alone()
    here.endpoint.reset()
    here.plan()
    running = here.together()
    for _ in range(KILLS):
        goal = here.endpoint.count("billed") + draws.randint(8, 24)
        until(lambda goal=goal: here.endpoint.count("billed") >= goal)
        until(lambda: len(children(running)) == 2)
        os.kill(draws.choice(children(running)), signal.SIGKILL)
    ended = finish(running)

    assert (ended.code, here.merged()) == (0, expected)
    assert "6 of 6 shards worked off by 2 workers" in ended.err
    assert here.endpoint.count("dup") <= KILLS * AT_ONCE // 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_of_this_machine_end_with_their_parent(workers, how):
    """Nobody is left behind who spends money, and no reply on its way is lost."""
    here = workers()
    here.plan()
    running = here.together()
    here.endpoint.until_billed(20)
    left = children(running)
    running.send_signal(how)
    ended = finish(running)

    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    assert len(left) == 2
    assert ended.code == (-9 if how == signal.SIGKILL else 130)
    assert list(here.work.glob("shards/*/lease.json")) == []
    assert finish(here.together()).code == 0
    assert here.endpoint.count("dup") == 0


def test_what_shards_spent_before_is_not_told_as_bought_now(workers):
    """Whoever retries what failed would read that all was paid for once more."""
    here = workers(latency="fixed:0", p_badjson=0.6)
    here.plan()
    told, billed = [], []
    for flags in ((), ("--retry-failed",)):
        before = here.endpoint.count("billed")
        ended = here.call("shard", "run", here.work, "--on", "this-machine", *flags)
        [calls] = re.findall(r"(\d+) calls, 0 from the store", ended.err)
        told.append(int(calls))
        billed.append(here.endpoint.count("billed") - before)

    assert told == billed


def test_what_a_worker_of_this_machine_meets_ends_all(workers):
    """The limit is that of the plan, and the message that of a single worker."""
    here = workers()
    here.plan("--max-calls", 100)
    ended = finish(here.together())

    assert ended.code == 5
    assert "is reached by all workers of the shards together" in ended.err
    assert 100 - AT_ONCE <= here.endpoint.count("billed") <= 100


def test_workers_that_never_get_anywhere_are_given_up(workers):
    """Where the memory does not hold one shard, it would be begun for ever."""
    here, killed = workers(latency="fixed:60000"), set()
    here.plan()
    running = here.together()

    def are_killed():
        with suppress(FileNotFoundError, ProcessLookupError):
            for pid in set(children(running)) - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        return len(killed) >= 11

    until(are_killed)
    ended = finish(running)

    assert ended.code == 5
    assert "workers ended, the last with exit code -9" in ended.err


N_ANSWERS = 6


@pytest.fixture
def answers(tmp_path):
    """A set, and answers to its queries, which are graded by facts."""
    dataset = create_dataset(tmp_path / "set", made_from={})
    dataset.write_chunks([Chunk(chunk_id="c", doc_id="d", text="Oak is oiled yearly.")])
    queries = [
        Query(query_id=f"q{at}", query=f"How is oak {at} cared for?", expected_answer="Oil it.")
        for at in range(N_ANSWERS)
    ]
    dataset.write_queries(queries)
    rows = [
        {"query_id": one.query_id, "query": one.query, "answer": "It is oiled.", "contexts": ["A"]}
        for one in queries
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "set", path


def test_a_command_that_is_killed_while_it_takes_replies_over_goes_on(workers, answers):
    """Facts that it wrote already lead to requests that no plan has, and no other work."""
    here, (dataset, path) = workers(latency="lognorm:200,0.2"), answers
    words = [
        *("answer", "--dataset", dataset, "--answers", path, "--shards", here.work, "-q"),
        *("--model", "mock", "--base-url", here.endpoint.url, "--concurrency", 1),
    ]
    here.call(*words)
    finish(here.worker())
    taking_over = here.begin(*words)
    here.endpoint.until_billed(N_ANSWERS + 2)
    taking_over.kill()
    finish(taking_over)
    here.call(*words)

    assert 2 * N_ANSWERS <= here.endpoint.count("billed") <= 2 * N_ANSWERS + 1
