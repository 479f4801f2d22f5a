import asyncio
import json

import pytest
from fakes import Recorder

from ragforge.config import PoolSettings, Settings
from ragforge.errors import BudgetError, CallError, DataError, EndpointError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.mock import Script, serving
from ragforge.pipeline.complete.completing import (
    complete_dataset,
    judging_settings,
    probing_model,
    probing_retrievers,
)
from ragforge.pipeline.job import Job, Mode
from ragforge.pipeline.surveying import open_survey
from ragforge.records import Chunk, Evidence, Judgment, PoolEntry, Provenance, Query
from ragforge.retrieval import local_models
from ragforge.retrieval.bm25 import BM25Retriever
from ragforge.retrieval.local_models import is_installed

SHARED = ("nothing", "beeswax", "beeswax polish", "beeswax polish for tables")
"""What a passage shares with the query: 0 to 3 words, which is the grade that the mock gives."""
CHUNKS = [
    Chunk(chunk_id=f"c{at:02}", doc_id="care", text=f"Chapter {at}: notes on {SHARED[at % 4]}.")
    for at in range(40)
]
NO_MODEL = PoolSettings(pool_model="none")
ASKED = "How is beeswax polish put on tables?"


class Whole:
    """A survey of one document, without near-duplicates."""

    n_chunks = len(CHUNKS)
    n_documents = 1

    def chunk(self, chunk_id):
        return {chunk.chunk_id: chunk for chunk in CHUNKS}[chunk_id]

    def neighbours(self, chunk_id):
        at = int(chunk_id[1:])
        return [f"c{near:02}" for near in (at - 1, at + 1) if 0 <= near < len(CHUNKS)]

    def near_duplicates(self, chunk_id):
        return []


class Failing:
    """A retriever that fails on whatever it is asked."""

    async def retrieve(self, query, k):
        raise CallError("error", "no vector")


class Costly(Failing):
    """One that would ask an endpoint first."""

    async def build(self):
        raise AssertionError


def quoted(chunk_id):
    return Evidence(doc_id="care", chunk_id=chunk_id, quote="notes on beeswax polish for tables")


@pytest.fixture
def dataset(tmp_path):
    """A query with evidence, and one that is said to have no answer."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_chunks(CHUNKS)
    made.write_queries(
        [
            Query(
                query_id="q1",
                query=ASKED,
                expected_answer="With a soft cloth.",
                evidence=(quoted("c03"),),
                source_chunk_ids=("c03",),
            ),
            Query(query_id="q2", query="Who painted ceilings?", answerable=False),
        ]
    )
    evidence = Provenance(kind="llm", model="writer")
    made.write_judgments(
        [Judgment(query_id="q1", chunk_id="c03", grade=3, source="evidence", provenance=evidence)]
    )
    return made


@pytest.fixture
def complete(dataset):
    """Complete the pools with BM25; settings as nested mappings."""

    def go(endpoint=None, *, mode=None, retrievers=None, query_ids=None, observer=None, **settings):
        model = {"name": "m", "base_url": endpoint.url} if endpoint else {}
        pool = {"pool_k": 4, "pool_most": 8, "pool_batch": 5}
        every = {"model": model, "pool": pool, **settings}
        return asyncio.run(
            complete_dataset(
                dataset,
                Whole(),
                {"bm25": BM25Retriever(CHUNKS), **(retrievers or {})},
                Job(Settings.model_validate(every), observer or Recorder(), mode or Mode()),
                query_ids,
            )
        )

    return go


def by_a_model(judgment):
    """Return what the mock endpoint made up as if a model had said it."""
    by = judgment.provenance.model_copy(update={"kind": "llm"}) if judgment.provenance else None
    return judgment.model_copy(update={"provenance": by})


def written(dataset):
    return {
        str(path.relative_to(dataset.path)): path.read_bytes()
        for path in sorted(dataset.path.rglob("*"))
        if path.is_file() and ".ragforge" not in path.parts
    }


def test_a_pool_is_found_judged_and_grown(complete, dataset):
    """What one query's relevant chunks are must not end with the one it was written from."""
    with serving(Script()) as endpoint:
        done = complete(endpoint)

    assert [depth for depth, _ in done.summary.depths] == [4, 8]
    assert done.summary.others_mean > 2
    pools = dataset.pool()
    assert {name for entry in pools for name in entry.probes} == {
        "bm25:answer",
        "bm25:query",
        "bm25:source",
        "neighbours",
    }
    judged = {(one.query_id, one.chunk_id): one.grade for one in dataset.judgments()}
    assert {(one.query_id, one.chunk_id) for one in pools} <= judged.keys()
    assert {chunk_id: judged["q1", chunk_id] for chunk_id in ("c02", "c04", "c11")} == {
        "c02": 2,
        "c04": 0,
        "c11": 3,
    }


def test_a_rerun_asks_nothing_and_writes_the_same(complete, dataset):
    """A finished completion is the state that a nightly run starts from."""
    with serving(Script(p_refusal=0.2, seed=3)) as endpoint:
        first = complete(endpoint)
        billed, files = endpoint.ledger()["billed"], written(dataset)
        again = complete(endpoint)
        assert endpoint.ledger()["billed"] == billed > 0

    assert written(dataset) == files
    assert again.summary == first.summary


def test_a_budget_that_ends_on_the_way_costs_nothing_twice(complete, dataset):
    """The files are those of a run that was never stopped, and the bill is too."""
    with serving(Script()) as endpoint:
        with pytest.raises(BudgetError, match="max-calls"):
            complete(endpoint, budget={"max_calls": 1})
        assert dataset.pool()
        complete(endpoint)
        ledger, stopped = endpoint.ledger(), written(dataset)
        endpoint.reset()
        (dataset.path / "pool.jsonl").unlink()
        dataset.write_judgments(one for one in dataset.judgments() if one.source == "evidence")
        (dataset.path / ".ragforge" / "calls.sqlite").unlink()
        complete(endpoint)
        assert ledger["billed"] == endpoint.ledger()["billed"]
        assert ledger["dup"] == 0

    assert stopped["pool.jsonl"] == written(dataset)["pool.jsonl"]
    assert stopped["judgments.jsonl"] == written(dataset)["judgments.jsonl"]


def test_evidence_is_not_judged(complete, dataset):
    """A judge must not overturn in silence what a query was written from."""
    with serving(Script()) as endpoint:
        complete(endpoint)

    [evidence] = [one for one in dataset.judgments() if one.source == "evidence"]
    assert (evidence.chunk_id, evidence.grade) == ("c03", 3)


def test_grades_of_people_stay_and_lead_to_sources(complete, dataset):
    """An imported set says by its labels where answers stand."""
    dataset.write_queries([Query(query_id="q1", query=ASKED, origin="human")])
    labels = [("c07", 3), ("c11", 2), ("c15", 2), ("c19", 2), ("c20", 3), ("c00", 1)]
    dataset.write_judgments(
        Judgment(query_id="q1", chunk_id=chunk_id, grade=grade, source="human")
        for chunk_id, grade in labels
    )
    with serving(Script()) as endpoint:
        complete(endpoint)

    kept = {one.chunk_id: one.grade for one in dataset.judgments() if one.source == "human"}
    assert kept == dict(labels)
    first = {one.chunk_id for one in dataset.pool() if one.probes.get("bm25:source") == 1}
    assert first == {"c07", "c20", "c11"}


def test_an_answer_to_an_unanswerable_query_is_a_conflict(complete, dataset):
    """Such a query would mark down the system that answers it."""
    dataset.write_queries([Query(query_id="q9", query=ASKED, answerable=False)])
    with serving(Script()) as endpoint:
        done = complete(endpoint)

    assert done.conflicts == ("q9",)
    assert done.summary.depths == ((4, 1),)


def test_what_nearly_answers_an_unanswerable_query_is_no_conflict(complete, dataset):
    """Its evidence is the nearest text, and says so itself."""
    dataset.write_judgments(
        [Judgment(query_id="q2", chunk_id="c00", grade=3, source="evidence")],
    )
    dataset.write_queries(
        [
            Query(
                query_id="q2",
                query="Who painted ceilings?",
                answerable=False,
                evidence=(quoted("c00"),),
            )
        ]
    )
    with serving(Script()) as endpoint:
        assert complete(endpoint).conflicts == ()


def test_a_failing_probe_is_counted_and_the_others_go_on(complete, dataset):
    """A set without embeddings is still judged by what words find."""
    with serving(Script()) as endpoint:
        done = complete(endpoint, retrievers={"dense": Failing()})

    assert done.failed_probes == {"dense:query": 2, "dense:answer": 1, "dense:source": 1}
    assert len([one for one in dataset.failures() if one.what == "retrieve"]) == 4
    assert done.summary.n_ungraded == 0


def test_failures_of_probes_are_forgotten_once_they_work(complete, dataset):
    """What is listed as failed must have failed in the last run."""
    with serving(Script()) as endpoint:
        complete(endpoint, retrievers={"dense": Failing()})
        complete(endpoint, retrievers={"dense": BM25Retriever(CHUNKS)})

    assert dataset.failures() == []


def test_only_named_queries_are_completed(complete, dataset):
    """The pools of others stay as they are."""
    other = PoolEntry(query_id="q2", chunk_id="c09", probes={"bm25:query": 1})
    dataset.write_pool([other])
    with serving(Script()) as endpoint:
        complete(endpoint, query_ids={"q1"})

    assert [one for one in dataset.pool() if one.query_id == "q2"] == [other]


def test_a_dry_run_counts_the_first_block_and_bounds_the_rest(complete, dataset):
    """Growth depends on grades that nobody has yet."""
    before, recorder = written(dataset), Recorder()
    with serving(Script()) as endpoint:
        counted = complete(
            endpoint, mode=Mode(dry_run=True), retrievers={"dense": Costly()}, observer=recorder
        ).estimate
        assert endpoint.ledger()["billed"] == 0
        assert written(dataset) == before
        complete(endpoint)
        billed = endpoint.ledger()["billed"]

    assert counted["calls"] < billed <= counted["calls_if_all_pools_grow"]
    assert counted["pairs"]["graded"] == 1
    assert counted["pairs"]["new"] == counted["pairs"]["in_pool"] - 1
    assert "dense: not asked in a dry run" in recorder.named("note")[0].message


def test_the_baseline_completes_without_a_model(complete, dataset):
    """A first run is free, and says in each record that a rule judged."""
    done = complete()

    assert done.judging.judge == "offline"
    assert done.summary.n_calls == 0
    judges = {one.provenance.kind for one in dataset.judgments() if one.source == "judge"}
    assert judges == {"baseline"}


def test_grades_of_another_judge_are_not_mixed_in(complete, dataset):
    """Half a pool by one judge and half by another is a pool by none."""
    with serving(Script()) as endpoint:
        complete(endpoint, pool={"pool_k": 1, "pool_most": 1, "pool_batch": 5})
        billed = endpoint.ledger()["billed"]
        dataset.put_judgments(map(by_a_model, dataset.judgments()))
        with pytest.raises(UsageError, match="graded by another judge"):
            complete(endpoint, judge={"batch": 3})
        assert endpoint.ledger()["billed"] == billed


def test_grades_that_a_mock_made_up_say_so_and_give_way(complete, dataset):
    """Grades of a rehearsal must not stand beside those of a judge, nor need --again to go."""
    with serving(Script()) as endpoint:
        complete(endpoint, pool={"pool_k": 1, "pool_most": 1, "pool_batch": 5})
        first = {item.provenance.kind for item in dataset.judgments() if item.source == "judge"}
        complete(endpoint, judge={"batch": 3})

    now = {item.provenance.protocol for item in dataset.judgments() if item.source == "judge"}
    assert (first, "" in now) == ({"mock"}, False)


def test_a_judge_that_never_answers_ends_the_run(complete):
    """A set where nothing was judged must not look completed."""
    with (
        serving(Script(p_refusal=1.0)) as endpoint,
        pytest.raises(EndpointError, match="failed on all"),
    ):
        complete(endpoint)


def test_a_source_that_is_gone_is_told(complete, dataset):
    """A corpus that was cut anew has other ids."""
    recorder = Recorder()
    dataset.write_queries([Query(query_id="q1", query=ASKED, source_chunk_ids=("old",))])
    complete(observer=recorder)

    assert "1 source chunks are not in the corpus, such as old" in [
        event.message for event in recorder.named("note")
    ]


def test_a_split_without_queries_is_an_error(complete):
    """Completing nothing with success would look like a completed set."""
    with pytest.raises(DataError, match="no query belongs to the split 'dev'"):
        complete(judge={"split": "dev"})


@pytest.mark.parametrize(
    ("judge", "generate", "batch", "permutations", "panel"),
    [
        ({}, {}, 10, 1, ()),
        ({"depth": 3, "split": "dev"}, {"checker": "c@http://h/v1"}, 10, 1, ("c@http://h/v1",)),
        ({"panel": ["a", "b"]}, {"checker": "c"}, 10, 1, ("a", "b")),
        ({"batch": 4}, {}, 4, 3, ()),
        ({"prompt": "mine"}, {}, 1, 3, ()),
        ({"votes": 3}, {}, 1, 3, ()),
        ({"logprobs": "on"}, {}, 1, 3, ()),
    ],
)
def test_how_pools_are_judged(judge, generate, batch, permutations, panel):
    """What a user says about judging holds here too; else it is the cheapest that is sound."""
    how = judging_settings(Settings.model_validate({"judge": judge, "generate": generate})).judge

    assert (how.batch, how.permutations, how.panel) == (batch, permutations, panel)


class Silent:
    """An embedder that nobody asks."""

    async def embed(self, texts):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("embedder", "names"), [(None, ["bm25"]), (Silent(), ["bm25", "dense"])], ids=["none", "one"]
)
def test_embeddings_look_where_there_are_any(dataset, tmp_path, embedder, names):
    """They find what shares no word."""
    with open_survey(dataset.path / "chunks.jsonl", tmp_path, Recorder()) as survey:
        assert [*probing_retrievers(survey, embedder, NO_MODEL, tmp_path)] == names


@pytest.mark.parametrize(
    ("asked", "installed", "n_chunks", "name"),
    [
        ("auto", ["minilm", "static"], 20_000, "minilm"),
        ("auto", ["minilm", "static"], 20_001, "static"),
        ("auto", ["minilm"], 20_001, ""),
        ("auto", [], 5, ""),
        ("none", ["minilm", "static"], 5, ""),
        ("minilm", ["minilm"], 10**6, "minilm"),
    ],
)
def test_an_installed_model_probes_where_no_embeddings_are_set(
    monkeypatch, asked, installed, n_chunks, name
):
    """It finds what shares no word, and must not read a large corpus for an hour unasked."""
    monkeypatch.setattr(local_models, "is_installed", installed.__contains__)

    assert probing_model(PoolSettings(pool_model=asked), n_chunks) == name


@pytest.mark.skipif(not is_installed("static"), reason="no weights")
def test_a_local_model_probes_under_its_own_name(complete, dataset):
    """Who reads a pool sees which of its chunks the model brought."""
    with open_survey(dataset.path / "chunks.jsonl", dataset.own_place, Recorder()) as survey:
        pool = PoolSettings(pool_model="static")
        complete(retrievers=probing_retrievers(survey, None, pool, dataset.own_place))

    probes = {probe for entry in dataset.each_pool_entry() for probe in entry.probes}
    assert {"bm25:query", "static:query"} <= probes


def test_pool_rows_are_sorted(complete, dataset):
    """The same pools are the same bytes."""
    complete()

    rows = [json.loads(line) for line in (dataset.path / "pool.jsonl").read_text().splitlines()]
    assert rows == sorted(rows, key=lambda row: (row["query_id"], row["chunk_id"]))
    assert all(list(row["probes"]) == sorted(row["probes"]) for row in rows)
