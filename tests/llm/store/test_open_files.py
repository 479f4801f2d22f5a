"""What a process does with a store file of its own must not show other processes a free file."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.damage import salvage
from ragforge.llm.store.ledger import read_ledger
from ragforge.llm.store.open_files import connect, opened_beside_sqlite, read_head
from ragforge.llm.store.sqlite_file import is_sqlite, reading
from ragforge.llm.store.transfer import ExportCounts, export_lines

VISITING = """
import sys
from pathlib import Path
from ragforge.llm.store.calls import CallStore
store = CallStore(Path(sys.argv[1]))
store.close()
"""


def open_again(path):
    CallStore(path).close()


def look(path):
    with reading(path):
        pass


def recover(path):
    assert [*salvage(path)]


def export(path):
    assert [*export_lines(path, ExportCounts())]


@pytest.mark.slow
@pytest.mark.parametrize("touch", [open_again, look, recover, export, is_sqlite, read_ledger])
def test_another_process_leaves_the_journal_of_an_open_store(path, store, key, python, touch):
    """Replies that are written to a deleted journal are gone, and were paid for."""
    store.put(key(0), "e", "m", ChatReply("before"), None)
    touch(path)

    said = python(VISITING, path).communicate(timeout=60)[1]

    assert said == ""
    assert path.with_name(f"{path.name}-wal").exists()
    store.put(key(1), "e", "m", ChatReply("after"), None)
    with closing(CallStore(path)) as other:
        assert [other.get(key(number)).text for number in range(2)] == ["before", "after"]


def test_any_descriptor_closed_would_free_the_file(path, store, python):
    """That other processes can be misled at all is what the rest of these tests hang on."""
    os.close(os.open(path, os.O_RDONLY))

    python(VISITING, path).communicate(timeout=60)

    assert not path.with_name(f"{path.name}-wal").exists()


KILLED = """
import os, sys
from pathlib import Path
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
path = Path(sys.argv[1])
stores = [CallStore(path) for _ in range(3)]
CallStore(path).close()
print("ready", flush=True)
sys.stdin.readline()
for number, key in enumerate(sys.argv[2:]):
    stores[number % 3].put(key, "e", "m", ChatReply(str(number)), None)
os.kill(os.getpid(), 9)
"""


def test_kill_9_beside_another_process_loses_no_reply(path, key, python):
    """A reply was bought and committed: whoever else uses the store must not undo that."""
    keys = [key(number) for number in range(30)]
    writer = python(KILLED, path, *keys)
    assert writer.stdout.readline() == "ready\n"
    python(VISITING, path).communicate(timeout=60)
    writer.communicate("go\n", timeout=60)

    with closing(CallStore(path)) as store:
        found = [store.get(name) for name in keys]
    assert [reply and reply.text for reply in found] == [str(number) for number in range(30)]


def test_a_store_opened_often_takes_few_descriptors(path, store):
    """A server that looks into its store all day must not run out of them."""
    open_again(path)
    look(path)
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(20):
        open_again(path)
        look(path)

    assert len([*Path("/proc/self/fd").iterdir()]) <= before


def test_what_was_kept_open_is_closed_with_the_last_connection(path, store):
    """Else the disk space of a store that was removed would never come back."""
    with opened_beside_sqlite(path) as opened:
        stream = opened.enter_context(path.open("rb"))
    assert not stream.closed
    store.close()

    assert stream.closed


def test_what_nobody_has_open_is_closed_at_once(path, fill):
    """Nothing to protect, nothing to keep."""
    fill(path, 1)
    with opened_beside_sqlite(path) as opened:
        stream = opened.enter_context(path.open("rb"))

    assert stream.closed


def test_a_connection_that_is_closed_twice_counts_once(path, store):
    """Else another one that is still open would not be known of."""
    connection = connect(path)
    connection.close()
    connection.close()
    with opened_beside_sqlite(path) as opened:
        stream = opened.enter_context(path.open("rb"))

    assert not stream.closed


def test_a_file_is_known_by_any_of_its_names(path, store, tmp_path):
    """Locks belong to the file, not to its name."""
    link = tmp_path / "link.sqlite"
    link.hardlink_to(path)
    with opened_beside_sqlite(link) as opened:
        stream = opened.enter_context(link.open("rb"))

    assert not stream.closed


def test_the_head_of_an_open_file_is_read_as_it_is_now(tmp_path):
    """A descriptor that is kept must not tell what was there when it was opened."""
    path = tmp_path / "any.sqlite"
    with closing(connect(path)) as connection:
        assert read_head(path, 16) == b""
        connection.execute("CREATE TABLE t (x)")

        assert read_head(path, 16) == b"SQLite format 3\0"


def test_a_name_with_signs_of_addresses_is_a_name(tmp_path):
    """SQLite takes what stands behind a ? for its options."""
    path = tmp_path / "a ?mode=ro#%41.sqlite"
    with closing(connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")

    assert path.exists()


def test_what_cannot_be_opened_is_not_counted(tmp_path):
    """A folder is no database, and nobody will close it."""
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect(tmp_path)
