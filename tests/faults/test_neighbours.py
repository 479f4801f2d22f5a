"""Several processes that buy replies for one store, each of which has it open several times."""

import shutil

import pytest
from faults.harness import Product, endpoint, finish, until

N = 100
AT_ONCE = 4
PANEL = ("--panel", "mock,mock-b,mock-c", "--concurrency", str(AT_ONCE), "-q")


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A panel of three, killed when a second command has come and gone, and then run again."""
    folder = tmp_path_factory.mktemp("neighbours")
    with endpoint(latency="lognorm:250,0.4") as running:
        panel = Product(folder / "set", running, N)
        process = panel.begin(*PANEL)
        running.until_billed(10)
        other = Product(folder / "set", running, N)
        other.out = panel.out.with_name("other.jsonl")
        short = folder / "short.jsonl"
        shutil.copy(other.pairs, short)
        short.write_text("".join(short.read_text().splitlines(keepends=True)[:3]))
        other.pairs = short
        visited = other.run("--concurrency", "2", "-q")
        billed = running.count("billed")
        until(lambda: running.count("billed") >= billed + 20)
        is_there = panel.store.with_name(f"{panel.store.name}-wal").exists()
        process.kill()
        finish(process)
        until(lambda: running.count("in_flight_now") == 0)
        ended = panel.run(*PANEL)
        yield panel, visited, is_there, ended


def test_each_process_works_undisturbed(beside):
    """An error of the disk that is none must not end a run."""
    panel, visited, _, ended = beside

    assert (visited.code, ended.code) == (0, 0)
    assert (len(panel.judged), panel.failures) == (N, [])


def test_the_journal_outlives_the_neighbour(beside):
    """What the panel writes to is what the next run reads."""
    _, _, is_there, _ = beside

    assert is_there


def test_only_calls_in_flight_are_bought_again(beside):
    """No reply that was kept is lost to the neighbour's end, whatever ends the panel."""
    panel, *_ = beside

    assert panel.endpoint.count("dup") <= 3 * AT_ONCE
    assert panel.bought == 3 * N
