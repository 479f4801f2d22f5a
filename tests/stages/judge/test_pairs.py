import pytest

from ragforge.records import Hit, Judgment, Ranking
from ragforge.stages.judge.pairs import PairId, pool, summarise


def ranking(query_id, *chunk_ids):
    hits = tuple(
        Hit(chunk_id=chunk_id, score=1 / rank) for rank, chunk_id in enumerate(chunk_ids, start=1)
    )
    return Ranking(query_id=query_id, ranking=hits)


def test_the_pool_is_the_union_of_the_top_ranks():
    """A pool of one system would favour that system."""
    runs = [[ranking("q1", "c", "a", "d")], [ranking("q1", "b", "a", "e")]]

    assert pool({"q1"}, runs, depth=2) == [("q1", "a"), ("q1", "b"), ("q1", "c")]


def test_a_pair_names_its_ids():
    """The texts are fetched when it is judged, so that a pool of any size fits in memory."""
    assert pool({"q1"}, [[ranking("q1", "a")]], depth=1) == [PairId(query_id="q1", chunk_id="a")]


def test_unknown_queries_are_not_judged():
    """A run over more queries than the set has is common."""
    runs = [[ranking("q1", "a"), ranking("other", "a")]]

    assert pool({"q1"}, runs, depth=5) == [("q1", "a")]


def test_the_order_of_the_runs_does_not_matter():
    """The same inputs must give the same calls."""
    runs = [[ranking("q1", "c", "a")], [ranking("q1", "b", "a")]]

    assert pool({"q1"}, runs, 2) == pool({"q1"}, runs[::-1], 2)


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


def test_each_query_has_a_summary():
    """Coverage is that of one question, never of two."""
    ordered = [*judgments(0, query_id="a"), *judgments(3, 1, query_id="b")]

    assert [(found.query_id, found.totalChunks) for found in summarise(ordered)] == [
        ("a", 1),
        ("b", 2),
    ]


def test_nothing_judged_has_no_summary():
    """An empty set is no set of zeros."""
    assert summarise([]) == []
