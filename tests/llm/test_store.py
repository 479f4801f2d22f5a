import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from fakes import ScriptedModel, request

from ragforge.errors import BudgetError, CallError, DataError
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.dialect import Dialect
from ragforge.llm.store import CallStore, StoredModel

REPLY = ChatReply("fine", usage=Usage(100, 20), model="m-1", fingerprint="fp", latency_s=0.5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".ragforge" / "calls.sqlite"


@pytest.fixture
def store(path):
    with closing(CallStore(path)) as opened:
        yield opened


def stored(inner, store, endpoint="e", model="m", price=None):
    return StoredModel(inner, store, endpoint, model, price, tell=str)


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


def test_a_stored_reply_comes_back_whole(store):
    """What is replayed must be what was bought."""
    store.put("k", "e", "m", REPLY, 0.25)

    assert store.get("k") == ChatReply(
        "fine",
        usage=Usage(100, 20),
        model="m-1",
        fingerprint="fp",
        latency_s=0.5,
        key="k",
        cached=True,
    )


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\x1b[31m", "文 🎉", "x" * 1_000_000, ""])
def test_any_text_survives_the_store(store, text):
    """A reply that cannot be stored would be bought again and again."""
    store.put("k", "e", "m", ChatReply(text), None)

    assert store.get("k").text == text


def test_an_equal_question_is_not_bought_again(store):
    """This is what makes a rerun free."""
    inner = ScriptedModel([REPLY])
    model = stored(inner, store)

    first, second = ask(model), ask(model)

    assert len(inner.asked) == 1
    assert (first.cached, second.cached) == (False, True)
    assert (first.text, first.key) == (second.text, second.key)


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


def test_a_reply_is_committed_before_it_is_used(path, store):
    """After a kill at any later moment another process finds it."""
    reply = ask(stored(ScriptedModel([REPLY]), store))

    with closing(CallStore(path)) as other:
        assert other.get(reply.key).text == "fine"


KILLED = """
import os, sys
from pathlib import Path
from ragforge.llm.chat import ChatReply
from ragforge.llm.store import CallStore
CallStore(Path(sys.argv[1])).put("k", "e", "m", ChatReply("fine"), None)
os.kill(os.getpid(), 9)
"""


def test_a_stored_reply_survives_kill_9(path):
    """Nothing that was paid for may be lost with the process."""
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)

    with closing(CallStore(path)) as store:
        assert store.get("k").text == "fine"


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


def test_a_damaged_row_does_not_touch_the_others(path, store):
    """One bad sector must not cost the whole store."""
    store.put("good", "e", "m", REPLY, None)
    store.put("bad", "e", "m", REPLY, None)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE calls SET reply = 'junk' WHERE key = 'bad'")

    assert store.get("bad") is None
    assert store.get("good").text == "fine"


def fill(path):
    with closing(CallStore(path)) as store:
        for number in range(200):
            store.put(f"k{number}", "e", "m", ChatReply("x" * 500), None)
    return path.read_bytes()


def junk(content):
    return b"this is no database " * 100


def torn(content):
    return content[: len(content) // 2]


def scratched(content):
    return content[:8192] + b"\xee" * 8192 + content[16384:]


@pytest.mark.parametrize("damage", [junk, torn, scratched])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path, damage):
    """A broken store must neither stop the nightly run nor be thrown away."""
    harmed = damage(fill(path))
    path.write_bytes(harmed)

    with closing(CallStore(path)) as store:
        assert store.get("k1") is None
        assert store.set_aside == path.with_name("calls.sqlite.damaged-1")
        assert store.set_aside.read_bytes() == harmed


def test_each_damaged_file_gets_a_name_of_its_own(path):
    """A second accident must not overwrite what may be rescued from the first."""
    for _ in range(2):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(junk(b""))
        CallStore(path).close()

    assert sorted(found.name for found in path.parent.glob("*damaged*")) == [
        "calls.sqlite.damaged-1",
        "calls.sqlite.damaged-2",
    ]


def test_an_empty_file_is_a_new_store(path):
    """A crash right after the file was made leaves 0 bytes."""
    path.parent.mkdir()
    path.touch()

    with closing(CallStore(path)) as store:
        assert store.set_aside is None
        assert store.spent().calls == 0


def test_a_store_that_cannot_be_made_is_named(tmp_path):
    """The run must stop before it pays for replies that it cannot keep."""
    (tmp_path / "file").touch()

    with pytest.raises(DataError, match=r"file/calls\.sqlite: the call store cannot be opened"):
        CallStore(tmp_path / "file" / "calls.sqlite")


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


def test_a_dialect_is_remembered_by_endpoint_and_model(path, store):
    """Learning costs refused calls; it is done once."""
    dialect = Dialect(mode="plain", tokens_field="max_completion_tokens", omit=("seed",))
    store.learn("e m", dialect)

    with closing(CallStore(path)) as other:
        assert other.dialect("e m") == dialect
        assert other.dialect("e m2") is None


def test_two_connections_share_one_store(path, store):
    """Two runs on one dataset must not lock each other out."""
    with closing(CallStore(path)) as other:
        store.put("a", "e", "m", REPLY, None)
        other.put("b", "e", "m", REPLY, None)

        assert other.get("a") == store.get("a")
        assert other.get("b") == store.get("b")
