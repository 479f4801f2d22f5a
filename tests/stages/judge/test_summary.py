import pytest

from ragforge.records import Judgment
from ragforge.stages.judge.summary import summarise


def judgments(*grades, query_id="q"):
    return [
        Judgment(
            query_id=query_id,
            chunk_id=f"c{place}",
            grade=grade,
            failure="invalid" if grade is None else None,
        )
        for place, grade in enumerate(grades)
    ]


@pytest.mark.parametrize(
    ("grades", "coverage", "relevant", "failed", "average"),
    [
        ((3, 0, 0), "FULL", 1, 0, 1.0),
        ((3, 3), "FULL", 2, 0, 3.0),
        ((2, 1), "PARTIAL", 1, 0, 1.5),
        ((1, 0), "NONE", 0, 0, 0.5),
        ((0,), "NONE", 0, 0, 0.0),
        ((3, None), "FULL", 1, 1, 3.0),
        ((2, None), None, 1, 1, 2.0),
        ((0, None), None, 0, 1, 0.0),
        ((None, None), None, 0, 2, None),
    ],
)
def test_a_summary_counts_what_was_judged(grades, coverage, relevant, failed, average):
    """A failed pair may hold the answer, so it leaves the coverage open, never NONE."""
    [summary] = summarise(judgments(*grades))

    assert summary.answerCoverage == coverage
    assert summary.totalChunks == len(grades)
    assert (summary.relevantChunks, summary.failedChunks) == (relevant, failed)
    assert summary.averageRelevance == average


def test_each_query_has_a_summary_whatever_the_order():
    """Judgments come in the order in which calls ended."""
    mixed = [*judgments(3, query_id="b"), *judgments(0, query_id="a"), *judgments(1, query_id="b")]

    assert [(found.query_id, found.totalChunks) for found in summarise(mixed)] == [
        ("a", 1),
        ("b", 2),
    ]


def test_nothing_judged_has_no_summary():
    """An empty set is no set of zeros."""
    assert summarise([]) == []
