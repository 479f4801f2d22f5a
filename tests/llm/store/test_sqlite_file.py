"""What happens to the file while it is in use."""

import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from ragforge.errors import DataError
from ragforge.llm.chat import ChatReply
from ragforge.llm.store import sqlite_file
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.sqlite_file import open_file, reading

REPLY = ChatReply("fine")


@pytest.fixture
def unchangeable():
    """Make files unchangeable, also for root, until the test ends."""
    changed = []

    def make(path):
        chattr = shutil.which("chattr")
        done = chattr and subprocess.run([chattr, "+i", path], capture_output=True, check=False)
        if not done or done.returncode:
            pytest.skip("the file system takes no chattr +i")
        changed.append(path)

    yield make
    for path in changed:
        subprocess.run(["chattr", "-i", path], check=True)


def test_an_empty_file_is_a_new_store(path):
    """A crash right after the file was made leaves 0 bytes."""
    path.parent.mkdir()
    path.touch()

    with closing(CallStore(path)) as store:
        assert store.set_aside is None
        assert store.spent().calls == 0


def test_a_store_that_cannot_be_made_is_named(tmp_path):
    """The run must stop before it pays for replies that it cannot keep."""
    (tmp_path / "file").touch()

    with pytest.raises(DataError, match=r"file/calls\.sqlite: the call store cannot be opened"):
        CallStore(tmp_path / "file" / "calls.sqlite")


def test_a_folder_that_takes_no_files_is_named(tmp_path, unchangeable):
    """The same where the folder is there and only rights are missing."""
    unchangeable(tmp_path)

    with pytest.raises(DataError, match=r"calls\.sqlite: the call store cannot be opened: unable"):
        CallStore(tmp_path / "calls.sqlite")


def test_a_store_in_a_folder_that_takes_no_files_can_be_read(path, fill, unchangeable):
    """A dataset on a read-only mount can still be looked into."""
    fill(path, 3)
    unchangeable(path.parent)

    with reading(path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM calls").fetchone() == (3,)


def test_a_file_that_takes_no_writes_stops_the_run(store, path):
    """Going on would buy replies only to lose them."""
    with store.connected() as connection:
        connection.execute("PRAGMA query_only = ON")

    with pytest.raises(DataError, match=r"calls\.sqlite: the call store does not work: attempt to"):
        store.claim("k")


@pytest.mark.parametrize("act", ["claim", "put"])
def test_a_store_that_was_removed_stops_the_run(store, path, act):
    """What is written into a removed file is found by nobody."""
    path.unlink()
    acts = {"claim": lambda: store.claim("k"), "put": lambda: store.put("k", "e", "m", REPLY, None)}

    with pytest.raises(DataError, match=r"calls\.sqlite: the call store was removed or replaced"):
        acts[act]()


def test_a_store_that_was_replaced_stops_the_run(store, path, tmp_path):
    """The replies would go into a file that has no name any more."""
    CallStore(tmp_path / "new").close()
    (tmp_path / "new").replace(path)

    with pytest.raises(DataError, match="removed or replaced during the run"):
        store.put("k", "e", "m", REPLY, None)


FILLING = """
import hashlib, resource, sys
from pathlib import Path
from ragforge.errors import DataError
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
store = CallStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
number = 0
try:
    while True:
        key = hashlib.sha256(str(number).encode()).hexdigest()
        store.claim(key)
        store.put(key, "e", "m", ChatReply(f"{number} {'x' * (37 * number % 1500)}"), None)
        number += 1
except DataError as error:
    print(number)
    print(error)
store.close()
"""


def test_a_full_disk_stops_the_run_and_spoils_nothing(path, python, readable):
    """All replies that were kept before must be there when space is made."""
    [number, message], said = map(str.splitlines, python(FILLING, path).communicate(timeout=60))

    assert (message.startswith(f"{path}: the call store does not work: "), said) == (True, [])
    with closing(CallStore(path)) as store:
        found = readable(store, int(number) + 1)
        assert store.set_aside is None
    assert (sorted(found), set(found.values())) == (list(range(int(number))), {True})


def test_a_transaction_that_fails_leaves_the_store_usable(store, path):
    """One failed write must not turn every later one into an error about transactions."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE leases RENAME TO away")
        with pytest.raises(DataError, match="no such table: leases"):
            store.claim("k")
        connection.execute("ALTER TABLE away RENAME TO leases")

    assert store.claim("k") is None


UNFINISHED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 2")
connection.execute("BEGIN IMMEDIATE")
row = ("e", "m", "x" * 3000, "d", 1, 1, None, 1.0)
for number in range(300):
    connection.execute("INSERT INTO calls VALUES (?,?,?,?,?,?,?,?,?)", (f"u{number}", *row))
os.kill(os.getpid(), 9)
"""


def test_a_transaction_cut_off_by_kill_9_never_was(path, store, fill, readable, python):
    """What stands unfinished at the end of the journal must not be taken for damage."""
    fill(path, 50)
    python(UNFINISHED, path).wait(timeout=60)
    assert path.with_name(f"{path.name}-wal").stat().st_size > 500_000

    with closing(CallStore(path)) as reopened:
        assert (reopened.spent().calls, reopened.set_aside) == (50, None)
        assert len(readable(reopened, 50)) == 50


def test_a_large_file_is_checked_once_damage_was_met(path, fill, monkeypatch):
    """It is not read whole at each start, and must not end every run at the same torn page."""
    monkeypatch.setattr(sqlite_file, "_CHECKED_BYTES", 1000)
    fill(path, 300)
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xee" * (len(content) - 16384) + content[-8192:])

    with (
        closing(CallStore(path)) as first,
        pytest.raises(DataError, match="malformed"),
    ):
        list(first.rows())

    with closing(CallStore(path)) as second:
        assert second.set_aside is not None
    with closing(open_file(path)):
        assert not path.with_name(f"{path.name}.check").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no call store"),
        (b"", "cannot be read as a call store: no such table"),
        (b"a diary" * 99, "the call store is damaged: its header is damaged"),
    ],
)
def test_reading_neither_makes_nor_changes_a_file(tmp_path, content, message):
    """A mistyped path must not become a store, nor be set aside as one."""
    path = tmp_path / "diary.txt"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(DataError, match=message), reading(path):
        pass

    assert [item.read_bytes() for item in tmp_path.iterdir()] == [content] * (content is not None)
