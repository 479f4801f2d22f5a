"""Processes that add to one history at once, and one that is killed while it does."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from evaluations import evaluation

from ragforge.files.set.history import appending, read_history

TESTS = Path(__file__).parents[1]

ADDING = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
from evaluations import evaluation
from ragforge.files.set.history import appending

print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    with appending(Path(sys.argv[2])) as ledger:
        ledger.append([evaluation(at=f"{sys.argv[3]} {number}")])
"""

HALF = """
import os, signal, sys
from pathlib import Path
from unittest.mock import patch
sys.path.append(sys.argv[1])
from evaluations import evaluation
from ragforge.files.set.history import appending

write = os.write

def write_half(descriptor, data):
    write(descriptor, data[: len(data) // 2])
    print("half", flush=True)
    signal.pause()

patch.object(os, "write", write_half).start()
with appending(Path(sys.argv[2])) as ledger:
    ledger.append([evaluation(at="killed")])
"""


def start(code, folder, name=""):
    return subprocess.Popen(
        [sys.executable, "-c", code, str(TESTS), str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_add_at_once_lose_no_line(tmp_path):
    """Two nightly jobs on one set must not cut each other's lines."""
    processes = [start(ADDING, tmp_path, name) for name in ("a", "b", "c")]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)

    found = read_history(tmp_path)

    assert found.notes == ()
    assert len(found.evaluations) == 75


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_killing_a_process_amid_a_line_costs_that_line_only(tmp_path):
    """A machine that goes down at night must not take the history with it."""
    old, new = evaluation(at="before"), evaluation(at="after")
    with appending(tmp_path) as ledger:
        ledger.append([old])
    process = start(HALF, tmp_path)
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)

    with appending(tmp_path) as ledger:
        was_torn = ledger.append([new])

    assert was_torn
    assert read_history(tmp_path).evaluations == (old, new)
