"""Stores, keys as calls have them, and processes that share a store."""

import hashlib
import subprocess
import sys
from contextlib import closing

import pytest

from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.models import StoredModel


@pytest.fixture
def path(tmp_path):
    """Where the store is."""
    return tmp_path / ".ragforge" / "calls.sqlite"


@pytest.fixture
def store(path):
    """An open store."""
    with closing(CallStore(path)) as opened:
        yield opened


@pytest.fixture
def other(store, path):
    """The same store, opened a second time as another process would."""
    with closing(CallStore(path)) as opened:
        yield opened


@pytest.fixture
def reply():
    """A reply with every field set that the store keeps."""
    return ChatReply("fine", usage=Usage(100, 20), model="m-1", fingerprint="fp", latency_s=0.5)


@pytest.fixture
def key():
    """Make the key of a call: hexadecimal, spread evenly."""
    return lambda number: hashlib.sha256(str(number).encode()).hexdigest()


def text_of(number):
    return f"{number} {'x' * (37 * number % 1500)}"


@pytest.fixture
def fill(key):
    """Put numbered replies, of different lengths, into a store."""

    def put_all(path, count):
        with closing(CallStore(path)) as store:
            for number in range(count):
                bought = ChatReply(text_of(number), usage=Usage(10, 2))
                store.put(key(number), "e", "m", bought, 0.5)

    return put_all


@pytest.fixture
def readable(key):
    """Return which of the numbered replies a store still gives, and whether as they were."""

    def numbers(store, count):
        found = {number: store.get(key(number)) for number in range(count)}
        return {n: reply.text == text_of(n) for n, reply in found.items() if reply is not None}

    return numbers


@pytest.fixture
def stored():
    """Put a model behind a store."""

    def make(inner, store, endpoint="e", model="m", price=None, notify=str):
        return StoredModel(inner, store, endpoint, model, price, notify=notify)

    return make


@pytest.fixture
def python():
    """Start Python processes that end with the test."""
    running = []

    def start(code, *arguments):
        words = [sys.executable, "-c", code, *map(str, arguments)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def unanswered():
    """Count the attempts that may have been billed without a reply."""

    def count(store):
        with store.connected() as connection:
            return connection.execute("SELECT COUNT(*) FROM unanswered").fetchone()[0]

    return count
