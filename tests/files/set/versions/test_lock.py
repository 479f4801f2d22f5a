import builtins
import fcntl
import os
import threading

import pytest
from versioned_sets import make_set

from ragforge.errors import DataError, UsageError
from ragforge.files.set.versions import refresh_lock, roll_back


@pytest.fixture
def home(tmp_path):
    """A set."""
    return make_set(tmp_path / "set").path


def test_a_second_refresh_is_turned_away_with_the_first_ones_process(home):
    """Two would publish two versions out of one, and pay twice."""
    expected = rf"set: another refresh of this set is running \(process {os.getpid()} on \w+\)"

    with (
        refresh_lock(home),
        pytest.raises(UsageError, match=expected),
        refresh_lock(home),
    ):
        raise AssertionError


def test_threads_of_one_process_keep_each_other_out(home):
    """A scheduler may run several jobs in one process."""
    told = []

    def refresh():
        with pytest.raises(UsageError, match="another refresh"), refresh_lock(home):
            raise AssertionError
        told.append("turned away")

    with refresh_lock(home):
        thread = threading.Thread(target=refresh)
        thread.start()
        thread.join()

    assert told == ["turned away"]


def test_a_lock_that_was_given_back_can_be_taken(home):
    """A night follows the other."""
    with refresh_lock(home):
        pass
    with refresh_lock(home) as taken:
        assert taken is None


def test_rolling_back_waits_for_no_refresh(home):
    """It would be undone when that one publishes."""
    with refresh_lock(home), pytest.raises(UsageError, match="another refresh of this set"):
        roll_back(home, 1)


def test_the_lock_of_a_version_is_that_of_its_set(home, tmp_path):
    """There is one published version for all of them."""
    link = tmp_path / "link"
    link.symlink_to(home)

    with refresh_lock(home), pytest.raises(UsageError, match="another refresh"):
        refresh_lock(link).__enter__()


def test_a_directory_that_is_missing_is_named(tmp_path):
    """A slip of the hand must not make a set."""
    with pytest.raises(DataError, match="nowhere: no such directory"):
        refresh_lock(tmp_path / "nowhere").__enter__()

    assert not (tmp_path / "nowhere").exists()


def test_a_system_without_locks_is_told(home, monkeypatch):
    """Windows has none of them, and imports must work there."""
    real = builtins.__import__

    def without(name, *rest):
        if name == "fcntl":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(UsageError, match="which this system does not have"):
        refresh_lock(home).__enter__()


def test_a_disk_without_locks_is_told(home, monkeypatch):
    """Some disks in the net have none; two refreshes there would not see each other."""

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(DataError, match=r"refresh\.lock: cannot be locked: No locks available"):
        refresh_lock(home).__enter__()


@pytest.mark.parametrize(
    "name", [".other-1-ab.making", "versions/.pod-7-1.making", "rejected/.x-2.making"]
)
def test_what_a_killed_refresh_left_is_removed(home, name):
    """In a container each night has another host name, and the process number is always 1."""
    (home / name).mkdir(parents=True)
    (home / name / "chunks.jsonl").write_text("half", "utf-8")

    with refresh_lock(home):
        assert not (home / name).exists()


def test_a_set_that_cannot_be_written_is_told_why_it_must_be(home):
    """A dry run, or a night without a change, does not look as if it wrote."""
    (home / ".ragforge").write_text("", "utf-8")

    with pytest.raises(
        DataError, match=r"refresh\.lock: cannot be written: .*; a refresh needs to write into"
    ):
        refresh_lock(home).__enter__()
