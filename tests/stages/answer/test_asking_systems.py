import pytest
from fakes import Recorder

from ragforge.errors import CallError, DataError, EndpointError
from ragforge.retrieval import SystemAnswer
from ragforge.stages.answer.stage import ask_system
from ragforge.stages.runner import Collected, Workers


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


def test_progress_is_told(asked):
    """A user must see that a slow system is being asked."""
    recorder = Recorder()

    asked(Scripted("a", "b"), recorder)

    assert [event.stage for event in recorder.named("unit")] == ["ask", "ask"]
