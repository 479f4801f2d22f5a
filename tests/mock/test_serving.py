"""The endpoint beside a test."""

import contextlib
import gc
import threading
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from ragforge.mock import Script, serving


def test_it_listens_on_loopback_alone():
    """Nobody else may use it, or read what is sent to it."""
    with serving() as running:
        assert running.url.startswith("http://127.0.0.1:")


def test_two_can_run_at_once():
    """Tests run side by side."""
    with serving() as first, serving() as second:
        assert first.url != second.url


def test_it_ends_at_once_although_requests_hang(client_of, plain):
    """A test must not wait for what never comes."""
    with contextlib.ExitStack() as clients:
        with serving(Script(p_hang=1)) as running:
            client = client_of(running)
            clients.enter_context(client.waiting(plain()))
            client.wait_until(in_flight=1)
            stopping = time.monotonic()
        took_s = time.monotonic() - stopping

    assert took_s < 5


def test_nothing_listens_behind_its_end():
    """Ports are few."""
    with serving() as running:
        url = running.url
    with pytest.raises(URLError, match="refused"):
        urlopen(f"{url}/models", timeout=5)


def test_nothing_is_left_open():
    """Warnings are errors in many test suites."""
    with serving() as running:
        urlopen(f"{running.url}/models", timeout=5).close()
    gc.collect()

    assert "ragforge-mock" not in [thread.name for thread in threading.enumerate()]


def test_many_connections_are_taken_at_once(start):
    """A client with a large pool opens it in one go."""
    client = start()
    with contextlib.ExitStack() as clients:
        for _ in range(200):
            clients.enter_context(client.connected())
        reply = client.ask("GET", "/__stats")

    assert reply.json["connections"] == 201
