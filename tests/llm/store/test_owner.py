import os
from dataclasses import replace
from pathlib import Path

import pytest

from ragforge.llm.store.leases import boot_id, read_owner, this_owner

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux' /proc")


def test_an_owner_is_read_as_it_was_written():
    """Another process judges the lease by it."""
    owner = this_owner()

    assert read_owner(str(owner)) == owner


def test_two_stores_of_one_process_are_two_owners():
    """They wait for each other like strangers."""
    assert this_owner() != this_owner()


def test_a_living_process_is_not_gone():
    """It is buying."""
    assert not this_owner().is_gone


@linux
def test_another_process_under_the_same_id_is_not_the_owner():
    """Ids are used again, soon in containers."""
    assert replace(this_owner(), started="1").is_gone


@linux
def test_an_id_that_nobody_has_is_gone():
    """Beyond the largest id there is."""
    assert replace(this_owner(), pid=2**22 + 1).is_gone


@linux
def test_a_zombie_is_gone(python):
    """It has an id and a start time, and will never renew."""
    process = python("input()")
    owner = replace(this_owner(), pid=process.pid, started=started(process.pid))
    alive = owner.is_gone
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert (alive, owner.is_gone) == (False, True)


def started(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_a_name_with_brackets_and_blanks_does_not_confuse(python):
    """The kernel puts the name, as it is, in the midst of the numbers."""
    rename = "from pathlib import Path; Path('/proc/self/comm').write_text('a) R 1 (b')"
    process = python(f"{rename}; print(flush=True); input()")
    process.stdout.readline()

    assert not replace(this_owner(), pid=process.pid, started=started(process.pid)).is_gone


@pytest.mark.parametrize("changes", [{"machine": "elsewhere"}, {"started": ""}])
def test_what_cannot_be_seen_from_here_is_not_taken_for_gone(changes):
    """Only the end of its lease tells."""
    assert not replace(this_owner(), pid=2**22 + 1, **changes).is_gone


@pytest.mark.parametrize("text", ["", "junk", "a|b|c|d|e", "a|b|1|d", "a|b|-1|d|e", "a|b|²|d|e"])
def test_what_names_no_owner_is_none(text):
    """A damaged lease is nobody's."""
    assert read_owner(text) is None


def test_the_boot_is_told_once():
    """All leases of a process name the same one."""
    assert boot_id() == boot_id()
