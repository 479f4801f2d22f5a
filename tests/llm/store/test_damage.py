import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from ragforge.errors import DataError
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.damage import mending_lock, open_mended, salvage

COUNT = 2000
PAGE = 4096


@pytest.fixture
def filled(tmp_path_factory, fill):
    """The bytes of a store of two thousand replies."""
    path = tmp_path_factory.mktemp("filled") / "calls.sqlite"
    fill(path, COUNT)
    return path.read_bytes()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def junk(content):
    return b"this is no database " * 100


def torn(content):
    return content[: len(content) // 2]


def scratched(content):
    return content[:8192] + b"\xee" * 8192 + content[16384:]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [junk, torn, scratched])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path, filled, damage, key):
    """A broken store must neither stop the nightly run nor be thrown away."""
    write(path, damage(filled))

    with closing(CallStore(path)) as store:
        store.put(key(COUNT), "e", "m", ChatReply("new"), None)
        assert store.set_aside == path.with_name("calls.sqlite.damaged-1")
        assert store.set_aside.read_bytes() == damage(filled)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.0, 0.001, 0.25, 0.5, 0.75, 0.999])
def test_an_overwritten_page_costs_hardly_a_reply(path, filled, readable, part):
    """Also the first page, and those high in the tree, on which all others hang."""
    start = int(part * len(filled) / PAGE) * PAGE
    write(path, filled[:start] + b"\xee" * PAGE + filled[start + PAGE :])

    with closing(CallStore(path)) as store:
        found = readable(store, COUNT)

    assert len(found) >= COUNT - 8
    assert set(found.values()) == {True}


def test_of_half_a_file_what_lies_whole_in_it_is_saved(path, filled, readable):
    """A disk that ran full, or a copy that was cut off, leaves such files."""
    write(path, torn(filled))

    with closing(CallStore(path)) as store:
        found = readable(store, COUNT)

    assert len(found) >= 700
    assert set(found.values()) == {True}


@pytest.mark.slow
@pytest.mark.parametrize("at", range(100))
def test_no_byte_of_the_header_stops_the_run(path, fill, readable, at):
    """SQLite takes some of them for missing rights or a newer format, for good."""
    fill(path, 5)
    content = bytearray(path.read_bytes())
    content[at] ^= 0x55
    path.write_bytes(content)

    with closing(CallStore(path)) as store:
        assert readable(store, 5) == dict.fromkeys(range(5), True)


def test_replies_in_the_journal_are_saved(path, store, key, tmp_path):
    """After a kill the latest replies are nowhere else."""
    for number in range(20):
        store.put(key(number), "e", "m", ChatReply("x" * 3000), None)
    broken = tmp_path / "copy" / "calls.sqlite"
    write(broken, junk(b""))
    shutil.copy(f"{path}-wal", f"{broken}-wal")

    with closing(CallStore(broken)) as mended:
        assert mended.spent().calls == 20
        assert mended.set_aside.with_name(f"{mended.set_aside.name}-wal").exists()


def test_a_forgotten_reply_stays_forgotten_and_paid(path, store, key, tmp_path):
    """The journal still holds the page on which it was in use."""
    store.put(key(1), "e", "m", ChatReply("unusable", usage=Usage(10, 2)), 0.5)
    store.forget([key(1)])
    broken = tmp_path / "copy" / "calls.sqlite"
    write(broken, junk(b""))
    shutil.copy(f"{path}-wal", f"{broken}-wal")

    with closing(CallStore(broken)) as mended:
        assert mended.get(key(1)) is None
        assert mended.spent().cost_usd == 0.5


def test_the_later_of_two_versions_is_saved(path, store, key, tmp_path):
    """An older page may hold what was bought before."""
    for text in ("old", "new"):
        store.put(key(1), "e", "m", ChatReply(text), None)
    broken = tmp_path / "copy" / "calls.sqlite"
    write(broken, junk(b""))
    shutil.copy(f"{path}-wal", f"{broken}-wal")

    with closing(CallStore(broken)) as mended:
        assert mended.get(key(1)).text == "new"


def test_a_row_that_is_not_whole_is_not_saved(path, fill, key):
    """Salvage must not turn noise into replies."""
    fill(path, 10)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE calls SET reply = reply || ' ' WHERE key = ?", (key(3),))
        connection.execute("UPDATE calls SET bought_at = 'noon' WHERE key = ?", (key(4),))
        connection.execute("UPDATE calls SET prompt_tokens = -1 WHERE key = ?", (key(5),))

    assert {row.key for row in salvage(path)} == {key(n) for n in (0, 1, 2, 6, 7, 8, 9)}


@pytest.mark.parametrize("size", [512, 1024, 65536])
def test_replies_are_found_on_pages_of_any_size(path, key, size):
    """Long replies flow over into other pages, by rules that depend on the size."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {size}")
        connection.execute("VACUUM")
    texts = {key(n): "x" * (n * n) for n in range(0, 300, 10)}
    with closing(CallStore(path)) as store:
        for name, text in texts.items():
            store.put(name, "e", "m", ChatReply(text), None)

    assert {row.key for row in salvage(path)} == set(texts)


def test_each_damaged_file_gets_a_name_of_its_own(path):
    """A second accident must not overwrite what may be rescued from the first."""
    for _ in range(2):
        write(path, junk(b""))
        CallStore(path).close()

    assert sorted(found.name for found in path.parent.glob("*damaged*")) == [
        "calls.sqlite.damaged-1",
        "calls.sqlite.damaged-2",
    ]


def test_a_name_that_is_taken_is_not_taken_again(path):
    """Also where an earlier one was deleted since."""
    write(path.with_name("calls.sqlite.damaged-2"), b"first")
    for _ in range(2):
        write(path, junk(b""))
        CallStore(path).close()

    assert path.with_name("calls.sqlite.damaged-2").read_bytes() == b"first"


FULL = """
import resource, sys
from pathlib import Path
from ragforge.errors import DataError
from ragforge.llm.store.calls import CallStore
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
try:
    CallStore(Path(sys.argv[1]))
except DataError as error:
    print(error)
"""


def test_a_store_that_cannot_be_mended_now_is_mended_later(path, filled, python, readable):
    """A disk that is full at that moment must not cost the replies that could be read."""
    harmed = scratched(filled)
    write(path, harmed)

    said, _ = python(FULL, path).communicate(timeout=60)

    assert said.startswith(f"{path}: the call store cannot be opened: ")
    assert [item.name for item in path.parent.iterdir()] == ["calls.sqlite"]
    assert path.read_bytes() == harmed
    with closing(CallStore(path)) as store:
        assert len(readable(store, COUNT)) >= COUNT - 16


def test_what_another_process_has_mended_meanwhile_is_left_alone(path, key, fill):
    """Both have found the damage; the second must not set the new store aside."""
    fill(path, 3)

    connection, aside = open_mended(path)

    connection.close()
    assert aside is None
    assert {item.name for item in path.parent.iterdir()} == {".gitignore", "calls.sqlite"}


OPENING = """
import sys
from pathlib import Path
from ragforge.llm.store.calls import CallStore
print("ready", flush=True)
sys.stdin.readline()
store = CallStore(Path(sys.argv[1]))
store.put(sys.argv[2], "e", "m", store.get(sys.argv[3]), None)
"""


@pytest.mark.slow
def test_two_processes_that_find_damage_set_it_aside_once(path, filled, python, key, readable):
    """Else the second would set the store aside that the first has just mended and works with."""
    write(path, scratched(filled))
    processes = [python(OPENING, path, key(COUNT + n), key(n)) for n in range(2)]
    ready = [process.stdout.readline() for process in processes]
    with mending_lock(path.parent):
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
    ended = [process.communicate(timeout=60)[1] for process in processes]

    assert (ready, ended) == (["ready\n"] * 2, [""] * 2)
    assert [item.name for item in path.parent.glob("*damaged-*")] == ["calls.sqlite.damaged-1"]
    with closing(CallStore(path)) as store:
        assert {key(COUNT), key(COUNT + 1)} <= {row.key for row in store.rows()}


@pytest.mark.slow
def test_a_store_is_not_mended_while_another_process_opens_it(path, filled, python, key):
    """SQLite would give the journal of the old file to the new one, which has its name."""
    write(path, scratched(filled))
    with mending_lock(path.parent, shared=True):
        process = python(OPENING, path, key(COUNT), key(0))
        process.stdout.readline()
        process.stdin.write("go\n")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=3)
        assert path.read_bytes() == scratched(filled)

    assert process.communicate(timeout=60)[1] == ""
    assert path.with_name("calls.sqlite.damaged-1").read_bytes() == scratched(filled)


def test_a_damaged_store_that_takes_no_more_is_named(path, store):
    """The message says which file it is."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE calls")

    with pytest.raises(DataError, match=r"calls\.sqlite: the call store does not work: no such"):
        store.get("k")
