import asyncio
import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import pytest
from fakes import ScriptedModel, request

from ragforge.config import ModelSettings
from ragforge.errors import BudgetError, CallError, DataError, EndpointError
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatReply, DryRunError, Usage
from ragforge.llm.store.leases import LEASE_S
from ragforge.llm.store.models import (
    CountingModel,
    LeasedModel,
    Replay,
    StoredModel,
    leases_renewed,
)
from ragforge.mock import Script, serving

REPLY = ChatReply("fine", usage=Usage(100, 20), model="m-1", fingerprint="fp", latency_s=0.5)


def stored(inner, store, endpoint="e", model="m", price=None):
    return StoredModel(inner, store, endpoint, model, price, notify=str)


def ask(model, **changes):
    return asyncio.run(model.ask(request(**changes)))


class GatedModel:
    """Replies when the test says so."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.asked = 0

    async def ask(self, request):
        self.asked += 1
        await self.gate.wait()
        return ChatReply("fine", usage=Usage(1, 1))


def test_an_equal_question_is_not_bought_again(store):
    """This is what makes a rerun free."""
    inner = ScriptedModel([REPLY])
    model = stored(inner, store)

    first, second = ask(model), ask(model)

    assert len(inner.asked) == 1
    assert (first.cached, second.cached) == (False, True)
    assert (first.text, first.key) == (second.text, second.key)


@pytest.mark.parametrize(
    ("latencies_s", "seconds"),
    [((0.0, 0.0), None), ((0.0, 8.0, 4.0), 6.0)],
    ids=["batches", "both"],
)
def test_replies_of_batches_say_nothing_of_the_time_of_live_calls(store, latencies_s, seconds):
    """A dry run that promises 0 s for 10,000 calls is no plan."""
    for number, latency_s in enumerate(latencies_s):
        store.put(f"{number}", "e", "m", replace(REPLY, latency_s=latency_s), None)
    counting = CountingModel(store, "e", "m", None, ModelSettings(concurrency=1))
    with pytest.raises(DryRunError):
        ask(counting)

    assert counting.estimate()["seconds"] == seconds


@pytest.mark.parametrize(
    ("endpoint", "model", "changes"),
    [("e2", "m", {}), ("e", "m2", {}), ("e", "m", {"temperature": 0.7}), ("e", "m", {"vote": 1})],
)
def test_other_questions_are_asked(store, endpoint, model, changes):
    """A reply of another model, endpoint or sampling is no reply to this question."""
    inner = ScriptedModel([REPLY])
    ask(stored(inner, store))

    reply = ask(stored(inner, store, endpoint, model), **changes)

    assert len(inner.asked) == 2
    assert not reply.cached


def test_fifty_equal_questions_in_flight_are_one_call(store):
    """Duplicate chunks are common, and each must be paid once."""

    async def ask_all():
        inner = GatedModel()
        model = stored(inner, store)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(model.ask(request())) for _ in range(50)]
            await asyncio.sleep(0)
            inner.gate.set()
        return inner.asked, [task.result().cached for task in tasks]

    asked, cached = asyncio.run(ask_all())

    assert asked == 1
    assert cached == [False] + [True] * 49


@pytest.mark.parametrize("error", [CallError("refused", "no"), BudgetError("spent")])
def test_a_failure_reaches_all_who_wait_and_is_not_stored(store, error):
    """A failure is never a value: it is kept for nobody who asks later."""

    class FailingModel(GatedModel):
        async def ask(self, request):
            await super().ask(request)
            raise error

    async def ask_all():
        inner = FailingModel()
        model = stored(inner, store)
        tasks = [asyncio.create_task(model.ask(request())) for _ in range(3)]
        await asyncio.sleep(0)
        inner.gate.set()
        await asyncio.wait(tasks)
        return inner.asked, [task.exception() for task in tasks]

    assert asyncio.run(ask_all()) == (1, [error] * 3)
    assert ask(stored(ScriptedModel([REPLY]), store)).text == "fine"


def test_one_who_is_cut_off_does_not_cut_off_the_others(store):
    """Else a cancelled unit would hang or cancel units that only asked the same."""

    async def ask_all():
        inner = GatedModel()
        model = stored(inner, store)
        first = asyncio.create_task(model.ask(request()))
        second = asyncio.create_task(model.ask(request()))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        inner.gate.set()
        return (await second).text, inner.asked

    assert asyncio.run(ask_all()) == ("fine", 2)


def test_one_who_stops_waiting_leaves_the_call_alone(store):
    """The call is paid; only the one who waited for it is gone."""

    async def ask_all():
        inner = GatedModel()
        model = stored(inner, store)
        first = asyncio.create_task(model.ask(request()))
        second = asyncio.create_task(model.ask(request()))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        inner.gate.set()
        return (await first).text, inner.asked

    assert asyncio.run(ask_all()) == ("fine", 1)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE calls SET reply = replace(reply, 'fine', 'vile')",
        "UPDATE calls SET sha256 = 'x'",
        "UPDATE calls SET reply = ''",
        "UPDATE calls SET reply = CAST(x'ff00fe' AS TEXT)",
        "UPDATE calls SET reply = x'ff00fe'",
    ],
)
def test_a_damaged_row_is_dropped_and_bought_again(path, store, damage):
    """A flipped bit must not become a grade, nor end the run."""
    inner = ScriptedModel([REPLY])
    model = stored(inner, store)
    ask(model)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(damage)

    reply = ask(model)

    assert (reply.text, reply.cached, len(inner.asked)) == ("fine", False, 2)


def test_a_store_that_takes_no_more_stops_the_run(path, store):
    """Going on would buy replies only to lose them."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE calls")
    inner = ScriptedModel([REPLY])

    with pytest.raises(DataError, match=r"calls\.sqlite: the call store does not work: no such t"):
        ask(stored(inner, store))

    assert inner.asked == []


def test_the_ledger_sums_what_all_replies_took(store):
    """The manifest says what a dataset has cost over all its runs."""
    model = stored(ScriptedModel([REPLY]), store, price=Price(10, 100))
    ask(model)
    ask(model, vote=1)
    ask(model)

    spent = store.spent()

    assert (spent.calls, spent.prompt_tokens, spent.completion_tokens) == (2, 200, 40)
    assert spent.cost_usd == pytest.approx(2 * (100 * 10 + 20 * 100) / 1e6)


def test_one_unknown_price_makes_the_sum_unknown(store):
    """A sum over the known part would be read as the whole."""
    ask(stored(ScriptedModel([REPLY]), store, price=Price(1, 1)))
    ask(stored(ScriptedModel([REPLY]), store, model="local"))

    assert store.spent().cost_usd is None


def test_a_failure_gives_the_lease_back(store, other):
    """Else nobody could ask again before the lease ends by itself."""
    model = stored(ScriptedModel([CallError("refused", "no")]), store)

    with pytest.raises(CallError, match="no"):
        ask(model)

    assert ask(stored(ScriptedModel([REPLY]), other)).text == "fine"


def test_why_a_call_failed_outlives_a_store_that_fails_too(path, store):
    """The user must mend the endpoint; the lease ends by itself."""

    class Breaking:
        async def ask(self, request):
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("DROP TABLE leases")
            raise EndpointError("key refused")

    with pytest.raises(EndpointError, match="key refused"):
        ask(stored(Breaking(), store))


def test_a_reply_that_another_process_buys_is_waited_for(store, other):
    """Two runs on one dataset must not pay twice."""
    told = []

    async def both():
        waiting = asyncio.Event()
        inner = ScriptedModel([REPLY])
        model = StoredModel(
            inner, other, "e", "m", None, lambda text: (told.append(text), waiting.set())
        )
        store.claim(model.key(request()))
        task = asyncio.create_task(model.ask(request()))
        await waiting.wait()
        store.put(model.key(request()), "e", "m", ChatReply("theirs"), None)
        return await task, inner.asked

    reply, asked = asyncio.run(both())

    assert (reply.text, reply.cached, asked) == ("theirs", True, [])
    assert told == [f"process {store.owner.pid} is asking some of the same; its replies are shared"]


def test_a_call_that_another_process_took_over_is_not_sent(store, other, monkeypatch):
    """A process that stood still while its call waited for its turn wakes up and would send it."""
    inner, waiting = ScriptedModel([REPLY]), GatedModel()
    leased = LeasedModel(inner, store, "e", "m")

    class Turns:
        async def ask(self, request):
            await waiting.ask(request)
            return await leased.ask(request)

    model = stored(Turns(), store)
    key = model.key(request())

    async def wake():
        asked = asyncio.create_task(model.ask(request()))
        await asyncio.sleep(0)
        true = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: true() + LEASE_S + 1)
        assert other.claim(key) is None
        other.put(key, "e", "m", replace(REPLY, text="bought elsewhere"), None)
        waiting.gate.set()
        return await asked

    assert asyncio.run(wake()).text == "bought elsewhere"
    assert inner.asked == []


def test_a_call_that_another_process_gives_up_is_bought(store, other):
    """Its failure is no reply of ours."""

    async def both():
        waiting = asyncio.Event()
        model = StoredModel(
            ScriptedModel([REPLY]), other, "e", "m", None, lambda text: waiting.set()
        )
        store.claim(model.key(request()))
        task = asyncio.create_task(model.ask(request()))
        await waiting.wait()
        store.release(model.key(request()))
        return await task

    assert not asyncio.run(both()).cached


class BusyStore:
    """Cannot be written the first time."""

    def __init__(self):
        self.tried = 0
        self.renewed = asyncio.Event()

    def renew(self):
        self.tried += 1
        if self.tried == 1:
            raise DataError("database is locked")
        self.renewed.set()


def test_a_renewal_that_fails_is_made_up_for():
    """One busy moment would else cost every lease, and each call would be paid twice."""

    async def run():
        store = BusyStore()
        async with leases_renewed(store, every_s=0):
            await asyncio.wait_for(store.renewed.wait(), 10)
        return store.tried

    assert asyncio.run(run()) >= 2


def test_a_replay_answers_from_the_store(store):
    """A finished run can be looked into without a network."""
    ask(stored(ScriptedModel([REPLY]), store))

    assert ask(Replay(store, "e", "m")).text == "fine"


def test_a_replay_of_what_was_never_bought_ends_the_run(store):
    """It must not go on with a part, nor ask."""
    with pytest.raises(EndpointError, match=r"holds no reply of 'm' at 'e'.*call key") as raised:
        ask(Replay(store, "e", "m"))

    assert raised.value.exit_code == 4


ASKING = """
import asyncio, sys
from pathlib import Path
from ragforge.config import Settings
from ragforge.llm.chat import ChatRequest, Message
from ragforge.llm.connect import connect
from ragforge.observe import silent

async def main():
    fields = {"name": "m", "base_url": sys.argv[2], "concurrency": 8}
    settings = Settings.model_validate({"model": fields})
    async with connect(settings, Path(sys.argv[1]), silent) as connection:
        print("ready", flush=True)
        sys.stdin.readline()
        async with asyncio.TaskGroup() as group:
            for number in range(60):
                turn = Message("user", f"question {number}")
                schema = {"type": "object", "properties": {"grade": {"type": "integer"}}}
                asked = ChatRequest((turn,), "s", schema)
                group.create_task(connection.model.ask(asked))
asyncio.run(main())
"""


@pytest.mark.slow
def test_two_processes_buy_each_of_sixty_replies_once(path, python):
    """What both need is paid by one of them."""
    with serving(Script(latency="uniform:5,40")) as endpoint:
        processes = [python(ASKING, path, endpoint.url) for _ in range(2)]
        ready = [process.stdout.readline() for process in processes]
        ended = [process.communicate("go\n", timeout=60) for process in processes]
        ledger = endpoint.ledger()

    assert (ready, ended) == (["ready\n"] * 2, [("", "")] * 2)
    assert (ledger["billed"], ledger["dup"]) == (60, 0)
