"""A set small enough to be measured by hand."""

import pytest
from measured_set import make_measured_set

import ragforge as rf

CHUNKS = [
    {"chunk_id": "a", "doc_id": "d1", "text": "The gate opens at nine in the morning."},
    {"chunk_id": "b", "doc_id": "d1", "text": "The gate is painted green every spring."},
    {"chunk_id": "c", "doc_id": "d2", "text": "A ticket for children costs four euros."},
    {"chunk_id": "d", "doc_id": "d2", "text": "The museum shop sells postcards."},
]
QUERIES = [
    {
        "query_id": "q1",
        "query": "When does the gate open?",
        "expected_answer": "at nine",
        "relevant": [{"id": "a", "grade": 3}],
    },
    {
        "query_id": "q2",
        "query": "What do children pay?",
        "expected_answer": "four euros",
        "relevant": [{"id": "c", "grade": 3}],
    },
]
FOUND = {"When does the gate open?": ["b", "a"], "What do children pay?": ["c", "d"]}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A working directory of the test's own, without anybody's settings."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def by_hand(place):
    """Two queries, each with one relevant chunk of four."""
    return rf.from_queries(QUERIES, chunks=CHUNKS, out=place / "by-hand", quiet=True)


@pytest.fixture
def found(by_hand):
    """The same with a run `mine` that has the relevant chunks at ranks 2 and 1."""
    by_hand.retrieve(search, name="mine", quiet=True)
    return by_hand


def search(query, k):
    """Return what the run of these tests holds."""
    return FOUND[query][:k]


@pytest.fixture
def measured(place):
    """Forty queries that people graded, with a run `good` and a run `bad`."""
    make_measured_set(place / "measured", 40)
    return rf.open(place / "measured")
