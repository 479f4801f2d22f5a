import asyncio

import pytest
from fakes import Recorder

from ragforge.errors import CallError, DataError, EndpointError
from ragforge.observe import silent
from ragforge.records import Hit
from ragforge.stages.retrieve import retrieve
from ragforge.stages.runner import Workers


class ScriptedRetriever:
    """Finds the same for each query, or raises what the query is mapped to."""

    def __init__(self, hits=(), **errors):
        self.hits, self.errors, self.asked = list(hits), errors, []

    async def retrieve(self, query, k):
        self.asked.append((query, k))
        await asyncio.sleep(0.002)
        if query in self.errors:
            raise self.errors[query]
        return self.hits


HITS = [Hit(chunk_id="a", score=2.0), Hit(chunk_id="b", score=1.0)]


@pytest.fixture
def retrieved(wait):
    """Retrieve and return what was collected."""

    def go(queries, retriever, k=2, observer=silent):
        kept = []
        wait(
            retrieve(
                queries,
                retriever,
                name="bm25",
                k=k,
                workers=Workers(2, observer),
                keep=kept.append,
            )
        )
        return kept[0]

    return go


def test_each_query_gets_a_ranking_with_its_latency(retrieved, query):
    """Latency is one of the two things a run is compared by."""
    [ranking] = retrieved([query()], ScriptedRetriever(HITS)).results

    assert (ranking.query_id, list(ranking.ranking)) == ("q1", HITS)
    assert 0.002 <= ranking.latency_s < 1


def test_a_failed_query_is_a_failure_and_no_empty_ranking(retrieved, query):
    """An empty ranking would be scored 0."""
    retriever = ScriptedRetriever(HITS, bad=CallError("error", "time-out", "raw"))

    collected = retrieved([query("good", "q1"), query("bad", "q2")], retriever)

    assert [ranking.query_id for ranking in collected.results] == ["q1"]
    [failure] = collected.failures
    assert (failure.what, failure.key, failure.kind) == ("retrieve", "bm25/q2", "error")
    assert (failure.message, failure.raw) == ("time-out", "raw")


def test_no_hits_are_a_result(retrieved, query):
    """A search that worked and found nothing is a fact about the retriever."""
    [ranking] = retrieved([query()], ScriptedRetriever([])).results

    assert ranking.ranking == ()


def test_what_is_beyond_k_is_left_out(retrieved, query):
    """A service may ignore k."""
    [ranking] = retrieved([query()], ScriptedRetriever(HITS), k=1).results

    assert [hit.chunk_id for hit in ranking.ranking] == ["a"]


def test_bad_data_for_one_query_fails_that_query(retrieved, query):
    """One reply that cannot be read says nothing about the next."""
    collected = retrieved([query("bad")], ScriptedRetriever(bad=DataError("chunk twice")))

    assert [failure.message for failure in collected.failures] == ["chunk twice"]


def test_an_endpoint_that_cannot_be_used_stops_the_run(retrieved, query):
    """Every further query would wait in vain."""
    with pytest.raises(EndpointError, match="down"):
        retrieved([query("bad")], ScriptedRetriever(bad=EndpointError("down")))


def test_progress_is_told(retrieved, query):
    """A run over thousands of queries must not look like one that hangs."""
    recorder = Recorder()

    retrieved([query()], ScriptedRetriever(HITS), observer=recorder)

    assert [event.name for event in recorder.events] == ["stage.start", "unit", "stage.end"]
