"""Who gave the grades of a file, as far as it says so."""

import json

import pytest

from ragforge.files.formats.qrels import read_judged_qrels, read_qrels
from ragforge.records.judgments import GradeOrigin

LEXICAL = {"kind": "baseline", "model": "offline-lexical-1"}


@pytest.fixture
def judged(tmp_path):
    """Write rows as ragforge writes judgments, and return the file."""

    def write(*rows):
        path = tmp_path / "judged.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
        return path

    return write


def row(chunk_id, **fields):
    return {"query_id": "q1", "chunk_id": chunk_id, "grade": 2, **fields}


def test_rows_say_who_graded(judged):
    """A winner by the baseline's grades must be known for it in a file as well."""
    path = judged(row("a", provenance=LEXICAL), row("b", source="human"), row("c"))

    assert read_judged_qrels(path).origins == {
        ("q1", "a"): GradeOrigin("baseline", "offline-lexical-1"),
        ("q1", "b"): GradeOrigin("human", source="human"),
    }


def test_grades_are_those_without_origins(judged):
    """Who graded changes no grade."""
    path = judged(row("a", provenance=LEXICAL), row("b", provenance=None))

    assert read_judged_qrels(path).grades == read_qrels(path)


@pytest.mark.parametrize("by", ["me", 7, {"kind": None}, {"kind": ["llm"]}])
def test_odd_provenance_is_no_error(judged, by):
    """Files of other tools may hold a field of that name."""
    [found] = read_judged_qrels(judged(row("a", provenance=by))).origins.values()

    assert not found.says_nothing


def test_a_quote_in_a_chunk_is_a_fact():
    """Whichever rule cut the query out of the text, the chunk holds its answer."""
    assert not GradeOrigin("baseline", "offline-rules-2", source="evidence").says_nothing
    assert GradeOrigin("mock", "m", source="evidence").says_nothing
