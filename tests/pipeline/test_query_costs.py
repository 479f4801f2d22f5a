"""What queries of a run cost: the vectors that an endpoint made, and what the settings say."""

import asyncio
import json

import pytest

import ragforge as rf
from ragforge.config import Settings
from ragforge.files.set.opening import create_dataset
from ragforge.llm.store.sqlite_file import open_file
from ragforge.observe import silent
from ragforge.pipeline.job import Job
from ragforge.pipeline.retrieving import make_runs
from ragforge.pipeline.run_list import list_runs
from ragforge.records import Chunk, Hit, Query, Ranking

QUERIES = ("Who is it?", "What does the shop at the harbour sell on Sundays, and at which price?")
PRICE = {"input_usd_per_mtok": 2.0, "output_usd_per_mtok": 0.0}


@pytest.fixture
def dataset(tmp_path):
    """Two queries of different length, and longer chunks."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_chunks(
        Chunk(chunk_id=f"c{n}", doc_id="d", text=f"Text {n}, a long one that costs. " * 9)
        for n in range(3)
    )
    made.write_queries(Query(query_id=f"q{n}", query=text) for n, text in enumerate(QUERIES))
    return made


@pytest.fixture
def mock(monkeypatch):
    """An endpoint that makes vectors."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    with rf.mock_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def make(dataset):
    """Make runs; return what a query of each cost."""

    def go(specs, url="", budget=PRICE, **sections):
        model = {"embedding_model": "e", "base_url": url} if url else {}
        settings = {"model": model, "budget": budget, "retrievers": sections}
        job = Job(Settings.model_validate(settings), silent)
        asyncio.run(make_runs(dataset, specs, job))
        files = json.loads((dataset.files / "manifest.json").read_bytes())["files"]
        return {name: files[f"runs/{name}.jsonl"]["run"].get("usd_per_query") for name in specs}

    return go


def paid(dataset):
    """Return what the call of each query's vector took, as the call store has it."""
    connection = open_file(dataset.store_path)
    rows = connection.execute("SELECT prompt_tokens, cost_usd FROM calls ORDER BY prompt_tokens")
    found = rows.fetchall()[: len(QUERIES)]
    connection.close()
    return found


def test_queries_cost_what_their_vectors_did_and_chunks_are_no_part_of_it(make, dataset, mock):
    """Chunks are embedded once, queries as long as the retriever lives."""
    found = make({"dense": "dense", "both": "dense+bm25", "bm25": "bm25"}, mock.url)

    (few, _), (many, _) = paid(dataset)
    mean = pytest.approx(2e-6 * (few + many) / 2, rel=1e-5)
    assert 0 < few < many < 40
    assert found == {"dense": mean, "both": mean, "bm25": None}


def test_a_rerun_asks_nothing_and_tells_the_same(make, dataset, mock):
    """What is in the store was paid, and at the price of then."""
    before = make({"dense": "dense"}, mock.url)
    n_asked = mock.stats()["requests"]
    dearer = {"input_usd_per_mtok": 500.0, "output_usd_per_mtok": 0.0}

    assert make({"dense": "dense"}, mock.url, dearer) == before
    assert mock.stats()["requests"] == n_asked


def test_an_unknown_price_is_no_zero(make, mock):
    """A retriever that is called free wins every comparison of prices."""
    assert make({"dense": "dense"}, mock.url, {}) == {"dense": None}


def test_a_price_that_is_told_later_counts_for_what_is_there(make, dataset, mock):
    """Nobody wants to buy vectors again to be told what they cost."""
    make({"dense": "dense"}, mock.url, {})

    (few, _), (many, _) = paid(dataset)
    found = make({"dense": "dense"}, mock.url)
    assert found == {"dense": pytest.approx(2e-6 * (few + many) / 2, rel=1e-5)}


@pytest.mark.parametrize(
    ("service", "expected"),
    [({}, None), ({"usd_per_query": 0.0004}, 0.0004), ({"usd_per_query": 0}, 0.0)],
)
def test_a_service_costs_what_the_settings_say(make, scripted, service, expected):
    """Only its user knows what it takes."""
    scripted.answer = {"results": ["c1"]}

    docs = {"url": scripted.url, "echo": "none", **service}
    assert make({"mine": "docs"}, docs=docs) == {"mine": expected}


def test_vectors_that_a_service_is_asked_with_come_on_top(make, scripted, dataset, mock):
    """Who pays for a search pays for its vector too."""
    scripted.answer = {"results": ["c1"]}
    docs = {"url": scripted.url, "body": {"vector": "{vector}"}, "usd_per_query": 0.0004}

    found = make({"docs": "docs"}, mock.url, docs=docs)

    (few, _), (many, _) = paid(dataset)
    assert found == {"docs": pytest.approx(0.0004 + 2e-6 * (few + many) / 2, rel=1e-5)}


def test_of_a_service_whose_price_nobody_says_the_vector_is_no_cost_of_a_query(
    make, scripted, mock
):
    """A part of a price looks like a low one."""
    scripted.answer = {"results": ["c1"]}
    docs = {"url": scripted.url, "body": {"vector": "{vector}"}}

    assert make({"docs": "docs"}, mock.url, docs=docs) == {"docs": None}


def test_a_section_without_address_prices_the_run_of_its_name(make, tmp_path, monkeypatch):
    """What is written in Python may ask a service that has its price."""
    (tmp_path / "priced_search.py").write_text("def find(query, k):\n    return ['c1']\n")
    monkeypatch.syspath_prepend(tmp_path)
    specs = {"mine": "priced_search:find", "other": "priced_search:find"}

    found = make(specs, mine={"usd_per_query": 0.002})

    assert found == {"mine": 0.002, "other": None}


def test_a_service_is_no_price_of_another_run_of_its_name(make, scripted):
    """Somebody may name a run after what it is to beat."""
    docs = {"url": scripted.url, "usd_per_query": 1}

    assert make({"docs": "bm25"}, docs=docs) == {"docs": None}


def test_runs_of_the_same_bytes_keep_their_own_prices(make, dataset):
    """A run is known by its bytes, of which two may have the same."""
    ranking = Ranking(query_id="q0", ranking=(Hit(chunk_id="c1", score=1.0),))
    prices = {name: {"usd_per_query": usd} for name, usd in (("cheap", 0.001), ("dear", 0.1))}
    make({"cheap": "bm25", "dear": "bm25"}, **prices)
    for name in prices:
        origin = dataset.manifest.files[f"runs/{name}.jsonl"].run
        dataset.write_run(name, [ranking], origin)

    assert [run.usd_per_query for run in list_runs(dataset)] == [0.001, 0.1]
