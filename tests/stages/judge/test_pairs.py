from ragforge.records import Hit, Ranking
from ragforge.stages.judge.pairs import PairId, pool


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
