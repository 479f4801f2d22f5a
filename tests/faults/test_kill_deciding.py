"""Judging as needed when it is killed: each look hangs on the grades of the one before."""

import json
import signal
from dataclasses import dataclass

import pytest
from faults.harness import QUERY, SHARED, Product, endpoint, finish, until

from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Hit, Query, Ranking

AT_ONCE = 2
FLAGS = ("--concurrency", str(AT_ONCE), "--json", "-q")
N, CHUNKS, DEPTH = 30, 16, 10


@dataclass
class Deciding(Product):
    """The command `ragforge compare --judge-as-needed` over two runs that are a little apart."""

    def __post_init__(self):
        self.out = self.folder / "set" / "judgments.jsonl"
        self.store = self.out.parent / ".ragforge" / "calls.sqlite"
        dataset = create_dataset(self.out.parent, made_from={})
        texts = {
            f"c{q:02}-{at:02}": f"Part {at} of {q} tells {SHARED[(at * 7 + q) % 4]}."
            for q in range(N)
            for at in range(CHUNKS)
        }
        dataset.write_chunks(
            Chunk(chunk_id=name, doc_id="d", text=text) for name, text in texts.items()
        )
        dataset.write_queries(
            Query(query_id=f"q{q:02}", query=f"{QUERY} Part {q}?", expected_answer="Yearly.")
            for q in range(N)
        )
        for run, skill in (("poor", -1), ("good", 1)):
            dataset.write_run(run, [ranking(q, skill) for q in range(N)])

    def words(self, *flags):
        model = ["--model", "mock", "--base-url", self.endpoint.url]
        place = ["--dataset", str(self.out.parent), "poor", "good"]
        return ["compare", *place, "--judge-as-needed", *model, *flags]

    @property
    def decision(self):
        """What was kept of the decision: name and bytes of its file."""
        folder = self.out.parent / ".ragforge" / "decisions"
        return {path.name: path.read_bytes() for path in folder.glob("*.json")}


def ranking(q, skill):
    """Return ten chunks of a query; by worth for every third query, in some order for others."""
    order = sorted(
        range(CHUNKS),
        key=lambda at: (-skill * ((at * 7 + q) % 4) if q % 3 else 0, (at * 5 + q * skill) % CHUNKS),
    )
    hits = tuple(
        Hit(chunk_id=f"c{q:02}-{at:02}", score=float(DEPTH - place))
        for place, at in enumerate(order[:DEPTH])
    )
    return Ranking(query_id=f"q{q:02}", ranking=hits)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A calm run; one that is killed in its first look and in a later one; one with Ctrl-C."""
    folder = tmp_path_factory.mktemp("deciding")
    with endpoint(latency="lognorm:20,0.4") as running:
        calm = Deciding(folder / "calm" / "x", running)
        told = finish(calm.begin(*FLAGS))
        assert told.code == 0
        found = {"calm": calm, "told": told.out, "calls": running.count("billed")}
        for name, end in (("killed", signal.SIGKILL), ("interrupted", signal.SIGINT)):
            running.reset()
            stopped = Deciding(folder / name / "x", running)
            for share in (0.1, 0.8):
                process = stopped.begin(*FLAGS)
                until(lambda goal=share * found["calls"]: running.count("billed") >= goal)
                process.send_signal(end)
                code = finish(process).code
                until(lambda: running.count("in_flight_now") == 0)
            last = finish(stopped.begin(*FLAGS))
            found[name] = (stopped, code, last, running.count("billed"))
            again = finish(stopped.begin(*FLAGS))
            assert (again.out, running.count("billed")) == (last.out, found[name][3])
        yield found


@pytest.mark.parametrize("name", ["killed", "interrupted"])
def test_a_decision_ends_as_that_of_a_calm_run(runs, name):
    """Who wins must not tell what the machine went through."""
    stopped, _, last, _ = runs[name]

    assert last.code == 0
    assert last.out == runs["told"]
    assert stopped.decision == runs["calm"].decision


def test_a_kill_costs_a_decision_what_was_in_flight(runs):
    """Earlier looks are paid for, and are not asked for again."""
    assert runs["calls"] <= runs["killed"][3] <= runs["calls"] + 2 * AT_ONCE


def test_an_interrupt_costs_a_decision_nothing(runs):
    """Ctrl-C lets calls in flight end, and keeps what they bring."""
    _, code, _, billed = runs["interrupted"]

    assert code == 130
    assert billed == runs["calls"]


def test_the_kill_comes_within_several_looks(runs):
    """A decision at the first look would have nothing to go on with."""
    told = json.loads(runs["told"])

    assert told["interval"][0] > 0
    assert told["look"] > 2
