import json
import re

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.query_log import read_log
from ragforge.files.formats.row_relevance import Relevance


@pytest.fixture
def log(tmp_path):
    """Write a log and read it."""

    def run(content, name="log.jsonl"):
        path = tmp_path / name
        rows = content if isinstance(content, list) else None
        text = "".join(f"{json.dumps(row)}\n" for row in rows) if rows is not None else content
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return list(read_log(path))

    return run


@pytest.mark.parametrize(
    ("fields", "relevance"),
    [
        ({"chunk_id": "a", "label": 3}, Relevance({"a": 3})),
        ({"doc_id": "a", "grade": "2"}, Relevance({"a": 2})),
        ({"chunk_id": "a", "label": "Relevant"}, Relevance({}, ("a",))),
        ({"chunk_id": "a", "label": "not relevant"}, Relevance({"a": 0})),
        ({"chunk_id": "a", "label": True}, Relevance({}, ("a",))),
        ({"relevant_ids": ["a", "b"]}, Relevance({}, ("a", "b"), is_list=True)),
        ({"relevant_ids": ["a", "b"], "grade": 0}, Relevance({"a": 0, "b": 0})),
        ({"labels": {"a": 3, "b": 0}}, Relevance({"a": 3, "b": 0})),
        ({"labels": [{"chunk_id": "a", "grade": 1}]}, Relevance({"a": 1})),
        ({"relevant_ids": ["a"], "labels": {"b": 0}}, Relevance({"b": 0}, ("a",), is_list=True)),
    ],
)
def test_labels_of_people_are_read(log, fields, relevance):
    """They are what makes a logged question a query of the set."""
    [row] = log([{"query": "Why?", **fields}])

    assert (row.relevance, row.is_labelled) == (relevance, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"retrieved_ids": ["a"], "scores": [0.3]},
        {"chunk_id": "a", "score": 0.9},
        {"chunk_id": "a", "label": None},
        {"label": 1},
        {"answer": "The system said so.", "response": "So."},
        {"clicked": ["a"]},
        {"labels": {}},
        {"relevant_ids": []},
        {"user": "u1", "timestamp": "2024-01-01T00:00:00Z"},
    ],
)
def test_what_a_system_did_is_no_label(log, fields):
    """A retriever would be measured against itself."""
    [row] = log([{"query": "Why?", **fields}])

    assert not row.is_labelled


def test_answer_of_a_person_is_a_label(log):
    """Answers can be graded against it."""
    [row] = log([{"query": "Why?", "expected_answer": "So.", "answer": "Because."}])

    assert (row.expected_answer, row.is_labelled) == ("So.", True)


def test_counted_tables_are_read(log):
    """Search consoles export them so."""
    rows = log("query,count\nreset password,40\nlog in,\n", "log.csv")

    assert [(row.query, row.count) for row in rows] == [("reset password", 40), ("log in", 1)]


def test_blanks_in_a_question_count_for_nothing(log):
    """A pasted line break is no other question."""
    assert [row.query for row in log([{"q": " why\n so? "}, {"q": None}])] == ["why so?", ""]


@pytest.mark.parametrize(
    ("value", "clicked"),
    [(["a", "a", 7], ("a", "7")), ("a;b", ("a", "b")), (True, ()), (7, ("7",))],
)
def test_clicks_are_read_apart(log, value, clicked):
    """Whoever takes them for labels has to say so."""
    [row] = log([{"query": "Why?", "clicked": value}])

    assert (row.clicked, row.is_labelled) == (clicked, False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "log.jsonl: is empty: no query"),
        ([{"text": "Why?"}], "has none of the shapes accepted"),
        ([{"query": 3}], "log.jsonl:1: query: expected text, got 3"),
        ([{"query": "A?"}, {"query": "B?", "count": 0}], "log.jsonl:2: count: expected a whole"),
        ([{"query": "A?", "chunk_id": "a", "label": "so-so"}], "label: expected 0, 1, 2, 3, rel"),
        ([{"query": "A?", "clicked": {"a": 1}}], "clicked: expected a list of ids"),
        ([{"query": "A?", "relevant_ids": ["a"], "labels": 3}], "expected a list of ids or grad"),
        ('{"query": "A?"}\n{"query": "B', "log.jsonl:2: is not one complete JSON object"),
        ("Größe?".encode("latin-1"), "is not UTF-8"),
        (b"\x00\x01", "is binary"),
    ],
)
def test_faulty_logs_are_refused_with_their_place(log, content, message):
    """A label that is lost silently changes what is measured."""
    with pytest.raises(DataError, match=re.escape(message)):
        log(content)
