"""Rows 1-6: the process goes away, in every way a process can."""

import os
import pty
import random
import signal
import time
from pathlib import Path

import pytest
from faults.harness import Product, endpoint, finish, until

KILLS = 12
AT_ONCE = 16
FIGURES = Path("/tmp/faults/kill.txt")
WIDE = ("--concurrency", str(AT_ONCE), "-q")


def killed(product, billed, later_s=0.0):
    """Kill a run once so many further replies were billed, and return what it cost.

    Returns:
        Requests in flight at the endpoint at the kill, and the calls bought but not stored.
    """
    running = product.endpoint
    goal = running.count("billed") + billed
    lost = running.count("billed") - product.bought
    process = product.begin(*WIDE)
    until(lambda: running.count("billed") >= goal or process.poll() is not None)
    at_s = running.clock() + later_s
    until(lambda: running.clock() >= at_s or process.poll() is not None)
    in_flight = running.count("in_flight_now")
    process.kill()
    finish(process)
    # What was on its way when the process died still arrives, and is billed.
    until(lambda: running.count("in_flight_now") == 0)
    return in_flight, running.count("billed") - product.bought - lost


@pytest.fixture(scope="module")
def kills(tmp_path_factory):
    """A calm run, and one that is killed at random and resumed until it is done."""
    draws = random.Random(45)
    folder = tmp_path_factory.mktemp("kills")
    with endpoint(latency="lognorm:80,0.4") as running:
        calm = Product(folder / "calm", running, 160)
        finish(calm.begin(*WIDE))
        running.reset()
        product = Product(folder / "killed", running, 160)
        costs = [killed(product, draws.randint(0, 20), draws.random() / 10) for _ in range(KILLS)]
        last = product.run(*WIDE)
        if FIGURES.parent.is_dir():
            told = "".join(
                f"kill {n}: in flight {a}, repeated {b}\n" for n, (a, b) in enumerate(costs)
            )
            FIGURES.write_text(
                f"{told}kills {KILLS}, repeated calls {running.count('dup')}, exit {last.code}\n"
            )
        yield calm, product, costs, last, running.count("dup")


def test_a_run_that_was_killed_often_ends_with_the_bytes_of_a_calm_one(kills):
    """Row 1: what comes out must not tell what the machine went through (160 pairs, 12 kills)."""
    calm, product, _, last, _ = kills

    assert last.code == 0
    assert product.out.read_bytes() == calm.out.read_bytes()


def test_a_kill_repeats_no_more_than_the_calls_in_flight(kills):
    """Row 1: everything else has been paid for and must not be paid for again."""
    costs = kills[2]

    assert [repeated for _, repeated in costs if repeated > AT_ONCE] == []


def test_each_repeated_call_goes_back_to_a_kill(kills):
    """Row 1: a resume that asks again for what is stored would cost without any kill."""
    _, _, costs, _, dup = kills

    assert dup == sum(repeated for _, repeated in costs)


DIE_IN_COMMIT = """
import os, signal, sqlite3, sys
from unittest.mock import patch
from ragforge.cli import main
from ragforge.llm.store.calls import CallStore

puts = 0

def doomed(base):
    class Doomed(base):
        def execute(self, sql, *more):
            if puts == 20 and sql == "COMMIT":
                os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(sql, *more)

    return Doomed

put, connect = CallStore.put, sqlite3.connect

def doomed_put(store, *more):
    global puts
    puts += 1
    put(store, *more)

def doomed_connect(*more, factory, **named):
    return connect(*more, factory=doomed(factory), **named)

patch.object(CallStore, "put", doomed_put).start()
patch.object(sqlite3, "connect", doomed_connect).start()
sys.exit(main())
"""


@pytest.fixture
def cut_in_commit(start, product):
    """A run of 40 pairs, one at a time, killed between the 20th reply and its commit."""
    cut = product(start(), 40)
    ended = cut.run("--concurrency", "1", program=("-c", DIE_IN_COMMIT))
    assert ended.code == -signal.SIGKILL
    return cut


def test_a_kill_before_the_commit_leaves_no_half_row(cut_in_commit):
    """Row 2: a row without its reply would be served for ever."""
    assert cut_in_commit.bought == 19


def test_a_kill_before_the_commit_costs_the_one_call(cut_in_commit):
    """Row 2: the reply that was being written is the only one to be bought again."""
    assert cut_in_commit.run("-q").code == 0

    assert cut_in_commit.endpoint.count("dup") == 1
    assert cut_in_commit.grades == cut_in_commit.expected


def test_the_call_that_died_is_counted_as_perhaps_billed(cut_in_commit):
    """Row 2: the bill of the provider must be explainable (the other one waited to be sent)."""
    cut_in_commit.run("-q")

    assert 1 <= cut_in_commit.unanswered <= 2


DIE_IN_EXPORT = """
import os, signal, sys
from pathlib import Path
from unittest.mock import patch
from ragforge.cli import main

def die(*more):
    os.kill(os.getpid(), signal.SIGKILL)

patch.object(Path, "replace", die).start()
sys.exit(main())
"""


def test_a_kill_while_the_output_is_written_leaves_the_old_one(start, product):
    """Row 3: half a file looks like a whole one with fewer judgments."""
    export = product(start(), 30)
    export.run("-q")
    old = export.out.read_bytes()
    export.write_pairs(export.passage(number) for number in range(60))

    ended = export.run("-q", program=("-c", DIE_IN_EXPORT))

    assert ended.code == -signal.SIGKILL
    assert export.out.read_bytes() == old
    assert export.run("-q").code == 0
    assert len(export.judged) == 60
    assert export.endpoint.count("dup") == 0


def test_a_killed_export_leaves_nothing_behind_for_good(start, product):
    """Row 3: nightly jobs would fill the folder with halves of files."""
    export = product(start(), 30)
    ended = export.run("-q", program=("-c", DIE_IN_EXPORT))
    assert ended.code == -signal.SIGKILL

    export.run("-q")

    assert [path.name for path in export.out.parent.iterdir() if path.is_file()] == ["judged.jsonl"]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A run of 120 pairs that gets SIGINT at half of them, and then is resumed."""
    with endpoint(latency="fixed:150") as running:
        product = Product(tmp_path_factory.mktemp("interrupted"), running, 120)
        process = product.begin("--concurrency", "16")
        running.until_billed(60)
        process.send_signal(signal.SIGINT)
        at_s = running.clock()
        ended = finish(process)
        late = [send for send in running.sends if send > at_s + 0.1]
        billed, bought = running.count("billed"), product.bought
        resumed = product.run("-q")
        yield {
            "ended": ended,
            "late": late,
            "billed": billed,
            "bought": bought,
            "resumed": resumed,
            "dup": running.count("dup"),
            "grades": product.grades,
            "expected": product.expected,
        }


def test_nothing_is_sent_behind_an_interrupt(interrupted):
    """Row 4: who stops a run wants no further call (none 100 ms later)."""
    assert interrupted["late"] == []


def test_calls_in_flight_at_an_interrupt_are_stored(interrupted):
    """Row 4: they are paid for."""
    assert interrupted["bought"] == interrupted["billed"]


def test_an_interrupt_ends_with_130_and_the_command_to_go_on(interrupted):
    """Row 4: scripts look at the code, people at the command."""
    assert interrupted["ended"].code == 130
    assert "ragforge judge --pairs" in interrupted["ended"].err


def test_an_interrupt_says_how_far_the_run_came(interrupted):
    """Row 4: whether to go on depends on what is missing."""
    assert "done, 0 failed" in interrupted["ended"].err


def test_a_run_that_was_interrupted_buys_nothing_twice(interrupted):
    """Row 4: Ctrl-C is the commonest way to end a run."""
    assert interrupted["resumed"].code == 0
    assert interrupted["dup"] == 0
    assert interrupted["grades"] == interrupted["expected"]


def test_a_call_that_hangs_holds_an_interrupt_up_for_ten_seconds_at_most(start, product):
    """Row 4: people who wait longer take kill -9."""
    hanging = product(start(latency="fixed:60000"), 4)
    process = hanging.begin("-q")
    hanging.endpoint.until_billed(1)

    process.send_signal(signal.SIGINT)

    ended = finish(process)
    assert ended.code == 130
    assert ended.took_s < 12


@pytest.fixture
def hurried(start, product):
    """A run that works on calls of a minute."""
    running = product(start(latency="fixed:60000", seed=1), 4)
    process = running.begin("-q")
    running.endpoint.until_billed(1)
    return process


def test_a_second_interrupt_ends_the_run_at_once(hurried):
    """Row 5: the second Ctrl-C means now (within two seconds, one second behind the first)."""
    hurried.send_signal(signal.SIGINT)
    at_s = time.monotonic() + 1
    until(lambda: time.monotonic() > at_s)
    hurried.send_signal(signal.SIGINT)

    ended = finish(hurried)

    assert ended.took_s < 2
    assert ended.code == 130


def test_a_run_interrupted_twice_is_finished_by_the_next_one(start, product):
    """Row 5: impatience must not cost what was done."""
    twice = product(start(latency="lognorm:80,0.4"), 80)
    process = twice.begin(*WIDE)
    twice.endpoint.until_billed(40)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    finish(process)

    assert twice.run("-q").code == 0
    assert twice.grades == twice.expected
    assert twice.endpoint.count("dup") <= AT_ONCE


def test_a_schedulers_stop_ends_the_run_in_good_order(start, product):
    """Row 5: a container gets SIGTERM, and some seconds to obey."""
    stopped = product(start(latency="fixed:200"), 120)
    process = stopped.begin(*WIDE)
    stopped.endpoint.until_billed(40)

    process.send_signal(signal.SIGTERM)

    ended = finish(process)
    assert ended.took_s < 2
    assert ended.code == 130


def test_a_schedulers_stop_costs_no_call_twice(start, product):
    """Row 5: spot machines are stopped this way every day."""
    stopped = product(start(latency="fixed:150"), 80)
    process = stopped.begin(*WIDE)
    stopped.endpoint.until_billed(40)
    process.send_signal(signal.SIGTERM)
    finish(process)

    assert stopped.run("-q").code == 0
    assert stopped.endpoint.count("dup") == 0
    assert stopped.grades == stopped.expected


def test_a_terminal_that_is_closed_costs_no_call_twice(start, product):
    """Row 5: connections to the machine that runs it break, and laptops are shut."""
    left = product(start(latency="fixed:150"), 80)
    ours, theirs = pty.openpty()

    def log_in():
        os.login_tty(theirs)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # These tests may run under nohup.

    process = left.begin(*WIDE, first=log_in, stdout=None, stderr=None, pass_fds=[theirs])
    os.close(theirs)
    left.endpoint.until_billed(40)
    os.close(ours)

    assert finish(process).code == 130
    assert left.run("-q").code == 0
    assert left.endpoint.count("dup") == 0
    assert left.grades == left.expected


def test_two_processes_share_the_work_of_one_folder(start, product):
    """Row 6: a scheduler that starts a job twice must not pay twice."""
    shared = product(start(latency="lognorm:80,0.4"), 120)
    first, second = shared.begin(*WIDE), shared.begin(*WIDE)

    assert [finish(first).code, finish(second).code] == [0, 0]
    assert shared.endpoint.count("dup") == 0
    assert shared.grades == shared.expected


def test_leases_of_a_dead_process_are_taken_over_at_once(start, product):
    """Row 6: a lease lasts a minute, and nobody waits that long behind a crash."""
    crashed = product(start(latency="fixed:200"), 40)
    process = crashed.begin(*WIDE)
    crashed.endpoint.until_billed(20)
    process.kill()
    finish(process)

    resumed = crashed.run("-q", "--concurrency", "40")

    assert resumed.code == 0
    assert resumed.took_s < 10
