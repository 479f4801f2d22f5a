"""Stores that somebody made to act on their reader: what they define is never run."""

import json
import sqlite3
from contextlib import closing

import pytest

from ragforge.cli import main
from ragforge.errors import DataError
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.ledger import read_ledger
from ragforge.llm.store.sqlite_file import reading, row_sha256

BAD = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM calls; END",
    "trigger on leases": "CREATE TRIGGER t AFTER DELETE ON leases BEGIN DELETE FROM calls; END",
    "view": "DROP TABLE dialects; CREATE VIEW dialects AS SELECT key AS endpoint, reply AS dialect"
    " FROM calls",
    "view of its own": "CREATE VIEW v AS SELECT randomblob(1000000000) FROM calls",
    "table": "CREATE TABLE other (x)",
    "index": "CREATE INDEX i ON calls (abs(length(reply)))",
    "generated column": "ALTER TABLE leases ADD COLUMN g AS (upper(owner))",
    "other columns": "ALTER TABLE unanswered ADD COLUMN more",
    "virtual table": "CREATE VIRTUAL TABLE v USING fts5(x)",
    "other name": "ALTER TABLE pruned RENAME TO sums",
    "user_version": "PRAGMA user_version = 7",
}


@pytest.fixture
def change(path, fill):
    """Fill a store with ten replies, and change it as SQLite can."""

    def craft(script):
        fill(path, 10)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    return craft


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_a_store_that_defines_something_else_is_set_aside_with_its_replies_kept(
    path, change, key, readable, script
):
    """A trigger would run with every reply that is bought."""
    change(script)

    with closing(CallStore(path)) as store:
        store.put(key(10), "e", "m", ChatReply("new"), None)
        assert store.set_aside == path.with_name("calls.sqlite.damaged-1")
        assert len(readable(store, 10)) == 10
        assert store.get(key(10)).text == "new"


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_a_store_that_defines_something_else_is_not_looked_into(path, change, script):
    """Reading a view runs it."""
    change(script)

    with pytest.raises(DataError, match="the call store is damaged"), reading(path):
        pass


def craft_reply(path, key, text):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT OR REPLACE INTO calls VALUES (?,'e','m',?,?,1,1,NULL,1.0)",
            (key, text, row_sha256(key, str(text))),
        )
        connection.commit()


@pytest.mark.parametrize(
    "text",
    [
        *("5", "[]", "{}", '{"text": 5}', '{"text": "a", "usage": 3}', "[" * 100_000, "no json"),
        *('{"text": "a", "usage": {"prompt_tokens": "x"}}', '{"text": "a", "numerals": [[1]]}'),
        *('{"text": "a", "numerals": [[1, [["a", "b"]]]]}', '{"text": "a", "latency_s": "long"}'),
        *('{"text": "a", "model": {}}', b"\x00\xff"),
    ],
)
def test_what_is_no_reply_is_bought_again_whatever_its_checksum_says(path, key, text):
    """Anybody can compute a checksum."""
    CallStore(path).close()
    craft_reply(path, key(1), text)

    assert read_ledger(path).models[0].damaged == 1
    with closing(CallStore(path)) as store:
        assert store.get(key(1)) is None
        assert store.damaged_rows == 1


@pytest.mark.parametrize(
    "dialect", ["5", "{}}", '{"mode": "x"}', '{"omit": [1]}', b"\xff", "[" * 100_000, "null"]
)
def test_a_way_of_asking_that_is_none_is_learnt_anew(path, store, dialect):
    """It decides what is sent."""
    with store.connected() as connection:
        connection.execute("INSERT INTO dialects VALUES ('e', ?)", (dialect,))

    assert store.dialect("e") is None


@pytest.mark.parametrize("calls", ["'x'", "1e308", "x'ff'", "2.5", "9e999"])
@pytest.mark.parametrize("cost", ["'x'", "9e999", "x'ff'"])
def test_sums_of_what_are_no_numbers_are_no_bug(path, capsys, calls, cost):
    """SQLite keeps text in a column of numbers."""
    CallStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"INSERT INTO pruned VALUES ('m', {calls}, {calls}, 1, 1, {cost})")
        connection.execute("INSERT INTO unanswered VALUES (1, x'ff', 5, 'never')")
        connection.execute("INSERT INTO leases VALUES (1, x'ff', 5, 'never', 'ever')")
        connection.commit()

    assert main(["cache", "stats", "--store", str(path), "--json"]) in (0, 3)
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".check", ".mending"])
def test_a_store_that_is_a_link_is_not_followed(path, fill, tmp_path, suffix):
    """A received set could write into any file of its reader's."""
    fill(path, 1)
    (tmp_path / "mine").write_bytes(b"mine")
    place = path.with_name(path.name + suffix)
    place.unlink(missing_ok=True)
    place.symlink_to(tmp_path / "mine")

    with pytest.raises(DataError, match="mine, which is outside of"):
        CallStore(path)
    with pytest.raises(DataError, match="mine, which is outside of"), reading(path):
        pass
    assert (tmp_path / "mine").read_bytes() == b"mine"
