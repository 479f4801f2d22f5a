"""Plain calls in and out of an event loop, their twins that are awaited, and interrupts."""

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from endpoint import Reply, completion, valid

import ragforge as rf
from ragforge.api.running import each_awaited, each_plainly, run_now

SPAN = contextvars.ContextVar("SPAN", default="none")


async def where():
    """Return the thread and the context that a job has."""
    await asyncio.sleep(0)
    return threading.get_ident(), SPAN.get()


async def broken():
    raise rf.DataError("no such file")


def test_a_plain_call_works_outside_of_a_loop():
    """The usual script."""
    assert run_now(where())[0] == threading.get_ident()


def test_a_plain_call_works_inside_of_a_running_loop():
    """A notebook has a loop; the job gets another, in a thread of its own."""

    async def cell():
        SPAN.set("cell")
        return run_now(where())

    thread, span = asyncio.run(cell())
    assert thread != threading.get_ident()
    assert span == "cell"


def test_an_error_of_a_job_passes_from_its_thread():
    """Errors are the exceptions of the package, wherever they were raised."""

    async def cell():
        run_now(broken())

    with pytest.raises(rf.DataError, match="no such file"):
        asyncio.run(cell())


def test_a_cancelled_task_ends_the_job_that_it_waits_for():
    """`asyncio.run` passes Ctrl-C on as a cancellation; the job ends before the call does."""
    ended = []

    async def job():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async def cell():
        task = asyncio.current_task()
        threading.Timer(0.1, task.cancel).start()
        run_now(job())

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cell())
    assert ended == [True]


def test_a_set_is_worked_with_inside_of_a_loop(by_hand):
    """All that a notebook does, in the cells of one."""

    async def cells():
        by_hand.retrieve("bm25", quiet=True)
        by_hand.judge(quiet=True)
        return by_hand.evaluate("bm25", "RR", quiet=True).mean("RR")

    assert asyncio.run(cells()) == 1.0


def test_twins_are_awaited(by_hand):
    """A service has one loop, and everything in it is awaited."""

    async def serve():
        await by_hand.aio.retrieve("bm25", quiet=True)
        judged = await by_hand.aio.judge(quiet=True)
        scores = await by_hand.aio.evaluate("bm25", "RR", quiet=True)
        decided = await by_hand.aio.gate("bm25", min={"RR": 0.5}, quiet=True)
        ids = [query.query_id async for query in by_hand.aio.queries()]
        return judged.judge, scores.mean("RR"), decided.outcome, ids

    assert asyncio.run(serve()) == ("offline", 1.0, "REFUSED", ["q1", "q2"])


def test_functions_have_twins(place):
    """The same of what needs no set."""
    pairs = [{"query": "What is oak?", "text": "Oak is a tree."}]

    async def serve():
        chunks = [{"chunk_id": "a", "doc_id": "d", "text": "Oak is a tree."}]
        queries = [{"query_id": "q", "query": "What is oak?", "relevant": ["a"]}]
        made = await rf.aio.from_queries(queries, chunks=chunks, out=place / "s", quiet=True)
        judged = await rf.aio.judge_pairs(pairs, quiet=True)
        each = [item.grade async for item in rf.aio.each_judgment(pairs, quiet=True)]
        opened = await rf.aio.open(place / "s")
        return made == opened, [row["grade"] for row in judged.rows()], each

    assert asyncio.run(serve()) == (True, [3], [3])


def test_an_async_retriever_works_in_the_loop_of_its_caller(by_hand):
    """A client with connections belongs to the loop that made them."""
    loops = set()

    async def search(query, k):
        loops.add(asyncio.get_running_loop())
        return ["a"]

    async def serve():
        await by_hand.aio.retrieve(search, quiet=True)
        return {asyncio.get_running_loop()}

    assert asyncio.run(serve()) == loops


def test_iterators_have_twins_in_both_directions():
    """Many records, some at a time."""

    async def numbers():
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def collected():
        return [number async for number in each_awaited(lambda: iter(range(600)))()]

    assert list(each_plainly(numbers)()) == [0, 1, 2]
    assert asyncio.run(collected()) == list(range(600))


def test_a_plain_iterator_that_is_left_ends_its_work():
    """A `break` must not leave a thread behind."""
    ended = []

    async def endless():
        try:
            while True:
                await asyncio.sleep(0)
                yield 1
        finally:
            ended.append(True)

    numbers = each_plainly(endless)()
    next(numbers)
    numbers.close()

    assert ended == [True]
    assert not [thread for thread in threading.enumerate() if thread.name == "ragforge"]


SCRIPT = """
import asyncio, itertools, signal, sys
import ragforge as rf

# A shell's background jobs ignore SIGINT, and so would their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
pairs = ({"query": f"Is it {n}?", "text": f"it is {n}"} for n in itertools.count())

def call():
    rf.judge_pairs(
        pairs, out="judged.jsonl", model="m", base_url=sys.argv[2], concurrency=2, quiet=True
    )

async def cell():
    call()

def in_a_kernel():
    # As a kernel has it: the loop runs on, and the signal raises where the cell is.
    loop = asyncio.new_event_loop()
    loop.run_until_complete(cell())

{"plain": call, "in a loop": lambda: asyncio.run(cell()), "in a kernel": in_a_kernel}[sys.argv[1]]()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "in a loop", "in a kernel"])
def test_an_interrupt_keeps_what_was_bought(how, place, serve):
    """Ctrl-C, or the stop button of a notebook, in the middle of a run that is paid for."""
    endpoint = serve(lambda path, body, n: Reply(completion(valid(body)), delay_s=0.05))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, how, endpoint.url],
        cwd=place,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until = time.monotonic() + 60
        while len(endpoint.seen) < 6 and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)

    written = (place / "judged.jsonl").read_text().splitlines()
    assert process.returncode != 0
    assert told.splitlines()[-1] == "KeyboardInterrupt"
    assert len(written) == len(endpoint.seen)
