import asyncio
import random

import pytest
import virtual_time
from fakes import Recorder, ScriptedModel, request

from ragforge.errors import BudgetError, CallError, EndpointError
from ragforge.llm.chat import ChatReply
from ragforge.llm.retries import (
    DOWN_AFTER,
    ENDS_RUN,
    AttemptError,
    RetryingModel,
    RetryPolicy,
    classify_status,
)


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (301, "redirect"),
        (302, "redirect"),
        (303, "redirect"),
        (307, "redirect"),
        (308, "redirect"),
        (400, "bad_request"),
        (401, "auth"),
        (402, "quota"),
        (403, "auth"),
        (404, "missing"),
        (405, "missing"),
        (408, "transient"),
        (409, "transient"),
        (410, "missing"),
        (413, "bad_request"),
        (418, "bad_request"),
        (422, "bad_request"),
        (425, "transient"),
        (429, "rate"),
        (500, "transient"),
        (502, "transient"),
        (503, "transient"),
        (504, "transient"),
        (529, "transient"),
    ],
)
def test_the_status_tells_the_kind(status, fault):
    """The kind decides whether to try again, slow down, stop or go on with the next call."""
    assert classify_status(status, "") == fault


@pytest.mark.parametrize("status", [400, 403, 429, 500])
@pytest.mark.parametrize(
    "code",
    ["insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "quota_exceeded"],
)
def test_spent_money_is_told_by_the_code(status, code):
    """OpenAI says 429 for it, which waiting does not cure."""
    assert classify_status(status, code) == "quota"


def test_other_codes_leave_the_kind_to_the_status():
    """A busy endpoint has a code too."""
    assert classify_status(429, "rate_limit_exceeded") == "rate"


def test_what_no_call_can_escape_stops_the_run():
    """Thousands of calls would else fail one by one."""
    assert frozenset({"quota", "auth", "missing", "redirect"}) == ENDS_RUN


@pytest.mark.parametrize(
    ("fault", "counted"), [("rate", False), ("transient", True), ("invalid_reply", True)]
)
def test_all_attempts_count_but_those_that_came_too_early(fault, counted):
    """Waiting for one's turn is no failure of the call."""
    assert AttemptError("failed", fault=fault).counted == counted


BUSY = AttemptError("busy", raw="slow down")
GONE = AttemptError("gone", unreachable=True)
TOO_MANY = AttemptError("429", fault="rate")
UNCOUNTED = AttemptError("down")
UNCOUNTED.counted = False
FINE = ChatReply("fine")


@pytest.fixture
def patient():
    """Make a model that retries almost without waiting, the script behind it, and its observer."""

    def make(*replies, max_attempts=3):
        script, recorder = ScriptedModel(list(replies)), Recorder()
        return (
            RetryingModel(script, RetryPolicy(max_attempts, first_wait_s=1e-6), recorder),
            script,
            recorder,
        )

    return make


def ask(model):
    return asyncio.run(model.ask(request()))


def test_what_may_pass_is_tried_again(patient):
    """A busy endpoint must not cost a unit of work."""
    model, script, recorder = patient(BUSY, BUSY, FINE)

    assert ask(model) == FINE
    assert len(script.asked) == 3
    assert [event.message for event in recorder.named("retry")] == ["busy", "busy"]


def test_attempts_are_limited_and_the_last_reply_is_kept(patient):
    """The user must see what the endpoint said at last."""
    model, script, _ = patient(BUSY)

    with pytest.raises(CallError, match="gave up after 3 attempts: busy") as caught:
        ask(model)

    assert (caught.value.kind, caught.value.raw) == ("error", "slow down")
    assert len(script.asked) == 3


def test_an_endpoint_that_never_answers_stops_the_run(patient):
    """With a wrong address every further call would wait in vain."""
    model, _, _ = patient(GONE)

    with pytest.raises(EndpointError, match="gave up after 3 attempts: gone"):
        ask(model)


def test_an_endpoint_that_answered_once_is_not_unreachable(patient):
    """One reset connection behind a busy spell must not end a run of hours."""
    model, _, _ = patient(BUSY, GONE, GONE)

    with pytest.raises(CallError, match="gave up after 3 attempts: gone"):
        ask(model)


@pytest.mark.parametrize(
    "error", [CallError("refused", "no"), EndpointError("401"), BudgetError("spent")]
)
def test_what_does_not_pass_is_not_repeated(patient, error):
    """Repeating what is refused for good only costs."""
    model, script, _ = patient(error)

    with pytest.raises(type(error), match=str(error)):
        ask(model)

    assert len(script.asked) == 1


async def ask_in_turn(model, times):
    outcomes = []
    for _ in range(times):
        try:
            outcomes.append(await model.ask(request()))
        except CallError:
            outcomes.append("lost")
    return outcomes


def test_many_lost_calls_in_a_row_stop_the_run(patient):
    """An outage must not turn thousands of pairs into failures one by one."""
    model, script, _ = patient(BUSY, max_attempts=2)

    with pytest.raises(EndpointError, match=rf"busy \({DOWN_AFTER} calls in a row\)"):
        asyncio.run(ask_in_turn(model, DOWN_AFTER + 5))

    assert len(script.asked) == 2 * DOWN_AFTER


def test_a_success_begins_the_count_anew(patient):
    """An endpoint that loses some calls is not down."""
    nearly = [BUSY] * (DOWN_AFTER - 1)
    model, _, _ = patient(*nearly, FINE, *nearly, FINE, max_attempts=1)

    outcomes = asyncio.run(ask_in_turn(model, 2 * DOWN_AFTER))

    assert outcomes == [*["lost"] * (DOWN_AFTER - 1), FINE] * 2


def test_refusals_of_single_requests_do_not_count_as_lost(patient):
    """A filter that stops many texts in a row says nothing about the endpoint."""
    model, _, _ = patient(CallError("error", "too long"))

    assert asyncio.run(ask_in_turn(model, DOWN_AFTER + 5)) == ["lost"] * (DOWN_AFTER + 5)


@pytest.mark.parametrize("kept", [TOO_MANY, UNCOUNTED])
def test_waiting_for_ones_turn_uses_up_no_attempts(patient, kept):
    """In a crowd or an outage every call would else be lost."""
    model, script, _ = patient(*[kept] * 10, FINE, max_attempts=2)

    assert ask(model) == FINE
    assert len(script.asked) == 11


def test_only_attempts_that_count_are_counted(patient):
    """Failures between refusals are failures all the same."""
    model, script, _ = patient(TOO_MANY, BUSY, TOO_MANY, BUSY, FINE, max_attempts=2)

    with pytest.raises(CallError, match="gave up after 2 attempts: busy"):
        ask(model)

    assert len(script.asked) == 4


def test_a_call_ends_when_its_time_is_used_up():
    """Refusals do not count, and must not go on for ever."""
    script = ScriptedModel([TOO_MANY])
    model = RetryingModel(script, RetryPolicy(3, max_s=0.0), Recorder())

    with pytest.raises(CallError, match="gave up after 0 s: 429"):
        ask(model)

    assert len(script.asked) == 1


def test_an_endpoint_that_asks_for_no_wait_is_not_believed():
    """Coming back at once is a hot loop."""
    script, recorder = ScriptedModel([AttemptError("429", retry_after_s=0.0), FINE]), Recorder()
    model = RetryingModel(script, RetryPolicy(3, first_wait_s=8.0), recorder)

    virtual_time.run(model.ask(request()))

    [event] = recorder.named("retry")
    assert 2.0 <= event.numbers["wait_s"] <= 8.0


def test_waits_grow(monkeypatch):
    """An endpoint in trouble needs time."""
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    recorder = Recorder()
    model = RetryingModel(ScriptedModel([*[BUSY] * 9, FINE]), RetryPolicy(10), recorder)

    virtual_time.run(model.ask(request()))

    waits = [event.numbers["wait_s"] for event in recorder.named("retry")]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def test_a_retry_tells_its_kind_and_number(patient):
    """Logs are searched for what happened and how often."""
    model, _, recorder = patient(TOO_MANY, BUSY, FINE)

    ask(model)

    told = [(event.labels["kind"], event.numbers["attempts"]) for event in recorder.named("retry")]
    assert told == [("rate", 1.0), ("transient", 2.0)]


@pytest.mark.parametrize(
    ("asked_s", "least_s", "most_s"), [(0.05, 0.05, 0.06), (0.0, 0.0, 0.01), (None, 0.0, 0.01)]
)
def test_the_wait_is_the_one_asked_for_and_little_more(patient, asked_s, least_s, most_s):
    """Coming back early is refused again; coming back together is a herd."""
    model, _, recorder = patient(AttemptError("429", retry_after_s=asked_s), FINE)

    ask(model)

    [event] = recorder.named("retry")
    assert least_s <= event.numbers["wait_s"] <= most_s


class StopHereError(Exception):
    pass


@pytest.mark.parametrize("asked_s", [3600.0, float("inf")])
def test_an_absurd_wait_is_cut_to_a_minute(asked_s):
    """A gateway that says an hour must not look like a program that hangs."""

    def stop(event):
        raise StopHereError(f"{event.numbers['wait_s']:g}")

    script = ScriptedModel([AttemptError("429", retry_after_s=asked_s)])
    model = RetryingModel(script, RetryPolicy(3, first_wait_s=1e-6), stop)

    with pytest.raises(StopHereError, match=r"^60$"):
        ask(model)
