"""Publishing that is killed at any moment, or finds no room, while others read the set."""

import os
import random
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from faults.publishing import Publisher, reader_of
from versioned_sets import everything, make_set, mixture, refreshed, tag_of

from ragforge.files.set.opening import open_dataset
from ragforge.files.set.paths import versions_of
from ragforge.files.set.versions import refresh_lock

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")

FIGURES = Path("/tmp/faults/kill_publishing.txt")
KILLS = 60
FIRST_TIMES = 30
MOST_STEPS = 400


@pytest.fixture(scope="module")
def publisher():
    """A process whose children publish."""
    made = Publisher()
    yield made
    made.end()


@dataclass
class Broken:
    """What a set was after each way of being broken off, and after the run that followed."""

    codes: list
    mixed: list
    states: list
    ended: list


def break_off(publisher, before, folder, what, stride=1):
    """Break a refresh off at each of its steps, each time on a set like `before`, and do it again.

    Every set is read both after the break and after the refresh that follows.
    """
    found = Broken([], [], [], [])
    for step in range(1, MOST_STEPS, stride):
        path = folder / "sets" / "set"
        shutil.copytree(before, path, symlinks=True)
        code = publisher.run(what, path, "b", step)
        found.codes.append(code)
        found.mixed += mixture(path)
        found.states.append(tag_of(open_dataset(path)))
        refreshed(path, "b")
        found.ended.append(everything(path))
        shutil.rmtree(path)
        if code == 0:
            return found
    raise AssertionError


def prepared(folder, kind):
    """Make a set that was never refreshed, or one that was, and the same after a calm refresh."""
    before, calm = folder / "before" / "set", folder / "calm" / "set"
    make_set(before)
    if kind == "refreshed":
        refreshed(before, "between")
    with refresh_lock(before):
        pass
    shutil.copytree(before, calm, symlinks=True)
    refreshed(calm, "b")
    return before, everything(calm)


@pytest.fixture(scope="module")
def quick():
    """Wait for no disk: it changes nothing for a process that is killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module", params=["flat", "refreshed"])
def killed(request, quick, publisher, tmp_path_factory):
    """A set that was killed after each step of a refresh, and what a calm refresh makes of it."""
    folder = tmp_path_factory.mktemp("steps")
    before, calm = prepared(folder, request.param)
    return break_off(publisher, before, folder, "ends"), calm


def test_a_kill_after_any_step_leaves_one_version_whole(killed):
    """Half a version would be measured as if it were one."""
    found, _ = killed

    assert found.mixed == []
    assert set(found.states) <= {"a", "between", "b"}
    assert found.codes[-1] == 0
    assert set(found.codes[:-1]) == {9}


def test_the_run_after_a_kill_ends_with_the_files_of_a_calm_one(killed):
    """What is published must not tell what the machine went through, and no stray may stay."""
    found, calm = killed

    assert [ended for ended in found.ended if ended != calm] == []


@pytest.fixture(scope="module", params=["flat", "refreshed"])
def filled(request, quick, publisher, tmp_path_factory):
    """A set whose disk was full from each step of a refresh on, likewise."""
    folder = tmp_path_factory.mktemp("full")
    before, calm = prepared(folder, request.param)
    return break_off(publisher, before, folder, "fills", 3), calm


def test_a_full_disk_is_told_and_leaves_one_version_whole(filled):
    """The set of yesterday must be there when that of today has no room."""
    found, _ = filled

    assert found.mixed == []
    assert set(found.codes) <= {0, 3}
    assert found.codes.count(3) > 10


def test_the_run_after_a_full_disk_ends_with_the_files_of_a_calm_one(filled):
    """No half of a version may take up what room there is."""
    found, calm = filled

    assert [ended for ended in found.ended if ended != calm] == []


@dataclass
class Often:
    """What came of killing a process that publishes all the time, while others read."""

    codes: list
    readers: list
    strays: list
    versions: list
    last_tag: str


@pytest.fixture(scope="module")
def often(publisher, tmp_path_factory):
    """Kill at random, beginning with a set that was never refreshed."""
    path = tmp_path_factory.mktemp("often") / "set"
    make_set(path)
    draws = random.Random(8)
    readers = [reader_of(path) for _ in range(2)]
    began_s = time.monotonic()
    codes = [publisher.kill(path, draws.uniform(0.0, 0.2)) for _ in range(KILLS)]
    took_s = time.monotonic() - began_s
    for reader in readers:
        reader.end()
    refreshed(path, "end")
    strays = [name for name in everything(path) if ".making" in name or ".tmp" in name]
    found = Often(codes, readers, strays, versions_of(path), tag_of(open_dataset(path)))
    if FIGURES.parent.is_dir():
        FIGURES.write_text(
            f"kills {len(codes)} in {took_s:.1f} s, versions published {len(found.versions)}, "
            f"looks of readers {sum(reader.looks for reader in readers)}, "
            f"mixtures {sum(len(reader.mixtures) for reader in readers)}, "
            f"errors {sum(len(reader.errors) for reader in readers)}\n"
        )
    return found


def test_readers_never_see_a_mixture_nor_nothing(often):
    """Whoever measures while a set is refreshed must measure one of its versions."""
    assert [(reader.mixtures, reader.errors) for reader in often.readers] == [([], [])] * 2
    assert all(reader.looks > 20 for reader in often.readers)


def test_the_run_after_many_kills_publishes_and_clears_up(often):
    """Nights of failures must not fill the disk, nor keep the set from being refreshed."""
    assert often.codes == [-signal.SIGKILL] * KILLS
    assert often.last_tag == "end"
    assert often.strays == []
    assert often.versions == list(range(1, len(often.versions) + 1))


def test_readers_of_sets_that_are_refreshed_for_the_first_time_see_no_mixture(publisher, tmp_path):
    """Then every file of the directory makes way for a link."""
    paths = [make_set(tmp_path / f"{number}" / "set").path for number in range(FIRST_TIMES)]
    readers = [reader_of(*paths), reader_of(*reversed(paths))]
    codes = [publisher.run("ends", path, "b", MOST_STEPS) for path in paths]
    for reader in readers:
        reader.end()

    assert codes == [0] * FIRST_TIMES
    assert [(reader.mixtures, reader.errors) for reader in readers] == [([], [])] * 2


def test_a_lock_ends_with_its_process(publisher, tmp_path):
    """A machine that went down must not leave a set that nobody can refresh."""
    path = tmp_path / "set"
    make_set(path)
    publisher.kill(path, 0.05)

    assert tag_of(refreshed(path, "b")) == "b"
