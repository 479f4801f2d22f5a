"""Embeddings are bought once, whatever ends the run that bought them."""

import json
from dataclasses import dataclass

import pytest
from faults.harness import QUERY, SHARED, Product, finish, until

from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Query

CHUNKS, QUERIES = 200, 6
CORPUS_CALLS = 4
EMBEDDING_CALLS = CORPUS_CALLS + 2 * QUERIES
"""The corpus, and each query without and with its answer."""
FLAGS = ("--concurrency", "2", "-q")


@dataclass
class Embedding(Product):
    """The command `ragforge judge --complete` with embeddings, over a dataset without runs."""

    def __post_init__(self):
        self.out = self.folder / "set" / "judgments.jsonl"
        self.store = self.out.parent / ".ragforge" / "calls.sqlite"
        dataset = create_dataset(self.out.parent, made_from={})
        dataset.write_chunks(
            Chunk(chunk_id=f"c{at:03}", doc_id="d", text=f"Part {at} tells {SHARED[at % 4]}.")
            for at in range(CHUNKS)
        )
        dataset.write_queries(
            Query(query_id=f"q{at}", query=f"{QUERY} Part {at}?", expected_answer="Yearly.")
            for at in range(QUERIES)
        )

    @property
    def model(self):
        """The flags that name the models."""
        return ["--model", "mock", "--base-url", self.endpoint.url, "--embedding-model", "emb"]

    def words(self, *flags):
        return ["judge", "--dataset", str(self.out.parent), "--complete", *self.model, *flags]

    @property
    def embedded(self):
        """How many embeddings calls the store holds."""
        return self.ask_store("SELECT COUNT(*) FROM calls WHERE model = 'emb'")[0][0]

    @property
    def files(self):
        """What was written, by name."""
        names = ("judgments.jsonl", "pool.jsonl")
        return {name: (self.out.parent / name).read_bytes() for name in names}


@dataclass
class Retrieving(Embedding):
    """The command `ragforge retrieve --retriever dense` over the same."""

    def words(self, *flags):
        return ["retrieve", "--dataset", str(self.out.parent), "--retriever", "dense", *self.model]


@pytest.fixture
def running(start):
    """An endpoint."""
    return start(latency="lognorm:10,0.4")


@pytest.fixture
def run(running, tmp_path):
    """The command."""
    made = Embedding(tmp_path / "x", running)
    yield made
    made.end()


def test_a_rerun_buys_nothing(run):
    """A finished run reruns with no call and the same bytes."""
    assert run.main(*FLAGS).code == 0
    files, billed = run.files, run.endpoint.count("billed")

    assert run.main(*FLAGS).code == 0
    assert (run.files, run.endpoint.count("billed")) == (files, billed)
    assert run.embedded == EMBEDDING_CALLS
    assert billed == run.bought


def test_a_run_without_network_takes_embeddings_from_the_store(run):
    """The same files come out where nothing can be asked."""
    assert run.main(*FLAGS).code == 0
    files, requests = run.files, run.endpoint.count("requests")

    assert run.main(*FLAGS, "--offline-replay").code == 0
    assert (run.files, run.endpoint.count("requests")) == (files, requests)


def test_a_run_without_network_and_store_asks_nothing(run):
    """It says what is missing instead."""
    ended = run.main(*FLAGS, "--offline-replay")

    assert ended.code == 4
    assert "holds no reply of 'emb'" in ended.err
    assert run.endpoint.count("requests") == 0


@pytest.mark.parametrize("most", [2, CORPUS_CALLS + 3])
def test_a_budget_that_ends_among_embeddings_is_kept_to(run, most):
    """What is bought until then is not bought again."""
    assert run.main(*FLAGS, "--max-calls", str(most)).code == 5
    assert run.endpoint.count("billed") == most

    assert run.main(*FLAGS).code == 0
    assert run.endpoint.count("dup") == 0
    assert run.embedded == EMBEDDING_CALLS


def test_judging_and_embeddings_have_one_budget(run):
    """The limit is the command's."""
    assert run.main(*FLAGS, "--max-calls", str(EMBEDDING_CALLS + 1)).code == 5
    assert run.endpoint.count("billed") == EMBEDDING_CALLS + 1


def test_a_dry_run_counts_the_embeddings(run):
    """Their texts are known before any is embedded."""
    counted = json.loads(run.main("--dry-run", "--json").out)

    assert counted["embeddings"]["calls"] == EMBEDDING_CALLS
    assert counted["calls"] > EMBEDDING_CALLS
    assert run.endpoint.count("requests") == 0


def test_a_dry_run_tells_of_the_embeddings(run):
    """People read it without --json."""
    said = run.main("--dry-run").out

    assert f"of these embeddings: {EMBEDDING_CALLS} (and 0 in the call store)" in said


def test_a_dry_run_after_a_run_counts_none(run):
    """They are in the store."""
    run.main(*FLAGS)

    found = json.loads(run.main("--dry-run", "--json").out)["embeddings"]
    assert (found["calls"], found["cached"]) == (0, EMBEDDING_CALLS)


def test_a_kill_among_embeddings_costs_what_was_in_flight(run):
    """They are kept before they are used."""
    process = run.begin(*FLAGS)
    run.endpoint.until_billed(3)
    process.kill()
    finish(process)
    until(lambda: run.endpoint.count("in_flight_now") == 0)

    assert run.main(*FLAGS).code == 0
    assert run.endpoint.count("dup") <= 4


def test_retrieving_by_embeddings_is_bought_once(running, tmp_path):
    """A run is made again whenever a query is added."""
    run = Retrieving(tmp_path / "x", running)
    assert run.main().code == 0
    made = (run.out.parent / "runs" / "dense.jsonl").read_text()
    assert run.main().code == 0

    assert running.count("billed") == run.embedded == CORPUS_CALLS + QUERIES
    assert strip(made) == strip((run.out.parent / "runs" / "dense.jsonl").read_text())


def strip(run):
    """Return rankings without what the clock says."""
    return [(row["query_id"], row["ranking"]) for row in map(json.loads, run.splitlines())]


def test_what_embeddings_took_is_in_the_manifest(running, tmp_path):
    """The printed spending of a set is all of it."""
    run = Retrieving(tmp_path / "x", running)
    run.main()

    manifest = json.loads((run.out.parent / "manifest.json").read_text())
    assert manifest["spent"]["calls"] == CORPUS_CALLS + QUERIES
