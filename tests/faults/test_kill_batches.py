"""A process that is killed while it sends a batch, or brings one in."""

import json

import pytest

STEPS = {
    "before the upload": ("Provider", "submit", "before"),
    "between upload and creation": ("AsyncBatches", "create", "before"),
    "between creation and record": ("BatchSession", "_adopted", "before"),
    "after the record": ("BatchSession", "_adopted", "after"),
    "before the download is noted": ("BatchSession", "_download", "before"),
    "after the download": ("BatchSession", "_download", "after"),
    "after some replies were stored": ("Buyer", "keep", "twentieth"),
    "before what came is noted": ("BatchFolder", "end", "before"),
    "after what came is noted": ("BatchFolder", "end", "after"),
}
DIE = """
import inspect, os, signal, sys
from unittest.mock import patch
from openai.resources.batches import AsyncBatches
from ragforge.cli import main
from ragforge.llm.batches.collecting import Buyer
from ragforge.llm.batches.records import BatchFolder
from ragforge.llm.batches.remote import Provider
from ragforge.llm.batches.session import BatchSession

kind, name, when = {step!r}
owner, times = globals()[kind], 0
real = getattr(owner, name)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def doomed(*words, **named):
    global times
    times += 1
    if when == "before" or times == 20:
        die()
    found = real(*words, **named)
    if when == "after" and not inspect.isawaitable(found):
        die()
    return found

async def doomed_later(*words, **named):
    if when == "before":
        die()
    await real(*words, **named)
    die()

patch.object(owner, name, doomed_later if inspect.iscoroutinefunction(real) else doomed).start()
sys.exit(main())
"""


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_a_kill_at_any_step_sends_no_batch_twice(start, product, step):
    """A batch is up to 50,000 paid replies."""
    endpoint = start()
    live = product(endpoint, 60, "live")
    assert live.run("-q").code == 0
    endpoint.reset()
    killed = product(endpoint, 60, "killed")
    how = ("--batch-api", "--wait", "--poll-every", "0", "-q")

    dead = killed.run(*how, program=("-c", DIE.format(step=step)))
    ended = killed.run(*how)

    assert (dead.code, ended.code) == (-9, 0)
    assert killed.out.read_bytes() == live.out.read_bytes()
    assert (endpoint.count("dup"), endpoint.count("batches")) == (0, 1)
    records = (killed.out.parent / ".ragforge" / "batches").glob("*.json")
    assert sum(json.loads(path.read_text())["calls"] for path in records) == 60
