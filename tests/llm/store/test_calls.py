import json
import sqlite3
import time
from contextlib import closing

import pytest

from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.sqlite_file import row_sha256
from ragforge.llm.wire import Dialect

REPLY = ChatReply("fine", usage=Usage(100, 20), model="m-1", fingerprint="fp", latency_s=0.5)


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


def test_a_reply_is_committed_when_put_returns(store, other):
    """After a kill at any later moment another process finds it."""
    store.put("k", "e", "m", REPLY, None)

    assert other.get("k").text == "fine"


KILLED = """
import os, sys
from pathlib import Path
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
CallStore(Path(sys.argv[1])).put("k", "e", "m", ChatReply("fine"), None)
os.kill(os.getpid(), 9)
"""


def test_a_stored_reply_survives_kill_9(path, python):
    """Nothing that was paid for may be lost with the process."""
    python(KILLED, path).wait(timeout=60)

    with closing(CallStore(path)) as store:
        assert store.get("k").text == "fine"


def test_a_damaged_row_does_not_touch_the_others(path, store):
    """One bad sector must not cost the whole store."""
    store.put("good", "e", "m", REPLY, None)
    store.put("bad", "e", "m", REPLY, None)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE calls SET reply = 'junk' WHERE key = 'bad'")

    assert store.get("bad") is None
    assert store.get("good").text == "fine"


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


PUTTING = """
import hashlib, sys
from pathlib import Path
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
store = CallStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(500):
    key = hashlib.sha256(f"{sys.argv[2]} {number}".encode()).hexdigest()
    store.put(key, "e", "m", ChatReply("x" * 400), 0.5)
store.close()
"""


@pytest.mark.slow
def test_four_processes_that_write_at_once_lose_nothing(path, python):
    """Shards of one run share their store."""
    processes = [python(PUTTING, path, number) for number in range(4)]
    ready = [process.stdout.readline() for process in processes]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=80)[1] for process in processes]

    assert (ready, ended) == (["ready\n"] * 4, [""] * 4)
    with closing(CallStore(path)) as store:
        assert (store.spent().calls, store.spent().cost_usd) == (2000, 1000.0)


def test_one_row_in_a_hundred_flipped_costs_just_these(path, store, fill, readable):
    """A failing disk must not turn into wrong replies, nor into the loss of good ones."""
    fill(path, 2000)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        flipped = 'UPDATE calls SET reply = replace(reply, \'{"text": "\', \'{"text": "9\')'
        connection.execute(
            f"{flipped} WHERE key IN (SELECT key FROM calls ORDER BY key LIMIT 20 OFFSET 900)"
        )

    found = readable(store, 2000)

    assert (len(found), set(found.values())) == (1980, {True})
    assert store.damaged_rows == 20


def test_a_forgotten_reply_is_not_given_and_stays_paid(store):
    """It is asked for again, and the sum of what was paid must not fall."""
    store.put("k", "e", "m", REPLY, 0.25)
    store.forget(["k"])
    store.put("k", "e", "m", ChatReply("better"), 0.25)

    assert store.get("k").text == "better"
    assert (store.spent().calls, store.spent().cost_usd) == (2, 0.5)


def test_only_rows_in_use_are_listed(store):
    """What was set aside is no reply any more."""
    store.put("k", "e", "m", REPLY, None)
    store.put("old", "e", "m", REPLY, None)
    store.forget(["old"])

    assert [row.key for row in store.rows()] == ["k"]


def test_a_reply_of_another_version_can_be_read(path, store):
    """A newer ragforge may keep more fields; that is no reason to buy again, nor to break down."""
    text = json.dumps({"text": "fine", "mood": "good", "usage": {"prompt_tokens": 3, "cached": 1}})
    store.put("k", "e", "m", REPLY, None)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE calls SET reply = ?, sha256 = ?", (text, row_sha256("k", text)))

    assert store.get("k") == ChatReply("fine", usage=Usage(3), key="k", cached=True)


OPENING = """
import sys, time
from pathlib import Path
from ragforge.llm.store.calls import CallStore

print("ready", flush=True)
begin_s = float(sys.stdin.readline())
for number in range(60):
    while time.time() < begin_s + 0.02 * number:
        pass
    CallStore(Path(sys.argv[1]) / str(number) / ".ragforge" / "calls.sqlite").close()
"""


@pytest.mark.slow
def test_a_store_is_made_by_two_at_the_same_moment(tmp_path, python):
    """Commands that are started together on a new set must not keep each other out."""
    processes = [python(OPENING, tmp_path) for _ in range(2)]
    for process in processes:
        process.stdout.readline()
    begin_s = time.time() + 0.1
    for process in processes:
        process.stdin.write(f"{begin_s}\n")
        process.stdin.flush()

    assert [process.communicate(timeout=60) for process in processes] == [("", "")] * 2
