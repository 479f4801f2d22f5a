"""Completing pools, of which each wave hangs on the grades of the one before, when it is killed."""

from dataclasses import dataclass

import pytest
from faults.harness import QUERY, SHARED, Product, endpoint, finish, until

from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Query

AT_ONCE = 2
FLAGS = ("--concurrency", str(AT_ONCE), "-q")


@dataclass
class Completing(Product):
    """The command `ragforge judge --complete` over a dataset without runs."""

    def __post_init__(self):
        self.out = self.folder / "set" / "judgments.jsonl"
        self.store = self.out.parent / ".ragforge" / "calls.sqlite"
        dataset = create_dataset(self.out.parent, made_from={})
        dataset.write_chunks(
            Chunk(chunk_id=f"c{at:03}", doc_id="d", text=f"Part {at} tells {SHARED[at % 4]}.")
            for at in range(80)
        )
        dataset.write_queries(
            Query(query_id=f"q{at}", query=f"{QUERY} Part {at}?", expected_answer="Yearly.")
            for at in range(6)
        )

    def words(self, *flags):
        model = ["--model", "mock", "--base-url", self.endpoint.url]
        return ["judge", "--dataset", str(self.out.parent), "--complete", *model, *flags]

    @property
    def files(self):
        """What was written, by name."""
        names = ("judgments.jsonl", "pool.jsonl")
        return {name: (self.out.parent / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A calm run, and one that is killed in its first wave and in a later one."""
    folder = tmp_path_factory.mktemp("completing")
    with endpoint(latency="lognorm:30,0.4") as running:
        calm = Completing(folder / "calm" / "x", running)
        assert finish(calm.begin(*FLAGS)).code == 0
        calls = running.count("billed")
        running.reset()
        killed = Completing(folder / "killed" / "x", running)
        for share in (0.2, 0.7):
            process = killed.begin(*FLAGS)
            until(lambda goal=share * calls: running.count("billed") >= goal)
            process.kill()
            finish(process)
            until(lambda: running.count("in_flight_now") == 0)
        assert finish(killed.begin(*FLAGS)).code == 0
        billed = running.count("billed")
        assert finish(killed.begin(*FLAGS)).code == 0
        assert running.count("billed") == billed
        yield calm, killed, calls, billed


def test_pools_end_as_those_of_a_calm_run(runs):
    """How deep a pool gets must not tell what the machine went through."""
    calm, killed, *_ = runs

    assert killed.files == calm.files


def test_a_kill_costs_what_was_in_flight(runs):
    """Earlier waves are paid for, and are not asked for again."""
    *_, calls, billed = runs

    assert calls <= billed <= calls + 2 * AT_ONCE
