import asyncio

import pytest
from fakes import Recorder

from ragforge.errors import CallError, DataError, EndpointError
from ragforge.observe import silent
from ragforge.records import Hit
from ragforge.retrieval import SystemAnswer
from ragforge.retrieval.waiting import count_wait
from ragforge.stages.runner import Collected, Workers
from ragforge.stages.systems import ask_system, retrieve


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


def test_what_a_query_waited_for_its_turn_is_no_latency(retrieved, query):
    """A limit of ours would else pass for a slow service."""

    class Waiting(ScriptedRetriever):
        async def retrieve(self, query, k):
            count_wait(3600)
            return self.hits

    [ranking] = retrieved([query()], Waiting(HITS)).results

    assert ranking.latency_s <= 0.0001


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


class Scripted:
    """Says these answers in turn, or raises those that are errors."""

    def __init__(self, *said):
        self.said, self.asked = list(said), []

    async def answer(self, query):
        self.asked.append(query)
        said = self.said.pop(0)
        if isinstance(said, BaseException):
            raise said
        return SystemAnswer(said)


@pytest.fixture
def asked(wait, query):
    """Ask a system as many queries as it has answers; return what was collected."""

    def go(system, observer=None):
        collected = Collected()
        queries = [query(text=f"q{n}?", query_id=f"q{n}") for n in range(len(system.said))]
        ask = ask_system(
            queries, system, collected, name="rag", workers=Workers(1, observer or Recorder())
        )
        try:
            wait(ask)
        except EndpointError as error:
            return collected, error
        return collected, None

    return go


def test_answers_come_with_the_time_they_took(asked):
    """A better answer that takes a minute may be no progress."""
    [found] = asked(Scripted("Krill."))[0].results

    assert (found.query.query_id, found.answer.text) == ("q0", "Krill.")
    assert found.latency_s >= 0


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (CallError("invalid", "no JSON", "<html>"), "invalid", "no JSON"),
        (RuntimeError("down"), "error", "RuntimeError: down"),
        (TimeoutError("slow"), "error", "TimeoutError: slow"),
        (DataError("index"), "error", "index"),
        (SystemExit(3), "error", "the system called exit(3)"),
    ],
)
def test_a_query_that_fails_has_no_answer(asked, error, kind, message):
    """An empty answer in its place would be graded as one."""
    collected, _ = asked(Scripted(error, "Krill."))

    [failure] = collected.failures
    assert [item.answer.text for item in collected.results] == ["Krill."]
    assert (failure.what, failure.key, failure.kind) == ("ask", "rag/q0", kind)
    assert failure.message.partition(" (traceback in ")[0] == message


def test_an_empty_answer_is_no_failure(asked):
    """The system said nothing, which is for the grading to judge."""
    collected, _ = asked(Scripted(""))

    assert [item.answer.text for item in collected.results] == [""]
    assert collected.failures == []


def test_a_system_that_is_down_is_not_asked_to_the_end(asked):
    """A thousand timeouts would take a night and tell nothing more than twenty."""
    system = Scripted(*[RuntimeError("down")] * 30)

    collected, error = asked(system)

    assert str(error) == "the system failed on 20 queries in a row; the last: down"
    assert len(system.asked) == 20
    assert len(collected.failures) == 19


def test_an_answer_between_failures_keeps_the_run_going(asked):
    """A system that is only shaky has answers worth grading."""
    collected, error = asked(Scripted(*[RuntimeError("down")] * 19, "a", *[RuntimeError()] * 19))

    assert error is None
    assert len(collected.failures) == 38


def test_progress_of_answers_is_told(asked):
    """A user must see that a slow system is being asked."""
    recorder = Recorder()

    asked(Scripted("a", "b"), recorder)

    assert [event.stage for event in recorder.named("unit")] == ["ask", "ask"]
