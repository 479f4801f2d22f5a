"""Refreshing that is killed, interrupted or finds no room on its way, while others read."""

import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from faults.commands import Commands
from faults.harness import endpoint
from faults.refreshing import AT_ONCE, FLAGS, Billed, Looks, Refreshing, There
from nights import SIX, Night, make_night
from versioned_sets import mixture

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")

FIGURES = Path("/tmp/faults/kill_refreshing.txt")
MOMENTS = (
    There("queries.jsonl"),
    There(".ragforge/refresh-*"),
    There("versions/.*.making"),
    There("versions/.*.making/manifest.json"),
    There("versions/.*.making/moved_chunks.jsonl"),
    Billed(1),
    Billed(2),
    Billed(1),
    Billed(3),
    Billed(2),
    Billed(2),
    There("versions/.*.making/diff.json"),
    There("versions/000002"),
    There("current"),
)
"""From the beginning to the publishing; what was bought before a kill is there after it."""


def changed(base, folder):
    """Return the set once more, with its documents as they are a night later."""
    night = base.copy(folder)
    night.add_beside("privacy.md")
    night.add_beside("warranty-2023.md")
    night.lose("payment.md")
    (night.docs / "returns-2024.md").rename(night.docs / "old-returns.md")
    night.add_document()
    return night


@pytest.fixture(scope="module")
def running():
    """An endpoint that takes its time."""
    with endpoint(latency="lognorm:40,0.4") as served:
        yield served


@pytest.fixture(scope="module")
def commands(key):
    """A process whose children refresh."""
    made = Commands()
    yield made
    made.end()


@pytest.fixture(scope="module")
def base(tmp_path_factory, running):
    """A set, as generating left it."""
    return make_night(tmp_path_factory.mktemp("base") / "night", running.url, *SIX)


@pytest.fixture(scope="module")
def calm(tmp_path_factory, running, base):
    """The set after a refresh that nothing disturbed, and the calls of that."""
    night = changed(base, tmp_path_factory.mktemp("calm") / "night")
    running.reset()
    assert night.refresh(*FLAGS).code == 0
    return night, running.count("billed")


@pytest.fixture(scope="module")
def begin(running, commands, base, calm):
    """Make the command over the same set and documents, in a folder."""

    def make(folder):
        running.reset()
        return Refreshing(changed(base, folder), running, commands)

    return make


@dataclass
class Killed:
    """What came of it."""

    night: Night
    codes: list
    in_flight: int
    torn: list
    looks: Looks
    last: int
    billed: int


@pytest.fixture(scope="module")
def killed(tmp_path_factory, begin, calm):
    """The same refresh, killed at all moments, while a thread reads the set."""
    run = begin(tmp_path_factory.mktemp("killed") / "night")
    kills, torn = [], []
    with Looks(run.night.set) as looks:
        for moment in MOMENTS:
            kills.append(run.kill(moment))
            torn += mixture(run.night.set)
        last = run.run()
    codes, in_flight = [code for code, _ in kills], sum(flying for _, flying in kills)
    if FIGURES.parent.is_dir():
        FIGURES.write_text(
            f"kills {codes.count(-signal.SIGKILL)} of {len(codes)}, calls in flight {in_flight}, "
            f"calls of a calm run {calm[1]}, billed {run.billed}, looks {looks.looks}, "
            f"mixtures {len(looks.mixtures)}, errors {len(looks.errors)}\n"
        )
    return Killed(run.night, codes, in_flight, torn, looks, last, run.billed)


def test_readers_never_see_a_mixture(killed):
    """Who measures while a refresh is killed must measure one version of the set."""
    assert (killed.looks.mixtures, killed.looks.errors, killed.torn) == ([], [], [])
    assert killed.looks.looks > len(MOMENTS)


def test_a_refresh_that_was_killed_ends_with_the_bytes_of_a_calm_one(killed, calm):
    """The version must not tell what the machine went through."""
    assert killed.codes.count(-signal.SIGKILL) >= 10
    assert killed.last == 0
    assert killed.night.dataset.manifest.version == 2
    assert killed.night.version(2) == calm[0].version(2)


def test_kills_cost_at_most_what_was_in_flight(killed, calm):
    """Checks and grades that were bought are not asked for again."""
    kills = killed.codes.count(-signal.SIGKILL)

    assert calm[1] <= killed.billed <= calm[1] + kills * AT_ONCE


def test_kills_leave_nothing_behind_for_good(killed, calm):
    """A bad week must not fill the disk."""
    assert set(killed.night.state()) == set(calm[0].state())
    assert list((killed.night.set / ".ragforge").glob("refresh-*")) == []


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory, begin):
    """A refresh that gets Ctrl-C while it asks, and its code and the version then."""
    run = begin(tmp_path_factory.mktemp("interrupted") / "night")
    run.begin()
    run.endpoint.until_billed(4)
    run.send(signal.SIGINT)
    code, version = run.end(), run.night.dataset.manifest.version
    told = run.told
    return run, code, version, told, run.run()


def test_an_interrupt_publishes_nothing(interrupted):
    """Whoever stops it wants the set as it was."""
    _, code, version, told, _ = interrupted

    assert (code, version) == (130, 1)
    assert "ragforge refresh" in told


def test_the_refresh_after_an_interrupt_buys_nothing_twice(interrupted, calm):
    """Calls in flight at Ctrl-C are waited for."""
    run, *_, again = interrupted

    assert again == 0
    assert run.billed == calm[1]
    assert run.night.version(2) == calm[0].version(2)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("name", ["judgments.jsonl", "diff.json", "symlink"])
def test_a_full_disk_ends_with_3_and_the_next_run_publishes(tmp_path, begin, calm, name):
    """The set of yesterday must be there, and nothing of the one that had no room."""
    run = begin(tmp_path / "night")

    code, told = run.run(name), run.told
    version, torn, again = run.night.dataset.manifest.version, mixture(run.night.set), run.run()

    assert (code, version, torn, again) == (3, 1, [], 0)
    assert "No space left on device" in told
    assert run.night.version(2) == calm[0].version(2)
    assert set(run.night.state()) == set(calm[0].state())


def test_of_two_refreshes_at_once_one_is_turned_away(tmp_path, begin):
    """Two versions of one number would be one too many."""
    run = begin(tmp_path / "night")
    run.begin()
    run.endpoint.until_billed(1)

    second = run.night.refresh(*FLAGS)
    first = run.end()

    assert (first, second.code) == (0, 2)
    assert "another refresh of this set is running" in second.err
    assert run.night.dataset.manifest.version == 2
