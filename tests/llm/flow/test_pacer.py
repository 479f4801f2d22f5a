import asyncio

import pytest
import virtual_time
from fakes import request
from hypothesis import given
from hypothesis import strategies as st

from ragforge.errors import CallError, EndpointError
from ragforge.llm.chat import ChatReply
from ragforge.llm.flow.pacer import OPENS_AFTER, PacedModel, Pacer
from ragforge.llm.flow.state import Flow
from ragforge.llm.retries import AttemptError
from ragforge.llm.wire import RateLimit, RateLimits


@pytest.fixture
def told():
    """What the pacer told."""
    return []


@pytest.fixture
def paced(told):
    """Run a coroutine function with a pacer in virtual time."""

    async def run_with(scene, max_wait_s, most_in_flight, **limits):
        pacer = Pacer(Flow(most_in_flight, virtual_time.now(), **limits), max_wait_s, told.append)
        try:
            return await scene(pacer)
        finally:
            pacer.close()

    def run(scene, max_wait_s=300.0, most_in_flight=8, **limits):
        return virtual_time.run(run_with(scene, max_wait_s, most_in_flight, **limits))

    return run


async def admit(pacer, times):
    return [await pacer.admit(10.0) for _ in range(times)]


async def take_down(pacer):
    """Let the endpoint answer once and then fail until it counts as down."""
    pacer.accepted(await pacer.admit(10.0), 10.0, 5.0)
    for ticket in await admit(pacer, OPENS_AFTER):
        pacer.failed(ticket, "reset", unreachable=True)


def test_calls_are_let_through_in_the_order_they_came(paced):
    """A call that is overtaken for ever would look like one that hangs."""
    order = []

    async def call(pacer, number):
        ticket = await pacer.admit(10.0)
        order.append(number)
        await asyncio.sleep(1)
        pacer.accepted(ticket, 10.0, 5.0)

    async def scene(pacer):
        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(call(pacer, number))

    paced(scene, most_in_flight=2)

    assert order == [0, 1, 2, 3, 4, 5]


def test_a_newcomer_does_not_overtake_those_who_wait(paced):
    """A small call must not slip through where a large one waits for tokens."""
    order = []

    async def call(pacer, tokens):
        await pacer.admit(tokens)
        order.append(tokens)

    async def scene(pacer):
        await pacer.admit(300.0)
        async with asyncio.TaskGroup() as group:
            group.create_task(call(pacer, 900.0))
            await asyncio.sleep(0.1)
            group.create_task(call(pacer, 1.0))

    paced(scene, tokens_per_minute=60_000)

    assert order == [900.0, 1.0]


def test_a_waiting_call_goes_when_its_time_has_come(paced):
    """Nothing else needs to happen for it."""

    async def scene(pacer):
        await admit(pacer, 3)
        return virtual_time.now()

    assert paced(scene, requests_per_minute=60) == pytest.approx(2.0, abs=0.001)


def test_a_told_limit_holds_for_those_who_wait(paced):
    """They came before it was known."""

    async def scene(pacer):
        tickets = await admit(pacer, 2)
        pacer.apply_limits(RateLimits(RateLimit(60.0, 0.0), None))
        pacer.accepted(tickets[0], 10.0, 5.0)
        await pacer.admit(10.0)
        return virtual_time.now()

    assert paced(scene) == pytest.approx(3 / 0.98, abs=0.001)


def test_a_call_cancelled_while_it_waits_takes_no_place(paced):
    """Ctrl-C and failing siblings cancel calls by the hundred."""

    async def scene(pacer):
        [ticket] = await admit(pacer, 1)
        waiting = asyncio.create_task(pacer.admit(10.0))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.sleep(0.1)
        pacer.accepted(ticket, 10.0, 5.0)
        return pacer.flow.in_flight

    assert paced(scene, most_in_flight=1) == 0


def test_a_call_cancelled_as_its_turn_comes_gives_the_place_on(paced):
    """Between the turn and the sending lies one round of the event loop."""

    async def scene(pacer):
        [ticket] = await admit(pacer, 1)
        first, second = (asyncio.create_task(pacer.admit(10.0)) for _ in range(2))
        await asyncio.sleep(0.1)
        pacer.accepted(ticket, 10.0, 5.0)
        first.cancel()
        await asyncio.sleep(0.1)
        return first.cancelled(), second.done(), pacer.flow.in_flight

    assert paced(scene, most_in_flight=1) == (True, True, 1)


ENDS = {
    "reply": ChatReply("fine"),
    "429": AttemptError("429", fault="rate", retry_after_s=1.0),
    "dropped": AttemptError("reset", unreachable=True),
    "503": AttemptError("503"),
    "nonsense": AttemptError("no JSON", fault="invalid_reply"),
    "400": CallError("error", "too long"),
}


class EndingModel:
    """Ends its calls as told, after as many seconds."""

    def __init__(self, ends):
        self.ends = list(ends)

    async def ask(self, request):
        name, latency_s = self.ends.pop()
        await asyncio.sleep(latency_s)
        if isinstance(ENDS[name], Exception):
            raise ENDS[name]
        return ENDS[name]


async def ask(model):
    try:
        return await model.ask(request())
    except (AttemptError, CallError) as error:
        return error


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(ENDS)), st.floats(0, 3), st.none() | st.floats(0, 3)),
        max_size=40,
    ),
    st.integers(1, 8),
)
def test_no_end_of_a_call_leaves_a_place_taken(calls, most_in_flight):
    """Each lost place would slow the run down, the last one stop it."""

    async def scene():
        pacer = Pacer(Flow(most_in_flight, virtual_time.now()), 3600.0, lambda message: None)
        model = PacedModel(EndingModel((name, latency_s) for name, latency_s, _ in calls), pacer)
        async with asyncio.TaskGroup() as group:
            for _, _, cancelled_at in calls:
                task = group.create_task(ask(model))
                if cancelled_at is not None:
                    asyncio.get_running_loop().call_at(cancelled_at, task.cancel)
        taken = pacer.flow.in_flight
        pacer.accepted(await pacer.admit(10.0), 10.0, 5.0)
        pacer.close()
        return taken, pacer.flow.in_flight

    assert virtual_time.run(scene()) == (0, 0)


def test_failures_in_a_row_are_told_once(paced, told):
    """The user must see why nothing moves, and not a thousand times."""
    paced(take_down)

    assert told == [
        "the endpoint is down (reset); it is tried once a second, for up to 300 s",
    ]


@pytest.mark.parametrize("end", ["accepted", "answered", "rejected"])
def test_any_answer_ends_an_outage(paced, told, end):
    """A refusal comes from an endpoint that is up again."""

    async def scene(pacer):
        await take_down(pacer)
        ticket = await pacer.admit(10.0)
        match end:
            case "accepted":
                pacer.accepted(ticket, 10.0, 5.0)
            case "answered":
                pacer.answered(ticket)
            case _:
                pacer.rejected(ticket, None)

    paced(scene)

    assert told[1:] == ["the endpoint answers again"]


@pytest.mark.parametrize("end", ["answered", "rejected"])
def test_behind_an_outage_few_calls_begin(paced, end):
    """Whatever the first answer is, the endpoint has only just come back."""

    async def scene(pacer):
        await take_down(pacer)
        pacer.flow.limit = 64.0
        ticket = await pacer.admit(10.0)
        if end == "answered":
            pacer.answered(ticket)
        else:
            pacer.rejected(ticket, None)
        return pacer.flow.limit

    assert paced(scene, most_in_flight=64) == 8


def test_a_cancelled_probe_is_followed_by_another(paced):
    """Waiting for the end of a call that was given up would last for ever."""

    async def scene(pacer):
        await take_down(pacer)
        pacer.abandoned(await pacer.admit(10.0))
        probed_at = virtual_time.now()
        await pacer.admit(10.0)
        return virtual_time.now() - probed_at

    assert paced(scene) == pytest.approx(1.1, abs=0.001)


def test_an_outage_that_lasts_ends_all_calls_that_wait(paced):
    """The user said how long a wait is worth it."""

    async def scene(pacer):
        await take_down(pacer)
        while True:
            pacer.failed(await pacer.admit(10.0), "reset", unreachable=True)

    with pytest.raises(EndpointError, match=r"^reset; down for 1\d s now$"):
        paced(scene, max_wait_s=10.0)


def test_an_endpoint_that_refuses_everything_ends_all_calls(paced):
    """Without a reply for so long, the limit is none that a run can keep."""

    async def scene(pacer):
        while True:
            pacer.rejected(await pacer.admit(10.0), None)
            await asyncio.sleep(1)

    with pytest.raises(EndpointError, match=r"^the endpoint has refused every call for \d+ s; "):
        paced(scene, max_wait_s=60.0)


def refuse_with(wait_s):
    async def scene(pacer):
        for ticket in await admit(pacer, 4):
            pacer.rejected(ticket, wait_s)
        await pacer.admit(10.0)
        return virtual_time.now()

    return scene


@pytest.mark.parametrize(
    ("wait_s", "until"), [(3600.0, r"\d\d:\d\d:\d\d"), (1e5, r"\d{4}-\d\d-\d\d \d\d:\d\d")]
)
def test_too_long_a_wait_ends_all_calls_and_says_until_when(paced, wait_s, until):
    """The user may come back then."""
    told = rf"asks to wait {wait_s:.0f} s, until {until}; longer than --max-wait-s 300$"

    with pytest.raises(EndpointError, match=told):
        paced(refuse_with(wait_s))


@pytest.mark.parametrize("wait_s", [1e18, 1e300])
def test_a_wait_beyond_the_calendar_is_an_endpoint_error_too(paced, wait_s):
    """Nonsense of an endpoint must not be a traceback."""
    with pytest.raises(EndpointError, match=r"longer than --max-wait-s 300$"):
        paced(refuse_with(wait_s))


def test_a_short_patience_does_not_end_calls_that_nobody_asked_to_wait(paced):
    """Half a second of ours is not the endpoint's word."""

    async def scene(pacer):
        for ticket in await admit(pacer, 8):
            pacer.rejected(ticket, None)
        for ticket in await admit(pacer, 3):
            pacer.rejected(ticket, None)
        await pacer.admit(10.0)
        return pacer.flow.overloads

    assert paced(scene, max_wait_s=0.3) == 2


def test_too_long_a_wait_of_a_late_refusal_ends_all_calls(paced):
    """It would else be kept, without a word, by calls that wait for an hour."""

    async def scene(pacer):
        tickets = await admit(pacer, 5)
        for ticket in tickets[:4]:
            pacer.rejected(ticket, 3.0)
        pacer.rejected(tickets[4], 3600.0)
        await pacer.admit(10.0)

    with pytest.raises(EndpointError, match=r"asks to wait 3600 s"):
        paced(scene)


def test_a_wait_within_patience_is_kept(paced):
    """A quarter of a minute is no reason to stop a run of hours."""
    assert paced(refuse_with(15.0)) == pytest.approx(15.0, abs=1.5)


def test_a_pause_is_told_with_its_end(paced, told):
    """A run that stands still for a minute looks like one that hangs."""
    paced(refuse_with(15.0))

    assert len(told) == 1
    assert "; nothing is sent until " in told[0]


def test_silence_is_told_every_half_minute(paced, told):
    """The user must know that it is the endpoint that takes its time."""

    async def scene(pacer):
        await pacer.admit(10.0)
        await asyncio.sleep(61)

    paced(scene)

    assert told == [
        "no reply for 30 s; calls in flight: 1",
        "no reply for 60 s; calls in flight: 1",
    ]


def test_silence_with_nothing_in_flight_is_not_told(paced, told):
    """A stage that computes for a minute asks nobody."""

    async def scene(pacer):
        pacer.accepted(await pacer.admit(10.0), 10.0, 5.0)
        await asyncio.sleep(61)

    paced(scene)

    assert told == []


def test_once_stopped_no_call_is_let_through(paced):
    """Those who were not waiting at the time must hear it too."""

    async def scene(pacer):
        for ticket in await admit(pacer, 4):
            pacer.rejected(ticket, 3600.0)
        await asyncio.sleep(7200)
        await pacer.admit(10.0)

    with pytest.raises(EndpointError, match=r"takes no calls"):
        paced(scene)
