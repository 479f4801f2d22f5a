import os
import signal
import sqlite3
import time
from contextlib import closing

import pytest

from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore, HeldLease
from ragforge.llm.store.leases import LEASE_S

REPLY = ChatReply("fine")
HOUR_S = 3600


@pytest.fixture
def change(path):
    """Change the columns of all leases."""

    def execute(assignments, *values):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"UPDATE leases SET {assignments}", values)

    return execute


def test_a_reply_that_somebody_buys_is_held(store, other):
    """The second one must wait, and can say for whom."""
    assert store.claim("k") is None

    assert other.claim("k") == HeldLease(os.getpid())


def test_other_replies_are_free(store, other):
    """A lease is for one call."""
    store.claim("k")

    assert other.claim("k2") is None


def test_the_holder_may_claim_again(store):
    """A retry within one process must not wait for itself."""
    store.claim("k")

    assert store.claim("k") is None


def test_a_lease_given_back_is_free(store, other, unanswered):
    """A refused call was answered; the next one may try, and nothing is in doubt."""
    store.claim("k")
    store.release("k")

    assert other.claim("k") is None
    assert unanswered(other) == 0


def test_nobody_gives_back_what_another_holds(store, other):
    """Else a process that lost its lease would free its successor's."""
    store.claim("k")
    other.release("k")

    assert other.claim("k") == HeldLease(os.getpid())


def test_who_closes_gives_everything_back(path, other):
    """The rest of a run that was stopped can be taken up at once."""
    first = CallStore(path)
    first.claim("k")
    first.close()

    assert other.claim("k") is None


def test_a_reply_bought_meanwhile_comes_with_the_claim(store, other):
    """Between looking and claiming another process may have finished."""
    store.claim("k")
    store.put("k", "e", "m", REPLY, None)

    assert other.claim("k").text == "fine"


def test_a_reply_that_is_put_needs_no_lease_any_more(store, other):
    """The table holds only what is being bought."""
    store.claim("k")
    store.put("k", "e", "m", REPLY, None)

    with other.connected() as connection:
        assert connection.execute("SELECT COUNT(*) FROM leases").fetchone() == (0,)


CLAIMING = """
import sys
from pathlib import Path
from ragforge.llm.store.calls import CallStore
store = CallStore(Path(sys.argv[1]))
print(store.claim("k"), flush=True)
sys.stdin.readline()
"""


def test_the_lease_of_a_living_process_holds(path, python, store):
    """It is buying the reply right now."""
    process = python(CLAIMING, path)
    process.stdout.readline()

    assert store.claim("k") == HeldLease(process.pid)


def test_the_lease_of_a_killed_process_is_taken_over_at_once(path, python, store, unanswered):
    """The rerun must not wait a minute; and what the dead one may have paid is counted."""
    process = python(CLAIMING, path)
    claimed = process.stdout.readline()
    process.kill()
    process.wait(timeout=60)

    assert (claimed, store.claim("k"), unanswered(store)) == ("None\n", None, 1)


def test_the_lease_of_a_zombie_is_taken_over(path, python, store):
    """Its parent may never ask what became of it."""
    process = python(CLAIMING, path)
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert store.claim("k") is None


def test_the_lease_of_a_stopped_process_ends(path, python, store, change, unanswered):
    """It lives, and may never go on."""
    process = python(CLAIMING, path)
    process.stdout.readline()
    os.kill(process.pid, signal.SIGSTOP)
    change("until_boot = until_boot - ?", LEASE_S + 1)

    assert (store.claim("k"), unanswered(store)) == (None, 1)


def test_a_lease_holds_until_it_ends(store, other, change):
    """Just before, the reply may still come."""
    store.claim("k")
    change("until_boot = until_boot - ?", LEASE_S - 5)

    assert other.claim("k") == HeldLease(os.getpid())


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
def test_a_step_of_the_wall_clock_changes_nothing(store, other, change, step_s):
    """Machines set their clock while they run; replies must not be paid twice for that."""
    store.claim("k")
    change("until_wall = until_wall + ?", step_s)

    assert other.claim("k") == HeldLease(os.getpid())


@pytest.mark.parametrize(("step_s", "held"), [(0, True), (-LEASE_S - 1, False)])
def test_another_machine_is_judged_by_the_wall_clock(store, other, change, step_s, held):
    """Its monotonic clock and its processes mean nothing here."""
    store.claim("k")
    elsewhere = f"elsewhere/pid:[1]|other-boot|{2**22 + 1}|77|abc"
    change("owner = ?, boot = 'other-boot', until_boot = 0", elsewhere)
    change("until_wall = until_wall + ?", step_s)

    assert isinstance(other.claim("k"), HeldLease) == held


def test_a_lease_from_before_a_restart_is_void(store, other, change):
    """Where boots cannot be told apart, it would else hold for as long as the machine ran."""
    store.claim("k")
    change("until_boot = until_boot + ?", HOUR_S)

    assert other.claim("k") is None


def test_renewing_keeps_a_lease(store, other, change):
    """A reply may take longer than a lease."""
    store.claim("k")
    change("until_boot = until_boot - ?", LEASE_S + 1)
    store.renew()

    assert other.claim("k") == HeldLease(os.getpid())


def test_nobody_renews_what_was_taken_over(store, other, change):
    """One who wakes up late must not take it back from a successor that has ended."""
    store.claim("k")
    change("until_boot = until_boot - ?", LEASE_S + 1)
    other.claim("k")
    change("until_boot = until_boot - ?", LEASE_S + 1)
    store.renew()

    assert store.claim("k") is None


@pytest.fixture
def stand_still(monkeypatch):
    """Let more time go by than a lease lasts, as it does for a process that is stopped."""

    def pass_over():
        true = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: true() + LEASE_S + 1)

    return pass_over


def test_one_who_stood_still_has_lost_what_was_taken_over(store, other, stand_still):
    """It must not buy what its successor buys, though it has renewed what it had left."""
    store.claim("taken")
    store.claim("left")
    stand_still()
    other.claim("taken")
    store.renew()

    assert store.may_be_late
    assert (store.renew_one("taken"), store.renew_one("left")) == (False, True)


def test_one_who_renews_in_time_has_lost_nothing(store):
    """To look for each call would take time, too."""
    store.claim("k")
    store.renew()

    assert not store.may_be_late


@pytest.mark.parametrize("column", ["owner", "until_boot", "until_wall", "boot"])
@pytest.mark.parametrize("junk", ["junk", b"\xff\xfe", "a|b|c|d|e"])
def test_a_damaged_lease_stops_nobody(store, other, change, column, junk):
    """A flipped bit must not end the run, nor hold a reply for ever."""
    store.claim("k")
    change(f"{column} = ?, until_wall = 0", junk) if column != "until_wall" else change(
        "until_wall = ?, boot = 'other'", junk
    )

    assert other.claim("k") is None
