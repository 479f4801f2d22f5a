import asyncio
import subprocess
import sys
import threading

import pytest

from ragforge.errors import UsageError
from ragforge.plugins import call, construct, in_thread, method_of


def test_what_a_thread_raises_is_raised_where_it_is_awaited():
    """A failure must not stay behind in a thread."""
    with pytest.raises(ZeroDivisionError, match="division"):
        asyncio.run(in_thread(lambda: 1 / 0))


def test_as_many_threads_run_as_are_asked_for():
    """A pool smaller than the concurrency would show up in latencies."""
    all_there = threading.Barrier(50, timeout=10)

    async def many():
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(in_thread(all_there.wait))

    asyncio.run(many())

    assert all_there.n_waiting == 0


def test_a_call_that_never_ends_does_not_hold_up_the_program():
    """The user has seen the last line and waits for the prompt."""
    script = """
import asyncio, threading
from ragforge.plugins import in_thread

async def main():
    try:
        async with asyncio.timeout(0.05):
            await in_thread(threading.Event().wait)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""

    run = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=30
    )

    assert (run.stdout, run.stderr) == ("given up\n", "")


def test_a_generator_runs_to_its_end_in_the_thread():
    """Its body is the work, and may block."""
    threads = []

    def work():
        threads.append(threading.current_thread())
        yield 1

    assert asyncio.run(call(work, work)) == [1]
    assert threads != [threading.main_thread()]


def test_a_constructor_gets_what_it_requires():
    """What it does not ask for it need not know."""
    needs = type("Needs", (), {"__init__": lambda self, chunks: setattr(self, "chunks", chunks)})

    assert construct(needs, "here", {"chunks": [1]}, "").chunks == [1]
    assert isinstance(construct(dict, "here", {"chunks": [1]}, ""), dict)


def test_a_constructor_that_requires_more_is_refused():
    """The message must say what to do instead."""
    needs = type("Needs", (), {"__init__": lambda self, chunks, db: None})

    with pytest.raises(
        UsageError, match="here: the constructor needs chunks, db; expected none or 'chunks'; do"
    ):
        construct(needs, "here", {"chunks": []}, "do this")


def test_the_first_method_that_is_there_counts():
    """An object may have several, of which one is meant for this."""
    found = method_of({}, ("search", "get", "pop"), "here", "f(x)")

    assert found.__name__ == "get"
