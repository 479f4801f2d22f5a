"""Generating, of which each stage hangs on the replies of the one before, when it is killed."""

from dataclasses import dataclass

import pytest
from faults.harness import Product, endpoint, finish, until
from pipeline.generation.making import POLICIES, made

AT_ONCE = 3
FLAGS = ("--concurrency", str(AT_ONCE), "-q")
GROWN = ("-n", "10")
"""What stands behind the first number wins."""


@dataclass
class Generating(Product):
    """The command `ragforge generate` over a small corpus."""

    def __post_init__(self):
        self.folder.mkdir(parents=True)
        self.out = self.folder / "set" / "queries.jsonl"
        self.store = self.out.parent / ".ragforge" / "calls.sqlite"

    def words(self, *flags):
        files = ["--documents", str(POLICIES), "--out", str(self.out.parent)]
        model = ["--model", "mock", "--base-url", self.endpoint.url]
        return ["generate", *files, *model, "-n", "6", *flags]

    @property
    def files(self):
        """What was written, by name."""
        return made(self.out.parent)


def kill(run, goal, *flags):
    """Start a run, and kill it when so many replies were billed."""
    process = run.begin(*FLAGS, *flags)
    until(lambda: run.endpoint.count("billed") >= goal)
    process.kill()
    finish(process)
    until(lambda: run.endpoint.count("in_flight_now") == 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A calm run, and one that is killed while it writes, while it checks, and while it grows."""
    folder = tmp_path_factory.mktemp("generating")
    with endpoint(latency="lognorm:30,0.4") as running:
        calm = Generating(folder / "calm" / "x", running)
        assert calm.main(*FLAGS).code == 0
        first = running.count("billed")
        assert calm.main(*FLAGS, *GROWN).code == 0
        calls = running.count("billed")
        running.reset()
        killed = Generating(folder / "killed" / "x", running)
        kill(killed, 0.15 * first)
        kill(killed, 0.5 * first)
        assert killed.main(*FLAGS).code == 0
        kill(killed, 0.4 * first + 0.6 * calls, *GROWN)
        assert killed.main(*FLAGS, *GROWN).code == 0
        billed = running.count("billed")
        assert killed.main(*FLAGS, *GROWN).code == 0
        assert running.count("billed") == billed
        yield calm, killed, calls, billed


def test_the_set_ends_as_that_of_a_calm_run(runs):
    """Which queries are in a set must not tell what the machine went through."""
    calm, killed, *_ = runs

    assert len(killed.files) == 5
    assert killed.files == calm.files


def test_a_kill_costs_what_was_in_flight(runs):
    """What was written and checked is paid for, and not asked for again."""
    *_, calls, billed = runs

    assert calls <= billed <= calls + 3 * AT_ONCE
