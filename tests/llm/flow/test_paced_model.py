import asyncio

import pytest
import virtual_time
from fakes import FunctionModel, ScriptedModel, request

from ragforge.errors import BudgetError, CallError, EndpointError
from ragforge.llm.chat import ChatReply, Usage, estimate_tokens
from ragforge.llm.flow.pacer import OPENS_AFTER, PacedModel, Pacer
from ragforge.llm.flow.state import Flow
from ragforge.llm.retries import AttemptError

FINE = ChatReply("fine", usage=Usage(11, 40))
BUSY = AttemptError("429", fault="rate")
GONE = AttemptError("reset", unreachable=True)
BROKEN = AttemptError("503")
NONSENSE = AttemptError("no JSON", fault="invalid_reply")


async def ask_in_turn(pacer, replies):
    model = PacedModel(ScriptedModel(replies), pacer)
    outcomes = []
    for _ in replies:
        try:
            outcomes.append(await model.ask(request()))
        except (AttemptError, CallError, EndpointError, BudgetError) as error:
            outcomes.append(error)
    pacer.close()
    return outcomes


@pytest.fixture
def pacer():
    """A pacer whose endpoint takes 60,000 tokens a minute."""
    return Pacer(Flow(8, 0.0, tokens_per_minute=60_000), 300.0, lambda message: None)


@pytest.fixture
def ask(pacer):
    """Ask, through the pacer, a model that gives these replies, one after the other."""
    return lambda *replies: virtual_time.run(ask_in_turn(pacer, replies))


def test_the_reply_comes_through(ask):
    """Pacing changes when, never what."""
    assert ask(FINE) == [FINE]


@pytest.mark.parametrize(
    "end",
    [
        FINE,
        BUSY,
        GONE,
        BROKEN,
        NONSENSE,
        CallError("error", "too long"),
        EndpointError("401"),
        BudgetError("spent"),
    ],
)
def test_every_end_frees_the_place(ask, pacer, end):
    """A lost place would slow the run down for good."""
    assert ask(end) == [end]
    assert pacer.flow.in_flight == 0


def test_a_cancelled_call_frees_the_place(pacer):
    """Ctrl-C and failing siblings cancel calls by the hundred."""

    async def cancel():
        async with asyncio.timeout(1):
            await PacedModel(ScriptedModel([asyncio.CancelledError()]), pacer).ask(request())

    with pytest.raises(asyncio.CancelledError, match=r"^$"):
        virtual_time.run(cancel())

    assert pacer.flow.in_flight == 0


def test_the_prompt_and_a_reply_are_reserved_before_the_call(pacer):
    """Sent without, long prompts go beyond the limit together."""
    levels = []

    def reply(asked):
        levels.append(pacer.flow.tokens.level)
        return FINE

    virtual_time.run(PacedModel(FunctionModel(reply), pacer).ask(request()))
    pacer.close()

    assert levels == [pytest.approx(1000 - estimate_tokens(request()) - 256, abs=0.01)]


def test_what_was_used_is_settled_behind_the_call(ask, pacer):
    """What the reply did not need is there for the next."""
    ask(FINE)

    assert pacer.flow.tokens.level == pytest.approx(1000 - 11 - 40, abs=0.01)


def test_refusals_for_too_many_calls_slow_the_flow(ask, pacer):
    """That is what they ask for."""
    ask(*[BUSY] * 4)

    assert pacer.flow.overloads == 1


def test_a_wait_that_is_asked_for_reaches_the_flow(ask, pacer):
    """All calls wait, not only the one that was told."""
    ask(*[AttemptError("429", fault="rate", retry_after_s=9.0)] * 4)

    assert pacer.flow.hold_until == pytest.approx(9.0, abs=0.01)


@pytest.mark.parametrize("end", [GONE, BROKEN])
def test_failures_in_a_row_show_an_endpoint_that_is_down(ask, pacer, end):
    """A gateway whose model is gone says 503, and one that is gone says nothing."""
    ask(FINE, *[end] * OPENS_AFTER)

    assert pacer.breaker.is_open


@pytest.mark.parametrize("end", [BUSY, NONSENSE, CallError("error", "too long")])
def test_answers_of_any_kind_show_an_endpoint_that_is_up(ask, pacer, end):
    """Its replies may be of no use; trying once a second would not help."""
    ask(FINE, *[end] * OPENS_AFTER)

    assert not pacer.breaker.is_open


def test_attempts_at_an_endpoint_that_is_down_do_not_count(ask):
    """A call must outlive an outage, whatever its number of attempts."""
    failures = [AttemptError("reset", unreachable=True) for _ in range(OPENS_AFTER + 2)]
    ask(FINE, *failures)

    assert [error.counted for error in failures] == [True] * (OPENS_AFTER - 1) + [False] * 3


def test_attempts_that_fail_now_and_then_count(ask):
    """A call that fails where others succeed must end."""
    failure = AttemptError("503")
    ask(FINE, failure, FINE)

    assert failure.counted
