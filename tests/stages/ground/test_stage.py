from dataclasses import replace

from fakes import Recorder

from ragforge.errors import CallError
from ragforge.records import Provenance
from ragforge.stages.ground.lexical import LexicalGrounder
from ragforge.stages.ground.stage import ground_exchanges
from ragforge.stages.runner import Collected, Workers


class Refusing:
    """A grounder that never answers."""

    provenance = Provenance(kind="llm", model="m")

    async def judge(self, exchange):
        raise CallError("refused", "I cannot judge this.")


def ground(wait, grounder, *exchanges):
    sink = Collected()
    workers = Workers(2, Recorder())
    wait(ground_exchanges(exchanges, grounder, workers, sink, total=len(exchanges)))
    return sink


def test_an_answer_that_could_not_be_checked_has_no_faithfulness(wait, exchange):
    """A failure is never a value."""
    sink = ground(wait, Refusing(), exchange("They eat krill.", {"c1": "text"}))

    [found], [failure] = sink.results, sink.failures
    assert (found.faithfulness, found.is_grounded, found.failure) == (None, None, "refused")
    assert (failure.what, failure.key, failure.kind) == ("ground", "q1", "refused")


def test_a_context_with_a_gap_cannot_be_held_against_an_answer(wait, exchange):
    """What is not found in the rest may well stand in the chunk that is missing."""
    case = exchange("They eat krill.", {"c1": "Whales sing."}, lost=("c7",))

    sink = ground(wait, LexicalGrounder(), case)

    assert sink.results[0].failure == "error"
    assert sink.failures[0].message == "1 of its chunks are not in the dataset, such as c7"


def test_a_system_that_failed_has_not_said_nothing(wait, exchange):
    """As an empty answer it would count as one in which there was nothing to check."""
    case = replace(exchange(""), failure="timeout")

    sink = ground(wait, LexicalGrounder(), case)

    assert (sink.results[0].rule, sink.results[0].failure) == ("", "error")
    assert sink.failures[0].message == "the system gave no answer: timeout"


def test_an_abstention_needs_no_context(wait, exchange):
    """There is nothing in it that a missing chunk could support."""
    sink = ground(wait, LexicalGrounder(), exchange("I don't know.", lost=("c7",)))

    assert [found.rule for found in sink.results] == ["abstains"]


def test_each_answer_is_checked(wait, exchange):
    """An answer that is passed over changes every mean."""
    cases = [exchange("Whales sing.", {"c1": "Whales sing."}, f"q{n}") for n in range(5)]

    sink = ground(wait, LexicalGrounder(), *cases)

    assert sorted(found.query_id for found in sink.results) == [f"q{n}" for n in range(5)]
