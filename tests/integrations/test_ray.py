"""Ray drives shards: workers and the driver are killed, and the file is that of one process."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from shards import digests, write_pairs

from ragforge.config import Settings
from ragforge.corpus.chunk_files import write_corpus
from ragforge.mock import Script, serving
from ragforge.observe import silent
from ragforge.pipeline.surveying import open_survey

DOCUMENTS = Path(__file__).parents[2] / "datasets" / "helpcentre" / "documents"


@pytest.fixture
def name():
    return "ray"


@pytest.fixture
def ragforge(python, tmp_path):
    """Run a command with Ray and this checkout installed."""
    return lambda *words: python(tmp_path, "-m", "ragforge", *map(str, words))


def until(condition, patience_s=300):
    """Wait for something that a busy machine takes its time for."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def workers_of(driver):
    """Return the processes of Ray that work on a shard of a driver's cluster."""
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    parent = {int(pid): int(ppid) for pid, ppid, _ in rows}

    def is_below(pid):
        while pid in parent and pid > 1:
            if pid == driver:
                return True
            pid = parent[pid]
        return False

    return [
        int(pid) for pid, _, args in rows if args.startswith("ray::_work") and is_below(int(pid))
    ]


def test_lost_workers_and_a_lost_driver_change_nothing(ragforge, python, tmp_path):
    """What must outlive them lies in the folder of the shards."""
    pairs, work = write_pairs(tmp_path / "pairs.jsonl", queries=24), tmp_path / "work"
    alone, merged = tmp_path / "a" / "judged.jsonl", tmp_path / "b" / "judged.jsonl"
    with serving(Script(latency="fixed:60")) as endpoint:
        how = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "prod", "-q"]
        how += ["--concurrency", 8]
        ragforge("judge", "--pairs", pairs, "--out", alone, *how)
        endpoint.reset()
        size = ["--pairs-per-shard", 30, "--workers", 2]
        ragforge("shard", "plan", "--pairs", pairs, "--into", work, *size, *how)

        executable = python(tmp_path, "-c", "import sys; print(sys.executable)").strip()
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        words = [executable, "-m", "ragforge", "shard", "run", str(work), "--on", "ray", "-q"]
        with subprocess.Popen(words, cwd=tmp_path, env=environment) as driver:
            try:
                until(lambda: endpoint.ledger()["billed"] >= 20 and workers_of(driver.pid))
                os.kill(workers_of(driver.pid)[0], signal.SIGKILL)
                until(lambda: endpoint.ledger()["billed"] >= 60)
            finally:
                driver.kill()
        ragforge("shard", "run", work, "--on", "ray", "-q")
        ragforge("shard", "merge", work, "--out", merged)
        ledger = endpoint.ledger()

    assert digests(merged) == digests(alone)
    assert ledger["dup"] <= 4 + 8


def test_a_limit_ends_the_work_of_all_workers(ragforge, tmp_path):
    """The endpoint's own ledger is what the user pays by."""
    pairs, work = write_pairs(tmp_path / "pairs.jsonl", queries=24), tmp_path / "work"
    with serving(Script(latency="fixed:10")) as endpoint:
        how = ["--model", "m", "--base-url", endpoint.url, "--max-calls", 100, "-q"]
        size = ["--pairs-per-shard", 30, "--workers", 2]
        ragforge("shard", "plan", "--pairs", pairs, "--into", work, *size, *how)

        with pytest.raises(AssertionError, match="--max-calls 100 is reached"):
            ragforge("shard", "run", work, "--on", "ray", "-q")

        assert 80 <= endpoint.ledger()["billed"] <= 100


def test_the_survey_of_its_workers_is_that_of_one_pass(ragforge, tmp_path):
    """Queries must not depend on how many machines looked through the corpus."""
    chunks, work = tmp_path / "chunks.jsonl", tmp_path / "work"
    write_corpus([DOCUMENTS], Settings().chunk, silent, chunks)
    with open_survey(chunks, tmp_path / "alone", silent):
        pass

    size = ["--chunks-per-shard", 50, "--workers", 2]
    ragforge("shard", "plan", "--chunks", chunks, "--into", work, *size, "-q")
    ragforge("shard", "run", work, "--on", "ray", "-q")
    ragforge("shard", "merge", work, "--out", tmp_path / "set")

    [merged] = (tmp_path / "set" / ".ragforge").glob("survey-*")
    assert contents(merged) == contents(tmp_path / "alone" / merged.name)


def contents(folder):
    """Return the bytes of each file of a folder."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
