"""Rows 17, 31, 32 and 34: the endpoint, this machine or the event loop stops for a while.

Table: down from 2 s to 12 s, suspended for 60 s. Here: down from 2.5 s to 6.5 s, suspended for 3 s.
"""

import asyncio
import bisect
import os
import signal
import time
from contextlib import AsyncExitStack

import pytest
from command_processes import CommandProcess
from fakes import request
from faults.harness import LATENCY, Told, finish, until

from ragforge.errors import RagforgeError
from ragforge.llm.connect import connect
from ragforge.observe import silent


@pytest.fixture(scope="module", autouse=True)
def _imported(tmp_path_factory):
    """Import what commands import: outages begin some seconds after an endpoint was started."""
    CommandProcess(["-V"], tmp_path_factory.mktemp("first"), os.environ).communicate()


def test_an_outage_costs_no_pair_and_few_probes(start, product):
    """Row 17: endpoints restart; a run of hours must neither die of it nor hammer (1 probe/s)."""
    down = product(start(latency="fixed:100", down_from_s=2.5, down_to_s=6.5), 600)
    process = down.begin("-q", "--concurrency", "16")
    # An endpoint that has never answered does not count as down: the outage begins later.
    down.endpoint.until_billed(1)
    down.endpoint.reset()
    down.endpoint.until(4)
    before = down.endpoint.faults("down")
    down.endpoint.until(6.4)
    probes = down.endpoint.faults("down") - before

    ended = finish(process)

    sends = down.endpoint.sends
    first_s = sends[bisect.bisect(sends, 6.0)]
    assert ended.code == 0
    assert down.grades == down.expected
    assert probes <= 3
    assert first_s < 6.5 + 3


def test_an_outage_is_told(start, product):
    """Row 17: who watches must know that the run waits, and for what."""
    down = product(start(latency="fixed:50", down_from_s=1.5, down_to_s=3.0), 800)
    told = Told()

    def watch(event):
        told(event)
        if event.name == "call" and len(told.named("call")) == 1:
            down.endpoint.reset()

    down.judge(watch, transport="httpx2")

    messages = [event.message for event in told.named("flow")]
    assert any("is down" in message for message in messages)
    assert any("answers again" in message for message in messages)


def test_an_outage_that_lasts_ends_the_run(start, product):
    """Row 17: behind --max-wait-s somebody has to look."""
    down = product(start(latency="fixed:50", down_from_s=1, down_to_s=600), 400)

    ended = down.main("-q", "--max-wait-s", "2")

    assert ended.code == 4
    assert ended.took_s < 10


def most_within(sends, span_s):
    """Return the largest number of sends in any span."""
    return max(bisect.bisect(sends, at + span_s) - n for n, at in enumerate(sends))


def test_a_machine_that_was_suspended_sends_no_burst(start, product):
    """Row 31: a bucket that fills for an hour of sleep would be spent at once."""
    asleep = product(start(latency=LATENCY), 240)
    flags = ("--requests-per-minute", "2400", "--timeout-s", "2", "--concurrency", "16")
    process = asleep.begin("-q", *flags)
    asleep.endpoint.until_billed(40)
    process.send_signal(signal.SIGSTOP)
    asleep.endpoint.until(asleep.endpoint.clock() + 4)
    n_before = len(asleep.endpoint.sends)

    process.send_signal(signal.SIGCONT)

    assert finish(process).code == 0
    assert asleep.grades == asleep.expected
    # 40 in store and 40 a second; as many again may have waited for a busy endpoint to read them.
    # All of the 180 or so that are left would come at once.
    assert most_within(asleep.endpoint.sends[n_before:], 1.0) <= 40 + 40 + 40


def test_attempts_that_ran_out_of_time_during_a_suspension_are_repeated(start, product):
    """Row 31: a closed lid is no failure of any pair."""
    asleep = product(start(latency="fixed:300"), 60)
    process = asleep.begin("-q", "--timeout-s", "0.7", "--concurrency", "16")
    asleep.endpoint.until_billed(20)
    process.send_signal(signal.SIGSTOP)
    asleep.endpoint.until(asleep.endpoint.clock() + 1.2)

    process.send_signal(signal.SIGCONT)

    assert finish(process).code == 0
    assert asleep.grades == asleep.expected


def test_a_stalled_event_loop_makes_no_false_failures(start, product):
    """Row 32: 6 s of work in a callback; the usual limit of 5 s for connecting would strike."""
    stalled = product(start(latency="fixed:200"), 700)
    told = Told()

    def observe(event):
        told(event)
        if len(told.named("call")) == 60 and event.name == "call":
            until_s = time.monotonic() + 6
            until(lambda: time.monotonic() > until_s)

    stalled.judge(observe, concurrency=512)

    assert stalled.grades == stalled.expected
    assert told.named("retry") == []


def test_two_event_loops_one_after_the_other_work(start, product):
    """Row 34: notebooks and scripts call asyncio.run for each step."""
    twice = product(start(), 20)
    twice.judge()

    twice.judge()

    assert twice.grades == twice.expected
    assert twice.endpoint.count("dup") == 0


def test_a_model_of_another_event_loop_works_or_says_so(start, product):
    """Row 34: "Event loop is closed" tells nobody what to do."""
    reused = product(start(), 1)
    settings = reused.settings(transport="aiohttp")
    stack = AsyncExitStack()

    async def open_and_ask():
        connection = await stack.enter_async_context(connect(settings, reused.store, silent))
        await connection.model.ask(request())
        return connection

    async def ask(connection):
        try:
            return await connection.model.ask(request("other"))
        except RagforgeError as error:
            return error

    with asyncio.Runner() as first, asyncio.Runner() as second:
        connection = first.run(open_and_ask())
        outcome = second.run(ask(connection))
        first.run(stack.aclose())

    assert "event loop" in str(outcome) or outcome.text
