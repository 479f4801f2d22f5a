"""The call store made smaller or larger, killed at moments of the work, which is done again."""

import shutil
import signal
import sqlite3
from contextlib import closing

import pytest
from faults.commands import Commands, kill_often

from ragforge.cli import main
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.sqlite_file import Row, reply_json, row_sha256

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")

EARLY, MIDDLE, LATE = 1000.0, 2000.0, 3000.0
FILLING = "All that was bought is kept, and nothing of it is bought twice. " * 2


def row(number, bought_at):
    """Return a reply; every second one is that of an old model."""
    key = f"{number * 2654435761 % 2**32:064x}"
    reply = ChatReply(f"{number} at {bought_at}: {FILLING}", usage=Usage(900, 20))
    model, text = ("new", "old")[number % 2], reply_json(reply)
    return Row(key, "e", model, text, row_sha256(key, text), 900, 20, 0.001, bought_at)


def store_of(path, *rows):
    """Make a store with replies, what it learnt, and an attempt without a reply."""
    with closing(CallStore(path)) as store:
        store.add(rows)
        store.note_unanswered("0" * 64, "timed out")
    return path


def rows_of(path):
    """Return all rows of all tables of a store that must be sound; none where it is not there."""
    if not path.exists():
        return {"calls": []}
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_schema ORDER BY name")]
        return {
            name: store.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in tables
        }


def replies_of(state):
    """Return the replies of a store by key."""
    return {reply[0]: reply for reply in state.get("calls", [])}


@pytest.fixture(scope="module")
def commands():
    """A process whose children run commands."""
    made = Commands()
    yield made
    made.end()


def killed(commands, folder, before, words):
    """Kill a command on copies of a store."""
    path = folder / "now" / "calls.sqlite"

    def prepare():
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        if before.exists():
            shutil.copy(before, path)
        return ["cache", *words, "--store", str(path)]

    def look():
        found = rows_of(path)
        return found, sorted(each.name for each in path.parent.iterdir())

    return kill_often(commands, folder / "told.txt", prepare, look)


@pytest.fixture(scope="module")
def pruned(commands, tmp_path_factory):
    """A store before it was pruned, and what came of pruning it."""
    folder = tmp_path_factory.mktemp("pruning")
    before = store_of(folder / "before.sqlite", *(row(n, EARLY) for n in range(2500)))
    return rows_of(before), killed(commands, folder, before, ["prune", "--model", "old"])


def test_a_killed_prune_has_taken_out_all_or_nothing(pruned):
    """A reply that is gone but not in the sums would make the bill unexplainable."""
    before, made = pruned
    [calm, _] = made.calm

    assert len(made.after) >= 20
    assert len(calm["calls"]) == 1250
    assert [state for state, _ in made.after if state not in (before, calm)] == []


def test_the_prune_after_a_kill_ends_with_the_rows_of_a_calm_one(pruned):
    """No reply that stays is lost, and what went is counted once."""
    _, made = pruned

    assert made.last == [0] * len(made.last)
    assert [end for end in made.ended if end != made.calm] == []


def sent(folder):
    """Return a file of replies: some new, some later and some earlier than those of `store`."""
    source = store_of(
        folder / "source.sqlite",
        *(row(n, LATE) for n in range(500)),
        *(row(n, EARLY) for n in range(500, 1000)),
        *(row(n, LATE) for n in range(1000, 2500)),
    )
    file = folder / "replies.jsonl"
    assert main(["cache", "export", str(file), "--store", str(source)]) == 0
    return file


@pytest.fixture(scope="module", params=[0, 1000])
def imported(request, commands, tmp_path_factory):
    """A store, or none, before replies came in, and what came of that."""
    folder = tmp_path_factory.mktemp("importing")
    before = folder / "before.sqlite"
    if request.param:
        store_of(before, *(row(n, MIDDLE) for n in range(request.param)))
    made = killed(commands, folder, before, ["import", str(sent(folder))])
    return request.param, rows_of(before), made


def test_a_killed_import_lost_no_reply_that_was_there(imported):
    """What was bought must be found again, in the version before or in the one that came."""
    n_before, before, made = imported
    old, new = replies_of(before), replies_of(made.calm[0])
    states = [replies_of(state) for state, _ in made.after]

    assert len(states) >= 20
    assert len(old) == n_before
    assert [state for state in states if not old.keys() <= state.keys()] == []
    assert [
        reply
        for state in states
        for key, reply in state.items()
        if reply not in (old.get(key), new[key])
    ] == []


def test_some_imports_are_killed_half_way(imported):
    """Else nothing was tested."""
    n_before, _, made = imported
    counts = {len(replies_of(state)) for state, _ in made.after}

    assert [count for count in counts if n_before < count < 2500] != []


def test_the_import_after_a_kill_ends_with_the_rows_of_a_calm_one(imported):
    """None doubled, none missing, and of two replies to one call the later one."""
    *_, made = imported
    [calm, _] = made.calm

    assert len(calm["calls"]) == 2500
    assert made.last == [0] * len(made.last)
    assert [end for end in made.ended if end != made.calm] == []
