import pytest

from ragforge.evaluating.answers.records import (
    SystemRecords,
    documents_of,
    read_systems,
    source_chunks,
)
from ragforge.records import Answer, Evidence, Failure, Query


@pytest.fixture
def records(make_grade):
    return SystemRecords(
        "sys",
        {q: Answer(query_id=q, answer="a") for q in ("done", "failed", "open")},
        {"done": make_grade("done", "correct"), "failed": make_grade("failed", None)},
        frozenset({"lost"}),
        frozenset({"done", "failed", "open", "lost", "never"}),
    )


def test_every_query_is_in_one_state(records):
    """One that is counted twice, or not at all, makes bounds wrong."""
    assert [grade.query_id for grade in records.graded] == ["done"]
    assert records.without_grade == {"failed", "lost"}
    assert records.ungraded == {"open"}
    assert records.unanswered == {"never"}


def test_a_grade_outweighs_a_failure_of_an_earlier_try(records, make_grade):
    """What was graded at last has a value."""
    found = SystemRecords(
        "sys", {}, {"q": make_grade("q", "correct")}, frozenset({"q"}), frozenset({"q"})
    )

    assert found.without_grade == frozenset()


def test_part_of_the_records_has_nothing_of_the_rest(records):
    """A slice must not count the failures of others."""
    part = records.only(["done", "never"])

    assert (part.without_grade, part.ungraded, part.unanswered) == (set(), set(), {"never"})


def test_systems_are_found_by_answers_grades_and_failures(dataset):
    """A system of which every answer failed has no file, and is not forgotten."""
    queries = {query.query_id: query for query in dataset.require_queries()}
    lost = Failure(what="answer", key="gone/q1", kind="error", message="503")

    found = read_systems(dataset, [lost], queries)

    assert [item.system for item in found] == ["gone", "own"]
    assert found[0].failed == {"q1"}


def test_evidence_names_the_document_before_the_source_chunks_do():
    """A quote is verbatim; where it is from is known."""
    quote = Evidence(doc_id="a.md", chunk_id="c1", quote="x")
    both = Query(query_id="q", query="?", evidence=(quote,), source_chunk_ids=("c2",))
    chunk_only = Query(query_id="p", query="?", source_chunk_ids=("c2",))

    assert documents_of(both, {"c2": "b.md"}) == ("a.md",)
    assert documents_of(chunk_only, {"c2": "b.md"}) == ("b.md",)
    assert source_chunks([both, chunk_only]) == {"c2"}
