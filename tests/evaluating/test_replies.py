import pytest

from ragforge.evaluating.query_details import reply_key, stored_replies
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
from ragforge.records import Judgment, Provenance, Vote


@pytest.fixture
def store(tmp_path):
    """A store with one reply."""
    path = tmp_path / "calls.sqlite"
    made = CallStore(path)
    made.put("k1", "http://x", "m", ChatReply(text='{"grade": 2}'), None)
    made.close()
    return path


def test_replies_that_are_there_are_read(store):
    """What the judge said word for word settles how a grade came about."""
    found = stored_replies(store, {"k1", "k2"})

    assert {key: text.text for key, text in found.items()} == {"k1": '{"grade": 2}'}


def test_reading_replies_changes_no_byte_of_the_store(store):
    """A report must not touch what was paid for."""
    before = store.read_bytes()

    stored_replies(store, {"k1"})

    assert store.read_bytes() == before


def test_absent_store_is_no_failure(tmp_path):
    """A published set comes without its store."""
    assert stored_replies(tmp_path / "none.sqlite", {"k1"}) == {}


def test_damaged_store_is_no_failure(tmp_path):
    """The page can be made without the raw replies."""
    path = tmp_path / "calls.sqlite"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)

    assert stored_replies(path, {"k1"}) == {}


@pytest.mark.parametrize(
    ("judgment", "key"),
    [
        ({"provenance": Provenance(kind="llm", call_key="own")}, "own"),
        ({"votes": (Vote(model="m", grade=None), Vote(model="m", grade=1, call_key="v"))}, "v"),
        ({}, ""),
    ],
)
def test_key_is_of_the_judgment_or_of_its_first_vote(judgment, key):
    """A grade by vote rests on several replies; one of them shows how they look."""
    assert reply_key(Judgment(query_id="q", chunk_id="c", grade=1, **judgment)) == key
